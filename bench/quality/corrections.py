"""Corrects bench/quality/repairs/right_answers.jsonl: 200 right answers; a correction may change none of them.

    python bench/quality/corrections.py                    the embedded bundle with its own metrics
    python bench/quality/corrections.py --metrics fast     other metrics, separated by commas, or a group
    python bench/quality/corrections.py --limit 20         the first rows alone
    python bench/quality/corrections.py --written 100      100 right answers of the written documents held out of
                                                           training, and their wrong versions
    python bench/quality/corrections.py --values           120 right answers with a value, and the same with another: 60
                                                           of one sentence (value_pairs.jsonl), and 60 of knowledge with
                                                           several values of a kind (value_twins.jsonl)

The answers were written by hand, with arithmetic, times of day, code, dates, units and lists. An edit of a right answer
is harmful unless its meaning stays, which a reader decides: the script prints every edit, and counts as harmful each
that changes a number, a name or a negation, or leaves words out. An edit of a wrong answer is harmful unless the right
answer has the words that it writes. The rows are never trained or calibrated on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "bench" / "quality" / "repairs" / "right_answers.jsonl"
VALUE_FILES = tuple(map(ROWS.with_name, ("value_pairs.jsonl", "value_twins.jsonl")))
SEED = 13
"""Chooses the slots of the written answers that become wrong."""
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import Pair, make_parser, read_pairs  # noqa: E402
from groundwire.engine import Engine  # noqa: E402
from groundwire.engine.extend import WORD  # noqa: E402
from groundwire.engine.values import NEGATIONS  # noqa: E402
from groundwire.recipes.written.pairs import WrittenPairs  # noqa: E402
from groundwire.recipes.written.rows import iterate_rows  # noqa: E402
from groundwire.repair import Correction, Corrector  # noqa: E402


class Outcome(msgspec.Struct, frozen=True):
    """A right answer and its correction."""

    pair: Pair
    correction: Correction
    right_answer: str = ""
    """The right version of a wrong answer."""

    @property
    def edited(self) -> bool:
        """Whether the answer is changed."""
        return self.correction.response != self.pair.response

    @property
    def harmful(self) -> bool:
        """Whether an edit writes what a right version does not have, or changes what a right answer states."""
        if self.right_answer:
            return any(not edit.new or edit.new not in self.right_answer for edit in self.correction.edits)
        return any(_tell(edit.old) != _tell(edit.new) or not edit.new for edit in self.correction.edits)

    @property
    def repaired(self) -> bool:
        """Whether a wrong answer is now the right one."""
        return self.correction.response == self.right_answer


def _tell(text: str) -> list[str]:
    """The words of a text that say what is so: words with a digit or a capital, and negations."""
    words = WORD.findall(text)
    return [
        word.lower() for word in words
        if any(map(str.isdigit, word)) or word[0].isupper() or word.lower() in NEGATIONS
    ]  # fmt: skip


def read_written(count: int) -> Iterator[tuple[Pair, str]]:
    """Right answers of the held-out documents, at equal distances, each followed by its wrong version and the right."""
    rows = list(iterate_rows(WrittenPairs.read("dev").documents, SEED))
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    for index in range(count):
        right, wrong = pairs[index * len(pairs) // count]
        yield _make_pair(right, "right"), ""
        yield _make_pair(wrong, "wrong"), right["response"]


def read_value_pairs() -> Iterator[tuple[Pair, str]]:
    """Right answers whose value is in the knowledge, each followed by the same with another value, and the right."""
    for path in VALUE_FILES:
        for line in path.read_bytes().splitlines():
            row = msgspec.json.decode(line)
            yield _make_pair(row | {"response": row["right"]}, f"{path.stem}: right"), ""
            yield _make_pair(row | {"response": row["wrong"]}, f"{path.stem}: wrong"), row["right"]


def _make_pair(row: dict[str, Any], kind: str) -> Pair:
    return Pair(
        id=row["id"], kind=kind, knowledge=row["knowledge"], history=row["history"], response=row["response"]
    )  # fmt: skip


def correct_rows(
    rows: Sequence[tuple[Pair, str]], engine: Engine, metrics: list[str] | None
) -> list[Outcome]:  # fmt: skip
    """Each answer with its correction."""
    corrector = Corrector(engine)
    return [
        Outcome(row, corrector.correct(row.response, row.knowledge, history=row.history, metrics=metrics), right)
        for row, right in rows
    ]  # fmt: skip


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of the table by kind, and every edit."""
    yield "| kind | answers | called inconsistent | edited | harmful | repaired |"
    yield "|---|---|---|---|---|---|"
    for kind in dict.fromkeys(outcome.pair.kind for outcome in outcomes):
        yield _count(kind, [outcome for outcome in outcomes if outcome.pair.kind == kind])
    yield _count("**all**", outcomes)
    for outcome in outcomes:
        for edit in outcome.correction.edits:
            yield f"{outcome.pair.id}: “{edit.old}” → “{edit.new}” ({edit.source})"


def _count(title: str, outcomes: Sequence[Outcome]) -> str:
    doubted = sum(outcome.correction.before.verdict.label == "inconsistent" for outcome in outcomes)
    flags = ((item.edited, item.harmful, item.repaired) for item in outcomes)
    edited, harmful, repaired = (sum(column) for column in zip(*flags, strict=True))
    return f"| {title} | {len(outcomes)} | {doubted} | {edited} | {harmful} | {repaired} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Correct the answers and print what came of it."""
    parser = make_parser(__doc__)
    parser.add_argument("--limit", type=int, help="answers, at most; default: all")
    parser.add_argument("--written", type=int, help="right answers of the held-out written documents, instead")
    parser.add_argument("--values", action="store_true", help="pairs of a right and a wrong value, instead")
    parser.add_argument("--threads", type=int, help="processor threads")
    options = parser.parse_args(arguments)
    if options.values:
        rows = list(read_value_pairs())
    elif options.written:
        rows = list(read_written(options.written))
    else:
        rows = [(row, "") for row in read_pairs(ROWS, Pair)]
    with Engine.load(options.bundle, threads=options.threads) as engine:
        outcomes = correct_rows(rows[: options.limit], engine, options.metrics)
    print("\n".join(describe(outcomes)))


if __name__ == "__main__":
    main()
