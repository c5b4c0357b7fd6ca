"""How far people agree when they rate the same responses, and the mean rating of each system.

Krippendorff's alpha (2011, "Computing Krippendorff's Alpha-Reliability"), by the library ``krippendorff``, takes any
number of raters and missing ratings; its distance is that of the scale: nominal for labels, ordinal for Likert scales,
interval for numbers. Fleiss' kappa (1971, *Psychological Bulletin* 76, 378–382) is for labels, and for as many ratings
of every response; NLTK calls it multi-π. Both are 1 for perfect agreement and about 0 for agreement by chance.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from groundwire.engine.schema.base import Record
from groundwire.monitor.records import Estimate
from groundwire.runtime.errors import InvalidRequest

from .estimates import Floats

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
REQUIRED = ("krippendorff", "nltk")


class Rated(Record, frozen=True):
    """A response and its ratings."""

    ratings: Mapping[str, float | str]
    """By rater; those who did not rate it are not there."""
    system: str = ""


class SystemRating(Record, frozen=True):
    """The ratings of one system's responses."""

    system: str
    responses: int
    mean: Estimate
    """Of the responses' mean ratings, with a 95 % interval."""


class RaterAgreement(Record, frozen=True):
    """How far raters agree."""

    level: Level
    responses: int
    """With two ratings or more; others say nothing about agreement."""
    raters: int
    ratings: int
    """Of these responses."""
    alpha: Estimate | None
    """Krippendorff's alpha, with a 95 % percentile interval over samples of the responses; None where all ratings are
    the same, and there is no disagreement to expect by chance."""
    kappa: float | None
    """Fleiss' kappa; None for levels but nominal, and where not every response has as many ratings."""
    systems: tuple[SystemRating, ...] = ()
    """Best first; empty for labels."""


def require_raters() -> None:
    """Raise InvalidRequest with the install command where a library is missing."""
    missing = [name for name in REQUIRED if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidRequest(
            f"The agreement of raters needs {' and '.join(missing)}; run: pip install 'groundwire[agreement]'"
        )


def measure_raters(rated: Sequence[Rated], level: Level, repeats: int = 1000, seed: int = 0) -> RaterAgreement:
    """The agreement on ``rated``. InvalidRequest for a scale that does not exist, for words on a scale of numbers, and
    where no response has two ratings."""
    require_raters()
    if level not in get_args(Level):
        raise InvalidRequest(f"level is {level!r}; use one of {', '.join(get_args(Level))}.")
    several = [unit for unit in rated if len(unit.ratings) > 1]
    if not several:
        raise InvalidRequest("No response has two ratings, so nothing can be compared. Give the ratings of each rater.")
    matrix, values = _make_matrix(several, level)
    return RaterAgreement(
        level,
        len(several),
        matrix.shape[0],
        int(np.isfinite(matrix).sum()),
        _measure_alpha(matrix, level, repeats, seed) if len(values) > 1 else None,
        _measure_kappa(several) if level == "nominal" and len(values) > 1 else None,
        () if level == "nominal" else _rate_systems(rated, repeats, seed),
    )


def _make_matrix(rated: Sequence[Rated], level: Level) -> tuple[Floats, list[Any]]:
    """The ratings [raters, responses], NaN where there is none, and the distinct values, ascending.

    Labels are numbered.
    """
    given = {value for unit in rated for value in unit.ratings.values()}
    if level != "nominal" and (words := sorted(value for value in given if isinstance(value, str))):
        raise InvalidRequest(f"The rating {words[0]!r} is no number; use level nominal for words.")
    values = sorted(given, key=lambda value: (isinstance(value, str), value))
    code = {value: float(index) for index, value in enumerate(values)} if level == "nominal" else {}
    raters = list(dict.fromkeys(rater for unit in rated for rater in unit.ratings))
    matrix = np.full((len(raters), len(rated)), np.nan)
    for column, unit in enumerate(rated):
        for rater, value in unit.ratings.items():
            matrix[raters.index(rater), column] = code.get(value, value)
    return matrix, values


def _measure_alpha(matrix: Floats, level: Level, repeats: int, seed: int) -> Estimate:
    import krippendorff

    def measure(sample: Floats) -> float:
        if len(np.unique(sample[np.isfinite(sample)])) < 2:
            return np.nan
        return float(krippendorff.alpha(reliability_data=sample, level_of_measurement=level))

    rng, responses = np.random.default_rng(seed), matrix.shape[1]
    samples = np.array([measure(matrix[:, rng.integers(0, responses, responses)]) for _ in range(repeats)])
    known = samples[np.isfinite(samples)]
    value = measure(matrix)
    low, high = np.quantile(known, (0.025, 0.975)) if len(known) else (value, value)
    return Estimate(value, min(float(low), value), max(float(high), value))


def _measure_kappa(rated: Sequence[Rated]) -> float | None:
    from nltk.metrics.agreement import AnnotationTask

    if len({len(unit.ratings) for unit in rated}) > 1:
        return None
    # Fleiss' raters need not be the same people for each response: they are numbered.
    triples = [
        (str(rater), str(index), value)
        for index, unit in enumerate(rated)
        for rater, value in enumerate(unit.ratings.values())
    ]
    return float(AnnotationTask(triples).pi())


def _rate_systems(rated: Sequence[Rated], repeats: int, seed: int) -> tuple[SystemRating, ...]:
    means: dict[str, list[float]] = {}
    for unit in rated:
        if unit.ratings:
            means.setdefault(unit.system, []).append(float(np.mean([float(value) for value in unit.ratings.values()])))
    rng = np.random.default_rng(seed)
    systems = []
    for system, ratings in means.items():
        values = np.array(ratings)
        samples = values[rng.integers(0, len(values), (repeats, len(values)))].mean(axis=1)
        low, high = np.quantile(samples, (0.025, 0.975))
        systems.append(SystemRating(system, len(values), Estimate(float(values.mean()), float(low), float(high))))
    return tuple(sorted(systems, key=lambda rating: -rating.mean.value))
