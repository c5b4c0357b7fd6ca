"""Values: are the numbers, dates and names of the response also in the knowledge? Rules alone, no model.

A model of a few million parameters does not see that 1968 is not 1978. Here both texts are read for quantities with
units, money, percentages, ordinals, dates, ages and durations, times and names; each is brought to a normal form and
compared (docs/metrics/values.md). Of the history only numbers and words of computations are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.runtime.errors import TooLong

from ..schema.explanations import PassageRange, StatedValue, UnsupportedSpan, ValuesExplanation
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from ..schema.steps import Steps
from ..text.reading import ReadText, may_deny
from ..text.words import check_words, within
from ..values.comparing import normalize
from ..values.knowledge import ValueText
from ..values.owners import list_words
from ..values.sides import CheckedValue
from ..values.support import check_in_steps
from ..values.tokens import TOKEN
from .base import Details, Metric, MetricNumber, RoleInfos, WordEvidence
from .requests import ReadRequest, open_knowledge

NAMES = frozenset({"name", "person", "place", "organisation", "nationality"})
"""Kinds of values that a text may have without stating anything: "Thanks, Ann!"."""
MAX_WORDS = 100_000
"""Words, numbers and punctuation marks of response and knowledge, which plain Python reads in a second."""


FEW_VALUES = 2
"""Values of a sentence up to which a contradicted value is proof. With more, it is often compared with another's value:
342 of 7,281 wrong and 81 of 5,937 right labelled responses have a contradicted value in a sentence of at most two."""


def values(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The share, 0–1, of the response's values that the knowledge supports.

    A response that states no value which can be checked has nothing to verify. Of long knowledge with more than
    ``MAX_WORDS`` words or ``MAX_COMPARISONS`` the parts are read that the sentences are about; if these are too many,
    or the response is too long, the result is ``truncated``.
    """
    message, coverage = "", None
    try:
        checked = yield from _check(request, request.read_knowledge.values)
    except TooLong:
        selected = yield from open_knowledge(request)
        if not selected.is_excerpt:
            raise
        for sentence in request.sentences:
            selected.select_for(sentence.text)
            yield []
        parts = selected.ranges
        texts = [ValueText(request.knowledge[part.passage][part.start : part.end]) for part in parts]
        checked = tuple(_move(check, parts) for check in (yield from _check(request, texts)))
        message, coverage = selected.explain("values"), selected.share
    denied = (
        [reading for reading in request.readings if reading.stance == "denied"] if may_deny(request.response) else []
    )
    stated = tuple(_state(request, check) for check in checked if _is_stated(check, denied))
    if request.denied and request.bare_answer is not None and not message:
        denial = yield from _check_denial(request)
        stated = (*denial, *(value for value in stated if value.start >= request.bare_answer[1]))
    if not stated:
        nothing = "The response states no number, date or name that can be checked."
        return MetricResult("values", "nothing_to_verify", message=nothing)
    return MetricResult(
        "values",
        "scored",
        _measure_share(stated),
        message,
        explanation=ValuesExplanation(stated),
        unsupported=tuple(_list_unsupported(stated)),
        coverage=coverage,
    )


def _is_stated(check: CheckedValue, denied: Sequence[ReadText]) -> bool:
    """Whether the response states a value; what it calls false may have another value than the knowledge."""
    return check.outcome in ("supported", "derived") or not any(
        reading.start <= check.value.start < reading.end for reading in denied
    )


def _check(request: ReadRequest, knowledge: Sequence[ValueText]) -> Steps[tuple[CheckedValue, ...]]:
    check_words((request.response, *(passage.text for passage in knowledge)), MAX_WORDS, "Values", TOKEN)
    return (yield from check_in_steps(request.values, knowledge, request.history))


def _move(check: CheckedValue, parts: Sequence[PassageRange]) -> CheckedValue:
    """A check against parts of the knowledge, with its evidence in the knowledge."""
    where = check.evidence
    if where is None:
        return check
    part = parts[where.passage]
    start, end = part.start + where.start, part.start + where.end
    return check._replace(evidence=where._replace(passage=part.passage, start=start, end=end))


