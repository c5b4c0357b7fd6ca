"""A Score from what the metrics of one response gave: a pure fold."""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Score, Timings
from groundwire.runtime.calibration import Calibration

from .decision import decide
from .span_fusion import fuse


def build_score(
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
