"""A token classifier over (knowledge, response), as LettuceDetect: which words does the knowledge not support?"""

from __future__ import annotations

from collections.abc import Iterable

from groundwire.runtime.calls import ClassifyTokens

from ..scheduling.steps import Steps
from ..schema.explanations import TokenClassifierExplanation, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult, Request
from ..text.words import flag_tokens
from .base import Metric, RoleInfos, within

ROLE = "token_classifier"


def token_classifier(request: Request, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """The probability, 0–1, that the least supported token of the response is supported."""
    (answer,) = yield [ClassifyTokens(ROLE, request.knowledge, request.response)]
    flags = flag_tokens(answer, role_info(ROLE))
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
        coverage=answer.read.characters / answer.read.total,
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
        word_weight=1.0,
        precision=2,
        evidence=("",),
        probabilities=("",),
        part=_part,
    ),
)
