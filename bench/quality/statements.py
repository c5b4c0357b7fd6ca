"""Counts the lines of ``bench/quality/statements`` that are called unverifiable, and those that should be.

    python -m bench statements               both halves, the embedded bundles
    python -m bench statements --rows        each line with the other label

Small talk, opinions, questions and advice state nothing: ``unverifiable``. A claim about the world, or about what the
speaker did, has or can do, is ``consistent`` or ``inconsistent``. The rules were written on the half ``development``;
the half ``unseen`` is by the same hand.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import msgspec

ROOT = Path(__file__).resolve().parents[2]
LINES = Path(__file__).with_name("statements") / "lines.jsonl"
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import make_parser  # noqa: E402
from groundwire.engine import Engine, Request  # noqa: E402

KNOWLEDGE = "The museum opens at 9 a.m. and closes at 5 p.m. from Tuesday to Sunday."
CLAIMS = ("world", "self")


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A response, and what kind of sentence it is."""

    half: Literal["development", "unseen"]
    kind: Literal["small talk", "opinion", "question", "advice", "world", "self"]
    response: str


def read_lines() -> list[Line]:
    """Read the lines."""
    return [msgspec.json.decode(line, type=Line) for line in LINES.read_bytes().splitlines()]


def main() -> None:
    """Print how many lines of each kind are called unverifiable."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", action="store_true", help="list the lines with the other label")
    arguments = parser.parse_args()
    lines = read_lines()
    with Engine.load(arguments.bundle) as engine:
        requests = (Request(line.response, (KNOWLEDGE,)) for line in lines)
        labels = [score.verdict.label for score in engine.score_many(requests, metrics=arguments.metrics)]
    totals = Counter((line.half, line.kind) for line in lines)
    silent = Counter(
        (line.half, line.kind) for line, label in zip(lines, labels, strict=True) if label == "unverifiable"
    )
    print("| half | kind | lines | unverifiable |", "|---|---|---|---|", sep="\n")
    for (half, kind), total in totals.items():
        print(f"| {half} | {kind} | {total} | {silent[half, kind]} |")
    if arguments.rows:
        for line, label in zip(lines, labels, strict=True):
            if (label == "unverifiable") == (line.kind in CLAIMS):
                print(f"{line.half}, {line.kind}, {label}: {line.response}")


if __name__ == "__main__":
    main()
