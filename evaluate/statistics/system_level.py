"""Agreement at system level: simulated systems that differ in how many of their responses are inconsistent.

The method is Graham and Liu's (2016) as Honovich et al. (2021, §5.1 and table 4) use it: 350 contexts are drawn with
replacement from all contexts with one consistent and one inconsistent response, and each of five systems takes the
inconsistent response in a share of them. A metric is good when its mean scores order the systems by that share.

The paper reads as if every system had contexts of its own. In the authors' code all systems of a simulation answer the
same contexts, and only the choice of the inconsistent responses is drawn for each. The published correlations are of
that form, which is free of the noise of some contexts being easier to score than others.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from groundwire.monitor.records import Estimate

from .estimates import Floats
from .results import SystemLevel

SHARES = (5, 10, 15, 20, 25)
"""Per cent of a system's responses that are inconsistent."""
CONTEXTS = 350
"""Contexts drawn for each simulation."""


def simulate_systems(consistent: Floats, inconsistent: Floats, repeats: int, seed: int) -> SystemLevel | None:
    """Spearman of the five systems' scores with their quality, over ``repeats`` simulations.

    ``consistent`` and ``inconsistent`` [contexts] are the values of each context's two responses. A simulation in which
    all systems score the same says nothing and is left out; None when that is all of them, or without two contexts.
    """
    contexts = len(consistent)
    if contexts < 2:
        return None
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, contexts, (repeats, CONTEXTS))
    all_consistent = consistent[drawn].sum(axis=1)
    loss = (consistent - inconsistent)[drawn]
    scores = np.empty((repeats, len(SHARES)))
    for system, share in enumerate(SHARES):
        wrong = round(CONTEXTS * share / 100)
        chosen = rng.random((repeats, CONTEXTS)).argpartition(wrong, axis=1)[:, :wrong]
        scores[:, system] = (all_consistent - np.take_along_axis(loss, chosen, axis=1).sum(axis=1)) / CONTEXTS
    scores = np.round(scores, 12)  # scores that differ only by the order of their sum are equal
    correlations = correlate_with_quality(scores)
    if not len(correlations):
        return None
    low, high = np.percentile(correlations, [2.5, 97.5])
    means = {f"{share} %": float(mean) for share, mean in zip(SHARES, scores.mean(axis=0), strict=True)}
    return SystemLevel(contexts, Estimate(float(correlations.mean()), float(low), float(high)), means)


def correlate_with_quality(scores: Floats) -> Floats:
    """Spearman of each line of ``scores`` [repeats, systems], best system first, with that order.

    Constant lines are left out.
    """
    ranks = rankdata(scores, axis=1) - (scores.shape[1] + 1) / 2
    quality = np.arange(scores.shape[1], 0, -1) - (scores.shape[1] + 1) / 2
    length = np.sqrt((ranks**2).sum(axis=1))
    varied = length > 0
    correlations: Floats = (ranks[varied] @ quality) / (length[varied] * np.sqrt((quality**2).sum()))
    return correlations