def _state(request: Request, check: CheckedValue) -> StatedValue:
    value, where = check.value, check.evidence
    return StatedValue(
        value.kind,
        request.response[value.start : value.end],
        value.start,
        value.end,
        normalize(value.content),
        check.outcome,
        "" if where is None else request.knowledge[where.passage][where.start : where.end],
        None if where is None else PassageRange(where.passage, where.start, where.end),
        check.derivation,
    )


def _check_denial(request: ReadRequest) -> Steps[list[StatedValue]]:
    """A bare "no" as a supported value, if it denies one that the knowledge contradicts; else nothing speaks for it.

    The question has one value, and its other words are in the sentence that contradicts it: what the knowledge says of
    another subject denies nothing.
    """
    start, end = request.bare_answer or (0, 0)
    asked, knowledge = ValueText(request.denied), request.read_knowledge.values
    checked = yield from check_in_steps(asked, knowledge)
    amounts = [check for check in checked if check.value.kind not in NAMES]
    if len(amounts) != 1 or amounts[0].outcome != "contradicted" or amounts[0].evidence is None:
        return []
    value, where = amounts[0].value, amounts[0].evidence
    subject = list_words([token for token in asked.tokens if not value.start <= token.start < value.end])
    if not subject <= list_words(
        [token for token in knowledge[where.passage].tokens if token.sentence == where.sentence]
    ):
        return []
    return [_state(request, amounts[0]._replace(value=value._replace(start=start, end=end), outcome="supported"))]


def _list_unsupported(stated: Sequence[StatedValue]) -> list[UnsupportedSpan]:
    return [
        UnsupportedSpan(
            value.text,
            value.start,
            value.end,
            "mismatch" if value.outcome == "contradicted" else "not_in_knowledge",
            value.knowledge_says,
            "values",
        )
        for value in stated
        if value.outcome in ("contradicted", "absent")
    ]


def _measure_share(stated: Sequence[StatedValue]) -> float:
    """The share of values that the knowledge has, or that follow from it."""
    return sum(value.outcome in ("supported", "derived") for value in stated) / len(stated)


def _features(explanation: ValuesExplanation) -> dict[str, float]:
    stated = explanation.values
    outcomes = [value.outcome for value in stated]
    replaced = [value for value in stated if value.outcome == "absent" and value.evidence is not None]
    contradicted = outcomes.count("contradicted")
    return {
        "supported": float(outcomes.count("supported") + outcomes.count("derived")),
        "contradicted": float(contradicted),
        "contradicted_share": contradicted / len(stated),
        "disproved": float(contradicted > 0 and len(stated) <= FEW_VALUES),
        "absent": float(outcomes.count("absent")),
        "replaced": float(len(replaced)),
        "amounts": float(sum(value.kind not in NAMES for value in stated)),
    }


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, ValuesExplanation):
        return {}
    stated = within(result.explanation.values, start, end)
    if not stated:
        return {}
    return {"": _measure_share(stated), **_features(ValuesExplanation(stated))}


def _details(result: MetricResult) -> Details | None:
    if not isinstance(result.explanation, ValuesExplanation):
        return None
    rows = tuple(
        (value.text, value.kind, value.normalized, value.outcome, value.derivation or value.knowledge_says)
        for value in result.explanation.values
    )
    return Details(("value", "kind", "normal form", "outcome", "the knowledge says"), rows)


VALUES = Metric(
    name="values",
    title="Values",
    description="share of the response’s numbers, dates and names that the knowledge supports",
    compute=values,
    groups=frozenset({"fast"}),
    order=9,
    # A name that the knowledge lacks may name somebody it speaks of, so it takes another metric to mark it.
    words=WordEvidence({"mismatch": 1.0, "not_in_knowledge": 0.5}, precision=2),
    features=_features,
    part=_part,
    numbers=(
        *(
            MetricNumber(key, is_lower_better=True)
            for key in ("contradicted", "contradicted_share", "disproved", "absent", "replaced")
        ),
        MetricNumber("amounts", about="amount"),
    ),
    details=_details,
)
METRICS = (VALUES,)
