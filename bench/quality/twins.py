"""Scores the twins of ``bench/quality/twins``: pairs of answers that differ in the decisive words alone.

    python -m bench twins                               the development half, the embedded bundles
    python -m bench twins --file sealed.jsonl.gz        the sealed half, for a final figure only
    python -m bench twins --metrics fast                other metrics, separated by commas, or a group
    python -m bench twins --rows                        each pair in the wrong order, and each with a wrong label
    python -m bench twins --rows-out FILE               writes the half as labelled rows, for `groundwire calibrate`
    python -m bench twins --write FOLDER [FOLDER …]     makes both halves from files of written documents

A pair is ordered rightly if the right twin has the higher probability. Both labels are right if the right twin is
called consistent and the wrong one inconsistent. A mark fits if it overlaps all exchanged words of the wrong twin; a
harm is a right twin with a mark. The intervals (95 %) are bootstraps over knowledge texts.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("twins")
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import make_parser  # noqa: E402
from groundwire.engine import Engine, Score  # noqa: E402
from groundwire.metrics import sentences  # noqa: E402

LENGTHS = {"1 sentence": 1, "2–3": 3, "4–7": 7, "8 and more": sys.maxsize}
DRAWS = 500
HALVES = ("development.jsonl", "sealed.jsonl.gz")


class Twins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A right answer, and the same with its decisive words exchanged."""

    id: str
    kind: str
    sentences: int
    """Of the right twin."""
    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    right: str
    wrong: str
    exchanged: tuple[tuple[int, int], ...]
    """Characters of the wrong twin that the knowledge does not support."""


class Outcome(NamedTuple):
    """A pair and the scores of both."""

    twins: Twins
    right: Score
    wrong: Score

    @property
    def difference(self) -> float:
        """Probability of the right twin minus the probability of the wrong one; without a probability it is 0.5."""
        first, second = (score.verdict.probability for score in (self.right, self.wrong))
        return (0.5 if first is None else first) - (0.5 if second is None else second)

    @property
    def both_right(self) -> bool:
        """Whether both labels are right."""
        return self.right.verdict.label == "consistent" and self.wrong.verdict.label == "inconsistent"

    @property
    def marks_fit(self) -> bool:
        """Whether marks overlap all exchanged words."""
        marks = self.wrong.unsupported
        return all(any(mark.start < end and start < mark.end for mark in marks) for start, end in self.twins.exchanged)


COLUMNS: dict[str, Callable[[Outcome], float]] = {
    "ordered rightly": lambda outcome: (outcome.difference > 0) + 0.5 * (outcome.difference == 0),
    "mean difference": lambda outcome: outcome.difference,
    "both labels right": lambda outcome: outcome.both_right,
    "right called inconsistent": lambda outcome: outcome.right.verdict.label == "inconsistent",
    "wrong called consistent": lambda outcome: outcome.wrong.verdict.label == "consistent",
    "marks fit": lambda outcome: outcome.marks_fit,
    "harm": lambda outcome: bool(outcome.right.unsupported),
}


def read_twins(path: Path) -> list[Twins]:
    """Return the pairs of a file of JSON Lines, which gzip may have compressed."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [msgspec.json.decode(line, type=Twins) for line in text.splitlines()]


def score_twins(pairs: Sequence[Twins], engine: Engine, metrics: list[str] | None) -> list[Outcome]:
    """Score both answers of every pair."""
    items = [
        {"response": response, "knowledge": pair.knowledge, "history": pair.history}
        for pair in pairs
        for response in (pair.right, pair.wrong)
    ]
    scores = list(engine.score_many(items, metrics=metrics))
    return list(map(Outcome, pairs, scores[::2], scores[1::2]))


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of the table: all pairs, by length and by kind."""
    yield f"| pairs | count | {' | '.join(COLUMNS)} |"
    yield f"|---|---|{'---|' * len(COLUMNS)}"
    yield _line("**all**", outcomes, interval=True)
    least = 0
    for title, most in LENGTHS.items():
        yield _line(title, [outcome for outcome in outcomes if least < outcome.twins.sentences <= most], interval=True)
        least = most
    for kind in sorted({outcome.twins.kind for outcome in outcomes}):
        yield _line(kind, [outcome for outcome in outcomes if outcome.twins.kind == kind])


