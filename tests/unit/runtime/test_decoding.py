"""Drawn beams over a language model that is a table: the next token depends on the last one alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from groundwire.runtime.calls import BeamSampling, BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.decoding.search import Candidates, Decoded, Language, Path, decode, drain
from tests.reference.beam_search import Options, beam_search

START, END, VOCABULARY = 0, 1, 9
LANGUAGE = Language(START, (END,), 0, VOCABULARY)
RNG = np.random.default_rng(8)
TABLE = np.log(RNG.dirichlet(np.full(VOCABULARY, 0.7), VOCABULARY)).astype(np.float32)
"""Log-probabilities [last, next]."""


class Bigrams:
    """The table as a step, which also tells of every token its square."""

    def __init__(self, *, follows: bool, table: NDArray[np.float32] = TABLE) -> None:
        self.follows = follows
        self._table = table

    def __call__(self, tokens: Any, parents: Any, count: int, written: Sequence[Sequence[Path]]) -> Candidates:
        scores = self._table[tokens]
        order = np.ascontiguousarray(np.argsort(-scores, axis=-1, kind="stable")[..., :count])
        if self.follows:
            # It is told what each beam wrote, whose last token it is asked about; behind an end there is padding.
            pairs = zip(itertools.chain(*written), tokens.ravel().tolist(), strict=True)
            assert all(path.ids[-1:] in ((token,), (), (END,)) for path, token in pairs)
        return Candidates(np.take_along_axis(scores, order, -1), order, (order.astype(np.float32) ** 2,))

    def keep(self, rows: Any) -> None:
        """It holds nothing of the sources."""


def decoded(decoding: Decoding, sources: int = 1, *, follows: bool = True, seed: int = 0) -> list[list[Decoded]]:
    windows = [[seed, number] for number in range(sources)]
    return drain(decode(Bigrams(follows=follows), windows, decoding, LANGUAGE))


@pytest.mark.parametrize("follows", [True, False])
def test_beams_without_a_choice_are_beam_search(follows: bool) -> None:
    """Two candidates a beam, and twice as many drawn as there are beams: all are, and nothing is left to chance."""
    second = np.sort(TABLE, axis=-1)[:, -2:-1]
    cut = np.where(second <= TABLE, TABLE, -np.inf).astype(np.float32)
    settings = Options(3, 3, START, (END,), 7, 0, 0, 1.0, False)
    expected = beam_search(lambda prefix: cut[prefix[-1]], settings)
    drawn = BeamSampling(num_beams=3, num_return_sequences=3, top_k=2, max_new_tokens=6)
    (found,) = decoded(drawn, follows=follows)
    assert [(one.ids, pytest.approx(one.score, abs=1e-5)) for one in found] == expected
    assert len(found) > 1


def test_continuations_are_drawn_without_putting_back() -> None:
    """One beam and one token: the better of two drawn, of which each comes as often as it should."""
    draws = 3000
    shares = np.exp(TABLE[START]).astype(float)
    decoding = BeamSampling(num_beams=1, num_return_sequences=1, top_k=0, max_new_tokens=1)
    counts = Counter(row[0].ids[0] for seed in range(3) for row in decoded(decoding, draws // 3, seed=seed))
    pairs = {
        (i, j): shares[i] * shares[j] * (1 / (1 - shares[i]) + 1 / (1 - shares[j]))
        for i in range(VOCABULARY)
        for j in range(i)
    }
    expected = np.zeros(VOCABULARY)
    for (i, j), share in pairs.items():
        expected[i if shares[i] > shares[j] else j] += share * draws
    observed = np.array([counts[token] for token in range(VOCABULARY)])
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
    ],
)
def test_every_token_keeps_its_values(decoding: Decoding) -> None:
    for row in decoded(decoding, sources=3):
        assert row
        for one in row:
            assert [values for (values,) in one.values] == [float(token) ** 2 for token in one.ids]


def test_a_temperature_divides_what_beams_add_up() -> None:
    (found,) = decoded(BeamSampling(num_beams=2, num_return_sequences=2, temperature=2.0, max_new_tokens=5))
    for one in found:
        total = sum(float(TABLE[last, token]) for last, token in zip([START, *one.ids], one.ids, strict=False))
        assert one.score == pytest.approx(total / 2.0 / len(one.ids), abs=1e-5)


@pytest.mark.parametrize(
    "decoding",
    [
        Sampling(num_return_sequences=3, no_repeat_ngram_size=1, min_new_tokens=3, max_new_tokens=6),
        BeamSampling(num_beams=3, num_return_sequences=3, no_repeat_ngram_size=1, min_new_tokens=3, max_new_tokens=6),
    ],
)
def test_what_is_blocked_is_not_drawn(decoding: Decoding) -> None:
    for row in decoded(decoding, sources=8, follows=False):
        for one in row:
            assert len({START, *one.ids}) == len(one.ids) + 1
            assert END not in one.ids[:2]


def test_nothing_left_ends_a_sequence() -> None:
    """A model that rules out everything behind its first token."""
    table = np.full((VOCABULARY, VOCABULARY), -np.inf, dtype=np.float32)
    table[START, 5] = 0.0
    step = Bigrams(follows=True, table=table)
    for decoding in (
        Greedy(max_new_tokens=5),
        BeamSearch(num_beams=2, num_return_sequences=2),
        BeamSampling(num_beams=2, num_return_sequences=2),
    ):
        assert drain(decode(step, [[1]], decoding, LANGUAGE)) == [[]]
    ((one,),) = drain(decode(step, [[1]], Sampling(num_return_sequences=1), LANGUAGE))
    assert one.ids == [5]
