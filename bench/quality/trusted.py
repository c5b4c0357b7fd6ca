"""Tries `groundwire calibrate --trusted` on labelled sets: whether its bound is kept, and its estimate of misses right.

    python -m bench trusted --data DIR            scores the rows once (runs/trusted), then prints the table
    python -m bench trusted --data DIR --rows 60  fewer rows of each set, for a trial

``DIR`` has labelled sets, as for `groundwire evaluate`. From the consistent rows of each set 50 are drawn, twenty
times; they and their made errors give the threshold. Measured are the false positive rate on the consistent rows that
were not drawn, and the share of the set's inconsistent rows that is missed, both of delivered labels. Intervals (95 %)
are of the mean over draws, with the rows that are left as the sample.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import make_parser  # noqa: E402
from groundwire.engine import Score  # noqa: E402
from groundwire.evaluate.calibration.trusted import (  # noqa: E402
    MIN_TRUSTED,
    DecidedRow,
    decide_rows,
    fit_trusted,
    make_twin_examples,
)
from groundwire.evaluate.datasets import read_dataset  # noqa: E402
from groundwire.evaluate.datasets.examples import Example  # noqa: E402
from groundwire.evaluate.scores.scoring import ScoringSettings, score_sets  # noqa: E402
from groundwire.monitor.prevalence import share  # noqa: E402
from groundwire.runtime.bundles.calibration import Calibration  # noqa: E402

STORE = ROOT / "runs" / "trusted"
RESULTS = ROOT / "bench" / "results" / "trusted.json"
DRAWS, DRAWN = 20, 50
LEVELS = (0.05, 0.15)
TWINS = "-made"
"""Suffix of the set of made errors."""


class Outcome(msgspec.Struct, frozen=True):
    """A set at one bound; rates are means over the draws."""

    set: str
    level: float
    consistent: int
    """Rows, of which ``DRAWN`` are drawn."""
    inconsistent: int
    false_positive_rate: float
    high: float
    """Upper end of the interval of a rate of ``level`` in as many rows as are left."""
    missed: float
    """Of the set's inconsistent rows."""
    estimated: float
    """Of made errors, every kind counting the same."""
    estimated_by_kind: dict[str, float]

    @property
    def is_kept(self) -> bool:
        """Whether the false positive rate is at most the bound and its interval."""
        return self.false_positive_rate <= self.high

    @property
    def is_near(self) -> bool:
        """Whether the estimate is within ten points of what is missed."""
        return abs(self.estimated - self.missed) <= 0.1

    @property
    def is_between(self) -> bool:
        """Whether what is missed is between the kind that is missed least and the one that is missed most."""
        return min(self.estimated_by_kind.values()) <= self.missed <= max(self.estimated_by_kind.values())


class LabelledSet(NamedTuple):
    """Sampled rows of a set and the made errors of its consistent ones."""

    consistent: list[Example]
    inconsistent: list[Example]
    made: list[Example]


def read_sets(data: Path, rows: int) -> dict[str, LabelledSet]:
    """Return the sets with enough rows of both labels, at most ``rows`` of each label at equal distances."""
    sets: dict[str, LabelledSet] = {}
    for path in sorted(data.glob("*.jsonl")):
        examples = read_dataset(path)
        consistent, inconsistent = ([e for e in examples if e.label == label] for label in (1, 0))
        if len(consistent) >= DRAWN + MIN_TRUSTED // 2 - 1 and len(inconsistent) >= MIN_TRUSTED:
            chosen = _sample(consistent, rows)
            sets[path.stem] = LabelledSet(chosen, _sample(inconsistent, rows), make_twin_examples(chosen))
    return sets


def _sample(examples: Sequence[Example], rows: int) -> list[Example]:
    step = max(1.0, len(examples) / rows)
    return [examples[int(index * step)] for index in range(min(rows, len(examples)))]


