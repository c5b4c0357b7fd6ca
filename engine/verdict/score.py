"""A Score from the results of one response's metrics: a pure fold.

Metrics read what is shown (``text.rendering``); ranges and quotations are then located in the texts as they were
written.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from groundwire.runtime.texts.unread import looks_foreign

from ..metrics.base import BoundResult
from ..metrics.requests import ReadRequest
from ..schema.explanations import (
    CitationCandidate,
    CitationsExplanation,
    PassageRange,
    QuotationsExplanation,
    QuotedText,
)
from ..schema.knowledge import is_record
from ..schema.results import Citation, MetricResult, Request, Score, SentenceVerdict, Timings, UnsupportedSpan, Verdict
from ..text.words import RangeIndex
from .decision import add_spans, decide_alone, decide_response, decide_without_knowledge, keep_doubted
from .fusion import Criteria, decide_metrics
from .marks import fit_marks
from .spans import fuse_spans, is_certain, join_spans, list_certain, type_spans

T = TypeVar("T")
_ORDER = ("inconsistent", "unknown", "consistent", "unverifiable")
"""Labels of the sentences of a text; the first counts."""


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
    uncited = RangeIndex(part for part in decided if part.verdict.label in ("unverifiable", "inconsistent"))
    return tuple(
        Citation(sentence.start, sentence.end, candidate.evidence, candidate.text, candidate.support)
        for sentence in explanation.sentences
        if not uncited.overlaps(sentence)
        for candidate in sentence.candidates
        if candidate.support >= explanation.min_support
    )


def list_quotations(results: Sequence[BoundResult]) -> tuple[QuotedText, ...]:
    """Return what the response quotes, by the result of the metric that looks for it; nothing without one."""
    explanation = next((result.explanation for metric, result in results if metric.quotes), None)
    return explanation.quotations if isinstance(explanation, QuotationsExplanation) else ()


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
        quotations=list_quotations(bound),
        warnings=warn_of_language(request),
    )


def build_sentence_score(
    request: ReadRequest, results: Sequence[MetricResult], timings: Timings, criteria: Criteria, signature: str
) -> Score:
    """Fold the results of a response that was scored by itself into its score as a sentence of another.

    Its verdict is the worst of its sentences; single metrics draw none, and nothing warns of its language. Parameters
    as of ``build_score``.
    """
    bound = criteria.bind(results)
    if request.knowledge:
        decided = decide_alone(request, bound, criteria)
    else:
        _, decided = decide_without_knowledge(request, bound, criteria)
    spans = mark_spans(request, bound, decided)
    return Score(
        status=bound[0].result.status,
        value=bound[0].result.value,
        verdict=min((part.verdict for part in decided), key=rank_verdict),
        metrics={result.name: result for _, result in bound},
        unsupported=spans,
        coverage=None,
        timings=timings,
        signature=signature,
        sentences=add_spans(decided, spans),
        citations=list_citations(bound, decided),
        quotations=list_quotations(bound),
    )


def rank_verdict(verdict: Verdict) -> tuple[int, float]:
    """Return what orders the verdicts on sentences of a text, the worst first."""
    return _ORDER.index(verdict.label), 1.0 if verdict.probability is None else verdict.probability


def mark_spans(
    request: ReadRequest, results: Sequence[BoundResult], decided: Sequence[SentenceVerdict]
) -> tuple[UnsupportedSpan, ...]:
    """The unsupported words of a response by the evidence of its results, in the sentences that are doubted.

    What metrics are certain of is marked in all sentences.
    """
    if not request.knowledge:
        return ()
    certain = list_certain(results)
    uncertain = [bound for bound in results if not is_certain(bound)]
    spans = fit_marks(request, keep_doubted(fuse_spans(request, uncertain), decided), uncertain)
    return type_spans(request, join_spans(certain, spans), results)


MAX_LANGUAGE_TEXTS = 1_000
"""Passages, and turns, whose language is looked at: the rest would delay the answer beyond its deadline."""


def warn_of_language(request: Request) -> tuple[str, ...]:
    """A warning that names the texts of a request that do not look like English; none where all do.

    Of more passages or turns than ``MAX_LANGUAGE_TEXTS``, the first count.
    """
    # Facts and records have no function words to go by.
    first = request.knowledge[:MAX_LANGUAGE_TEXTS]
    passages = () if request.triples else tuple(itertools.filterfalse(is_record, first))
    texts = {"response": (request.response,), "knowledge": passages, "history": request.history[:MAX_LANGUAGE_TEXTS]}
    foreign = [name for name, parts in texts.items() if any(map(looks_foreign, parts))]
    if not foreign:
        return ()
    names = ", the ".join(foreign[:-1]) + f" and the {foreign[-1]} do" if len(foreign) > 1 else f"{foreign[0]} does"
    return (FOREIGN.format(names),)


def locate_in_original(item: T, request: ReadRequest) -> T:
    """Return a record with the ranges and quotations of the original texts in the place of those that are shown.

    Args:
        item: A score, or anything in one: records, tuples and dictionaries of what the engine says.
        request: The request that it is about.
    """
    return item if request.is_verbatim else _locate(item, request)


def _locate(item: Any, request: ReadRequest) -> Any:
    if isinstance(item, tuple):
        return tuple([_locate(part, request) for part in item])
    if isinstance(item, dict):
        return {key: _locate(part, request) for key, part in item.items()}
    if not isinstance(item, msgspec.Struct):
        return item
    if isinstance(item, PassageRange):
        first, last = request.rendered_knowledge[item.passage].locate(item.start, item.end)
        return replace(item, start=first, end=last)
    fields = {name: getattr(item, name) for name in item.__struct_fields__}  # an absent one is searched for, slowly
    changes = {name: _locate(value, request) for name, value in fields.items()}
    start, end = changes.get("start"), changes.get("end")
    cites = isinstance(item, Citation | CitationCandidate)
    if isinstance(start, int) and isinstance(end, int):
        changes["start"], changes["end"] = request.rendered_response.locate(start, end)
        shown, original = request.response[start:end], request.original.response[changes["start"] : changes["end"]]
        _quote(changes, () if cites else ("text",), shown, original)
    evidence = fields.get("evidence")
    if isinstance(evidence, PassageRange):
        shown = request.knowledge[evidence.passage][evidence.start : evidence.end]
        located = changes["evidence"]
        original = request.original.knowledge[located.passage][located.start : located.end]
        _quote(changes, ("text",) if cites else ("knowledge_says", "knowledge_answer"), shown, original)
    return replace(item, **changes)


def _quote(changes: dict[str, Any], names: Sequence[str], shown: str, original: str) -> None:
    """Replace what fields quote of a text that is shown by what it was written as."""
    for name in names:
        if changes.get(name) == shown:
            changes[name] = original
