from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.runtime import _native
from tests.reference import beam_search as reference
from tests.support.beam_search import Model, drive

START, EOS = 0, 1
DEFAULTS: dict[str, Any] = {
    "sources": 1,
    "num_beams": 2,
    "num_return_sequences": 2,
    "start": START,
    "eos": [EOS],
    "vocabulary": 6,
    "max_length": 6,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "length_penalty": 1.0,
    "early_stopping": True,
}


def random_model(seed: int, vocabulary: int, coarse: bool) -> Model:
    """Log-probabilities that depend on source and prefix; coarse ones tie, and some tokens are ruled out."""

    def log_probs(source: int, prefix: reference.Prefix) -> np.ndarray:
        random = np.random.default_rng([seed, source, *prefix])
        logits = random.normal(scale=2, size=vocabulary).astype(np.float32)
        logits -= np.log(np.exp(logits).sum())
        logits[random.random(vocabulary) < 0.05] = -np.inf
        return np.round(logits).astype(np.float32) if coarse else logits

    return log_probs


@st.composite
def search_settings(draw: st.DrawFn) -> dict[str, Any]:
    vocabulary = draw(st.integers(2, 10))
    beams = draw(st.integers(1, min(4, vocabulary)))
    return {
        "sources": draw(st.integers(1, 3)),
        "num_beams": beams,
        "num_return_sequences": draw(st.integers(1, beams)),
        "start": draw(st.integers(0, vocabulary - 1)),
        "eos": draw(st.lists(st.integers(0, vocabulary - 1), max_size=2, unique=True)),
        "vocabulary": vocabulary,
        "max_length": draw(st.integers(2, 8)),
        "min_length": draw(st.integers(0, 5)),
        "no_repeat_ngram_size": draw(st.integers(0, 3)),
        "length_penalty": draw(st.sampled_from([0.0, 0.6, 1.0, 2.0, -0.5])),
        "early_stopping": draw(st.booleans()),
    }


@given(search_settings(), st.integers(0, 2**32), st.booleans(), st.integers(0, 3))
def test_equals_its_reference_implementation(settings: dict[str, Any], seed: int, coarse: bool, extra: int) -> None:
    model = random_model(seed, settings["vocabulary"], coarse)
    hypotheses = drive(_native.BeamSearch(**settings), model, settings["sources"], extra)
    shared = {key: value for key, value in settings.items() if key not in ("sources", "vocabulary")}
    options = reference.Options(**{**shared, "eos": tuple(settings["eos"])})
    for source in range(settings["sources"]):
        expected = reference.beam_search(lambda prefix, source=source: model(source, prefix), options)
        assert [tokens for tokens, _ in hypotheses[source]] == [tokens for tokens, _ in expected]
        np.testing.assert_allclose(
            [score for _, score in hypotheses[source]], [score for _, score in expected], rtol=1e-6
        )


@given(search_settings(), st.integers(0, 2**32))
def test_one_beam_is_greedy_search(settings: dict[str, Any], seed: int) -> None:
    settings |= {"num_beams": 1, "num_return_sequences": 1, "sources": 1}
    model = random_model(seed, settings["vocabulary"], coarse=False)
    prefix: reference.Prefix = (settings["start"],)
    options = reference.Options(**{k: settings[k] for k in reference.Options._fields})
    total = 0.0
    while len(prefix) < settings["max_length"] and prefix[-1] not in settings["eos"] * (len(prefix) > 1):
        scores = model(0, prefix)
        scores[list(reference.banned(prefix, options))] = -np.inf
        if scores.max() == -np.inf:
            break
        total += float(scores.max())
        prefix = (*prefix, int(scores.argmax()))
    else:
        ((tokens, score),) = drive(_native.BeamSearch(**settings), model, 1)[0]
        assert tokens == list(prefix[1:])
        assert score == pytest.approx(total / len(tokens) ** settings["length_penalty"], rel=1e-5, abs=1e-5)
        return
    assert drive(_native.BeamSearch(**settings), model, 1) == [[]]


