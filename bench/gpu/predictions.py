"""What this project expects of one H200, or H100, written down before any run on one: of the default, and of models of
the papers' sizes.

The arithmetic is in bench/README.md. A run puts what it measured beside it, whatever that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from .stages import Record

WORKLOAD = "20 extractive QA rows of 30 tokens a response: the mean of the example dialogues"
"""What 180 responses per second mean. The benchmark's random models ask more: their questions are all rejected, so each
of 25 is asked of the response; ``qa_tokens`` says how many tokens that is."""
PROCESS_GIB = 11
"""Memory of a process, at most."""
RESPONSES_PER_SECOND, RESPONSE_TOKENS = 180, 600
"""The aim on this workload, and the real QA tokens of a response of it."""


class Prediction(msgspec.Struct, frozen=True):
    """A figure, between two bounds, and what was measured."""

    name: str
    low: float
    high: float
    unit: str
    measured: float | None = None


PREDICTIONS = (
    Prediction("default, one sentence, p50", 10, 16, "ms"),
    Prediction("default, one sentence, p99", 12, 30, "ms"),
    Prediction("default, one process", 70, 110, "/s"),
    Prediction("default, 8 processes", 300, 750, "/s"),
    Prediction("default, warm-up", 8, 20, "s"),
    Prediction("default, memory of a process", 5, 6, "GiB"),
    Prediction("full set, p50", 50, 70, "ms"),
    Prediction("full set at once, p50", 40, 52, "ms"),
    Prediction("full set, one process", 20, 36, "/s"),
    Prediction("full set, 8 processes", 60, 125, "/s"),
    Prediction("question generation, a step", 0.6, 0.9, "ms"),
    Prediction("question generation, over PyTorch", 15, 25, "×"),
    Prediction("extractive QA, full batch", 450, 560, "TFLOP/s"),
    Prediction("warm-up", 15, 40, "s"),
    Prediction("memory of a process", 9, PROCESS_GIB, "GiB"),
)


def compare_predictions(records: Sequence[Record]) -> list[Prediction]:
    """The predictions, with what was measured so far."""
    measured = dict(_list_measured({record.name: record.results for record in records if record.results}))
    return [msgspec.structs.replace(prediction, measured=measured.get(prediction.name)) for prediction in PREDICTIONS]


def _list_measured(results: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    default = results.get("default") or {"latency": (), "rates": (), "warm_up": None}
    for row in default["latency"]:
        if row["group"] == "1 sentence":
            yield "default, one sentence, p50", row["timing"]["p50_ms"]
            yield "default, one sentence, p99", row["timing"]["p99_ms"]
    if default["rates"]:
        yield "default, one process", max(rate["per_second"] for rate in default["rates"])
    if warm := default["warm_up"]:
        yield "default, warm-up", warm["seconds"]
        if warm["gib"] is not None:
            yield "default, memory of a process", warm["gib"]
    for row in results.get("default.processes", {}).get("rows", ()):
        if row["processes"] == 8:
            yield "default, 8 processes", row["rate"]["per_second"]
    names = {"full": "full set, p50", "full at once": "full set at once, p50"}
    for row in results.get("latency", {}).get("rows", ()):
        if row["metrics"] in names:
            yield names[row["metrics"]], row["timing"]["p50_ms"]
    if warm := results.get("latency", {}).get("warm_up"):
        yield "warm-up", warm["seconds"]
        if warm["gib"] is not None:
            yield "memory of a process", warm["gib"]
    for row in results.get("load", {}).get("rows", ()):
        if row["metrics"] == "full":
            yield "full set, one process", row["rate"]["per_second"]
    for row in results.get("processes", {}).get("rows", ()):
        if row["processes"] == 8:
            yield "full set, 8 processes", row["rate"]["per_second"]
    for row in results.get("role.qg", ()):
        if not row["full"]:
            yield "question generation, a step", row["timings"]["engine"]["p50_ms"] / row["steps"]
            if "eager" in row["ratios"]:
                yield "question generation, over PyTorch", row["ratios"]["eager"]
    for row in results.get("role.qa", ()):
        if row["full"] and row["work"]:
            yield "extractive QA, full batch", 1000 * row["work"]["tflop"] / row["timings"]["engine"]["p50_ms"]
