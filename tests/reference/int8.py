"""Per-token int8 products, one row and one column at a time."""

from __future__ import annotations

import math


def product(row: list[float], columns: list[list[float]], zero: int) -> list[float]:
    """``row`` times each of ``columns`` through uint8 activations with the given zero point and int8 weights."""
    levels = 127 if zero == 128 else 255 - zero
    peak = max(abs(value) for value in row) if zero == 128 else max(row)
    least = 0.17004 * levels / zero if 0 < zero < 128 else 1e-12
    step = max(peak, least) / levels
    tokens = [min(255, max(0, nearest(value / step) + zero)) - zero for value in row]
    result = []
    for column in columns:
        scale = max(abs(value) for value in column) / 127 or 1.0
        weights = [min(127, max(-127, nearest(value / scale))) for value in column]
        result.append(sum(token * weight for token, weight in zip(tokens, weights, strict=True)) * scale * step)
    return result


def nearest(value: float) -> int:
    """The nearest integer; halves go to the even one."""
    below = math.floor(value)
    rest = value - below
    return below + (rest > 0.5 or (rest == 0.5 and below % 2 == 1))
