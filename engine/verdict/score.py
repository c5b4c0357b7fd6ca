"""A Score from the results of one response's metrics: a pure fold."""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.runtime.calibration import Calibration
from groundwire.runtime.unread import looks_foreign

from ..schema.options import Options
from ..schema.results import MetricResult, Request, Score, Timings
from .citations import list_citations
from .sentences import add_spans, decide_response, keep_doubted
from .span_fusion import fuse_spans
from .span_types import type_spans
from .threshold import decide_metrics

FOREIGN = (
    "The {} not look like English. The embedded bundles read English only, and their values and verdicts mean nothing "
    "for other languages; with a bundle of models for its language, ignore this."
)


def build_score(
    request: Request,
    results: Sequence[MetricResult],
    timings: Timings,
    calibration: Calibration | None,
    options: Options,
    signature: str,
) -> Score:
    """The first metric gives value and status, all of them together the verdicts and the unsupported words.

    A sentence that states nothing, or that is consistent, leaves nothing unsupported, whatever single metrics miss.
    """
    results = decide_metrics(results, calibration)
    by_name = {result.name: result for result in results}
    first = results[0]
    verdict, decided = decide_response(
        request.response, by_name, calibration, options.profile, options.max_false_positive_rate
    )
    spans = keep_doubted(fuse_spans(request.response, results), decided)
    spans = type_spans(request.response, spans, results)
    coverages = [result.coverage for result in results if result.coverage is not None]
    return Score(
        status=first.status,
        value=first.value,
        verdict=verdict,
        metrics=by_name,
        unsupported=spans,
        coverage=min(coverages) if coverages else None,
        timings=timings,
        signature=signature,
        message=first.message,
        sentences=add_spans(decided, spans),
        citations=list_citations(by_name, decided),
        warnings=warn_of_language(request),
    )


def warn_of_language(request: Request) -> tuple[str, ...]:
    """A warning that names the texts of a request that do not look like English; none where all do."""
    passages = () if request.triples else request.knowledge  # facts have no function words to go by
    texts = {"response": (request.response,), "knowledge": passages, "history": request.history}
    foreign = [name for name, parts in texts.items() if any(map(looks_foreign, parts))]
    if not foreign:
        return ()
    names = ", the ".join(foreign[:-1]) + f" and the {foreign[-1]} do" if len(foreign) > 1 else f"{foreign[0]} does"
    return (FOREIGN.format(names),)
