"""One calibrated probability from all metrics, and the verdict drawn from it.

The fusion is a logistic regression: a few weighted numbers that can be read in the bundle's calibration.
Nothing fails open: without a number that the fusion needs the probability is missing, and the verdict is ``unknown``.
So it is where a metric that the fusion asks for has failed, for it might have found what is wrong.

A response of several sentences is as consistent as the worst of them. A long response with one invented sentence is
inconsistent however well the others are supported, and a response that says little beside a greeting is not. A fusion
of models that read sentences in their response scores it as a whole (``Fusion.whole``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from groundwire.runtime.calibration import Calibration, Feature, Fusion, ProfileName

from ..schema.results import Label, MetricResult, SentenceVerdict, Status, UnsupportedSpan, Verdict
from ..text.sentences import Sentence, sentences
from ..text.terms import abstains, asserts, states_terms
from ..values.knowledge import find_values
from ..values.tokens import tokenize
from .fusion import (
    choose_fusion,
    confirm,
    features,
    features_of_part,
    find_confirmation,
    find_refutation,
    find_verifiability,
    is_consistent,
    is_contradicted,
    name_metric,
    reads_in_response,
    refute,
    says_enough,
    states_amounts,
)
from .operating_point import find_operating_point

NO_KNOWLEDGE = "No knowledge was given, so nothing supports it."
NOTHING_STATED = "The response states nothing that knowledge could confirm."
STOPPED: frozenset[Status] = frozenset({"truncated", "deadline", "cancelled", "failed"})
"""Statuses of metrics that could not look at the texts; ``nothing_to_verify`` is what a metric says about them."""


def decide(
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> Verdict:
    """The verdict on the metrics' results, by the fusion for these metrics (``choose_fusion``).

    ``max_false_positive_rate`` takes the profile's place. InvalidRequest when the calibration lacks the profile, or
    cannot promise the rate.
    """
    if calibration is None:
        message = "The bundle has no calibration; load one with it."
        return Verdict("unknown", profile=profile if max_false_positive_rate is None else None, message=message)
    fusion = choose_fusion(calibration, results)
    point = find_operating_point(fusion, profile, max_false_positive_rate)
    numbers = features(results)
    absent = tuple(
        feature.name for feature in fusion.features if feature.name not in numbers and not _is_zero(feature, results)
    )
    failed = _list_failed(fusion, results)
    unknown = Verdict(
        "unknown",
        profile=point.profile,
        max_false_positive_rate=None if failed or _is_cut(absent, results) else point.max_false_positive_rate,
        fusion=fusion.name,
        absent=absent,
    )
    checkable = find_verifiability(numbers)
    unverifiable = calibration.verifiable is not None and checkable is not None and checkable < calibration.verifiable
    missing = {
        name_metric(feature.name): None for feature in fusion.features if feature.needed and feature.name in absent
    } | dict.fromkeys(failed)
    stopped = [results[name] for name in missing if name in results and results[name].status in STOPPED]
    if missing and unverifiable and not stopped:
        # "Well, so it is!" has no word to look up either, so this verdict needs no number of the fusion.
        return replace(unknown, label="unverifiable", threshold=point.threshold, message=NOTHING_STATED)
    if missing:
        return replace(unknown, message=_explain_missing(list(missing), results))
    contributions = {
        feature.name: feature.contribution(numbers[feature.name])
        for feature in fusion.features
        if feature.name in numbers
    }
    logit = fusion.intercept + sum(contributions.values())
    if not math.isfinite(logit):
        message = "The numbers of the verdict do not add up to a finite one; check the calibration and the models."
        return replace(unknown, message=message)
    probability = sigmoid(logit)
    label: Label = "consistent" if is_consistent(probability, point.threshold, fitted=True) else "inconsistent"
    return replace(
        unknown,
        label="unverifiable" if unverifiable else label,
        probability=probability,
        threshold=point.threshold,
        contributions=contributions,
        message=NOTHING_STATED if unverifiable else _explain_absent(absent),
    )


def _list_failed(fusion: Fusion, results: Mapping[str, MetricResult]) -> list[str]:
    """The metrics of a fusion that failed, also those that only refute: a mean in their place might hide a mistake."""
    names = dict.fromkeys((*(name_metric(feature.name) for feature in fusion.features), *fusion.metrics))
    return [name for name in names if name in results and results[name].status == "failed"]


def _is_zero(feature: Feature, results: Mapping[str, MetricResult]) -> bool:
    """Whether a feature has no number because its metric found nothing to count, and so counts as what it is, 0."""
    result = results.get(name_metric(feature.name))
    return feature.mean == 0 and result is not None and result.status == "nothing_to_verify"


def _is_cut(absent: Sequence[str], results: Mapping[str, MetricResult]) -> bool:
    """Whether a feature is absent because its metric was not asked or could not look at the texts.

    The bound is then not of this verdict. It holds where a metric found nothing to count: the calibration's responses
    had such features too.
    """
    metrics = {name_metric(feature) for feature in absent}
    return any(name not in results or results[name].status in STOPPED for name in metrics)


def find_basis(
    metrics: Mapping[str, object],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> Verdict:
    """What all verdicts by these metrics have in common: the fusion and the threshold, with the label ``unknown``.

    Without a threshold, and with a message, if the calibration is missing or a metric that its fusion needs was not
    asked.
    """
    if calibration is None:
        return decide({}, None, profile, max_false_positive_rate)
    fusion = choose_fusion(calibration, metrics)
    point = find_operating_point(fusion, profile, max_false_positive_rate)
    basis = Verdict("unknown", profile=point.profile, fusion=fusion.name)
    needed = dict.fromkeys(name_metric(feature.name) for feature in fusion.features if feature.needed)
    missing = [name for name in needed if name not in metrics]
    return (
        replace(basis, message=_explain_missing(missing, {})) if missing else replace(basis, threshold=point.threshold)
    )


def decide_sentence(
    numbers: Mapping[str, float], calibration: Calibration, whole: Verdict, *, check_verifiable: bool = True
) -> Verdict:
    """The verdict on the numbers about one sentence of several; ``unknown`` when most evidence says nothing of it.

    It has the fusion and the threshold of ``whole``, the verdict on the response. Nothing is needed by name: a sentence
    may have no question of Q², and a response's other sentences have it. It promises no false positive rate: the bound
    is about responses. With ``check_verifiable`` off the sentence counts as stating
    something.
    """
    fusion = calibration.fusion(whole.fusion)
    available = [feature for feature in fusion.features if feature.name in numbers]
    absent = tuple(feature.name for feature in fusion.features if feature.name not in numbers)
    unknown = replace(
        whole,
        label="unknown",
        probability=None,
        contributions=None,
        message="",
        max_false_positive_rate=None,
        absent=absent,
    )
    checkable = find_verifiability(numbers) if check_verifiable else None
    if calibration.verifiable is not None and checkable is not None and checkable < calibration.verifiable:
        return replace(unknown, label="unverifiable")
    weights = {feature.name: feature.weight for feature in fusion.features}
    if not says_enough(weights, {feature.name for feature in fusion.features if feature.mean == 0}, numbers):
        return replace(unknown, threshold=None, message="The metrics say too little about this sentence.")
    contributions = {feature.name: feature.contribution(numbers[feature.name]) for feature in available}
    probability = sigmoid(fusion.intercept + sum(contributions.values()))
    consistent = whole.threshold is not None and is_consistent(probability, whole.threshold, fitted=True)
    label: Label = "consistent" if consistent else "inconsistent"
    # Numbers that the response has and this sentence cannot have say nothing new.
    message = _explain_absent(whole.absent)
    return replace(unknown, label=label, probability=probability, contributions=contributions, message=message)


def label_by_probability(verdict: Verdict) -> Verdict:
    """An unverifiable verdict as what its probability says; without one it stays as it is."""
    if verdict.probability is None or verdict.threshold is None:
        return verdict
    consistent = is_consistent(verdict.probability, verdict.threshold, fitted=True)
    return replace(verdict, label="consistent" if consistent else "inconsistent", message="")


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(−logit)), without overflow."""
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    odds = math.exp(logit)
    return odds / (1 + odds)


