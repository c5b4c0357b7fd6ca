"""The verdict of each sentence, and that of a response of several: as consistent as the worst of them.

A long response with one invented sentence is inconsistent however well the others are supported, and one that says
little beside a greeting is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from groundwire.runtime.calibration import Calibration, ProfileName

from ..schema.results import MetricResult, SentenceVerdict, UnsupportedSpan, Verdict
from ..text.sentences import Sentence, sentences
from .decision import decide, decide_sentence, find_basis
from .features import features, features_of_part
from .refutation import find_refutation, refute


def decide_response(
    response: str,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> tuple[Verdict, tuple[SentenceVerdict, ...]]:
    """The verdict on a response and those of its sentences; no sentences where it is unknown.

    Raises as ``decide`` does.
    """
    whole = decide(results, calibration, profile, max_false_positive_rate)
    whole = refute(whole, find_refutation(features(results)))
    decided = decide_sentences(response, results, whole, calibration)
    return choose_verdict(whole, decided), decided


def decide_sentences(
    response: str,
    results: Mapping[str, MetricResult],
    whole: Verdict,
    calibration: Calibration | None,
) -> tuple[SentenceVerdict, ...]:
    """The sentences of a response with their verdicts; none when ``whole``, that on all its numbers, is unknown."""
    if calibration is None or whole.label == "unknown":
        return ()
    parts = sentences(response)
    if len(parts) == 1:
        return (SentenceVerdict(*parts[0], whole),)
    return tuple(_decide_part(sentence, results, whole, calibration) for sentence in parts)


def decide_alone(
    text: str,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> tuple[SentenceVerdict, ...]:
    """The verdicts of a text that is a sentence of a longer response, by the results of metrics about it alone.

    They are those that it has in the response, where the metrics' numbers about a sentence do not depend on the others.
    One sentence as a rule, and several where the text by itself is split otherwise.
    """
    basis = find_basis(results, calibration, profile, max_false_positive_rate)
    if calibration is None or basis.threshold is None:
        return tuple(SentenceVerdict(*sentence, basis) for sentence in sentences(text))
    return tuple(_decide_part(sentence, results, basis, calibration) for sentence in sentences(text))


def _decide_part(
    sentence: Sentence, results: Mapping[str, MetricResult], whole: Verdict, calibration: Calibration
) -> SentenceVerdict:
    numbers = features_of_part(results, sentence.start, sentence.end)
    refutation = find_refutation(numbers)
    # What a rule refutes was stated, whatever a classifier makes of the sentence.
    verdict = decide_sentence(numbers, calibration, whole, check_verifiable=refutation is None)
    return SentenceVerdict(*sentence, refute(verdict, refutation))


def choose_verdict(whole: Verdict, decided: Sequence[SentenceVerdict]) -> Verdict:
    """The worst verdict of a sentence that states something; ``whole`` where sentences do not say more than it.

    The bound on false positives is about responses, so it is that of ``whole``; so is what it lacks.
    """
    verdicts = [sentence.verdict for sentence in decided if sentence.verdict.probability is not None]
    if whole.probability is None or not verdicts or any(sentence.verdict.label == "unknown" for sentence in decided):
        return whole
    worst = min(verdicts, key=lambda verdict: verdict.probability or 0.0)
    return msgspec.structs.replace(worst, max_false_positive_rate=whole.max_false_positive_rate, absent=whole.absent)


def keep_doubted(spans: Sequence[UnsupportedSpan], decided: Sequence[SentenceVerdict]) -> tuple[UnsupportedSpan, ...]:
    """The spans but for those in sentences that are consistent, or state nothing."""
    trusted = [sentence for sentence in decided if sentence.verdict.label in ("consistent", "unverifiable")]
    return tuple(span for span in spans if not any(sentence.start <= span.start < sentence.end for sentence in trusted))


def add_spans(decided: Sequence[SentenceVerdict], spans: Sequence[UnsupportedSpan]) -> tuple[SentenceVerdict, ...]:
    """The sentences, each with those of ``spans`` that begin in it."""
    return tuple(
        msgspec.structs.replace(
            sentence,
            unsupported=tuple(span for span in spans if sentence.start <= span.start < sentence.end),
        )
        for sentence in decided
    )
