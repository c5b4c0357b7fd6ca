"""One calibrated probability from all metrics, and the verdict drawn from it.

The fusion is a logistic regression: a few weighted numbers that can be read in the bundle's calibration. What it cannot
say, ``adjustments.py`` says after it.
Nothing fails open: without a number that the fusion needs the probability is missing, and the verdict is ``unknown``.
So it is where a metric that the fusion asks for has failed, for it might have found what is wrong.

A response of several sentences is as consistent as the worst of them. A long response with one invented sentence is
inconsistent however well the others are supported, and a response that says little beside a greeting is not. A fusion
of models that read sentences in their response scores it as a whole (``Fusion.whole``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_context

from msgspec.structs import replace

from groundwire.runtime.bundles.calibration import Calibration, ProfileName

from ..metrics import bind_results
from ..metrics.base import BoundResult
from ..metrics.requests import ReadRequest
from ..schema.results import STOPPED, MetricResult, Request, SentenceVerdict, UnsupportedSpan, Verdict
from ..text.sentences import Sentence
from ..text.words import starting_in
from .adjustments import (
    ADJUSTMENTS,
    NOTHING_STATED,
    OF_RESPONSES,
    OF_SENTENCES,
    ResponseEvidence,
    VerdictContext,
    adjust,
)
from .fusion import BoundFeature, Criteria, Rule, ask_for, bind_criteria, features, features_of_part, sigmoid

Decision = tuple[Verdict, tuple[SentenceVerdict, ...]]
"""The verdicts on a response and on its sentences."""


def decide_response(request: ReadRequest, results: Sequence[BoundResult], criteria: Criteria) -> Decision:
    """Decide about a response and its sentences.

    Args:
        request: The response and its knowledge.
        results: The results of the metrics of ``criteria``, in their order.
        criteria: The fusion and the threshold.

    Returns:
        The verdict on the response, and its sentences with theirs; no sentences where it is unknown.
    """
    if criteria.rule is None:
        return criteria.basis, ()
    fused, context = fuse_response(request, results, criteria.rule)
    verdict = adjust(fused, context, ADJUSTMENTS)
    context = replace_context(context, sentences=_decide_sentences(verdict, context, results))
    verdict = adjust(verdict, context, OF_RESPONSES)
    context = replace_context(context, whole=verdict)
    return verdict, tuple(
        replace(part, verdict=adjust(part.verdict, context, OF_SENTENCES)) for part in context.sentences
    )


def decide_alone(
    request: ReadRequest, results: Sequence[BoundResult], criteria: Criteria
) -> tuple[SentenceVerdict, ...]:
    """Decide about a response that is a sentence of a longer one, by the results of metrics about it alone.

    The verdicts equal its verdicts in the response, where the metrics' numbers about a sentence do not depend on the
    others.

    Args:
        request: The sentence as a response, and its knowledge.
        results: The results of the metrics of ``criteria`` about it.
        criteria: The fusion and the threshold.

    Returns:
        One sentence as a rule, and several where the text by itself is split otherwise.
    """
    rule, basis, parts = criteria.rule, criteria.basis, request.sentences
    if rule is None or basis.threshold is None:
        return tuple(SentenceVerdict(*sentence, basis) for sentence in parts)
    evidence = ResponseEvidence(request, [results[index] for index in rule.read])
    context = VerdictContext(request.response, {}, rule, basis, request, evidence=evidence)
    return tuple(_decide_sentence(sentence, basis, context, results) for sentence in parts)


def decide_without_knowledge(request: ReadRequest, results: Sequence[BoundResult], criteria: Criteria) -> Decision:
    """Decide about a response without knowledge, and about its sentences.

    A sentence that states nothing, an abstention above all, is ``unverifiable``; any other is ``unknown``.

    Args:
        request: The response.
        results: The results of the metrics of ``criteria``; those that compare have none.
        criteria: The fusion and the threshold.

    Returns:
        The verdict of the first sentence that states something, or else of the first; and the sentences with theirs.
    """
    rule, basis = criteria.rule, criteria.basis
    if rule is None or basis.threshold is None:
        return basis, ()
    silent = replace(basis, label="unverifiable", message=NOTHING_STATED)
    decided = []
    for sentence in request.sentences:
        numbers = features_of_part(results, sentence.start, sentence.end)
        context = VerdictContext(sentence.text, numbers, rule, silent, request, sentence.start)
        decided.append(SentenceVerdict(*sentence, adjust(basis, context, ADJUSTMENTS)))
    worst = min(decided, key=lambda part: part.verdict.label != "unknown")
    return worst.verdict, tuple(decided)


def decide_again(
    request: Request,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
    threshold: float | None = None,
) -> Decision:
    """Decide by stored results of metrics.

    Args:
        request: The texts that were scored; of the knowledge only whether there is some is read.
        results: Results by the names of metrics: ``Score.metrics``.
        calibration: How their values are read; None gives no verdict.
        profile: Name of the operating point.
        max_false_positive_rate: A bound, 0–1, that takes the profile's place; None takes the profile.
        threshold: A probability, 0–1, that takes the place of both; None takes one of them.

    Raises:
        InvalidRequest: The calibration lacks the profile, or cannot promise the rate.
    """
    bound = bind_results(results)
    metrics = [metric for metric, _ in bound]
    criteria = bind_criteria(metrics, calibration, profile, max_false_positive_rate, threshold)
    read = ReadRequest.of(request)
    decide = decide_response if read.knowledge else decide_without_knowledge
    return decide(read, bound, criteria)


def fuse_response(request: ReadRequest, results: Sequence[BoundResult], rule: Rule) -> tuple[Verdict, VerdictContext]:
    """Return what the fusion says of a response, and what the verdict is adjusted by."""
    numbers = features(results)
    fused = fuse(numbers, results, rule)
    silent = replace(fused, label="unverifiable", message=NOTHING_STATED) if fused.probability is not None else fused
    evidence = ResponseEvidence(request, [results[index] for index in rule.read])
    return fused, VerdictContext(request.response, numbers, rule, silent, request, evidence=evidence)


def fuse(numbers: Mapping[str, float], results: Sequence[BoundResult], rule: Rule) -> Verdict:
    """Add up the numbers of a response; the verdict is unknown where one is missing that the fusion needs."""
    absent = [
        bound
        for bound in rule.features
        if bound.feature.name not in numbers and not (bound.feature.mean == 0 and _has_nothing_to_count(bound, results))
    ]
    names = tuple(bound.feature.name for bound in absent)
    read = {results[index].result.name: index for index in rule.read}
    failed = {name: index for name, index in read.items() if results[index].result.status == "failed"}
    is_cut = any(bound.index is None or results[bound.index].result.status in STOPPED for bound in absent)
    unknown = Verdict(
        "unknown",
        profile=rule.point.profile,
        # The bound is not of a verdict without the numbers of a metric that was not asked, or could not look at the
        # texts. It holds where a metric found nothing to count: the calibration's responses had such features too.
        max_false_positive_rate=None if failed or is_cut else rule.point.max_false_positive_rate,
        fusion=rule.fusion.name,
        absent=names,
    )
    missing = {bound.metric: bound.index for bound in absent if bound.feature.needed} | failed
    if missing:
        asked = [results[index].result for index in missing.values() if index is not None]
        if rule.is_chat(numbers) and not any(result.status in STOPPED for result in asked):
            # "Well, so it is!" has no word to look up either, so this verdict needs no number of the fusion.
            return replace(unknown, label="unverifiable", threshold=rule.point.threshold, message=NOTHING_STATED)
        return replace(unknown, message=_explain_missing(list(missing), asked))
    contributions = _list_contributions(numbers, rule)
    logit = rule.fusion.intercept + sum(contributions.values())
    if not math.isfinite(logit):
        message = "The numbers of the verdict do not add up to a finite one; check the calibration and the models."
        return replace(unknown, message=message)
    probability = sigmoid(logit)
    return replace(
        unknown,
        label=rule.label(probability),
        probability=probability,
        threshold=rule.point.threshold,
        contributions=contributions,
        message=_explain_absent(names),
    )


def fuse_sentence(numbers: Mapping[str, float], rule: Rule, whole: Verdict) -> tuple[Verdict, Verdict]:
    """Add up the numbers about one sentence of several; the verdict is unknown when most evidence says nothing of it.

    Nothing is needed by name: a sentence may have no question of Q², and a response's other sentences have it. No false
    positive rate is promised: the bound is about responses.

    Args:
        numbers: The numbers by name.
        rule: The fusion of the response.
        whole: The verdict on the response, which gives profile and threshold.

    Returns:
        The verdict, and the verdict on the sentence if it states nothing.
    """
    absent = tuple(bound.feature.name for bound in rule.features if bound.feature.name not in numbers)
    silent = Verdict(
        "unverifiable", profile=whole.profile, threshold=whole.threshold, fusion=whole.fusion, absent=absent
    )
    if not rule.weights.suffice(numbers):
        message = "The metrics say too little about this sentence."
        return replace(silent, label="unknown", threshold=None, message=message), silent
    contributions = _list_contributions(numbers, rule)
    probability = sigmoid(rule.fusion.intercept + sum(contributions.values()))
    fused = replace(
        silent,
        label=rule.label(probability),
        probability=probability,
        contributions=contributions,
        # Numbers that the response has and this sentence cannot have say nothing new.
        message=_explain_absent(whole.absent),
    )
    return fused, silent


def _decide_sentences(
    whole: Verdict, context: VerdictContext, results: Sequence[BoundResult]
) -> tuple[SentenceVerdict, ...]:
    """The sentences of a response with their verdicts; none when the verdict on all its numbers is unknown."""
    if whole.label == "unknown":
        return ()
    parts = context.request.sentences
    if len(parts) == 1:
        return (SentenceVerdict(*parts[0], whole),)
    return tuple(_decide_sentence(sentence, whole, context, results) for sentence in parts)


def _decide_sentence(
    sentence: Sentence, whole: Verdict, context: VerdictContext, results: Sequence[BoundResult]
) -> SentenceVerdict:
    context.request.check_time()
    rule, (text, start, end) = context.rule, sentence
    numbers = features_of_part(results, start, end, in_response=rule.weights.reads_in_response)
    fused, silent = fuse_sentence(numbers, rule, whole)
    about = VerdictContext(
        text, numbers, rule, silent, context.request, start, is_sentence=True, evidence=context.evidence
    )
    return SentenceVerdict(text, start, end, adjust(fused, about, ADJUSTMENTS))


def _list_contributions(numbers: Mapping[str, float], rule: Rule) -> dict[str, float]:
    features = (bound.feature for bound in rule.features)
    return {
        feature.name: feature.contribution(numbers[feature.name]) for feature in features if feature.name in numbers
    }


def _has_nothing_to_count(bound: BoundFeature, results: Sequence[BoundResult]) -> bool:
    """Whether a feature has no number because its metric found nothing to count, and so counts as what it is, 0."""
    return bound.index is not None and results[bound.index].result.status == "nothing_to_verify"


def _explain_absent(absent: Sequence[str]) -> str:
    """What the verdict says about features without a value; empty without any."""
    if not absent:
        return ""
    values = "values of" if len(absent) > 1 else "value of"
    count = "count as their means" if len(absent) > 1 else "counts as its mean"
    return f"The {values} {', '.join(absent)} {'are' if len(absent) > 1 else 'is'} absent and {count}."


def _explain_missing(missing: Sequence[str], asked: Sequence[MetricResult]) -> str:
    """Why the metrics ``missing`` have no numbers for the verdict, and what to do; ``asked`` are those with results."""
    if not asked:
        return ask_for(missing)
    first, *others = sorted(asked, key=lambda result: result.value is not None)
    without = [result.name for result in others if result.value is None]
    if first.value is not None:
        return f"The verdict needs more of the metric {first.name} than its value; leave its options at their defaults."
    also = f", as {' and '.join(without)} did" if without else ""
    ended = f"which ended without a value ({first.status})"
    return f"The verdict needs the metric {first.name}, {ended}{also}: {first.message}"


def keep_doubted(spans: Sequence[UnsupportedSpan], decided: Sequence[SentenceVerdict]) -> tuple[UnsupportedSpan, ...]:
    """The spans, which are in order, but for those in sentences that are consistent, or state nothing."""
    trusted = [part for part in decided if part.verdict.label in ("consistent", "unverifiable")]
    dropped = {span.start for part in trusted for span in starting_in(spans, part.start, part.end)}
    return tuple(span for span in spans if span.start not in dropped)


def add_spans(decided: Sequence[SentenceVerdict], spans: Sequence[UnsupportedSpan]) -> tuple[SentenceVerdict, ...]:
    """The sentences, each with the spans that begin in it; ``spans`` are in order."""
    return tuple(replace(part, unsupported=tuple(starting_in(spans, part.start, part.end))) for part in decided)
