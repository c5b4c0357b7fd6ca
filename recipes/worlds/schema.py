"""Domains: the fields of their records and the wordings of both, read from ``domains/*.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from .kinds import FeatureKind, FieldKind, read_kind
from .wording import Wording, parse

HELD_OUT = ("api", "event", "hotel", "leaflet")
"""Domains that are never trained on."""
DRAWN, UNSEEN = "drawn", "drawn_unseen"
"""Names of the domains that are made for one scene, of concepts of training or of others."""
SHARED = "_venue"
"""Fields that several training domains have in common."""
MIN_WORDINGS = 4
"""No wording of a shorter list is held out."""
FOLDER = Path(__file__).parent / "domains"
TRAIN, HELD, CONCEPTS = "train", "held_out", "held_out_concepts"


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

    @property
    def is_held_out(self) -> bool:
        """Whether the domain is never trained on."""
        return self.key in (*HELD_OUT, UNSEEN)


@cache
def read_domains() -> Mapping[str, Domain]:
    """Read all domains."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("[a-z]*.toml"))}


def _read(path: Path) -> Domain:
    table = tomllib.loads(path.read_text())
    fields = {key: _read_field(path.stem, key, value) for key, value in table["field"].items()}
    relations = [_read_relation(path.stem, value) for value in table.get("relation", ())]
    if table.get("shared"):
        common = tomllib.loads((FOLDER / f"{SHARED}.toml").read_text())
        taken = {key: value for key, value in common["field"].items() if key in table["shared"] and key not in fields}
        fields |= {key: _read_field(SHARED, key, value) for key, value in taken.items()}
        relations += [
            _read_relation(SHARED, value) for value in common["relation"] if all(key in fields for key in value["of"])
        ]
    return Domain(
        path.stem,
        tuple(table["names"]),
        tuple(table["nouns"]),
        _read_lines(table, "intros"),
        fields,
        tuple(relations),
        table.get("about_person", False),
    )


def _read_lines(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    lines = table.get(key, "")
    return tuple(line.strip() for line in lines.splitlines() if line.strip())


def _read_field(domain: str, key: str, table: Mapping[str, Any]) -> Field:
    kind = read_kind(table["kind"])
    plain = "[yes|no]" if isinstance(kind, FeatureKind) else "{v}"
    return Field(
        key,
        kind,
        tuple(table["label"].split("|")),
        table.get("name", ""),
        _read_lines(table, "ask"),
        _read_lines(table, "polar"),
        tuple(parse(cell) for cell in _read_lines(table, "cell")) or (parse(plain),),
        tuple(parse(line) for line in _read_lines(table, "say")),
        Wordings.split(f"{domain}.{key}", _read_lines(table, "answer")),
        _read_lines(table, "acts"),
    )


def _read_relation(domain: str, table: Mapping[str, Any]) -> Relation:
    lines = _read_lines(table, "answer")
    key = f"{domain}.{table['kind']}.{table['of']}.{lines[0]}"
    return Relation(table["kind"], tuple(table["of"]), _read_lines(table, "ask"), Wordings.split(key, lines), table)
