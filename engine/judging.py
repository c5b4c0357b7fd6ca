"""A Score from what the metrics of one response gave: a pure fold."""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.runtime.calibration import Calibration

from .options import Options
from .records import MetricResult, Score, Timings
from .unsupported import fuse
from .verdict import decide


def judged(
    response: str,
    found: Sequence[MetricResult],
    timings: Timings,
    calibration: Calibration | None,
    options: Options,
    signature: str,
) -> Score:
    """The first metric gives value and status, all of them together verdict and unsupported words.

    A response that states nothing leaves nothing unsupported, whatever single metrics miss in the knowledge.
    """
    results = {result.name: result for result in found}
    first = found[0]
    verdict = decide(results, calibration, options.profile)
    coverages = [result.coverage for result in found if result.coverage is not None]
    return Score(
        status=first.status,
        value=first.value,
        verdict=verdict,
        metrics=results,
        unsupported=() if verdict.label == "unverifiable" else fuse(response, found),
        coverage=min(coverages) if coverages else None,
        timings=timings,
        signature=signature,
        message=first.message,
    )
