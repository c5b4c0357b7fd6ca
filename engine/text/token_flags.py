"""The labels of a token classifier as flags on a text's tokens."""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.runtime.calls import ClassifiedTokens
from groundwire.runtime.protocol import RoleInfo

from ..schema.explanations import FlaggedToken


def flag_tokens(answer: ClassifiedTokens, info: RoleInfo) -> tuple[FlaggedToken, ...]:
    """Each token with the probability of all labels but the supported ones, and whether label B exceeds label I.

    Labels B and I are those of this name or with this prefix, such as ``B-Halluc``.
    """
    supported = [index for index, label in enumerate(answer.labels) if label in info.supported]
    begin, inside = (_find_labels(answer.labels, prefix) for prefix in ("B", "I"))
    flags = []
    for token in answer.tokens:
        doubt = 1.0 - sum(token.probabilities[index] for index in supported)
        begins = bool(inside) and _sum(token.probabilities, begin) > _sum(token.probabilities, inside)
        flags.append(FlaggedToken(token.start, token.end, min(1.0, max(0.0, doubt)), begins))
    return tuple(flags)


def _find_labels(labels: Sequence[str], prefix: str) -> list[int]:
    return [index for index, label in enumerate(labels) if label.upper().partition("-")[0] == prefix]


def _sum(probabilities: Sequence[float], indices: Sequence[int]) -> float:
    return sum(probabilities[index] for index in indices)