def measure(name: str, rows: LabelledSet, scores: Sequence[Score], calibration: Calibration) -> Iterator[Outcome]:
    """Yield the outcome at each bound."""
    decided = decide_rows((*rows.consistent, *rows.inconsistent, *rows.made), scores, calibration)
    consistent = decided[: len(rows.consistent)]
    inconsistent = decided[len(consistent) : len(consistent) + len(rows.inconsistent)]
    made = decided[len(consistent) + len(inconsistent) :]
    for level in LEVELS:
        rates: list[tuple[float, float, float]] = []
        kinds: dict[str, list[float]] = {}
        for draw in range(DRAWS):
            drawn = set(random.Random(draw).sample(range(len(consistent)), DRAWN))
            ids = {rows.consistent[index].id for index in drawn}
            fit = fit_trusted(
                (name,),
                [consistent[index] for index in sorted(drawn)],
                [row for row in made if row.example.id.rpartition("-")[0] in ids],
                calibration,
                level,
            )
            rest = [row for index, row in enumerate(consistent) if index not in drawn]
            stopped, found = (_share_stopped(part, fit.threshold) for part in (rest, inconsistent))
            rates.append((stopped, 1 - found, fit.missed_rate or 0.0))
            for kind, errors in fit.kinds.items():
                kinds.setdefault(kind, []).append(errors.rate)
        false_positive_rate, missed, estimated = np.array(rates).mean(0).round(4).tolist()
        left = len(consistent) - DRAWN
        yield Outcome(
            set=name,
            level=level,
            consistent=len(consistent),
            inconsistent=len(inconsistent),
            false_positive_rate=false_positive_rate,
            high=round(share(round(level * left), left).high, 4),
            missed=missed,
            estimated=estimated,
            estimated_by_kind={kind: round(float(np.mean(values)), 4) for kind, values in kinds.items()},
        )


def _share_stopped(rows: Sequence[DecidedRow], threshold: float) -> float:
    return sum(row.label_at(threshold) == "inconsistent" for row in rows) / len(rows)


def describe(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| set | consistent, inconsistent | bound | false positives | missed | of made errors | by kind |"
    yield "|---|---|---|---|---|---|---|"
    for o in outcomes:
        kinds = ", ".join(f"{kind} {value:.0%}" for kind, value in o.estimated_by_kind.items())
        kept, near = ("" if flag else " ✗" for flag in (o.is_kept, o.is_near))
        yield (
            f"| {o.set} | {o.consistent}, {o.inconsistent} | {o.level:.0%} | {o.false_positive_rate:.1%}{kept} "
            f"| {o.missed:.0%} | {o.estimated:.0%}{near} | {kinds} |"
        )
    for level in LEVELS:
        at = [outcome for outcome in outcomes if outcome.level == level]
        kept, near, between = np.sum([(o.is_kept, o.is_near, o.is_between) for o in at], axis=0)
        yield (
            f"bound {level:.0%}: kept on {kept} of {len(at)} sets; estimate within 10 points on {near}, what is missed "
            f"between the kinds on {between}"
        )


def main() -> None:
    """Score what is not stored yet, print the table and save it."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of labelled sets")
    parser.add_argument("--rows", type=int, default=150, help="rows of each label and set at most")
    parser.add_argument("--threads", type=int, help="threads of the models")
    arguments = parser.parse_args()
    sets = read_sets(arguments.data, arguments.rows)
    scored = score_sets(
        {name: [*rows.consistent, *rows.inconsistent, *rows.made] for name, rows in sets.items()},
        STORE,
        ScoringSettings(arguments.bundle, "cpu", arguments.threads),
        lambda name, done, total: print(f"\r{name} {done}/{total} ", end="", file=sys.stderr, flush=True),
    )
    assert scored.calibration is not None
    outcomes = [
        outcome for name, rows in sets.items() for outcome in measure(name, rows, scored.sets[name], scored.calibration)
    ]
    print(*describe(outcomes), sep="\n")
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes), indent=1) + b"\n")


if __name__ == "__main__":
    main()
