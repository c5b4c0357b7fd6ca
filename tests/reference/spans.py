"""Answer spans, by listing every one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Span = tuple[int, int, float]
NO_SPAN: Span = (-1, -1, -math.inf)


def _known(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _score(start: float, end: float) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return _known(float(np.float32(_known(start)) + np.float32(_known(end))))


def null_score(start: Sequence[float], end: Sequence[float]) -> float:
    """Return the score of "no answer", which extractive QA models put at position 0."""
    return _score(start[0], end[0])


def argmax_span(start: Sequence[float], end: Sequence[float], length: int) -> Span:
    """Return the first maxima of start and end, taken independently."""
    first, last = (max(range(length), key=lambda i: _known(logits[i])) for logits in (start, end))
    return first, last, _score(start[first], end[last])


def best_spans(
    start: Sequence[float], end: Sequence[float], first: int, last: int, max_tokens: int, n: int
) -> list[Span]:
    """Return the n best spans; of equal scores the earlier start, then the earlier end comes first."""
    spans = [
        (s, e, _score(start[s], end[e]))
        for s in range(first, last + 1)
        for e in range(s, last + 1)
        if e - s + 1 <= max_tokens
    ]
    possible = [span for span in spans if span[2] > -math.inf]
    possible.sort(key=lambda span: (-span[2], span[0], span[1]))
    return (possible + [NO_SPAN] * n)[:n]
