"""Corrects bench/quality/repairs/right_answers.jsonl: 200 right answers, of which a correction may change none.

    python bench/quality/corrections.py                    the embedded bundle with its own metrics
    python bench/quality/corrections.py --metrics fast     other metrics, separated by commas, or a group
    python bench/quality/corrections.py --limit 20         the first rows alone

The answers were written by hand, with arithmetic, times of day, code, dates, units and lists. An edit of a right answer
is harmful unless its meaning stays, which a reader decides: the script prints every edit, and counts as harmful each
that changes a number, a name or a negation, or leaves words out. The rows are never trained or calibrated on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "bench" / "quality" / "repairs" / "right_answers.jsonl"
sys.path.insert(0, str(ROOT))

from groundwire.engine import Engine  # noqa: E402
from groundwire.engine.text.words import WORD  # noqa: E402
from groundwire.engine.values.support import NEGATIONS  # noqa: E402
from groundwire.repair import Correction, Corrector  # noqa: E402


class RightAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A response that its knowledge supports, as written or by a step of reasoning."""

    id: str
    kind: str
    knowledge: str | list[str]
    response: str
    history: list[str] = []


class Outcome(msgspec.Struct, frozen=True):
    """A right answer and what a correction makes of it."""

    row: RightAnswer
    correction: Correction

    @property
    def edited(self) -> bool:
        """Whether the answer is changed."""
        return self.correction.response != self.row.response

    @property
    def harmful(self) -> bool:
        """Whether an edit changes a number, a name or a negation, or leaves words out."""
        return any(_tell(edit.old) != _tell(edit.new) or not edit.new for edit in self.correction.edits)


def _tell(text: str) -> list[str]:
    """The words of a text that say what is so: those with a digit or a capital, and negations."""
    words = WORD.findall(text)
    return [
        word.lower() for word in words
        if any(map(str.isdigit, word)) or word[0].isupper() or word.lower() in NEGATIONS
    ]  # fmt: skip


def read_rows(path: Path = ROWS) -> list[RightAnswer]:
    """The right answers."""
    return [msgspec.json.decode(line, type=RightAnswer) for line in path.read_bytes().splitlines()]


def correct_rows(rows: Sequence[RightAnswer], engine: Engine, metrics: list[str] | None) -> list[Outcome]:
    """Each answer with its correction."""
    corrector = Corrector(engine)
    return [
        Outcome(row, corrector.correct(row.response, row.knowledge, history=row.history, metrics=metrics))
        for row in rows
    ]  # fmt: skip


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of the table by kind, and every edit."""
    yield "| kind | answers | called inconsistent | edited | harmful |"
    yield "|---|---|---|---|---|"
    for kind in dict.fromkeys(outcome.row.kind for outcome in outcomes):
        yield _count(kind, [outcome for outcome in outcomes if outcome.row.kind == kind])
    yield _count("**all**", outcomes)
    for outcome in outcomes:
        for edit in outcome.correction.edits:
            yield f"{outcome.row.id}: “{edit.old}” → “{edit.new}” ({edit.source})"


def _count(title: str, outcomes: Sequence[Outcome]) -> str:
    doubted = sum(outcome.correction.status != "clean" for outcome in outcomes)
    edited, harmful = (sum(flags) for flags in zip(*((item.edited, item.harmful) for item in outcomes), strict=True))
    return f"| {title} | {len(outcomes)} | {doubted} | {edited} | {harmful} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Correct the answers and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bundle", default="compact", help="a bundle's name or directory")
    parser.add_argument("--metrics", help="separated by commas, or a group; default: those of the verdict")
    parser.add_argument("--limit", type=int, help="answers, at most; default: all")
    parser.add_argument("--threads", type=int, help="processor threads")
    options = parser.parse_args(arguments)
    metrics = options.metrics.split(",") if options.metrics else None
    with Engine.load(options.bundle, threads=options.threads) as engine:
        outcomes = correct_rows(read_rows()[: options.limit], engine, metrics)
    print("\n".join(describe(outcomes)))


if __name__ == "__main__":
    main()
