"""The fixed shapes of a language model, and calls cut to them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from groundwire.runtime.calls import Read
from groundwire.runtime.capture.scoring_shapes import (
    BYTES_PER_LOGIT,
    EMPTY,
    LOGIT_BYTES,
    MAX_PAIRS,
    MAX_TOKENS,
    MOST_SCORED,
    SMALL_TOKENS,
    ScoringShapes,
    TargetRange,
)
from groundwire.runtime.capture.shapes import BatchShape
from groundwire.runtime.decoding.scoring import ScoringInput
from groundwire.runtime.texts.tokenization import Window

COMPACT, BLOOM = (1024, 30_522, 40_000), (2048, 250_880, 2700)
"""Window, vocabulary, and tokens whose keys and values are kept."""
MODELS = [COMPACT, BLOOM, (96, 600, 40_000), (1000, 50_257, 300)]


def make_input(before: int, targets: int, prefix: int = 0) -> ScoringInput:
    """A call whose prefix has ``before`` tokens but the last."""
    window = Window([], [], [], [])
    return ScoringInput((prefix,) * before, [1] * targets, [2] * targets, window, Read(1, 1, 1))


def draw_inputs(rng: random.Random, window: int, count: int) -> dict[int, ScoringInput]:
    inputs = {}
    for index in range(count):
        targets = min(window, rng.choice((1, 5, 20, 31, 33, 70, 600)))
        inputs[index] = make_input(rng.randrange(min(window - targets, 400) + 1), targets, rng.randrange(3))
    long = make_input(min(window // 2, 300), 9, 7)
    return inputs | {count + index: long for index in range(rng.choice((0, 3, 30, 90)))}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_every_target_is_scored_once_in_a_shape_that_exists(model: tuple[int, int, int], strict: bool) -> None:
    planned = ScoringShapes.make(*model, strict=strict)
    runs = planned.list_runs()
    assert len(set(runs)) == len(runs) <= 300
    rng = random.Random(0)
    for count in (0, 1, 2, 7, 60, 300):
        inputs = draw_inputs(rng, model[0], count)
        scored: Counter[tuple[int, int]] = Counter()
        rest = dict(inputs)
        for prefix in planned.share_prefixes(inputs):
            assert BatchShape(1, prefix.width, EMPTY) in runs
            assert len(prefix.past) <= prefix.width
            for width, calls in prefix.texts.items():
                for texts, indices in planned.cut_texts(prefix.width, width, calls):
                    assert BatchShape(1, width, prefix.width, texts, texts * width) in runs
                    assert len(indices) <= texts
                    for index in indices:
                        call = rest.pop(index)
                        assert call.past == prefix.past
                        assert len(call.new) <= width
                        scored.update((index, at) for at in range(len(call.targets)))
        for run, rows in planned.cut_calls(rest):
            assert run in runs
            assert 0 < len(rows) <= run.rows
            for index, first, size in rows:
                assert len(inputs[index].past) + len(inputs[index].new) <= run.tokens
                assert 0 < size <= run.scored // run.rows
                scored.update((index, first + at) for at in range(size))
        assert scored == Counter((index, at) for index, call in inputs.items() for at in range(len(call.targets)))


@pytest.mark.parametrize("model", MODELS)
def test_runs_keep_to_their_memory(model: tuple[int, int, int]) -> None:
    window, vocabulary, _ = model
    for run in ScoringShapes.make(*model, strict=False).list_runs():
        single = run.rows * run.texts == 1
        assert run.scored * vocabulary * BYTES_PER_LOGIT <= LOGIT_BYTES or single
        assert run.rows * run.texts * run.tokens <= MAX_TOKENS
        assert run.rows * run.texts * run.tokens * (run.tokens + run.past) <= MAX_PAIRS * 1.25 or single
        assert run.tokens <= max(32, 2 * window)
        assert run.scored <= run.rows * run.texts * run.tokens


def test_the_embedded_model_reads_a_full_batch_and_bloom_as_many_texts_as_logits_fit() -> None:
    compact, bloom = (ScoringShapes.make(*model, strict=False) for model in (COMPACT, BLOOM))
    assert compact.list_rows(32, 32)[-1] == 256
    assert compact.list_rows(256, 64)[-1] == 32
    assert bloom.list_rows(256, 32)[-1] == 32
    assert bloom.list_rows(32, 32)[-1] == 33
    assert bloom.list_rows(2048, 512) == (1,)


def test_the_shape_of_a_strict_call_depends_on_nothing_else() -> None:
    planned = ScoringShapes.make(*COMPACT, strict=True)
    rng = random.Random(1)
    inputs = draw_inputs(rng, COMPACT[0], 80)
    assert not planned.share_prefixes(inputs)
    together: dict[TargetRange, BatchShape] = {row: run for run, rows in planned.cut_calls(inputs) for row in rows}
    for index, call in inputs.items():
        alone = {row: run for run, rows in planned.cut_calls({index: call}) for row in rows}
        assert alone == {row: together[row] for row in alone}


@pytest.mark.parametrize(
    ("before", "texts", "shared"),
    [(500, 4, False), (500, 5, True), (1000, 3, True), (130, 11, True), (130, 10, False), (60, 200, False)],
)
def test_a_prefix_is_read_by_itself_where_its_repetitions_are_many_tokens(
    before: int, texts: int, shared: bool
) -> None:
    planned = ScoringShapes.make(*COMPACT, strict=False)
    inputs = {index: make_input(before, 20) for index in range(texts)}
    prefixes = planned.share_prefixes(inputs)
    assert bool(prefixes) == shared
    if shared:
        assert prefixes[0].width * texts > SMALL_TOKENS
        assert prefixes[0].texts == {32: list(range(texts))}


def test_a_text_with_many_targets_is_read_several_times() -> None:
    planned = ScoringShapes.make(*COMPACT, strict=False)
    runs = list(planned.cut_calls({0: make_input(0, MOST_SCORED + 8)}))
    assert runs == [
        (
            BatchShape(2, 1024, EMPTY, scored=2 * MOST_SCORED),
            [TargetRange(0, MOST_SCORED, 8), TargetRange(0, 0, MOST_SCORED)],
        )
    ]


def test_keys_and_values_that_do_not_fit_are_not_kept() -> None:
    assert ScoringShapes.make(2048, 250_880, 300, strict=False).shared == (128, 192, 256)
    assert ScoringShapes.make(2048, 250_880, 0, strict=False).shared == ()


@pytest.mark.parametrize(
    ("calls", "widths"),
    [
        ([(200, 20), (30, 20)], [256]),
        ([(200, 20), (30, 20), (900, 60)], [256, 1024]),
        ([(900, 60), (600, 5)], [1024]),
        ([(30, 5)] * 60 + [(200, 20)], [64, 256]),
        ([(70, 70), (60, 20)], [192]),
    ],
)
def test_few_texts_of_several_widths_are_one_run(calls: list[tuple[int, int]], widths: list[int]) -> None:
    planned = ScoringShapes.make(*COMPACT, strict=False)
    inputs = {index: make_input(*call) for index, call in enumerate(calls)}
    assert [run.tokens for run, _ in planned.cut_calls(inputs)] == widths