def step(*beams: dict[int, float], vocabulary: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """One source's candidates: the given log-probabilities, everything else ruled out."""
    scores = np.full((1, len(beams), vocabulary), -np.inf, dtype=np.float32)
    for row, beam in zip(scores[0], beams, strict=True):
        row[list(beam)] = list(beam.values())
    return scores, np.broadcast_to(np.arange(vocabulary), scores.shape).copy()


def test_a_search_by_hand() -> None:
    search = _native.BeamSearch(**DEFAULTS)
    assert (search.wanted(), search.tokens().tolist(), search.parents().tolist()) == (4, [[START]], [[0]])
    assert search.open().tolist() == [0]

    assert not search.advance(*step({2: -1.0, 3: -2.0, EOS: -3.0}))
    # EOS ranks third and only the two best may finish, so it is discarded.
    assert (search.tokens().tolist(), search.parents().tolist()) == ([[2, 3]], [[0, 0]])

    assert not search.advance(*step({4: -4.0}, {5: -0.5, EOS: -1.0}))
    # 3-5 has -2.5, 3-EOS has -3, 2-4 has -5.
    assert (search.tokens().tolist(), search.parents().tolist()) == ([[5, 4]], [[1, 0]])
    assert search.results() == [[([3, EOS], -1.5)]]

    assert search.advance(*step({EOS: -0.5}, {EOS: -0.5}))
    assert (search.tokens().shape, search.open().shape) == ((0, 2), (0,))
    assert search.results() == [[([3, 5, EOS], -1.0), ([3, EOS], -1.5)]]


def test_wanted_includes_banned_ngrams() -> None:
    search = _native.BeamSearch(
        **DEFAULTS | {"num_beams": 1, "num_return_sequences": 1, "no_repeat_ngram_size": 1, "max_length": 4}
    )
    assert search.wanted() == 3, "two, and the start token, which may not be repeated"
    search.advance(*step({START: -0.1, 2: -1.0, 3: -2.0}))
    assert search.wanted() == 4
    search.advance(*step({2: -0.1, START: -0.2, 3: -1.0}))
    assert search.advance(*step({3: -0.1, 2: -0.2, START: -0.3, 4: -0.5}))
    assert search.results() == [[([2, 3, 4], pytest.approx(-2.5 / 3))]]


def test_ends_are_banned_before_min_length() -> None:
    search = _native.BeamSearch(**DEFAULTS | {"num_beams": 1, "num_return_sequences": 1, "min_length": 2})
    assert search.wanted() == 3
    search.advance(*step({EOS: -0.1, 2: -3.0}))
    assert search.wanted() == 2
    assert search.advance(*step({EOS: -0.1, 2: -3.0}))
    assert search.results() == [[([2, EOS], pytest.approx(-3.1 / 2))]]


def test_wanted_is_capped_at_the_vocabulary() -> None:
    assert _native.BeamSearch(**DEFAULTS | {"num_beams": 4, "vocabulary": 5}).wanted() == 5


def test_a_dead_end_gives_fewer_hypotheses() -> None:
    search = _native.BeamSearch(**DEFAULTS)
    assert search.advance(*step({EOS: -1.0}))
    assert search.results() == [[([EOS], -1.0)]]
    search = _native.BeamSearch(**DEFAULTS)
    assert search.advance(*step({2: math.nan}))
    assert search.results() == [[]]


def test_beams_without_a_continuation_never_finish() -> None:
    search = _native.BeamSearch(**DEFAULTS | {"num_beams": 3, "num_return_sequences": 3, "max_length": 3})
    assert not search.advance(*step({2: -1.0}))
    assert search.tokens().tolist() == [[2, START, START]]
    assert search.advance(*step({3: -1.0}, {4: 0.0}, {5: 0.0}))
    assert search.results() == [[([2, 3], -1.0)]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": 0}, "sources is 0, allowed are 1 to 524288 at 2 beams"),
        ({"sources": 2**40}, "sources is 1099511627776"),
        ({"num_beams": 0}, "num_beams is 0, allowed are 1 to the vocabulary of 6"),
        ({"num_beams": 7}, "num_beams is 7, allowed are 1 to the vocabulary of 6"),
        ({"num_return_sequences": 3}, "num_return_sequences is 3, allowed are 1 to num_beams, which is 2"),
        ({"start": 6}, "start is 6, allowed are 0 to 5"),
        ({"eos": [1, -1]}, "eos is -1, allowed are 0 to 5"),
        ({"eos": [1, 1]}, "eos names a token twice"),
        ({"vocabulary": 0}, "vocabulary is 0"),
        ({"max_length": 1}, "max_length is 1, it must be at least 2"),
        ({"min_length": -1}, "min_length is -1"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size is -1"),
        ({"length_penalty": math.nan}, "length_penalty is nan, it must be finite"),
        ({"length_penalty": math.inf}, "length_penalty is inf"),
    ],
)
def test_options_name_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _native.BeamSearch(**DEFAULTS | changes)


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.float32)


def i64(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


@pytest.mark.parametrize(
    ("scores", "candidates", "message"),
    [
        (f32(1, 1, 3), i64(1, 1, 3), r"3 candidates per beam, allowed are 4 \(wanted\) to 6 \(the vocabulary\)"),
        (f32(1, 1, 7), i64(1, 1, 7), "7 candidates per beam"),
        (f32(1, 2, 4), i64(1, 2, 4), "candidates are for 1 sources of 2 beams, expected are 1 sources of 1 beams"),
        (f32(2, 1, 4), i64(2, 1, 4), "candidates are for 2 sources of 1 beams"),
        (f32(1, 1, 4), i64(1, 1, 5), r"scores has shape \(1, 1, 4\) and candidates \(1, 1, 5\)"),
        (f32(1, 4), i64(1, 4), r"scores must be a C-contiguous array of float32 in 3 dimensions"),
        (f32(1, 1, 4), i64(1, 1, 4).astype(np.int32), "candidates must be a C-contiguous array of int64"),
        (f32(1, 1, 4), i64(1, 1, 4) + 6, "candidates hold token 6, allowed are 0 to 5"),
        (f32(1, 1, 4), i64(1, 1, 4) - 1, "candidates hold token -1"),
    ],
)
def test_a_refused_step_changes_nothing(scores: np.ndarray, candidates: np.ndarray, message: str) -> None:
    search = _native.BeamSearch(**DEFAULTS)
    with pytest.raises(ValueError, match=message):
        search.advance(scores, candidates)
    assert (search.wanted(), search.tokens().tolist()) == (4, [[START]])


def test_a_closed_search_refuses_a_step() -> None:
    search = _native.BeamSearch(**DEFAULTS)
    assert search.advance(*step({EOS: -1.0}))
    with pytest.raises(ValueError, match="every source is closed"):
        search.advance(*step({EOS: -1.0}))


def test_threads_take_turns() -> None:
    search = _native.BeamSearch(**DEFAULTS | {"sources": 8, "num_beams": 4, "eos": [], "max_length": 400})
    scores = np.full((8, 4, 6), -1.0, dtype=np.float32)
    candidates = np.broadcast_to(np.arange(6), scores.shape).copy()
    search.advance(scores[:, :1].copy(), candidates[:, :1].copy())

    def work(_: int) -> None:
        for _ in range(40):
            search.tokens()
            search.results()
            search.advance(scores, candidates)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
