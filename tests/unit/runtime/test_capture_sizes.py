"""Capture sizes, and batches cut to them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from groundwire.runtime import _native
from groundwire.runtime.capture.shapes import (
    MAX_TOKENS,
    STRICT_TOKENS,
    Block,
    cut_rows,
    list_sizes,
    list_widths,
    plan_encoder,
)


@pytest.mark.parametrize("max_tokens", [8, 32, 40, 128, 256, 512, 1000, 2048, 4096])
def test_every_length_has_a_width(max_tokens: int) -> None:
    widths = list_widths(max_tokens)
    assert list(widths) == sorted(set(widths))
    assert max_tokens <= widths[-1] == _native.bucket_width(max_tokens)
    assert all(_native.bucket_width(width) == width for width in widths), "batches have no other widths"


@pytest.mark.parametrize("most", [1, 2, 3, 8, 42, 85, 256])
def test_rows_double_up_to_the_most(most: int) -> None:
    rows = list_sizes(most)
    assert rows[0] == 1
    assert rows[-1] == most
    assert all(after <= 2 * before for before, after in pairwise(rows))
    assert list_sizes(most, strict=True) == (most,)


@pytest.mark.parametrize("width", [32, 128, 512])
@pytest.mark.parametrize("most", [1, 5, 64, 170])
def test_every_row_is_in_one_block_of_a_shape_that_exists(width: int, most: int) -> None:
    sizes = list_sizes(most)
    for count in range(1, most + 1):
        blocks = cut_rows(count, sizes, width)
        assert all(block.rows in sizes and 1 <= block.used <= block.rows for block in blocks)
        assert [block.first for block in blocks] == [
            sum(block.used for block in blocks[:index]) for index in range(len(blocks))
        ]
        assert sum(block.used for block in blocks) == count
        padded = sum(block.rows for block in blocks)
        assert padded <= 2 * count
        assert padded * width <= max(2048, 1.25 * count * width) + 2048, "many rows are not padded to the next shape"


def test_few_rows_are_padded_and_many_are_cut() -> None:
    assert cut_rows(3, (1, 2, 4, 8), 64) == [Block(0, 3, 4)]
    assert cut_rows(65, (1, 2, 4, 8, 16, 32, 64, 128), 64) == [Block(0, 64, 64), Block(64, 1, 1)]
    assert cut_rows(120, (1, 2, 4, 8, 16, 32, 64, 128), 64) == [Block(0, 120, 128)]


@pytest.mark.parametrize("max_tokens", [64, 256, 512, 1024])
def test_a_strict_plan_has_one_shape_for_the_longest_text(max_tokens: int) -> None:
    plan = plan_encoder(max_tokens, strict=True)
    (profile,) = plan.profiles
    assert profile.width >= max_tokens
    assert profile.max_rows * profile.width <= max(STRICT_TOKENS, profile.width)
    assert list_sizes(profile.max_rows, strict=True) == (profile.max_rows,)
    assert plan_encoder(max_tokens, strict=False).max_tokens <= MAX_TOKENS
