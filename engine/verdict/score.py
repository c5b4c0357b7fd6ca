"""A Score from the results of one response's metrics: a pure fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundwire.runtime.texts.unread import looks_foreign

from ..metrics.base import BoundResult
from ..metrics.requests import ReadRequest
from ..schema.explanations import CitationsExplanation, PassageRange
from ..schema.results import Citation, MetricResult, Request, Score, SentenceVerdict, Timings, UnsupportedSpan
from .criteria import Criteria
from .decision import add_spans, decide_response, decide_without_knowledge, keep_doubted
from .fusion import decide_metrics
from .marks import fit_marks
from .spans import fuse_spans, type_spans


def list_citations(results: Sequence[BoundResult], decided: Sequence[SentenceVerdict]) -> tuple[Citation, ...]:
    """Return the citations by sentence of the response, and then by support.

    Args:
        results: The results of metrics.
        decided: The sentences with their verdicts, as far as there are any. A sentence that is inconsistent, or states
            nothing, has no citation.

    Returns:
        The citations; none without a metric that cites, or if it did not score.
    """
    explanation = next((result.explanation for metric, result in results if metric.cites), None)
    if not isinstance(explanation, CitationsExplanation):
        return ()
    uncited = {(part.start, part.end) for part in decided if part.verdict.label in ("unverifiable", "inconsistent")}
    return tuple(
        Citation(sentence.start, sentence.end, candidate.evidence, candidate.text, candidate.support)
        for sentence in explanation.sentences
        if (sentence.start, sentence.end) not in uncited
        for candidate in sentence.candidates
        if candidate.support >= explanation.min_support
    )


def number_evidence(citations: Iterable[Citation]) -> dict[PassageRange, int]:
    """The cited sentences of the knowledge, numbered from 1 in the order of the knowledge."""
    cited = {citation.evidence for citation in citations}
    return {evidence: number for number, evidence in enumerate(sorted(cited, key=_order), 1)}


def _order(evidence: PassageRange) -> tuple[int, int, int]:
    return evidence.passage, evidence.start, evidence.end


FOREIGN = (
    "The {} not look like English. The embedded bundles read English only, and their values and verdicts mean nothing "
    "for other languages; with a bundle of models for its language, ignore this."
)


def build_score(
    request: ReadRequest, results: Sequence[MetricResult], timings: Timings, criteria: Criteria, signature: str
) -> Score:
    """Fold the results of metrics into a score: the first gives value and status, all together verdicts and words.

    A sentence that states nothing, or that is consistent, leaves nothing unsupported, whatever single metrics miss.

    Args:
        request: The texts.
        results: The results of the metrics of ``criteria``, in their order.
        timings: How long they took.
        criteria: How they become a verdict.
        signature: The signature of the plan.
    """
    bound = decide_metrics(criteria.bind(results), criteria.scales)
    first = bound[0].result
    decide = decide_response if request.knowledge else decide_without_knowledge
    verdict, decided = decide(request, bound, criteria)
    spans = mark_spans(request, bound, decided)
    coverages = [result.coverage for result in results if result.coverage is not None]
    return Score(
        status=first.status,
        value=first.value,
        verdict=verdict,
        metrics={result.name: result for _, result in bound},
        unsupported=spans,
        coverage=min(coverages) if coverages else None,
        timings=timings,
        signature=signature,
        message=first.message,
        sentences=add_spans(decided, spans),
        citations=list_citations(bound, decided),
        warnings=warn_of_language(request),
    )


def mark_spans(
    request: ReadRequest, results: Sequence[BoundResult], decided: Sequence[SentenceVerdict]
) -> tuple[UnsupportedSpan, ...]:
    """The unsupported words of a response by the evidence of its results, in the sentences that are doubted."""
    if not request.knowledge:
        doubted = [part for part in decided if part.verdict.label == "inconsistent"]
        silent = [UnsupportedSpan(part.text, part.start, part.end, "no_answer") for part in doubted]
        return type_spans(request, silent, results)
    spans = keep_doubted(fuse_spans(request, results), decided)
    return type_spans(request, fit_marks(request, spans, results), results)


MAX_LANGUAGE_TEXTS = 1_000
"""Passages, and turns, whose language is looked at: the rest would delay the answer beyond its deadline."""


def warn_of_language(request: Request) -> tuple[str, ...]:
    """A warning that names the texts of a request that do not look like English; none where all do.

    Of more passages or turns than ``MAX_LANGUAGE_TEXTS``, the first count.
    """
    passages = () if request.triples else request.knowledge  # facts have no function words to go by
    texts = {"response": (request.response,), "knowledge": passages, "history": request.history}
    foreign = [name for name, parts in texts.items() if any(map(looks_foreign, parts[:MAX_LANGUAGE_TEXTS]))]
    if not foreign:
        return ()
    names = ", the ".join(foreign[:-1]) + f" and the {foreign[-1]} do" if len(foreign) > 1 else f"{foreign[0]} does"
    return (FOREIGN.format(names),)
