"""Domains: the fields of their records and the wordings of both, read from ``domains/*.toml``.

A file has ``names`` (patterns such as ``The {sign}``), ``nouns`` and perhaps ``intros`` of the subject; ``held_out =
true`` if nothing is trained on it; ``about_person = true``; and the keys of ``domains/_venue.toml`` that it shares. A
``[field.KEY]`` has a ``kind`` (see ``kinds.read_kind``), labels, and one wording a line (see ``wording``): what the
knowledge says (``say``, ``cell``), answers and questions (``ask``; ``polar`` for yes or no). A ``[[relation]]`` derives
a claim ``of`` one or two fields by a ``kind`` of ``SLOTS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import msgspec

from .kinds import FeatureKind, FieldKind, Quantity, read_kind
from .names import NAME_PARTS
from .wording import Wording, parse

DRAWN, UNSEEN = "drawn", "drawn_unseen"
"""Names of the domains that are made for one scene, of concepts of training or of others."""
SHARED = "_venue"
"""Fields that several training domains have in common."""
MIN_WORDINGS = 4
"""No wording of a shorter list is held out."""
FOLDER = Path(__file__).parent / "domains"
TRAIN, HELD, CONCEPTS = "train", "held_out", "held_out_concepts"
SUBJECT = frozenset("SsPp")
"""Slots of the subject and its possessive, with a large or a small letter."""
SLOTS: Mapping[str, tuple[int, str]] = {
    "threshold": (1, "xv"),
    "open_at": (2, "x"),
    "on_day": (1, "x"),
    "product": (1, "nr"),
    "sum": (2, "r"),
    "difference": (2, "r"),
    "comparison": (2, ""),
    "discount": (2, "r"),
    "offset": (2, "r"),
    "duration": (2, "r"),
    "until": (1, "xr"),
    "share": (2, "r"),
}
"""For each kind of a relation, how many fields it is of, and the slots of its wordings."""


class WorldError(ValueError):
    """Raised for a file of a domain that cannot be used; the message names the file and the entry."""


class _FieldTable(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    label: str
    say: str
    answer: str
    name: str = ""
    ask: str = ""
    polar: str = ""
    cell: str = ""
    acts: str = ""


class _RelationTable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    kind: str
    of: list[str]
    answer: str
    ask: str = ""
    op: Literal["ge", "gt", "le", "lt"] | None = None
    n: int | None = None
    polar: bool | None = None
    saved: bool = False
    before: bool = False
    after: bool = False


class _DomainTable(msgspec.Struct, forbid_unknown_fields=True):
    field: dict[str, _FieldTable]
    relation: list[_RelationTable] = []
    names: list[str] = []
    nouns: list[str] = []
    intros: str = ""
    shared: list[str] = []
    about_person: bool = False
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Wordings:
    """Wordings of an answer, split into training and held-out ones."""

    train: tuple[Wording, ...]
    held_out: tuple[Wording, ...]

    @classmethod
    def split(cls, key: str, lines: Sequence[str]) -> Wordings:
        """Hold one of the lines out, by a checksum of ``key``."""
        parsed = tuple(parse(line) for line in lines)
        if len(parsed) < MIN_WORDINGS:
            return cls(parsed, ())
        held = crc32(key.encode()) % len(parsed)
        return cls(parsed[:held] + parsed[held + 1 :], (parsed[held],))

    @property
    def all(self) -> tuple[Wording, ...]:
        """Both."""
        return self.train + self.held_out


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record."""

    key: str
    kind: FieldKind
    labels: tuple[str, ...]
    name: str
    """What the value is, as a noun phrase: "the opening time"; empty where no noun fits."""
    asks: tuple[str, ...]
    polar: tuple[str, ...]
    """Questions whose answer is yes in the first state."""
    cells: tuple[Wording, ...]
    say: tuple[Wording, ...]
    answers: Wordings
    acts: tuple[str, ...]
    """What a person does, as a predicate."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What follows from one or two fields."""

    kind: str
    of: tuple[str, ...]
    asks: tuple[str, ...]
    answers: Wordings
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Domain:
    """A schema of records."""

    key: str
    names: tuple[str, ...]
    nouns: tuple[str, ...]
    intros: tuple[str, ...]
    fields: Mapping[str, Field]
    relations: tuple[Relation, ...]
    about_person: bool
    is_held_out: bool
    """Whether the domain is never trained on."""


@cache
def read_domains() -> Mapping[str, Domain]:
    """Read all domains."""
    return {path.stem: read_domain(path) for path in sorted(FOLDER.glob("[a-z]*.toml"))}


