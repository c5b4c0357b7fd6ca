"""Domains that are made at random for each scene, so that no field of them can be learned.

``concepts/*.txt`` names what records of an area of life have; ``concepts/wordings.toml`` words any value of a kind.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from .kinds import FieldKind, read_kind
from .schema import DRAWN, UNSEEN, Domain, Field, Relation, Wordings
from .wording import Wording, parse

FOLDER = Path(__file__).parent / "concepts"
HELD_OUT_EVERY = 10
"""One concept of so many is never trained on."""
MODIFIED = 0.3
"""Share of the concepts that become two fields: for members and for guests, in summer and in winter."""
CONDITIONED = 0.5
"""Share of the permissions that may depend on a condition."""
REPHRASED = 0.5
"""Share of the fields whose noun is another one in answers."""
BORROWED = 0.15
"""Share of the drawn domains that have fields of a written domain."""
MIXED = 0.4
"""Share of the drawn domains that have concepts of a second area."""
FIELDS = range(7, 17)
SAID, ANSWERED, ASKED = 3, 5, 2
"""Wordings of a field that are drawn: in knowledge, in answers, of questions."""
RELATIONS = 10
"""Relations of a drawn domain at most."""
COMMON = ("common",)
"""The nouns of the area whose concepts fit many others."""
FEATURES = frozenset(("permit", "has", "incl", "is"))


Choice: TypeAlias = Callable[[Wordings], Sequence[Wording]]
"""Lists the wordings that a domain may use."""


@dataclass(frozen=True, slots=True)
class Concept:
    """What records of an area have."""

    family: str
    """The family of wordings."""
    kind: FieldKind | None
    """None for features."""
    nouns: tuple[str, ...]
    sentences: tuple[str, ...]
    """Own wordings; of a person the predicates."""

    @property
    def is_held_out(self) -> bool:
        """Whether the concept is never trained on."""
        return crc32(self.nouns[0].encode()) % HELD_OUT_EVERY == 0


@dataclass(frozen=True, slots=True)
class Area:
    """An area of life."""

    names: tuple[str, ...]
    nouns: tuple[str, ...]
    about_person: bool
    concepts: tuple[Concept, ...]


@dataclass(frozen=True, slots=True)
class _Family:
    """Wordings of the values of a kind."""

    say: tuple[Wording, ...]
    answers: Wordings
    asks: tuple[str, ...]
    cells: tuple[Wording, ...]


@dataclass(frozen=True, slots=True)
class _Tables:
    families: Mapping[str, _Family]
    modifiers: Mapping[str, Sequence[Sequence[str]]]
    conditions: Sequence[tuple[str, str]]
    relations: Sequence[Mapping[str, Any]]


def _split(text: str, mark: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(mark) if part.strip())


@cache
def _read_tables() -> _Tables:
    tables = tomllib.loads((FOLDER / "wordings.toml").read_text())
    raw: Mapping[str, Mapping[str, Any]] = tables["family"]

    def collect(name: str, key: str) -> tuple[str, ...]:
        lines = _split(raw[name].get(key, ""), "\n")
        base = raw[name].get("base")
        return lines + (collect(base, key) if base else ())

    families = {
        name: _Family(
            tuple(map(parse, collect(name, "say"))),
            Wordings.split(f"drawn.{name}", collect(name, "answer")),
            collect(name, "ask"),
            tuple(map(parse, collect(name, "cell"))) or (parse("{v}"),),
        )
        for name in raw
    }
    return _Tables(families, tables["modifiers"], [tuple(line) for line in tables["conditions"]], tables["relation"])


@cache
def read_areas() -> tuple[Area, ...]:
    """Read the areas and their concepts."""
    kinds = tomllib.loads((FOLDER / "kinds.toml").read_text())
    return tuple(area for path in sorted(FOLDER.glob("*.txt")) for area in _parse_areas(path.read_text(), kinds))


def _parse_areas(text: str, kinds: Mapping[str, Sequence[str]]) -> Iterator[Area]:
    for block in f"\n{text}".split("\n# ")[1:]:
        head, *lines = _split(block, "\n")
        nouns, names = (_split(part, ",") for part in head.split("|"))
        person = names == ("person",)
        yield Area(names, nouns, person, tuple(_parse_concept(line, kinds) for line in lines))


def _parse_concept(line: str, kinds: Mapping[str, Sequence[str]]) -> Concept:
    head, rest = line.split(":", 1)
    nouns, _, sentences = rest.partition("=")
    name, *numbers = head.split()
    family, spec = (name, "") if name in FEATURES else kinds[name]
    kind = read_kind(" ".join((spec, *numbers))) if spec else None
    return Concept(family, kind, _split(nouns, "/"), _split(sentences, "/"))


@cache
def _select(unseen: bool) -> tuple[tuple[Area, ...], tuple[Concept, ...]]:
    """Select the areas with their concepts of a split, and the concepts that fit many areas."""
    areas = [
        replace(area, concepts=tuple(concept for concept in area.concepts if concept.is_held_out == unseen))
        for area in read_areas()
    ]
    every = tuple(concept for area in areas for concept in area.concepts)
    common = next(area for area in areas if area.nouns == COMMON)
    return tuple(area for area in areas if area.nouns != COMMON), every if unseen else common.concepts


def draw_domain(written: Sequence[Domain], unseen: bool, rng: random.Random) -> Domain:
    """Draw a domain.

    Args:
        written: Domains whose fields may be taken.
        unseen: Whether it consists of the concepts that are never trained on.
        rng: What it is a function of.
    """
    areas, common = _select(unseen)
    area = rng.choice(areas)
    fields: dict[str, Field] = {}
    nouns: dict[str, str] = {}
    serves = any(concept.family == "permit" for concept in area.concepts)

    def choose(wordings: Wordings) -> list[Wording]:
        return [line for line in (wordings.all if unseen else wordings.train) if serves or not line.speaks_as_we]

    for concept in _draw_concepts(area, areas, common if serves or unseen else (), unseen, rng):
        for modifier in _draw_modifiers(concept, rng):
            key = f"{len(fields)}"
            fields[key], nouns[key] = _draw_field(key, concept, modifier, choose, rng)
    if written and rng.random() < BORROWED:
        fields |= _borrow([domain for domain in written if domain.about_person == area.about_person], fields, rng)
    relations = tuple(_draw_relations(fields, nouns, choose, rng))
    key = UNSEEN if unseen else DRAWN
    return Domain(key, area.names, area.nouns, (), fields, relations, area.about_person, is_held_out=unseen)


def _borrow(written: Sequence[Domain], fields: Mapping[str, Field], rng: random.Random) -> dict[str, Field]:
    """Take fields of a written domain whose kinds the others do not have: two of one kind might mean the same."""
    domain, groups = rng.choice(written), {field.kind.group for field in fields.values()}
    taken = [field for field in domain.fields.values() if field.kind.group not in groups]
    return {
        key: replace(field, key=key)
        for field in rng.sample(taken, min(4, len(taken)))
        for key in (f"{domain.key}.{field.key}",)
    }


def _draw_concepts(
    area: Area, areas: Sequence[Area], common: Sequence[Concept], unseen: bool, rng: random.Random
) -> list[Concept]:
    number = rng.choice(FIELDS)
    if unseen:
        return rng.sample(common, min(number, len(common)))
    pool = rng.sample(area.concepts, min(number, len(area.concepts)))
    if common:
        pool += rng.sample(common, rng.randint(0, 4))
    if rng.random() < MIXED or len(pool) < number:
        # Sentences of another area might say what the sentences of this area do.
        other = [replace(concept, sentences=()) for concept in rng.choice(areas).concepts]
        pool += rng.sample(other, min(len(other), max(3, number - len(pool))))
    nouns: set[str] = set()
    concepts = []
    for concept in pool:
        if nouns.isdisjoint(concept.nouns):
            nouns.update(concept.nouns)
            concepts.append(concept)
    return concepts


def _draw_modifiers(concept: Concept, rng: random.Random) -> list[str]:
    """Draw what distinguishes two fields of one concept; nothing for a single field."""
    choices = _read_tables().modifiers.get(concept.family, ())
    if not choices or rng.random() >= MODIFIED or any(re.search(r" (for|in|of|on) ", noun) for noun in concept.nouns):
        return [""]
    return [f" {modifier}" for modifier in rng.sample(rng.choice(choices), 2)]


def _draw_field(key: str, concept: Concept, modifier: str, choose: Choice, rng: random.Random) -> tuple[Field, str]:
    """Draw the wordings of a field; the noun is the noun of the answers."""
    if concept.kind is None:
        return _draw_feature(key, concept, choose, rng)
    family = _read_tables().families[concept.family]
    shown = answered = rng.choice(concept.nouns) + modifier
    if rng.random() < REPHRASED:
        answered = rng.choice(concept.nouns) + modifier
    is_person = concept.family == "person"
    sentences = (
        [] if modifier or is_person else [parse(line) for line in rng.sample(concept.sentences, len(concept.sentences))]
    )
    half = len(sentences) // 2 if rng.random() < 0.5 else (len(sentences) + 1) // 2
    said, replied = _list_slots(shown), _list_slots(answered)
    field = Field(
        key,
        concept.kind,
        (_capitalize(shown),),
        f"the {answered}",
        tuple(_fill(ask, replied) for ask in rng.sample(family.asks, ASKED)),
        (),
        family.cells,
        (*_bind(family.say, SAID, said, rng), *sentences[:half]),
        Wordings((*_bind(choose(family.answers), ANSWERED, replied, rng), *sentences[half:] * 2), ()),
        (*concept.sentences, f"is the {answered}") if is_person else (),
    )
    return field, answered


def _draw_feature(key: str, concept: Concept, choose: Choice, rng: random.Random) -> tuple[Field, str]:
    tables = _read_tables()
    name, spec, slots = concept.family, "feature 2", _list_slots(rng.choice(concept.nouns))
    label = slots["b"]
    if name == "permit":
        slots, label = (
            {"i": concept.nouns[0], "g": concept.nouns[1], "G": _capitalize(concept.nouns[1])},
            concept.nouns[1],
        )
        if rng.random() < CONDITIONED:
            condition, kind = rng.choice(tables.conditions)
            name, spec, slots["c"] = "permit_if", f"feature 3 condition {kind}", condition
    family = tables.families[name]
    replied = slots if name.startswith("permit") else _list_slots(rng.choice(concept.nouns))
    asks = tuple(_fill(ask, replied) for ask in rng.sample(family.asks, ASKED))
    field = Field(
        key,
        read_kind(spec),
        (_capitalize(label),),
        "",
        () if spec == "feature 2" else asks,
        asks if spec == "feature 2" else (),
        tuple(cell.bind(slots) for cell in family.cells),
        _bind(family.say, SAID, slots, rng),
        Wordings(_bind(choose(family.answers), ANSWERED, replied, rng), ()),
        (),
    )
    return field, ""


def _bind(
    wordings: Sequence[Wording], number: int, slots: Mapping[str, str], rng: random.Random
) -> tuple[Wording, ...]:
    return tuple(wording.bind(slots) for wording in rng.sample(wordings, min(number, len(wordings))))


def _fill(template: str, slots: Mapping[str, str]) -> str:
    for name, text in slots.items():
        template = template.replace(f"{{{name}}}", text)
    return template


def _list_slots(noun: str) -> dict[str, str]:
    """List the forms of a noun: alone, with its articles, and at the beginning of a sentence."""
    vowel = (noun[0] in "aeiou" and not noun.startswith(("uni", "use", "one", "eu"))) or noun.startswith(
        ("hour", "honor")
    )
    article = f"{'an' if vowel else 'a'} {noun}"
    return {
        "b": noun, "B": _capitalize(noun), "a": article, "A": _capitalize(article), "n": f"the {noun}",
        "N": f"The {noun}",
    }  # fmt: skip


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _draw_relations(
    fields: Mapping[str, Field], nouns: Mapping[str, str], choose: Choice, rng: random.Random
) -> Iterator[Relation]:
    """Draw relations of fields whose kinds fit."""
    groups: dict[str, list[str]] = {}
    for key, noun in nouns.items():
        if noun:
            groups.setdefault(fields[key].kind.group, []).append(key)
    tables = rng.sample(_read_tables().relations, len(_read_tables().relations))
    number = 0
    for table in tables:
        of = _draw_operands(table, groups, nouns, rng)
        if of is None or number >= RELATIONS:
            continue
        number += 1
        slots: dict[str, str] = {}
        for name, key in zip(("first", "second"), of, strict=False):
            slots |= {name: f"the {nouns[key]}", name.capitalize(): f"The {nouns[key]}"}
        wordings = Wordings.split(f"{table['kind']}.{table['groups']}", _split(table["answer"], "\n"))
        bound = Wordings(tuple(wording.bind(slots) for wording in choose(wordings)), ())
        asks = tuple(_fill(ask, slots) for ask in _split(table.get("ask", ""), "\n"))
        yield Relation(table["kind"], of, asks, bound, table)


def _draw_operands(
    table: Mapping[str, Any], groups: Mapping[str, Sequence[str]], nouns: Mapping[str, str], rng: random.Random
) -> tuple[str, ...] | None:
    """Draw the fields of a relation; None where none fit."""
    of: list[str] = []
    patterns = table.get("nouns", [""] * len(table["groups"]))
    for group, pattern in zip(table["groups"], patterns, strict=True):
        fitting = [key for key in groups.get(group, ()) if key not in of and re.search(pattern, nouns[key])]
        if not fitting:
            return None
        of.append(rng.choice(fitting))
    return tuple(of)
