"""Delayed beam search over one source: tokens drawn one by one, then a beam search that has to begin with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .beam_search import LogProbs, Options, Prefix, banned, beam_search


def delayed_beam_search(
    log_probs: LogProbs, options: Options, delay_steps: int, top_k: int, draw: Callable[[], float]
) -> list[tuple[list[int], float]]:
    """Return the best hypotheses; ``draw`` gives the next uniform random number from 0 to 1."""
    drawn: list[int] = []
    while len(drawn) < delay_steps and len(drawn) + 1 < options.max_length and not set(drawn) & set(options.eos):
        drawn.append(_draw_token((options.start, *drawn), log_probs, options, top_k, draw()))

    def force(prefix: Prefix) -> NDArray[np.float32]:
        scores = log_probs(prefix)
        if len(prefix) > len(drawn):
            return scores
        forced = np.full_like(scores, -np.inf)
        token = drawn[len(prefix) - 1]
        forced[token] = scores[token]
        return forced

    return beam_search(force, options)


def _draw_token(prefix: Prefix, log_probs: LogProbs, options: Options, top_k: int, uniform: float) -> int:
    scores = log_probs(prefix)
    forbidden = banned(prefix, options)
    allowed = [token for token in np.argsort(-scores, kind="stable").tolist() if token not in forbidden]
    allowed = [token for token in allowed if scores[token] > -np.inf][: top_k or None]
    weights = [float(np.exp(scores[token])) for token in allowed]
    target, passed = uniform * sum(weights), 0.0
    for token, weight in zip(allowed, weights, strict=True):
        passed += weight
        if target < passed:
            return token
    return allowed[-1]
