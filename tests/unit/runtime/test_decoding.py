"""Drawn beams over a language model that is a table: the next token depends on the last one alone."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from groundwire.runtime.calls import BeamSampling, BeamSearch, Decoding, DelayedBeamSearch, Greedy, Sampling
from groundwire.runtime.decoding.search import (
    DecodedSequence,
    StepHistory,
    TokenCandidates,
    Vocabulary,
    check_decoding,
    create_rng,
    decode,
    run_to_end,
)
from groundwire.runtime.errors import InvalidRequest
from tests.reference.beam_search import Options, beam_search
from tests.reference.delayed_beam_search import delayed_beam_search

START, END, SIZE = 0, 1, 9
VOCABULARY = Vocabulary(START, (END,), 0, SIZE)
RNG = np.random.default_rng(8)
TABLE = np.log(RNG.dirichlet(np.full(SIZE, 0.7), SIZE)).astype(np.float32)
"""Log-probabilities [last, next]."""


class Bigrams:
    """The table as a decoder step; the value of a token is its square."""

    def __init__(self, *, uses_history: bool, table: NDArray[np.float32] = TABLE) -> None:
        self.uses_history = uses_history
        self._table = table

    def __call__(self, tokens: Any, parents: Any, count: int, history: StepHistory) -> TokenCandidates:
        scores = self._table[tokens]
        order = np.ascontiguousarray(np.argsort(-scores, axis=-1, kind="stable")[..., :count])
        if self.uses_history:
            # Each path ends with the last token of its beam; ended paths are padded.
            pairs = zip(itertools.chain(*history), tokens.ravel().tolist(), strict=True)
            assert all(path.ids[-1:] in ((token,), (), (END,)) for path, token in pairs)
        return TokenCandidates(np.take_along_axis(scores, order, -1), order, (order.astype(np.float32) ** 2,))

    def keep_sources(self, rows: Any) -> None:
        """It keeps no state of the sources."""


def run_decoding(
    decoding: Decoding, sources: int = 1, *, uses_history: bool = True, seed: int = 0
) -> list[list[DecodedSequence]]:
    windows = [[seed, number] for number in range(sources)]
    return run_to_end(decode(Bigrams(uses_history=uses_history), windows, decoding, VOCABULARY))


@pytest.mark.parametrize("uses_history", [True, False])
def test_beams_without_a_choice_are_beam_search(uses_history: bool) -> None:
    """With two candidates a beam, all are drawn, because a source draws twice as many as it has beams."""
    second = np.sort(TABLE, axis=-1)[:, -2:-1]
    cut = np.where(second <= TABLE, TABLE, -np.inf).astype(np.float32)
    settings = Options(3, 3, START, (END,), 7, 0, 0, 1.0, False)
    expected = beam_search(lambda prefix: cut[prefix[-1]], settings)
    drawn = BeamSampling(num_beams=3, num_return_sequences=3, top_k=2, max_new_tokens=6)
    (beams,) = run_decoding(drawn, uses_history=uses_history)
    assert [(beam.ids, pytest.approx(beam.score, abs=1e-5)) for beam in beams] == expected
    assert len(beams) > 1


def test_continuations_are_drawn_without_replacement() -> None:
    """One beam and one token: the better of two drawn tokens comes as often as its probability says."""
    draws = 3000
    shares = np.exp(TABLE[START]).astype(float)
    decoding = BeamSampling(num_beams=1, num_return_sequences=1, top_k=0, max_new_tokens=1)
    counts = Counter(row[0].ids[0] for seed in range(3) for row in run_decoding(decoding, draws // 3, seed=seed))
    pairs = {
        (i, j): shares[i] * shares[j] * (1 / (1 - shares[i]) + 1 / (1 - shares[j]))
        for i in range(SIZE)
        for j in range(i)
    }
    expected = np.zeros(SIZE)
    for (i, j), share in pairs.items():
        expected[i if shares[i] > shares[j] else j] += share * draws
    observed = np.array([counts[token] for token in range(SIZE)])
    often = expected >= 5
    statistic = ((observed - expected)[often] ** 2 / expected[often]).sum()
    assert not observed[expected == 0].any()
    assert often.sum() > 3
    assert statistic < often.sum() + 4 * np.sqrt(2 * often.sum())


@pytest.mark.parametrize(
    "decoding",
    [
        Greedy(max_new_tokens=8, min_new_tokens=8),
        BeamSearch(num_beams=4, num_return_sequences=4, no_repeat_ngram_size=0, max_new_tokens=7),
        BeamSearch(
            num_beams=4,
            num_return_sequences=4,
            no_repeat_ngram_size=0,
            early_stopping=False,
            max_new_tokens=7,
            length_penalty=0.5,
        ),
        Sampling(num_return_sequences=4, max_new_tokens=7),
        BeamSampling(num_beams=4, num_return_sequences=4, top_k=4, temperature=0.8, max_new_tokens=7),
        DelayedBeamSearch(num_beams=4, num_return_sequences=4, delay_steps=2, top_k=3, max_new_tokens=7),
    ],
)
def test_every_token_keeps_its_values(decoding: Decoding) -> None:
    for row in run_decoding(decoding, sources=3):
        assert row
        for sequence in row:
            assert [values for (values,) in sequence.values] == [float(token) ** 2 for token in sequence.ids]


def test_a_temperature_divides_the_scores_of_beams() -> None:
    (beams,) = run_decoding(BeamSampling(num_beams=2, num_return_sequences=2, temperature=2.0, max_new_tokens=5))
    for beam in beams:
        total = sum(float(TABLE[last, token]) for last, token in zip([START, *beam.ids], beam.ids, strict=False))
        assert beam.score == pytest.approx(total / 2.0 / len(beam.ids), abs=1e-5)


@pytest.mark.parametrize(
    "decoding",
    [
        Sampling(num_return_sequences=3, no_repeat_ngram_size=1, min_new_tokens=3, max_new_tokens=6),
        BeamSampling(num_beams=3, num_return_sequences=3, no_repeat_ngram_size=1, min_new_tokens=3, max_new_tokens=6),
        DelayedBeamSearch(3, 3, 2, no_repeat_ngram_size=1, min_new_tokens=3, max_new_tokens=6),
    ],
)
def test_banned_tokens_are_not_drawn(decoding: Decoding) -> None:
    for row in run_decoding(decoding, sources=8, uses_history=False):
        for sequence in row:
            assert len({START, *sequence.ids}) == len(sequence.ids) + 1
            assert END not in sequence.ids[:2]


def test_nothing_left_ends_a_sequence() -> None:
    """A model that rules out every token after the first."""
    table = np.full((SIZE, SIZE), -np.inf, dtype=np.float32)
    table[START, 5] = 0.0
    step = Bigrams(uses_history=True, table=table)
    for decoding in (
        Greedy(max_new_tokens=5),
        BeamSearch(num_beams=2, num_return_sequences=2),
        BeamSampling(num_beams=2, num_return_sequences=2),
        DelayedBeamSearch(num_beams=2, num_return_sequences=2),
    ):
        assert run_to_end(decode(step, [[1]], decoding, VOCABULARY)) == [[]]
    ((sequence,),) = run_to_end(decode(step, [[1]], Sampling(num_return_sequences=1), VOCABULARY))
    assert sequence.ids == [5]


@pytest.mark.parametrize("uses_history", [True, False])
@pytest.mark.parametrize(
    "decoding",
    [
        DelayedBeamSearch(num_beams=3, num_return_sequences=3, delay_steps=2, top_k=4, max_new_tokens=7),
        DelayedBeamSearch(num_beams=2, num_return_sequences=1, delay_steps=1, top_k=0, seed=5, max_new_tokens=6),
        DelayedBeamSearch(num_beams=4, num_return_sequences=2, delay_steps=3, early_stopping=False, max_new_tokens=5),
        DelayedBeamSearch(num_beams=3, num_return_sequences=3, delay_steps=9, top_k=3, max_new_tokens=4),
    ],
    ids=["two drawn", "whole vocabulary", "until no beam improves", "all drawn"],
)
def test_delayed_beams_are_those_of_the_reference_implementation(
    decoding: DelayedBeamSearch, uses_history: bool
) -> None:
    settings = Options(
        decoding.num_beams,
        decoding.num_return_sequences,
        START,
        (END,),
        decoding.max_new_tokens + 1,
        0,
        0,
        decoding.length_penalty,
        decoding.early_stopping,
    )
    rows = run_decoding(decoding, sources=12, uses_history=uses_history)
    for number, row in enumerate(rows):
        rng = create_rng([0, number], decoding.seed, 0)
        expected = delayed_beam_search(
            lambda prefix: TABLE[prefix[-1]], settings, decoding.delay_steps, decoding.top_k, rng.random
        )
        assert [(sequence.ids, pytest.approx(sequence.score, abs=1e-5)) for sequence in row] == expected
    assert len({tuple(row[0].ids) for row in rows}) > 1


def test_delayed_beams_share_the_drawn_tokens_alone() -> None:
    decoding = DelayedBeamSearch(num_beams=4, num_return_sequences=4, delay_steps=2, max_new_tokens=7)
    rows = [row for row in run_decoding(decoding, sources=20) if len(row) > 1]
    assert rows
    for row in rows:
        assert len({tuple(sequence.ids[:2]) for sequence in row}) == 1
        assert len({tuple(sequence.ids) for sequence in row}) == len(row)


@pytest.mark.parametrize(
    ("decoding", "message"),
    [
        (DelayedBeamSearch(delay_steps=0), "delay_steps=0"),
        (DelayedBeamSearch(top_k=-1), "top_k=-1"),
        (DelayedBeamSearch(num_beams=2), "num_return_sequences=5"),
    ],
)
def test_settings_of_delayed_beams_have_ranges(decoding: DelayedBeamSearch, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_decoding(decoding)
