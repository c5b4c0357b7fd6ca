"""Runs the native beam search on a model that is a function of the prefix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from groundwire.runtime import _native
from tests.reference import beam_search as reference

Model = Callable[[int, reference.Prefix], np.ndarray]
"""The log-probabilities of all tokens after a prefix of a source."""


def drive(
    search: _native.BeamSearch, model: Model, sources: int, extra: int = 0
) -> list[list[tuple[list[int], float]]]:
    """Run a search to its end, rebuilding every prefix from tokens, parents and open alone."""
    owners = list(range(sources))
    prefixes: list[list[reference.Prefix]] = [[(int(row[0]),)] for row in search.tokens()]
    closed = False
    while not closed:
        rows = [[model(owner, prefix) for prefix in beams] for owner, beams in zip(owners, prefixes, strict=True)]
        scores = np.array(rows, dtype=np.float32)
        count = min(search.wanted() + extra, scores.shape[-1])
        order = np.ascontiguousarray(np.argsort(-scores, axis=-1, kind="stable")[..., :count])
        closed = search.advance(np.take_along_axis(scores, order, axis=-1), order)
        steps = zip(search.open().tolist(), search.tokens().tolist(), search.parents().tolist(), strict=True)
        continued = [
            (
                owners[previous],
                [(*prefixes[previous][parent], token) for token, parent in zip(last, parents, strict=True)],
            )
            for previous, last, parents in steps
        ]
        owners = [owner for owner, _ in continued]
        prefixes = [beams for _, beams in continued]
    return search.results()
