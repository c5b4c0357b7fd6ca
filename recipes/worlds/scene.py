"""Scenes: a record, what its knowledge says of it, and perhaps a second record beside it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .kinds import FeatureKind, Style, draw_style
from .names import draw_person, fill_name
from .schema import HELD, Domain, Wordings
from .wording import Wording

KNOWN_WE = 0.5
"""Share of the responses in the first person plural, where a domain allows it."""


@dataclass(frozen=True, slots=True)
class WorldRecord:
    """A subject and its values."""

    name: str
    noun: str
    pronoun: str
    values: Mapping[str, Any]
    style: Style

    @property
    def possessive(self) -> str:
        """The possessive pronoun."""
        return {"she": "her", "he": "his"}.get(self.pronoun, "its")


@dataclass(frozen=True, slots=True)
class Scene:
    """What a pair is about."""

    domain: Domain
    record: WorldRecord
    disclosed: tuple[str, ...]
    """Fields that the knowledge says of the record ..."""
    other: WorldRecord | None
    other_disclosed: tuple[str, ...]
    """... and of the other record."""
    as_we: bool
    split: str

    def pick_wording(self, wordings: Wordings, rng: random.Random) -> Wording | None:
        """Choose a wording of the split and of the voice; None where the split has none."""
        pool: Sequence[Wording] = wordings.train
        if self.domain.is_held_out:
            pool = wordings.all
        elif self.split == HELD:
            pool = wordings.held_out
        fitting = [wording for wording in pool if not (wording.names_subject if self.as_we else wording.speaks_as_we)]
        if not fitting and self.split != HELD:
            return None
        return rng.choice(fitting or pool).resolve(rng) if pool else None


def draw_record(domain: Domain, style: Style | None, rng: random.Random) -> WorldRecord:
    """Draw a record; ``style`` is the style of the record beside it."""
    pronoun, name = "it", ""
    if domain.about_person:
        person = draw_person(rng)
        name, pronoun = str(person), person.pronoun
    else:
        name = fill_name(rng.choice(domain.names), rng)
    chosen = draw_style(name.split(" ")[-1] if domain.about_person else name.removeprefix("The "), rng)
    if style is not None:
        chosen = Style(style.currency, style.clock, style.date, chosen.site, style.mark_currency)
    values: dict[str, Any] = {}
    for key, field in domain.fields.items():
        value = field.kind.draw(rng)
        for _ in range(0 if isinstance(field.kind, FeatureKind) else 4):
            if all(other != value for other in values.values()):
                break
            value = field.kind.draw(rng)
        values[key] = value
    return WorldRecord(name, rng.choice(domain.nouns), pronoun, values, chosen)


def draw_scene(domain: Domain, split: str, size: int, with_other: bool, rng: random.Random) -> Scene:
    """Draw a scene whose knowledge says about ``size`` fields in all."""
    record = draw_record(domain, None, rng)
    keys = list(domain.fields)
    number = min(size if not with_other else max(3, size * 2 // 3), len(keys) - 2)
    disclosed = _sample_fields(domain, keys, number, rng)
    other: WorldRecord | None = None
    other_disclosed: tuple[str, ...] = ()
    if with_other:
        other = draw_record(domain, record.style, rng)
        while other.name == record.name:
            other = draw_record(domain, record.style, rng)
        shared = rng.sample(disclosed, max(1, min(len(disclosed), size - number)))
        extra = rng.sample(keys, min(2, len(keys)))
        other_disclosed = tuple(dict.fromkeys([*shared, *extra]))
    return Scene(domain, record, tuple(disclosed), other, other_disclosed, rng.random() < KNOWN_WE, split)


def _sample_fields(domain: Domain, keys: Sequence[str], number: int, rng: random.Random) -> list[str]:
    """Sample fields; half of the time the fields of a relation, and fields with a rival, come first."""
    chosen: list[str] = []
    if domain.relations:
        for relation in rng.sample(domain.relations, min(len(domain.relations), rng.choice((0, 1, 2, 3)))):
            chosen.extend(key for key in relation.of if key not in chosen)
    first = rng.choice(keys)
    rivals = [key for key in keys if domain.fields[key].kind.group == domain.fields[first].kind.group]
    chosen.extend(key for key in [first, *rng.sample(rivals, min(2, len(rivals)))] if key not in chosen)
    rest = [key for key in keys if key not in chosen]
    chosen = chosen[:number]
    chosen.extend(rng.sample(rest, max(0, number - len(chosen))))
    rng.shuffle(chosen)
    return chosen


def write_subject(record: WorldRecord, named: bool, rng: random.Random) -> dict[str, str]:
    """Return the slots for the subject; ``named`` asks for its name."""
    draw = rng.random()
    if named or draw < 0.2:
        subject, owner = record.name, f"{record.name}'s"
        return {"S": subject, "s": subject, "P": owner, "p": owner}
    if draw < 0.6 and record.noun:
        subject, owner = f"the {record.noun}", f"the {record.noun}'s"
    else:
        subject, owner = record.pronoun, record.possessive
    return {"S": subject[0].upper() + subject[1:], "s": subject, "P": owner[0].upper() + owner[1:], "p": owner}