def _explain_absent(absent: Sequence[str]) -> str:
    """What the verdict says about features without a value; empty without any."""
    if not absent:
        return ""
    values = "values of" if len(absent) > 1 else "value of"
    count = "count as their means" if len(absent) > 1 else "counts as its mean"
    return f"The {values} {', '.join(absent)} {'are' if len(absent) > 1 else 'is'} absent and {count}."


def _explain_missing(missing: Sequence[str], results: Mapping[str, MetricResult]) -> str:
    """Why the metrics ``missing`` have no numbers for the verdict, and what to do."""
    asked = sorted((results[name] for name in missing if name in results), key=lambda result: result.value is not None)
    if not asked:
        which = "metrics" if len(missing) > 1 else "metric"
        return f"The verdict needs the {which} {' and '.join(missing)}: name them too, or leave metrics out."
    first, others = asked[0], [result.name for result in asked[1:] if result.value is None]
    if first.value is not None:
        return f"The verdict needs more of the metric {first.name} than its value; leave its options at their defaults."
    also = f", as {' and '.join(others)} did" if others else ""
    ended = f"which ended without a value ({first.status})"
    return f"The verdict needs the metric {first.name}, {ended}{also}: {first.message}"


def decide_response(
    response: str,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> tuple[Verdict, tuple[SentenceVerdict, ...]]:
    """The verdicts on a response and on its sentences; no sentences where it is unknown.

    Raises as ``decide`` does.
    """
    whole = decide(results, calibration, profile, max_false_positive_rate)
    numbers = features(results)
    if whole.label == "unverifiable" and _states(response, numbers):
        whole = label_by_probability(whole)
    if whole.label != "unverifiable":
        whole = confirm(whole, find_confirmation(_list_read(results, calibration, whole), response, 0, len(response)))
    whole = refute(whole, find_refutation(numbers, _list_weighed(calibration, whole)))
    decided = decide_sentences(response, results, whole, calibration)
    fusion = calibration.fusion(whole.fusion) if calibration is not None and whole.fusion else None
    if fusion is None or not fusion.whole:
        return choose_verdict(whole, decided), decided
    verdict = choose_verdict(whole, decided, fusion)
    return verdict, agree(verdict, decided)


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
    return tuple(_decide_part(response, sentence, results, whole, calibration) for sentence in parts)


def decide_alone(
    text: str,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> tuple[SentenceVerdict, ...]:
    """The verdicts of a text that is a sentence of a longer response, by the results of metrics about it alone.

    They equal its verdicts in the response, where the metrics' numbers about a sentence do not depend on the others.
    One sentence as a rule, and several where the text by itself is split otherwise.
    """
    basis = find_basis(results, calibration, profile, max_false_positive_rate)
    if calibration is None or basis.threshold is None:
        return tuple(SentenceVerdict(*sentence, basis) for sentence in sentences(text))
    return tuple(_decide_part(text, sentence, results, basis, calibration) for sentence in sentences(text))


def decide_without_knowledge(
    response: str,
    results: Mapping[str, MetricResult],
    calibration: Calibration | None,
    profile: ProfileName,
    max_false_positive_rate: float | None = None,
) -> tuple[Verdict, tuple[SentenceVerdict, ...]]:
    """The verdicts on a response without knowledge, and on its sentences.

    A sentence that states nothing, an abstention above all, is ``unverifiable``; nothing supports any other.
    """
    basis = find_basis(results, calibration, profile, max_false_positive_rate)
    if calibration is None or basis.threshold is None:
        return basis, ()
    refuted = replace(basis, label="inconsistent", probability=0.0, message=NO_KNOWLEDGE)
    silent = replace(basis, label="unverifiable", message=NOTHING_STATED)
    decided = []
    for sentence in sentences(response):
        checkable = find_verifiability(features_of_part(results, sentence.start, sentence.end))
        is_chat = calibration.verifiable is not None and checkable is not None and checkable < calibration.verifiable
        terms = states_terms(sentence.text, amounts=bool(find_values(tokenize(sentence.text))))
        states = terms or not (is_chat or abstains(sentence.text))
        decided.append(SentenceVerdict(*sentence, refuted if states else silent))
    worst = min(decided, key=lambda part: part.verdict.label != "inconsistent")
    return worst.verdict, tuple(decided)


def _decide_part(
    response: str, sentence: Sentence, results: Mapping[str, MetricResult], whole: Verdict, calibration: Calibration
) -> SentenceVerdict:
    start, end = sentence.start, sentence.end
    read = [feature.name for feature in calibration.fusion(whole.fusion).features]
    numbers = features_of_part(results, start, end, in_response=reads_in_response(read))
    stated = find_refutation(numbers) is not None or _states(response[start:end], numbers)
    verdict = decide_sentence(numbers, calibration, whole, check_verifiable=not stated)
    confirmation = find_confirmation(_list_read(results, calibration, whole), response, start, end)
    refutation = find_refutation(numbers, _list_weighed(calibration, whole))
    return SentenceVerdict(*sentence, refute(confirm(verdict, confirmation), refutation))


def _states(text: str, numbers: Mapping[str, float]) -> bool:
    """Whether a text states values, terms, or what the knowledge contradicts, whatever a classifier makes of it."""
    terms = states_terms(text, amounts=states_amounts(numbers))
    return terms or (is_contradicted(numbers) and asserts(text))


def _list_read(
    results: Mapping[str, MetricResult], calibration: Calibration | None, verdict: Verdict
) -> Mapping[str, MetricResult]:
    """The results that the fusion of a verdict asks for: further metrics, which a caller adds, do not change it."""
    if calibration is None or not verdict.fusion:
        return results
    return {name: results[name] for name in calibration.fusion(verdict.fusion).metrics if name in results}


def _list_weighed(calibration: Calibration | None, verdict: Verdict) -> frozenset[str]:
    """The features that the fusion of a verdict reads."""
    if calibration is None or not verdict.fusion:
        return frozenset()
    return frozenset(feature.name for feature in calibration.fusion(verdict.fusion).features)


def choose_verdict(whole: Verdict, decided: Sequence[SentenceVerdict], fusion: Fusion | None = None) -> Verdict:
    """The worst verdict of a sentence that states something; ``whole`` where sentences do not say more than it.

    A response of sentences that state nothing states nothing, whatever a classifier says of it as a whole.
    The bound on false positives is about responses, so ``whole`` gives it; ``whole`` also gives what it lacks.

    With a ``fusion`` that scores responses as a whole, only sentences count that a feature speaks against which counts
    nothing else, such as values that the knowledge contradicts: among many values of a response one is little.
    """
    if decided and all(sentence.verdict.label == "unverifiable" for sentence in decided):
        return replace(whole, label="unverifiable", message=NOTHING_STATED)
    verdicts = [sentence.verdict for sentence in decided if sentence.verdict.probability is not None]
    if fusion is not None:
        counts = [feature.name for feature in fusion.features if feature.mean == 0]
        verdicts = [
            verdict for verdict in verdicts if any((verdict.contributions or {}).get(name, 0) < 0 for name in counts)
        ]
        verdicts += [whole] if verdicts else []
    if whole.probability is None or not verdicts or any(sentence.verdict.label == "unknown" for sentence in decided):
        return whole
    worst = min(verdicts, key=lambda verdict: verdict.probability or 0.0)
    return msgspec.structs.replace(worst, max_false_positive_rate=whole.max_false_positive_rate, absent=whole.absent)


def agree(verdict: Verdict, decided: Sequence[SentenceVerdict]) -> tuple[SentenceVerdict, ...]:
    """The sentences of a response that was scored as a whole, in agreement with its verdict.

    The doubted sentences of a consistent response have its verdict. So has the worst sentence of an inconsistent
    response, if no sentence is inconsistent by itself.
    """
    copied = replace(verdict, max_false_positive_rate=None)
    if verdict.label == "consistent":
        return tuple(
            replace(part, verdict=copied) if part.verdict.label == "inconsistent" else part for part in decided
        )
    stated = [part for part in decided if part.verdict.probability is not None and part.verdict.label != "unverifiable"]
    if verdict.label != "inconsistent" or not stated or any(p.verdict.label == "inconsistent" for p in decided):
        return tuple(decided)
    worst = min(stated, key=lambda part: part.verdict.probability or 0.0)
    return tuple(replace(part, verdict=copied) if part is worst else part for part in decided)


def keep_doubted(spans: Sequence[UnsupportedSpan], decided: Sequence[SentenceVerdict]) -> tuple[UnsupportedSpan, ...]:
    """The spans but for those in sentences that are consistent, or state nothing."""
    trusted = [sentence for sentence in decided if sentence.verdict.label in ("consistent", "unverifiable")]
    return tuple(span for span in spans if not any(sentence.start <= span.start < sentence.end for sentence in trusted))


def add_spans(decided: Sequence[SentenceVerdict], spans: Sequence[UnsupportedSpan]) -> tuple[SentenceVerdict, ...]:
    """The sentences, each with the ``spans`` that begin in it."""
    return tuple(
        msgspec.structs.replace(
            sentence,
            unsupported=tuple(span for span in spans if sentence.start <= span.start < sentence.end),
        )
        for sentence in decided
    )
