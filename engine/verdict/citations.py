"""The citations of a score: those that a metric with ``cites`` found, but for sentences that state nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..metrics import find
from ..schema.explanations import CitationsExplanation, PassageRange
from ..schema.results import Citation, MetricResult, SentenceVerdict


def list_citations(results: Mapping[str, MetricResult], decided: Sequence[SentenceVerdict]) -> tuple[Citation, ...]:
    """The citations by sentence of the response, and then by support; none without the metric, or if it did not score.

    ``decided`` are the sentences with their verdicts, as far as there are any.
    """
    result = find_citing(results)
    if result is None or result.status != "scored" or not isinstance(result.explanation, CitationsExplanation):
        return ()
    silent = {(part.start, part.end) for part in decided if part.verdict.label == "unverifiable"}
    return tuple(
        Citation(sentence.start, sentence.end, candidate.evidence, candidate.text, candidate.support)
        for sentence in result.explanation.sentences
        if (sentence.start, sentence.end) not in silent
        for candidate in sentence.candidates
        if candidate.support >= result.explanation.min_support
    )


def find_citing(results: Mapping[str, MetricResult]) -> MetricResult | None:
    """The result of the metric that cites (``Metric.cites``); None without one."""
    return next((result for name, result in results.items() if (metric := find(name)) and metric.cites), None)


def number_evidence(citations: Iterable[Citation]) -> dict[PassageRange, int]:
    """The cited sentences of the knowledge, numbered from 1 in the order of the knowledge."""
    cited = {citation.evidence for citation in citations}
    return {evidence: number for number, evidence in enumerate(sorted(cited, key=_order), 1)}


def _order(evidence: PassageRange) -> tuple[int, int, int]:
    return evidence.passage, evidence.start, evidence.end
