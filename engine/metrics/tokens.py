"""A token classifier over (knowledge, response), as LettuceDetect: which words does nothing support?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from groundwire.engine.explanations import FlaggedToken, TokensExplanation
from groundwire.engine.options import Options
from groundwire.engine.records import MetricResult, Request, UnsupportedSpan
from groundwire.runtime.backend import Facts
from groundwire.runtime.calls import Tagged, TagTokens

from .base import Metric, Steps

ROLE = "tokens"


def tokens(request: Request, options: Options, facts: Facts) -> Steps[MetricResult]:
    """The probability, 0–1, that the least supported token of the response is supported."""
    (answer,) = yield [TagTokens(ROLE, request.knowledge, request.response)]
    flags = tuple(doubts(answer, facts))
    ranges = runs((flag.start, flag.end) for flag in flags if flag.probability >= options.tokens.threshold)
    return MetricResult(
        "tokens",
        "scored",
        1.0 - max(flag.probability for flag in flags),
        explanation=TokensExplanation(flags),
        unsupported=tuple(
            UnsupportedSpan(request.response[start:end], start, end, "detected", "", "tokens") for start, end in ranges
        ),
        coverage=answer.read.characters / answer.read.total,
    )


def doubts(answer: Tagged, facts: Facts) -> Iterator[FlaggedToken]:
    """Each token with the probability of all labels but the supported ones."""
    fine = [index for index, label in enumerate(answer.labels) if label in facts.supported]
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


def metric(facts: Facts) -> Metric:
    """The metric of a bundle's ``tokens`` role."""

    def steps(request: Request, options: Options) -> Steps[MetricResult]:
        return tokens(request, options, facts)

    return Metric("tokens", "Token classifier", frozenset({ROLE}), steps)
