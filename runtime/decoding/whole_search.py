"""PMI-Decode's rule over the whole vocabulary on the host, for steps that a GPU's graph leaves incomplete.

The graph sorts the 256 most probable tokens. Where these have less than ``top_p`` together, the set of tokens that may
follow is found here, from what the graph has computed of all of them (``runtime/ort/placement.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class WholeSearch(NamedTuple):
    """The best tokens of every beam, best first: [K, count]."""

    scores: NDArray[np.float32]
    candidates: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    cpmi: NDArray[np.float32]


def search_vocabulary(
    likely: NDArray[np.float32], difference: NDArray[np.float32], alpha: float, top_p: float, count: int
) -> WholeSearch:
    """The rule of ``export/roles/generation/contrast.py`` for one source, from a and a - b [K, V]."""
    with np.errstate(invalid="ignore"):  # tokens that are ruled out, and numbers that are not finite
        peak = likely.max(axis=-1, keepdims=True)
        shares = likely - peak - np.log(np.exp(likely - peak).sum(axis=-1, keepdims=True))
        ordered = -np.sort(-shares, axis=-1)
        mass = np.exp(ordered)
        above = np.cumsum(mass, axis=-1) - mass
        least = np.where(above < top_p, ordered, np.inf).min(axis=-1, keepdims=True)
        outside = shares < (-np.inf if top_p >= 1 else least)
        scores = np.where(outside | np.isneginf(likely), -np.inf, likely - alpha * (likely - difference))
    candidates = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    chosen = (np.take_along_axis(table, candidates, axis=-1) for table in (likely, difference))
    return WholeSearch(np.take_along_axis(scores, candidates, axis=-1).astype(np.float32), candidates, *chosen)
