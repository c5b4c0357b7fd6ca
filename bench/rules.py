"""What each family of rules about values gives and costs: stored results of labelled rows, folded again without it.

    python -m bench rules --data DIR            scores the rows once (runs/rules), then prints the table
    python -m bench rules --data DIR --rows 100 fewer rows of each set, for a trial

``DIR`` has the labelled sets (``*.jsonl`` with knowledge, response, label 1 or 0). Only the metric ``values`` is
computed anew for a variant, because no model depends on it; the verdict is folded as the engine folds it. A set is
*older* than the rules if they were written on it, and *younger* if no rule was changed for it. Figures are means over
sets; the differences to the shipped rules have a paired bootstrap over rows (95 %).
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
from numpy.typing import NDArray

from groundwire.engine import Engine, Request
from groundwire.engine.extend import fold_outcomes
from groundwire.engine.schema.results import MetricResult, Timings
from groundwire.evaluate.statistics.estimates import roc_auc

from .support.common import ROOT

STORE = ROOT / "runs" / "rules"
QUALITY = ROOT / "bench" / "quality"
WRITTEN_ON = {
    "production": QUALITY / "production" / "development.jsonl",
    "visitors": QUALITY / "production" / "visitors.jsonl",
    "roles": QUALITY / "roles" / "roles.jsonl",
    "showcase": ROOT / "examples" / "showcase.jsonl",
}
"""Sets that rules were written on."""
YOUNGER = {
    "twins": QUALITY / "twins" / "development.jsonl",
    "values pairs": QUALITY / "values_pairs.jsonl",
}
"""Sets of this project that are younger than the rules."""
LABELS: dict[Any, int] = {"consistent": 1, "inconsistent": 0, 1: 1, 0: 0}
LEFT_OUT = ("usr_topicalchat",)
DRAWS = 300

Replacement = tuple[str, Any]
VALUES = "groundwire.engine.values"


FAMILIES: dict[str, tuple[Replacement, ...]] = {
    "derived values": ((f"{VALUES}.derived.Computation.derive", lambda self, check: check),),
    "values that may be computed": ((f"{VALUES}.derived.Computation.leave_alone", lambda self, check: check),),
}
"""Functions of each family, and what replaces them without it. A new family gets a line here before it is merged; the
figures of removed families are in recipes/research/measured.md."""


class StoredRow(msgspec.Struct):
    """A labelled row and the results of its metrics."""

    set: str
    label: int
    request: Request
    results: tuple[MetricResult, ...]


def read_sets(data: Path, rows: int) -> Iterator[tuple[str, int, Request]]:
    """Yield set, label and request of every labelled row, at equal distances where a set has more than ``rows``."""
    paths = {path.stem: path for path in sorted(data.glob("*.jsonl")) if path.stem not in LEFT_OUT}
    for name, path in {**paths, **WRITTEN_ON, **YOUNGER}.items():
        lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
        items = [item for line in lines for item in _read_row(line)]
        step = max(1.0, len(items) / rows)
        for index in range(min(rows, len(items))):
            yield name, *items[int(index * step)]


def _read_row(row: dict[str, Any]) -> Iterator[tuple[int, Request]]:
    """The labelled responses of a line: one, or the two of a pair."""
    knowledge, history = row["knowledge"], tuple(row.get("history") or ())
    passages = (knowledge,) if isinstance(knowledge, str) else tuple(knowledge)
    for right, wrong in (("right", "wrong"), ("consistent", "inconsistent")):
        if right in row:
            yield 1, Request(row[right], passages, history)
            yield 0, Request(row[wrong], passages, history)
            return
    label = row.get("expected", row.get("label"))
    if label in LABELS:
        yield LABELS[label], Request(row["response"], passages, history)


def store_rows(engine: Engine, data: Path, rows: int, folder: Path) -> list[StoredRow]:
    """Score the rows that are not stored yet, a file a set, and return all."""
    folder.mkdir(parents=True, exist_ok=True)
    by_set: dict[str, list[tuple[int, Request]]] = {}
    for name, label, request in read_sets(data, rows):
        by_set.setdefault(name, []).append((label, request))
    stored: list[StoredRow] = []
    for name, items in by_set.items():
        path = folder / f"{name}-{len(items)}.msgpack"
        if not path.exists():
            scores = engine.score_many([request for _, request in items])
            found = [
                StoredRow(name, label, request, tuple(score.metrics.values()))
                for (label, request), score in zip(items, scores, strict=True)
            ]
            path.write_bytes(msgspec.msgpack.encode(found))
            print(f"{name}: {len(items)} rows", file=sys.stderr, flush=True)
        stored += msgspec.msgpack.decode(path.read_bytes(), type=list[StoredRow])
    return stored


@contextlib.contextmanager
def switch_off(names: Sequence[str]) -> Iterator[None]:
    """Switch families of rules off."""
    with contextlib.ExitStack() as stack:
        for name in names:
            for target, replacement in FAMILIES[name]:
                stack.enter_context(mock.patch(target, replacement))
        yield


def fold(engine: Engine, stored: Sequence[StoredRow], off: Sequence[str], *, without_values: bool = False) -> list[Any]:
    """Return the verdict on every row, without families of rules or without all of ``values``."""
    plan = engine.core.plan()
    with switch_off(off):
        scores = engine.score_many([row.request for row in stored], metrics=["values"])
        values = [score.metrics["values"] for score in scores]
    verdicts = []
    for row, result in zip(stored, values, strict=True):
        if without_values:
            result = MetricResult("values", "nothing_to_verify")
        results = {item.name: item for item in row.results} | {"values": result}
        outcomes = [results[name] for name in plan.names]
        verdicts.append(fold_outcomes(row.request, outcomes, Timings(0.0, {}), plan).verdict)
    return verdicts


Floats = NDArray[np.float64]


def measure(labels: Floats, probabilities: Floats, called: Floats) -> Floats:
    """Return ROC-AUC, balanced accuracy, false positive rate and false negative rate; ``called``: inconsistent."""
    if labels.all() or not labels.any():
        return np.full(4, np.nan)
    area = float(roc_auc(probabilities, labels == 1)(np.ones((len(labels), 1)))[0])
    false_positives, false_negatives = called[labels == 1].mean(), 1 - called[labels == 0].mean()
    return np.array([area, 1 - (false_positives + false_negatives) / 2, false_positives, false_negatives])


def tabulate(stored: Sequence[StoredRow], variants: dict[str, list[Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    sets = list(dict.fromkeys(row.set for row in stored))
    index = {name: np.array([i for i, row in enumerate(stored) if row.set == name]) for name in sets}
    labels = np.array([row.label for row in stored], dtype=np.float64)
    columns = {
        variant: (
            np.array([0.5 if v.probability is None else v.probability for v in verdicts]),
            np.array([float(v.label == "inconsistent") for v in verdicts]),
        )
        for variant, verdicts in variants.items()
    }
    kinds = {
        "younger": [name for name in sets if name not in WRITTEN_ON],
        "older": [name for name in sets if name in WRITTEN_ON],
    }
    yield "| without | " + " | ".join(f"{kind}: ROC-AUC, balanced, FP, FN" for kind in kinds) + " |"
    yield "|---|---|---|"
    shipped = next(iter(columns))
    rng = np.random.default_rng(7)
    draws = [{name: rng.choice(rows, len(rows)) for name, rows in index.items()} for _ in range(DRAWS)]

    def average(variant: str, kind: str, chosen: dict[str, NDArray[np.int64]]) -> Floats:
        probabilities, called = columns[variant]
        figures = [measure(labels[rows], probabilities[rows], called[rows]) for rows in map(chosen.get, kinds[kind])]
        mean: Floats = np.nanmean(figures, axis=0)
        return mean

    for variant in columns:
        cells = []
        for kind in kinds:
            cell = ", ".join(f"{value:.3f}" for value in average(variant, kind, index))
            if variant != shipped:
                changes = [average(variant, kind, draw) - average(shipped, kind, draw) for draw in draws]
                low, high = np.quantile(changes, (0.025, 0.975), axis=0)
                cell += f" (Δ {low[0]:+.3f} to {high[0]:+.3f}, {low[1]:+.3f} to {high[1]:+.3f})"
            cells.append(cell)
        yield f"| {variant} | {' | '.join(cells)} |"


def main() -> None:
    """Store the rows, fold the variants and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled sets")
    parser.add_argument("--rows", type=int, default=400, help="rows of each set, at most")
    parser.add_argument("--store", type=Path, default=STORE, help="where results are kept")
    arguments = parser.parse_args()
    with Engine.load() as engine:
        stored = store_rows(engine, arguments.data, arguments.rows, arguments.store)
        variants = {"– (as shipped)": fold(engine, stored, [])}
        variants |= {name: fold(engine, stored, [name]) for name in FAMILIES}
        variants["all of values"] = fold(engine, stored, [], without_values=True)
    print(f"{len(stored):,} rows of {len({row.set for row in stored})} sets")
    print(*tabulate(stored, variants), sep="\n")


if __name__ == "__main__":
    main()
