"""A token classifier over (knowledge, response), as LettuceDetect: which words does the knowledge not support?"""

from __future__ import annotations

from collections.abc import Iterable

from groundwire.runtime.calls import ClassifyTokens

from ..schema.explanations import FlaggedToken, TokenClassifierExplanation, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.reading import ReadText
from ..text.retrieval import NEAR
from ..text.words import flag_tokens, within
from .base import Metric, MetricNumber, RoleInfos, WordEvidence
from .claims import cut_to_fit, join_claims, least_coverage, nothing_to_verify
from .requests import ReadRequest, open_knowledge

ROLE = "token_classifier"


def token_classifier(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, that the least supported token of the response is supported."""
    evidence = yield from open_knowledge(request, NEAR)
    whole = join_claims(request, request.sentences)
    (answers,) = yield from cut_to_fit(
        [whole], lambda parts: [ClassifyTokens(ROLE, evidence.select(part), part.text) for part in parts]
    )
    flags = locate_tokens((part, flag) for part, answer in answers for flag in flag_tokens(answer, role_info(ROLE)))
    if not flags:  # signs without a token, after the question that they are read with
        return nothing_to_verify("token_classifier")
    threshold = options.token_classifier.threshold
    ranges = join_ranges((flag.start, flag.end) for flag in flags if flag.probability >= threshold)
    return MetricResult(
        "token_classifier",
        "scored",
        1.0 - max(flag.probability for flag in flags),
        explanation=TokenClassifierExplanation(flags),
        unsupported=tuple(
            UnsupportedSpan(request.response[start:end], start, end, "detected", "", "token_classifier")
            for start, end in ranges
        ),
        message=evidence.message,
        coverage=evidence.share * least_coverage([answer for _, answer in answers]),
    )


def locate_tokens(flags: Iterable[tuple[ReadText, FlaggedToken]]) -> tuple[FlaggedToken, ...]:
    """The tokens with their positions in the response; tokens of context, such as a table's header, have none."""
    return tuple(
        [
            FlaggedToken(*position, flag.probability, flag.begins)
            for reading, flag in flags
            if (position := reading.locate(flag.start, flag.end)) is not None
        ]
    )


def join_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order; ranges that touch or are a space apart are joined, and empty ranges are left out.

    >>> join_ranges([(0, 2), (2, 5), (6, 9), (12, 13)])
    [(0, 9), (12, 13)]
    """
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if start == end:
            continue
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, TokenClassifierExplanation):
        return {}
    inside = within(result.explanation.tokens, start, end)
    return {"": 1.0 - max(flag.probability for flag in inside)} if inside else {}


METRICS = (
    Metric(
        name="token_classifier",
        title="Token classifier",
        description="a classifier that flags unsupported words",
        compute=token_classifier,
        roles=frozenset({ROLE}),
        groups=frozenset({"fast"}),
        order=101,
        words=WordEvidence(1.0, precision=2),
        numbers=(MetricNumber(is_evidence=True, is_probability=True),),
        part=_part,
    ),
)
