"""Every input of small domains, each compared with the reference implementation, as RE2 tests its matchers.

``GROUNDWIRE_EXHAUSTIVE=1`` enlarges the domains: a few minutes, part of ``make test-native``.
"""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import numpy as np
import pytest

from groundwire.runtime import _native
from tests.reference import beam_search, packing, spans
from tests.support.beam_search import drive

LARGE = os.environ.get("GROUNDWIRE_EXHAUSTIVE") == "1"
NAN, INF = np.nan, np.inf

pytestmark = [pytest.mark.timeout(1800), pytest.mark.no_cover]


def patterns(levels: tuple[float, ...], width: int) -> np.ndarray:
    """Every row of ``width`` levels: [levels ** width, width]."""
    return np.array(list(product(levels, repeat=width)), dtype=np.float32)


def pairs(levels: tuple[float, ...], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Every start row with every end row."""
    rows = patterns(levels, width)
    return np.repeat(rows, len(rows), axis=0), np.tile(rows, (len(rows), 1))


# Two levels make every order of ties; the others are what a broken graph may return.
PATTERNS = [
    *(((0.0, 1.0), width) for width in range(1, 9 if LARGE else 7)),
    *(((0.0, 1.0, -INF, NAN), width) for width in range(1, 5 if LARGE else 4)),
    *(((-INF, INF, NAN, 0.0), width) for width in range(1, 3)),
]


@pytest.mark.parametrize(("levels", "width"), PATTERNS)
def test_argmax_spans_of_every_pattern(levels: tuple[float, ...], width: int) -> None:
    start, end = pairs(levels, width)
    for length in range(1, width + 1):
        actual = _native.argmax_spans(start, end, np.full(len(start), length))
        expected = [spans.argmax_span(s, e, length) for s, e in zip(start.tolist(), end.tolist(), strict=True)]
        assert list(zip(*(part.tolist() for part in actual[:3]), strict=True)) == expected
        assert actual[3].tolist() == [spans.null_score(s, e) for s, e in zip(start.tolist(), end.tolist(), strict=True)]


@pytest.mark.parametrize(("levels", "width"), PATTERNS)
def test_best_spans_of_every_pattern(levels: tuple[float, ...], width: int) -> None:
    start, end = pairs(levels, width)
    # Every limit for short rows; for longer ones those that leave all spans, and one that cuts.
    limits = (
        list(product(range(width), range(-1, width), range(1, width + 1), (1, 2, 8)))
        if len(start) <= 300 or (LARGE and width <= 3)
        else [(0, width - 1, width, 8), (1, width - 1, 2, 3)]
    )
    for first, last, max_tokens, n in limits:
        rows = np.full(len(start), first), np.full(len(start), last)
        actual = _native.best_spans(start, end, *rows, max_tokens, n)
        columns = [part.tolist() for part in actual[:3]]
        for row, (s, e) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
            expected = spans.best_spans(s, e, first, last, max_tokens, n)
            assert list(zip(*(column[row] for column in columns), strict=True)) == expected


MODELS = [
    # Levels of the scores, tokens, and the lengths that are searched.
    ((-INF, -1.0, -2.0), 1, range(2, 6)),
    ((-INF, -1.0, -2.0), 2, range(2, 6)),
    ((-1.0, -2.0), 3, range(2, 6) if LARGE else (5,)),
    ((-INF, -1.0), 3, range(2, 6) if LARGE else (5,)),
]


@pytest.mark.parametrize(("levels", "vocabulary", "lengths"), MODELS)
def test_beam_search_of_every_model(levels: tuple[float, ...], vocabulary: int, lengths: Any) -> None:
    """Models whose scores depend on the last token: each is a source of one search."""
    tables = patterns(levels, vocabulary * vocabulary).reshape(-1, vocabulary, vocabulary)
    tables.flags.writeable = False
    eos_sets = [eos for eos in ((), (0,), (vocabulary - 1,), (0, 1)) if len(set(eos)) == len(eos) <= vocabulary]
    settings = product(
        lengths, range(1, vocabulary + 1), dict.fromkeys(eos_sets), ((0, 0), (3, 0), (0, 2)), (True, False)
    )
    for max_length, num_beams, eos, (min_length, no_repeat_ngram_size), early_stopping in settings:
        shared = {
            "num_beams": num_beams,
            "num_return_sequences": num_beams,
            "start": 0,
            "max_length": max_length,
            "min_length": min_length,
            "no_repeat_ngram_size": no_repeat_ngram_size,
            "length_penalty": 1.0,
            "early_stopping": early_stopping,
        }
        search = _native.BeamSearch(sources=len(tables), vocabulary=vocabulary, eos=list(eos), **shared)  # type: ignore[arg-type]
        actual = drive(search, lambda source, prefix: tables[source, prefix[-1]], len(tables))
        options = beam_search.Options(eos=eos, **shared)  # type: ignore[arg-type]
        for table, hypotheses in zip(tables, actual, strict=True):
            expected = beam_search.beam_search(lambda prefix, table=table: table[prefix[-1]], options)
            assert hypotheses == expected


@pytest.mark.parametrize("rows", range(6 if LARGE else 5))
def test_batches_of_every_set_of_lengths(rows: int) -> None:
    for lengths in product((0, 8, 9, 17, 300), repeat=rows):
        for max_tokens, max_rows in product((1, 16, 48, 640), (1, 2, 5)):
            actual = _native.plan_batches(np.array(lengths, dtype=np.int64), max_tokens, max_rows)
            assert tuple(part.tolist() for part in actual) == packing.plan_batches(lengths, max_tokens, max_rows)
