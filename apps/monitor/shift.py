"""How far responses are from others in a number: the population stability index.

The index is Σ (p − q) · ln(p / q) over the bins of two histograms, here the deciles of the reference; the bands come
from credit scoring (Siddiqi 2006, ch. 10). Without any shift its expectation is not 0 but grows as the samples get
smaller: with B bins and n and m responses it is distributed as (1/n + 1/m) · χ² with B − 1 degrees of freedom
(Yurdakul and Naranjo 2020). A value below the 95th percentile of this distribution does not show a shift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from groundwire.engine.extend import split_words
from groundwire.runtime.bundles.calibration import Distribution, Quantity

from .records import MIN_RESPONSES, Band, Shift

Floats: TypeAlias = NDArray[np.float64]
BINS = 10
SHIFTED, DIFFERENT = 0.1, 0.25
"""Where the bands begin."""
QUANTITIES: dict[Quantity, str] = {
    "probability": "probability",
    "words": "length in words",
    "overlap": "word overlap with the knowledge",
}
"""What each quantity is called."""


def describe_texts(response: str, knowledge: Sequence[str]) -> dict[Quantity, float]:
    """The length of a response in words, and the share of them, 0–1, that the knowledge has; none without words.

    >>> describe_texts("Bees make wax.", ["Honey is what bees make."])
    {'words': 3.0, 'overlap': 0.6666666666666666}
    """
    words = split_words(response)
    if not words:
        return {}
    knowledge_words = {word for passage in knowledge for word in split_words(passage)}
    return {"words": float(len(words)), "overlap": sum(word in knowledge_words for word in words) / len(words)}


def describe_distributions(responses: Sequence[Mapping[Quantity, float]]) -> dict[Quantity, Distribution]:
    """How each quantity is distributed over the responses, but for quantities that are the same in all of them."""
    described: dict[Quantity, Distribution] = {}
    for quantity in get_args(Quantity):
        distribution = describe_values(np.array([response[quantity] for response in responses if quantity in response]))
        if distribution is not None:
            described[quantity] = distribution
    return described


def describe_values(values: Floats) -> Distribution | None:
    """How ``values`` [N] are distributed; None where all are the same."""
    if len(np.unique(values)) < 2:
        return None
    deciles = np.quantile(values, np.arange(1, BINS) / BINS, method="higher").round(6)
    edges = np.unique(deciles[deciles > values.min()])
    if not len(edges):
        return None
    return Distribution(edges=tuple(edges.tolist()), counts=tuple(_count(values, edges).tolist()))


def measure_shift(distribution: Distribution, values: Floats) -> tuple[float, float]:
    """The population stability index of ``values`` [N], and what it is at most by chance, in 95 of 100 samples.

    Half a response is added to every bin, so that an empty one has a logarithm.
    """
    old = np.array(distribution.counts)
    new = _count(values, np.array(distribution.edges))
    p, q = ((counts + 0.5) / (counts.sum() + 0.5 * len(counts)) for counts in (new, old))
    by_chance = (1 / max(new.sum(), 1) + 1 / max(old.sum(), 1)) * chi2.ppf(0.95, len(old) - 1)
    return float(((p - q) * np.log(p / q)).sum()), float(by_chance)


def find_band(index: float, by_chance: float, responses: int) -> Band:
    """What a population stability index of so many responses says.

    >>> find_band(0.3, 0.02, 900), find_band(0.3, 0.4, 50), find_band(0.1, 0.02, 900), find_band(1.1, 2.4, 7)
    ('different', 'alike', 'shifted', 'too few to tell')
    """
    if responses < MIN_RESPONSES:
        return "too few to tell"
    if index < SHIFTED or index <= by_chance:
        return "alike"
    return "shifted" if index <= DIFFERENT else "different"


def compare_responses(
    distributions: Mapping[Quantity, Distribution], responses: Sequence[Mapping[Quantity, float]]
) -> tuple[Shift, ...]:
    """The shift of each quantity that the calibration describes and that a response has."""
    shifts = []
    for quantity, distribution in distributions.items():
        values = np.array([response[quantity] for response in responses if quantity in response], dtype=np.float64)
        if len(values):
            shifts.append(find_shift(QUANTITIES[quantity], distribution, values))
    return tuple(shifts)


def find_shift(quantity: str, distribution: Distribution, values: Floats) -> Shift:
    """The shift of ``values`` [N] of a quantity from a distribution."""
    index, by_chance = measure_shift(distribution, values)
    fewest = min(len(values), sum(distribution.counts))
    return Shift(quantity, len(values), index, by_chance, find_band(index, by_chance, fewest))


def _count(values: Floats, edges: Floats) -> NDArray[np.intp]:
    return np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
