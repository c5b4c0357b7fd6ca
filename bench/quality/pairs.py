"""Pairs written by hand, responses with their knowledge: how the scripts of this folder read and score them."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from groundwire.engine import Engine, Request, Score

Label = Literal["consistent", "inconsistent", "unverifiable"]


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A response and its knowledge."""

    id: str
    kind: str
    knowledge: str | list[str]
    response: str
    history: list[str] = []

    @property
    def request(self) -> Request:
        """What the engine scores."""
        knowledge = (self.knowledge,) if isinstance(self.knowledge, str) else self.knowledge
        return Request(self.response, tuple(knowledge), tuple(self.history))


class LabelledPair(Pair, frozen=True, kw_only=True):
    """A response and its knowledge, and what is true of them."""

    expected: Label


RowT = TypeVar("RowT")
LabelledT = TypeVar("LabelledT", bound=LabelledPair)


class Outcome(msgspec.Struct, Generic[LabelledT], frozen=True):
    """A pair and its score."""

    pair: LabelledT
    score: Score

    @property
    def right(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.score.verdict.label == self.pair.expected


def read_pairs(path: Path, kind: type[RowT]) -> list[RowT]:
    """The pairs, or other rows, of a file of JSON Lines, which gzip may have compressed."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [msgspec.json.decode(line, type=kind) for line in text.splitlines()]


def score_pairs(pairs: Sequence[LabelledT], engine: Engine, metrics: list[str] | None) -> list[tuple[LabelledT, Score]]:
    """Each pair with its score."""
    requests = (pair.request for pair in pairs)
    return list(zip(pairs, engine.score_many(requests, metrics=metrics), strict=True))


def make_parser(text: str | None) -> argparse.ArgumentParser:
    """The options of all scripts; ``text`` is the script's docstring, whose first line describes it."""
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    parser.add_argument("--bundle", default="compact", help="a bundle's name or directory")
    parser.add_argument(
        "--metrics",
        type=lambda names: names.split(","),
        help="metrics or groups, separated by commas; by default the metrics of the verdict",
    )
    return parser