def _line(title: str, outcomes: Sequence[Outcome], *, interval: bool = False) -> str:
    if not outcomes:
        return f"| {title} | 0 |{' – |' * len(COLUMNS)}"
    table = np.array([[float(read(outcome)) for read in COLUMNS.values()] for outcome in outcomes])
    cells = [f"{value:.2f}" for value in table.mean(0)]
    if interval:
        texts = [outcome.twins.knowledge for outcome in outcomes]
        rows = [np.flatnonzero([text == other for other in texts]) for text in dict.fromkeys(texts)]
        rng = np.random.default_rng(7)
        samples = [np.concatenate([rows[i] for i in rng.integers(len(rows), size=len(rows))]) for _ in range(DRAWS)]
        low, high = np.quantile([table[sample].mean(0) for sample in samples], (0.025, 0.975), axis=0)
        cells = [f"{cell} ({a:.2f}–{b:.2f})" for cell, a, b in zip(cells, low, high, strict=True)]
    return f"| {title} | {len(outcomes)} | {' | '.join(cells)} |"


def list_faults(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield the pairs in the wrong order or with a wrong label, for reading."""
    for outcome in outcomes:
        twins, labels = outcome.twins, (outcome.right.verdict.label, outcome.wrong.verdict.label)
        if outcome.difference <= 0 or not outcome.both_right:
            exchanged = "; ".join(twins.wrong[start:end] for start, end in twins.exchanged)
            marks = "; ".join(mark.text for mark in outcome.wrong.unsupported)
            yield (
                f"{twins.id} ({twins.sentences}) {outcome.difference:+.2f} {labels[0]}, {labels[1]}: "
                f"exchanged [{exchanged}] marked [{marks}]"
            )


def write_halves(folders: Sequence[Path]) -> None:
    """Write both halves from the written documents of folders; the knowledge's digest chooses the half."""
    from groundwire.recipes.written.documents import read_documents
    from groundwire.recipes.written.pairs import falsify

    halves: tuple[list[Twins], list[Twins]] = ([], [])
    for path in sorted(path for folder in folders for path in folder.glob("*.txt")):
        for index, document in enumerate(read_documents(path)):
            half = halves[hashlib.sha256("\n".join(document.passages).encode()).digest()[0] % 2]
            for number, answer in enumerate(document.answers):
                wrong, spans = falsify(answer, frozenset(range(len(answer.slots))), random.Random(0))
                half.append(
                    Twins(
                        f"{path.parent.name}-{path.stem}-{index}-{number}",
                        document.title.partition(":")[0],
                        len(sentences(answer.supported)),
                        document.passages,
                        answer.history,
                        answer.supported,
                        wrong,
                        tuple((span.start, span.end) for span in spans),
                    )
                )
    FOLDER.mkdir(exist_ok=True)
    for name, pairs in zip(HALVES, halves, strict=True):
        data = b"".join(msgspec.json.encode(pair) + b"\n" for pair in pairs)
        (FOLDER / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def list_rows(twins: Twins) -> Iterator[dict[str, object]]:
    """The labelled rows of both twins."""
    for name, response, label in (("right", twins.right, 1), ("wrong", twins.wrong, 0)):
        texts = {"knowledge": twins.knowledge, "history": twins.history, "response": response}
        yield {"id": f"{twins.id}/{name}", **texts, "label": label}


def main() -> None:
    """Score a half and print its table."""
    parser = make_parser(__doc__)
    parser.add_argument("--file", default=HALVES[0], help="a file of the folder twins")
    parser.add_argument("--rows", action="store_true", help="list the pairs that are wrong")
    parser.add_argument("--rows-out", type=Path, help="write the half as labelled rows to this file")
    parser.add_argument("--write", nargs="+", type=Path, help="folders of written documents: make both halves")
    arguments = parser.parse_args()
    if arguments.write:
        write_halves(arguments.write)
        return
    if arguments.rows_out:
        rows = (row for twins in read_twins(FOLDER / arguments.file) for row in list_rows(twins))
        arguments.rows_out.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        return
    with Engine.load(arguments.bundle) as engine:
        outcomes = score_twins(read_twins(FOLDER / arguments.file), engine, arguments.metrics)
    print(*describe(outcomes), sep="\n")
    if arguments.rows:
        print(*list_faults(outcomes), sep="\n")


if __name__ == "__main__":
    main()