def read_domain(path: Path) -> Domain:
    """Read a domain.

    Raises:
        WorldError: The file is not TOML, an entry is unknown or missing, or a slot of a wording is never filled.
    """
    table = _decode(path)
    fields = {key: _read_field(path, key, value) for key, value in table.field.items()}
    relations = [_read_relation(path, value, fields) for value in table.relation]
    if table.shared:
        shared_path = FOLDER / f"{SHARED}.toml"
        common = _decode(shared_path)
        unknown = sorted(set(table.shared) - set(common.field))
        _check(not unknown, path, "shared", f"has {unknown}; allowed are {', '.join(common.field)}")
        taken = {key: value for key, value in common.field.items() if key in table.shared and key not in fields}
        fields |= {key: _read_field(shared_path, key, value) for key, value in taken.items()}
        relations += [
            _read_relation(shared_path, value, fields)
            for value in common.relation
            if all(key in fields for key in value.of)
        ]
    for entry, lines in (("names", table.names), ("nouns", table.nouns)):
        _check(bool(lines), path, entry, "is empty; name at least one")
    for name in table.names:
        _check_slots(path, "names", parse(name), NAME_PARTS)
    intros = _split(table.intros)
    for intro in intros:
        _check_slots(path, "intros", parse(intro), {"S"})
    return Domain(
        path.stem,
        tuple(table.names),
        tuple(table.nouns),
        intros,
        fields,
        tuple(relations),
        table.about_person,
        table.held_out,
    )


def _decode(path: Path) -> _DomainTable:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_DomainTable)
    except msgspec.MsgspecError as error:
        raise WorldError(f"{path}: {error}. The docstring of recipes/worlds/schema.py has the entries") from error


def _check(holds: bool, path: Path, entry: str, problem: str) -> None:
    if not holds:
        raise WorldError(f"{path}: {entry} {problem}")


def _split(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _parse(path: Path, entry: str, text: str, slots: Iterable[str], states: int) -> tuple[str, ...]:
    """Check the wordings of an entry and return its lines."""
    lines = _split(text)
    for line in lines:
        try:
            wording = parse(line)
        except ValueError as error:
            raise WorldError(f"{path}: {entry} has unbalanced brackets: {line!r}; close each [ and (") from error
        _check_slots(path, entry, wording, slots)
        wrong = {number for number in wording.list_state_counts() if number != states}
        allowed = f"[…|…] needs {states} alternatives" if states else "no […|…] is allowed, as nothing is negated"
        _check(not wrong, path, entry, f"has {line!r}; {allowed}")
    return lines


def _check_slots(path: Path, entry: str, wording: Wording, slots: Iterable[str]) -> None:
    unknown = sorted(wording.slots - set(slots))
    allowed = ", ".join(sorted(slots))
    _check(not unknown, path, entry, f"has the slots {unknown} in {wording.source!r}; allowed are {allowed}")


def _read_field(path: Path, key: str, table: _FieldTable) -> Field:
    try:
        kind = read_kind(table.kind)
    except (ValueError, IndexError, KeyError) as error:
        raise WorldError(
            f"{path}: field.{key}.kind is {table.kind!r}; see read_kind in recipes/worlds/kinds.py"
        ) from error
    inner, states = (kind.inner, kind.states) if isinstance(kind, FeatureKind) else (kind, 0)
    value = set() if inner is None else {"v", "num", *(("v-",) if isinstance(inner, Quantity) else ())}

    def read(entry: str, slots: Iterable[str] = SUBJECT | value, number: int = states) -> tuple[str, ...]:
        return _parse(path, f"field.{key}.{entry}", getattr(table, entry), slots, number)

    say, answer = read("say"), read("answer")
    for entry, lines in (("say", say), ("answer", answer)):
        _check(bool(lines), path, f"field.{key}.{entry}", "is empty; write a wording a line")
    return Field(
        key,
        kind,
        tuple(table.label.split("|")),
        table.name,
        read("ask", (), 0),
        read("polar", (), 0),
        tuple(parse(cell) for cell in read("cell", value) or ("[yes|no]" if states else "{v}",)),
        tuple(parse(line) for line in say),
        Wordings.split(f"{path.stem}.{key}", answer),
        read("acts", (), 0),
    )


def _read_relation(path: Path, table: _RelationTable, fields: Mapping[str, Field]) -> Relation:
    entry = f"relation {table.kind!r} of {table.of}"
    _check(table.kind in SLOTS, path, entry, f"is unknown; the kinds are {', '.join(SLOTS)}")
    number, slots = SLOTS[table.kind]
    unknown = [key for key in table.of if key not in fields]
    _check(not unknown, path, entry, f"has no field {unknown}; the fields are {', '.join(fields)}")
    _check(len(table.of) == number, path, entry, f"needs {number} field(s)")
    _check(table.kind != "threshold" or table.op is not None, path, entry, "needs op: ge, gt, le or lt")
    lines = _parse(path, entry, table.answer, SUBJECT | set(slots), 2)
    _check(bool(lines), path, entry, "has no answer; write a wording a line")
    asks = _parse(path, entry, table.ask, SUBJECT | set(slots), 2)
    key = f"{path.stem}.{table.kind}.{table.of}.{lines[0]}"
    options = {name: value for name, value in msgspec.structs.asdict(table).items() if value is not None}
    return Relation(table.kind, tuple(table.of), asks, Wordings.split(key, lines), options)
