"""Traffic made by hand: observations, and lines with scores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from groundwire.engine import MetricResult, Request, Score, Verdict
from groundwire.engine.schema.explanations import UnsupportedSpan
from groundwire.engine.schema.results import Timings
from groundwire.monitor.observations import Observation, Observations
from groundwire.monitor.shift import describe_distributions
from groundwire.runtime.bundles.calibration import Calibration, HeldOut, OrderStatistics

from .evaluation import CALIBRATION

START = datetime(2026, 11, 2, tzinfo=UTC)
EXACT = msgspec.structs.replace(
    CALIBRATION,
    fusions=(
        msgspec.structs.replace(
            CALIBRATION.fusions[0],
            held_out=HeldOut(
                consistent=OrderStatistics(count=1000, values=(0.3, *(0.6 + i / 100 for i in range(9)))),
                inconsistent=OrderStatistics(count=1000, values=(*(0.1 + i / 100 for i in range(8)), 0.7, 0.8)),
            ),
        ),
    ),
)
"""A calibration whose threshold, 0.5, calls 100 of 1000 consistent and 800 of 1000 inconsistent responses so."""

DESCRIBED = msgspec.structs.replace(
    EXACT,
    fusions=(
        msgspec.structs.replace(
            EXACT.fusions[0],
            distributions=describe_distributions([{"words": float(number % 9 + 1)} for number in range(900)]),
        ),
    ),
)
"""The same, of responses that have one to nine words, all lengths alike."""


def describe_alike(count: int) -> list[str]:
    """Responses whose lengths are those of ``DESCRIBED``."""
    return [" ".join(["Elvis"] * (number % 9 + 1)) for number in range(count)]


def make_score(
    probability: float | None, label: str = "", calibration: Calibration | None = EXACT, **verdict: Any
) -> Score:
    """A score whose verdict has this probability; the label follows from it where none is given."""
    if not label:
        label = "unknown" if probability is None else "consistent" if probability >= 0.5 else "inconsistent"
    scored = label != "unknown"
    result = MetricResult("q2", "scored", probability) if scored else MetricResult("q2", "failed", message="no")
    signature = "groundwire:0|bundle:fake@0" + (f"|calibration:{calibration.digest()}" if calibration else "")
    fields: dict[str, Any] = {"threshold": 0.5, "fusion": "full"} | verdict
    return Score(
        result.status,
        result.value,
        Verdict(label, probability, **fields),  # type: ignore[arg-type]
        {"q2": result},
        (UnsupportedSpan("1936", 18, 22, "contradiction", "1935", "q2"),) if label == "inconsistent" else (),
        None,
        Timings(0.0, {}),
        signature,
    )


def observe(
    scores: Sequence[Score],
    responses: Sequence[str] = (),
    rows: Sequence[dict[str, Any]] = (),
    knowledge: str = "Elvis came in 1935.",
    examples: int = 5,
) -> Observations:
    """The observations of lines with these scores, and with these texts and fields where there are any."""
    observations = Observations(examples)
    for index, score in enumerate(scores):
        request = Request(responses[index], (knowledge,)) if responses else None
        observations.add(index + 1, rows[index] if rows else {}, score, request)
    return observations


def make_rows(flags: Sequence[bool], **fields: Any) -> list[Observation]:
    """Observations that are inconsistent where a flag says so; ``fields`` are those of all of them."""
    return [
        Observation(
            index + 1,
            "inconsistent" if flag else "consistent",
            0.2 if flag else 0.8,
            fields.get("words"),
            None,
            None,
            fields.get("system", ""),
            "",
            fields.get("time", START + timedelta(minutes=index)),
            fields.get("terms", ()),
        )
        for index, flag in enumerate(flags)
    ]
