"""Scores the pairs of ``bench/quality/production``: answers as assistants in production write them.

    python bench/quality/production.py                          the development half, the embedded bundle
    python bench/quality/production.py --metrics fast           other metrics, separated by commas, or a group
    python bench/quality/production.py --file sealed.jsonl.gz   the sealed half, for a final figure only
    python bench/quality/production.py --file visitors.jsonl    what newcomers wrote before they tried the product
    python bench/quality/production.py --rows                   each wrong verdict and each mark
    python bench/quality/production.py --beside 4000            with so many characters of other rows' passages beside

ROC-AUC ranks the verdict's probabilities of consistent and inconsistent rows; a row without a probability counts as
0.5. A label is right if it is the verdict's; a false positive is a consistent row called inconsistent. "Marks fit"
counts the inconsistent rows in which a mark overlaps every noted range and the marks have at most as many other words
as noted ones. The intervals (95 %) are bootstraps over knowledge texts.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("production")
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import Label, LabelledPair, make_parser, read_pairs, score_pairs  # noqa: E402
from bench.quality.pairs import Outcome as PairOutcome  # noqa: E402
from groundwire.engine import Engine  # noqa: E402
from groundwire.engine.extend import WORD  # noqa: E402
from groundwire.evaluate.statistics.estimates import roc_auc  # noqa: E402

LENGTHS = {"1–25 words": 25, "26–60": 60, "61–120": 120, "over 120": sys.maxsize}


class Range(msgspec.Struct, frozen=True):
    """Characters of the response that the knowledge does not support."""

    start: int
    end: int
    reason: str


class Row(LabelledPair, frozen=True, kw_only=True):
    """A response with its knowledge, written by hand, and what two readers say of it."""

    expected: Label = msgspec.field(name="label")
    unsupported: list[Range]
    form: str = ""
    note: str = ""


class Outcome(PairOutcome[Row], frozen=True):
    """A row and its score."""

    @property
    def probability(self) -> float:
        """That the response is consistent; 0.5 where the verdict has none."""
        probability = self.score.verdict.probability
        return 0.5 if probability is None else probability

    @property
    def marks_fit(self) -> bool:
        """Whether the marks are at every noted range and hardly elsewhere."""
        noted, marks = self.pair.unsupported, self.score.unsupported
        are_found = all(any(mark.start < part.end and part.start < mark.end for mark in marks) for part in noted)
        words = [match.span() for match in WORD.finditer(self.pair.response)]
        wanted = {word for word in words if any(part.start < word[1] and word[0] < part.end for part in noted)}
        marked = {word for word in words if any(mark.start < word[1] and word[0] < mark.end for mark in marks)}
        return are_found and len(marked - wanted) <= len(wanted)


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of the table: all rows, then by length and by kind."""
    yield "| rows | count | ROC-AUC | labels right | false positives | power | marks fit |"
    yield "|---|---|---|---|---|---|---|"
    yield _line("**all**", outcomes, interval=True)
    least = 0
    for title, most in LENGTHS.items():
        yield _line(title, [item for item in outcomes if least < len(item.pair.response.split()) <= most])
        least = most
    for kind in sorted({item.pair.kind for item in outcomes}):
        yield _line(kind, [item for item in outcomes if item.pair.kind == kind])


def _line(title: str, outcomes: Sequence[Outcome], *, interval: bool = False) -> str:
    cells = [_rank(outcomes), *_share_cells(outcomes)]
    if interval:
        drawn = [[_rank(sample), *_share_cells(sample)] for sample in _bootstrap(outcomes)]
        columns = np.array(drawn, dtype=np.float64).T
        texts = [_show_interval(cell, column) for cell, column in zip(cells, columns, strict=True)]
    else:
        texts = [_show(cell) for cell in cells]
    return f"| {title} | {len(outcomes)} | {' | '.join(texts)} |"


def _show(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _show_interval(value: float, drawn: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    if np.isnan(value):
        return _show(value)
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return f"{_show(value)} ({_show(low)}–{_show(high)})"


def _rank(outcomes: Sequence[Outcome]) -> float:
    stated = [item for item in outcomes if item.pair.expected != "unverifiable"]
    labels = np.array([item.pair.expected == "consistent" for item in stated])
    if labels.all() or not labels.any():
        return float("nan")
    values = np.array([item.probability for item in stated])
    return float(roc_auc(values, labels)(np.ones((len(stated), 1)))[0])


def _share_cells(outcomes: Sequence[Outcome]) -> list[float]:
    """Labels right, false positives, power, marks that fit; NaN without rows."""
    called = {
        label: [item.score.verdict.label == "inconsistent" for item in outcomes if item.pair.expected == label]
        for label in ("consistent", "inconsistent")
    }
    fit = [item.marks_fit for item in outcomes if item.pair.unsupported]
    lists = [[item.right for item in outcomes], called["consistent"], called["inconsistent"], fit]
    return [float(np.mean(flags)) if flags else float("nan") for flags in lists]


def _bootstrap(outcomes: Sequence[Outcome], draws: int = 500) -> Iterator[list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for item in outcomes:
        groups.setdefault(str(item.pair.knowledge) or item.pair.id, []).append(item)
    lists, rng = list(groups.values()), np.random.default_rng(7)
    for _ in range(draws):
        yield [item for index in rng.integers(len(lists), size=len(lists)) for item in lists[index]]


def list_rows(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The wrong verdicts and the marks of inconsistent rows, for reading."""
    for item in outcomes:
        if item.right and not item.pair.unsupported:
            continue
        verdict = item.score.verdict
        noted = "; ".join(item.pair.response[part.start : part.end] for part in item.pair.unsupported)
        marked = "; ".join(span.text for span in item.score.unsupported)
        outcome = f"{item.pair.expected} → {verdict.label} {item.probability:.2f}"
        yield f"{item.pair.id} {outcome} | noted: {noted} | marked: {marked}"


def add_passages(rows: Sequence[Row], characters: int) -> list[Row]:
    """The rows with passages of other rows put between their own, at least so many characters."""
    rng = random.Random(7)
    passages_of = [[row.knowledge] if isinstance(row.knowledge, str) else row.knowledge for row in rows]
    everything = sorted({passage for passages in passages_of for passage in passages})
    longer = []
    for row, passages in zip(rows, passages_of, strict=True):
        others = [passage for passage in everything if passage not in passages]
        rng.shuffle(others)
        knowledge, added = list(passages), 0
        while added < characters and others:
            added += len(others[-1])
            knowledge.insert(rng.randint(0, len(knowledge)), others.pop())
        longer.append(msgspec.structs.replace(row, knowledge=knowledge))
    return longer


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the rows and print what came of it."""
    parser = make_parser(__doc__)
    parser.add_argument("--file", default="development.jsonl", help="file of the folder, or a path")
    parser.add_argument("--rows", action="store_true", help="list wrong verdicts and marks")
    parser.add_argument("--beside", type=int, default=0, help="characters of other rows' passages beside each row's")
    options = parser.parse_args(arguments)
    rows = add_passages(read_pairs(FOLDER / options.file, Row), options.beside)
    with Engine.load(options.bundle) as engine:
        engine.warmup()
        started = time.process_time()
        outcomes = [Outcome(*scored) for scored in score_pairs(rows, engine, options.metrics)]
        seconds = (time.process_time() - started) / len(rows)
    print("\n".join(describe(outcomes)))
    print(f"{seconds:.2f} s of processor time a row")
    if options.rows:
        print("\n".join(["", *list_rows(outcomes)]))


if __name__ == "__main__":
    main()
