"""Packing rows into batches, one row at a time."""

from __future__ import annotations

from collections.abc import Sequence

WIDTHS = (*range(8, 65, 8), *range(80, 257, 16), *range(288, 8193, 32))


def bucket_width(length: int) -> int:
    """Return the smallest allowed width that holds the row."""
    return next(width for width in WIDTHS if width >= length)


def plan_batches(lengths: Sequence[int], max_tokens: int, max_rows: int) -> tuple[list[int], list[int], list[int]]:
    """Return ``(order, bounds, widths)``: fill batch after batch, opening one when the next row does not fit."""
    order = sorted(range(len(lengths)), key=lambda row: bucket_width(lengths[row]))
    batches: list[list[int]] = []
    for row in order:
        width = bucket_width(lengths[row])
        last = batches[-1] if batches else []
        same_width = bool(last) and bucket_width(lengths[last[0]]) == width
        if same_width and len(last) < max_rows and (len(last) + 1) * width <= max_tokens:
            last.append(row)
        else:
            batches.append([row])
    bounds = [0]
    for batch in batches:
        bounds.append(bounds[-1] + len(batch))
    return order, bounds, [bucket_width(lengths[batch[0]]) for batch in batches]


def pad_rows(
    flat: Sequence[int], offsets: Sequence[int], rows: Sequence[int], width: int, fill: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return ``(ids, mask)`` of the given rows of a ragged table."""
    cut = [list(flat[offsets[row] : offsets[row + 1]]) for row in rows]
    ids = [row + [fill] * (width - len(row)) for row in cut]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in cut]
    return ids, mask
