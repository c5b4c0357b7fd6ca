"""What the metrics make of a sentence: by itself while the response is written, in the whole when it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from groundwire.engine import MetricResult, Score, UnsupportedSpan, Verdict
from groundwire.engine.extend import find_overlaps, within
from groundwire.engine.schema.results import STOPPED, Citation, SentenceVerdict
from groundwire.engine.verdict import rank_verdict
from groundwire.metrics import Sentence

from .records import Outcome

Part = TypeVar("Part", UnsupportedSpan, Citation)


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


def check_alone(score: Score) -> Check:
    """Return what the score of a sentence by itself says about it.

    If one of the metrics was stopped, or a defect ended the fold, the check has no verdict.
    """
    return _stop(tuple(score.metrics.values()), score.verdict) or Check(
        "failed" if score.status == "failed" else score.verdict.label, score.verdict, score.unsupported, score.citations
    )


def check_in_whole(score: Score, sentences: Sequence[Sentence]) -> list[Check]:
    """What the score of the whole response says about ``sentences``, its last sentences.

    Where the response is shown otherwise than it is written, its sentences may be others; the worst counts of those
    that one of ``sentences`` shares characters with.
    """
    decided = score.sentences[-len(sentences) :]
    if not decided:  # the response has no verdict
        decided = tuple(SentenceVerdict(*sentence, score.verdict) for sentence in sentences)
    elif [(part.start, part.end) for part in decided] != (ranges := [sentence[1:] for sentence in sentences]):
        about = find_overlaps(ranges, score.sentences)
        decided = tuple(map(partial(_decide, score), sentences, about))
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


def _decide(score: Score, sentence: Sentence, about: Sequence[SentenceVerdict]) -> SentenceVerdict:
    """A sentence with the worst verdict of those about it; without any, nothing of it is shown."""
    unsupported = tuple(span for part in about for span in part.unsupported)
    verdict = min((part.verdict for part in about), key=rank_verdict, default=score.verdict)
    return SentenceVerdict(*sentence, verdict, unsupported)


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
