"""A token classifier over (knowledge, response), as LettuceDetect: which words does nothing support?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import FlaggedToken, TokenClassifierExplanation
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request, UnsupportedSpan
from groundwire.runtime.calls import ClassifiedTokens, ClassifyTokens
from groundwire.runtime.protocol import RoleInfo

from .base import Metric

ROLE = "token_classifier"


def tokens(request: Request, options: Options, info: RoleInfo) -> Steps[MetricResult]:
    """The probability, 0–1, that the least supported token of the response is supported."""
    (answer,) = yield [ClassifyTokens(ROLE, request.knowledge, request.response)]
    flags = tuple(doubts(answer, info))
    ranges = runs((flag.start, flag.end) for flag in flags if flag.probability >= options.token_classifier.threshold)
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


def doubts(answer: ClassifiedTokens, info: RoleInfo) -> Iterator[FlaggedToken]:
    """Each token with the probability of all labels but the supported ones."""
    fine = [index for index, label in enumerate(answer.labels) if label in info.supported]
    for token in answer.tokens:
        doubt = 1.0 - sum(token.probabilities[index] for index in fine)
        yield FlaggedToken(token.start, token.end, min(1.0, max(0.0, doubt)))


def runs(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that touch or stand a blank apart made one; empty ones left out.

    >>> runs([(0, 2), (2, 5), (6, 9), (12, 13)])
    [(0, 9), (12, 13)]
    """
    out: list[tuple[int, int]] = []
    for start, end in ranges:
        if start == end:
            continue
        if out and start <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def metric(info: RoleInfo) -> Metric:
    """The metric of a bundle's ``tokens`` role."""

    def steps(request: Request, options: Options) -> Steps[MetricResult]:
        return tokens(request, options, info)

    return Metric("token_classifier", "Token classifier", frozenset({ROLE}), steps)
