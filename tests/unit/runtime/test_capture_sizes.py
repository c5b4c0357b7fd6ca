"""Capture sizes, and batches cut to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
import pytest

from groundwire.runtime import _native
from groundwire.runtime.capture.shapes import (
    MAX_TOKENS,
    STRICT_TOKENS,
    join_widths,
    list_rows,
    list_sizes,
    list_widths,
    plan_encoder,
)
from groundwire.runtime.ort.blocks import RUN_TOKENS, Block, cut_rows


@pytest.mark.parametrize("max_tokens", [8, 32, 40, 128, 256, 512, 1000, 2048, 4096])
@pytest.mark.parametrize("list_of", [list_widths, lambda tokens: plan_encoder(tokens, strict=False).widths])
def test_every_length_has_a_width(list_of: Callable[[int], tuple[int, ...]], max_tokens: int) -> None:
    widths = list_of(max_tokens)
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


@pytest.mark.parametrize("most", [1, 2, 3, 8, 42, 85, 256])
def test_rows_of_encoders_have_a_size_between_two_powers(most: int) -> None:
    rows = list_rows(most)
    assert set(list_sizes(most)) <= set(rows)
    assert all(after <= 1.5 * before for before, after in pairwise(rows) if before > 1)
    assert list_rows(most, strict=True) == (most,)
    assert list_rows(16) == (1, 2, 3, 4, 6, 8, 12, 16)


@pytest.mark.parametrize("width", [32, 128, 512])
@pytest.mark.parametrize("most", [1, 5, 64, 170])
@pytest.mark.parametrize("list_of", [list_sizes, list_rows])
def test_every_row_is_in_one_block_of_a_shape_that_exists(
    list_of: Callable[[int], tuple[int, ...]], width: int, most: int
) -> None:
    sizes = list_of(most)
    for count in range(1, most + 1):
        blocks = cut_rows(count, sizes, width)
        assert all(block.rows in sizes and 1 <= block.used <= block.rows for block in blocks)
        assert [block.first for block in blocks] == [
            sum(block.used for block in blocks[:index]) for index in range(len(blocks))
        ]
        assert sum(block.used for block in blocks) == count


def find_cost(blocks: Iterable[int], width: int, run_tokens: int) -> int:
    return sum(rows * width + run_tokens for rows in blocks)


@pytest.mark.parametrize("width", [16, 64, 512])
@pytest.mark.parametrize("run_tokens", [0, RUN_TOKENS, 2048])
def test_rows_are_cut_at_the_least_cost(width: int, run_tokens: int) -> None:
    sizes = list_rows(12)
    for count in range(1, 13):
        blocks = [block.rows for block in cut_rows(count, sizes, width, run_tokens)]
        others = (
            choice
            for runs in range(1, 5)
            for choice in combinations_with_replacement(sizes, runs)
            if sum(choice) >= count
        )
        assert find_cost(blocks, width, run_tokens) == min(find_cost(other, width, run_tokens) for other in others)


def test_few_rows_are_padded_and_many_are_cut() -> None:
    sizes = (1, 2, 4, 8, 16, 32, 64, 128)
    assert cut_rows(3, (1, 2, 4, 8), 64) == [Block(0, 3, 4)]
    assert cut_rows(65, sizes, 64) == [Block(0, 64, 64), Block(64, 1, 1)]
    assert cut_rows(120, sizes, 64, 2048) == [Block(0, 120, 128)]


def test_rows_of_several_widths_run_together_where_that_saves_a_run() -> None:
    plan = plan_encoder(512, strict=False)
    assert plan.fit(np.array([20, 9, 33, 64, 65, 500])).tolist() == [40, 40, 40, 96, 96, 512]
    assert plan.fit(np.array([20] * 12 + [30] * 12)).tolist() == [24] * 12 + [32] * 12
    assert plan.fit(np.array([20] * 2 + [30] * 2)).tolist() == [32] * 4
    assert plan.fit(np.array([], np.int64)).tolist() == []


def test_widths_are_joined_at_the_least_cost() -> None:
    plan, rng = plan_encoder(512, strict=False), np.random.default_rng(0)
    sizes = {profile.width: list_rows(profile.max_rows) for profile in plan.profiles}

    def find_cost_of(widths: Sequence[int], counts: Sequence[int], groups: Iterable[tuple[int, int]]) -> int:
        return sum(
            find_cost((block.rows for block in cut_rows(sum(counts[a : b + 1]), sizes[w], w)), w, RUN_TOKENS)
            for a, b in groups
            if (w := widths[b])
        )

    for _ in range(50):
        widths = sorted(rng.choice(plan.widths[:7], 4, replace=False).tolist())
        counts = rng.integers(1, 16, 4).tolist()
        divisions = (
            list(pairwise_bounds([0, *bounds, 4])) for size in range(4) for bounds in combinations((1, 2, 3), size)
        )
        least = min(find_cost_of(widths, counts, groups) for groups in divisions)
        assert find_cost_of(widths, counts, join_widths(widths, counts, plan)) == least


def pairwise_bounds(bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((first, end - 1) for first, end in pairwise(bounds))


def test_short_rows_have_little_padding() -> None:
    plan, rng = plan_encoder(256, strict=False), np.random.default_rng(0)
    sizes = {profile.width: list_rows(profile.max_rows) for profile in plan.profiles}
    for count, bound in ((20, 1.35), (64, 1.2), (256, 1.15)):
        lengths = rng.integers(14, 50, count)
        widths, counts = np.unique(plan.fit(lengths), return_counts=True)
        padded = sum(
            block.rows * width
            for width, of_width in zip(widths.tolist(), counts.tolist(), strict=True)
            for block in cut_rows(of_width, sizes[width], width)
        )
        assert padded <= bound * lengths.sum()


@pytest.mark.parametrize("max_tokens", [64, 256, 512, 1024])
def test_a_strict_plan_has_one_shape_for_the_longest_text(max_tokens: int) -> None:
    plan = plan_encoder(max_tokens, strict=True)
    (profile,) = plan.profiles
    assert profile.width >= max_tokens
    assert profile.max_rows * profile.width <= max(STRICT_TOKENS, profile.width)
    assert list_sizes(profile.max_rows, strict=True) == (profile.max_rows,)
    assert plan_encoder(max_tokens, strict=False).max_tokens <= MAX_TOKENS
