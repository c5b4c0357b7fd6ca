"""Corrects bench/quality/repairs/right_answers.jsonl: 200 right answers; a correction may change none of them.

    python bench/quality/corrections.py                    the embedded bundle with its own metrics
    python bench/quality/corrections.py --metrics fast     other metrics, separated by commas, or a group
    python bench/quality/corrections.py --limit 20         the first rows alone

The answers were written by hand, with arithmetic, times of day, code, dates, units and lists. An edit of a right answer
is harmful unless its meaning stays, which a reader decides: the script prints every edit, and counts as harmful each
that changes a number, a name or a negation, or leaves words out. The rows are never trained or calibrated on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "bench" / "quality" / "repairs" / "right_answers.jsonl"
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import Pair, make_parser, read_pairs  # noqa: E402
from groundwire.engine import Engine  # noqa: E402
from groundwire.engine.text.words import WORD  # noqa: E402
from groundwire.engine.values.support import NEGATIONS  # noqa: E402
from groundwire.repair import Correction, Corrector  # noqa: E402


class Outcome(msgspec.Struct, frozen=True):
    """A right answer and its correction."""

    pair: Pair
    correction: Correction

    @property
    def edited(self) -> bool:
        """Whether the answer is changed."""
        return self.correction.response != self.pair.response

    @property
    def harmful(self) -> bool:
        """Whether an edit changes a number, a name or a negation, or leaves words out."""
        return any(_tell(edit.old) != _tell(edit.new) or not edit.new for edit in self.correction.edits)


def _tell(text: str) -> list[str]:
    """The words of a text that say what is so: words with a digit or a capital, and negations."""
    words = WORD.findall(text)
    return [
        word.lower() for word in words
        if any(map(str.isdigit, word)) or word[0].isupper() or word.lower() in NEGATIONS
    ]  # fmt: skip


def correct_rows(rows: Sequence[Pair], engine: Engine, metrics: list[str] | None) -> list[Outcome]:
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
    for kind in dict.fromkeys(outcome.pair.kind for outcome in outcomes):
        yield _count(kind, [outcome for outcome in outcomes if outcome.pair.kind == kind])
    yield _count("**all**", outcomes)
    for outcome in outcomes:
        for edit in outcome.correction.edits:
            yield f"{outcome.pair.id}: “{edit.old}” → “{edit.new}” ({edit.source})"


def _count(title: str, outcomes: Sequence[Outcome]) -> str:
    doubted = sum(outcome.correction.before.verdict.label == "inconsistent" for outcome in outcomes)
    edited, harmful = (sum(flags) for flags in zip(*((item.edited, item.harmful) for item in outcomes), strict=True))
    return f"| {title} | {len(outcomes)} | {doubted} | {edited} | {harmful} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Correct the answers and print what came of it."""
    parser = make_parser(__doc__)
    parser.add_argument("--limit", type=int, help="answers, at most; default: all")
    parser.add_argument("--threads", type=int, help="processor threads")
    options = parser.parse_args(arguments)
    with Engine.load(options.bundle, threads=options.threads) as engine:
        outcomes = correct_rows(read_pairs(ROWS, Pair)[: options.limit], engine, options.metrics)
    print("\n".join(describe(outcomes)))


if __name__ == "__main__":
    main()
