"""The labels of a token classifier as flags on a text's tokens."""

from __future__ import annotations

from groundwire.runtime.calls import ClassifiedTokens
from groundwire.runtime.protocol import RoleInfo

from ..schema.explanations import FlaggedToken


def flag_tokens(answer: ClassifiedTokens, info: RoleInfo) -> tuple[FlaggedToken, ...]:
    """Each token with the probability of all labels but the supported ones."""
    supported = [index for index, label in enumerate(answer.labels) if label in info.supported]
    flags = []
    for token in answer.tokens:
        doubt = 1.0 - sum(token.probabilities[index] for index in supported)
        flags.append(FlaggedToken(token.start, token.end, min(1.0, max(0.0, doubt))))
    return tuple(flags)
