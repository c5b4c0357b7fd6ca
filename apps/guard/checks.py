"""What the metrics make of a sentence: by itself while the response is written, in the whole when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from groundwire.engine import MetricResult, Plan, Score, UnsupportedSpan, Verdict
from groundwire.engine.extend import (
    FOLD,
    STOPPED,
    Citation,
    ReadRequest,
    Sentence,
    SentenceVerdict,
    decide_alone,
    decide_without_knowledge,
    explain_defect,
    list_citations,
    make_unscored,
    mark_spans,
    within,
)

from .records import Outcome

Part = TypeVar("Part", UnsupportedSpan, Citation)
_ORDER = ("inconsistent", "unknown", "consistent", "unverifiable")
"""Labels of the parts of a text; the first counts."""


class Check(NamedTuple):
    """What is known about a text."""

    outcome: Outcome
    verdict: Verdict
    unsupported: tuple[UnsupportedSpan, ...] = ()
    citations: tuple[Citation, ...] = ()

    @property
    def has_verdict(self) -> bool:
        """Whether models and rules have looked at the text and say something about it."""
        return self.outcome in ("consistent", "inconsistent", "unverifiable")

    def shift(self, offset: int) -> Check:
        """The same about a text that begins ``offset`` characters later."""
        return self._replace(
            unsupported=tuple(_shift(span, offset) for span in self.unsupported),
            citations=tuple(_shift(citation, offset) for citation in self.citations),
        )


def check_alone(request: ReadRequest, results: Sequence[MetricResult], plan: Plan) -> Check:
    """What the ``results`` of a response that was scored by itself say about it as a sentence of another.

    If one of the metrics was stopped, or a defect ends the fold, the check has no verdict.
    """
    try:
        return _fold_alone(request, results, plan)
    except Exception as error:
        verdict = make_unscored("failed", explain_defect(FOLD, error).message, plan).verdict
        return Check("failed", verdict)


def _fold_alone(request: ReadRequest, results: Sequence[MetricResult], plan: Plan) -> Check:
    bound = plan.criteria.bind(results)
    if request.knowledge:
        decided = decide_alone(request, bound, plan.criteria)
    else:
        _, decided = decide_without_knowledge(request, bound, plan.criteria)
    worst = min(decided, key=_rank).verdict
    spans = mark_spans(request, bound, decided)
    return _stop(results, worst) or Check(worst.label, worst, spans, list_citations(bound, decided))


def check_in_whole(score: Score, sentences: Sequence[Sentence]) -> list[Check]:
    """What the score of the whole response says about ``sentences``, its last sentences."""
    decided = score.sentences[-len(sentences) :]
    if not decided:  # the response has no verdict
        decided = tuple(SentenceVerdict(*sentence, score.verdict) for sentence in sentences)
    return [
        _stop(tuple(score.metrics.values()), sentence.verdict)
        or Check(
            "failed" if score.status == "failed" else sentence.verdict.label,
            sentence.verdict,
            sentence.unsupported,
            within(score.citations, sentence.start, sentence.end),
        )
        for sentence in decided
    ]


def _stop(results: Sequence[MetricResult], verdict: Verdict) -> Check | None:
    for result in results:
        if result.status in STOPPED:
            message = f"The metric {result.name} ended without a value ({result.status}): {result.message}"
            outcome: Outcome = "failed" if result.status == "cancelled" else result.status  # type: ignore[assignment]
            return Check(outcome, Verdict("unknown", profile=verdict.profile, fusion=verdict.fusion, message=message))
    return None


def _shift(part: Part, offset: int) -> Part:
    """The same part of a text that begins ``offset`` characters later."""
    return msgspec.structs.replace(part, start=part.start + offset, end=part.end + offset)


def _rank(sentence: SentenceVerdict) -> tuple[int, float]:
    verdict = sentence.verdict
    return _ORDER.index(verdict.label), 1.0 if verdict.probability is None else verdict.probability
