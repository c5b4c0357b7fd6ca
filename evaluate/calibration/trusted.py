"""A threshold from responses that are known to be consistent, and what it would miss of errors that are made.

Agents' own answers are trusted, and every company has them; wrong answers have to be found and labelled. The bound on
the false positive rate needs consistent responses alone: it is split conformal prediction on their probabilities
(``groundwire.engine.verdict.operating_point``), and the fusion stays as it is. Nothing is known of real errors, so
the rate of missed ones is estimated on made errors (``evaluate.twins``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, get_args

import numpy as np
from msgspec.structs import replace

from groundwire.engine import Engine, Score, Verdict, default_engine
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.results import Label
from groundwire.engine.verdict import decide_again, find_threshold
from groundwire.monitor.shift import describe_distributions, describe_texts
from groundwire.runtime.bundles.calibration import (
    Band,
    Calibration,
    HeldOut,
    OrderStatistics,
    Profile,
    ProfileName,
    Quantity,
)
from groundwire.runtime.errors import InvalidRequest

from ..datasets import Rows, read_rows
from ..datasets.examples import Example
from ..statistics.agreement import HALF
from ..statistics.estimates import Floats
from ..twins.twins import TwinKind, make_twins
from .profiles import keep_order_statistics

MIN_TRUSTED = 20
"""Consistent responses that a threshold needs."""
PROFILE: ProfileName = "balanced"
"""The only profile of such a calibration, which is the default of ``Options``."""


class MadeErrors(Record, frozen=True):
    """Twins of one kind, and what becomes of them."""

    made: int
    """At least 1."""
    missed: int
    """How many of them are not called inconsistent."""
    unverifiable: int
    """How many of the missed ones are called unverifiable."""

    @property
    def rate(self) -> float:
        """The share, 0–1, that is missed."""
        return self.missed / self.made


class TrustedCalibration(Record, frozen=True, kw_only=True):
    """What trusted responses give: a calibration, and what is to be expected of it."""

    calibration: Calibration
    """With one profile, ``balanced``, and for ``Options.max_false_positive_rate`` the trusted responses."""
    threshold: float
    """Probability, 0–1, from which a response is called consistent."""
    max_false_positive_rate: float
    """The bound, 0–1, for responses like the trusted ones."""
    trusted: int
    """Responses that state something; the threshold is drawn from these."""
    stopped: int
    """How many of them are called inconsistent."""
    unverifiable: int
    """Further trusted responses, which are called unverifiable whatever the threshold."""
    unscored: int
    """Trusted responses without a probability."""
    kinds: dict[TwinKind, MadeErrors]
    """Made errors by what is wrong in them."""

    @property
    def missed_rate(self) -> float | None:
        """The share, 0–1, of made errors that is missed, every kind counting the same; None without any."""
        rates = [kind.rate for kind in self.kinds.values()]
        return sum(rates) / len(rates) if rates else None


class DecidedRow(NamedTuple):
    """A row and its verdict by the fusion that is kept."""

    example: Example
    verdict: Verdict

    def label_at(self, threshold: float) -> Label:
        """The label that is delivered with this threshold, 0–1."""
        if self.verdict.label == "unverifiable" or self.verdict.probability is None:
            return self.verdict.label
        return "inconsistent" if self.verdict.probability < threshold else "consistent"


def decide_rows(examples: Iterable[Example], scores: Iterable[Score], calibration: Calibration) -> list[DecidedRow]:
    """The rows with the verdicts of ``calibration``: a stored score may have another one's."""
    return [
        DecidedRow(row, decide_again(row.request, score.metrics, calibration, PROFILE, threshold=HALF)[0])
        for row, score in zip(examples, scores, strict=True)
    ]


def calibrate_trusted(
    rows: Rows,
    engine: Engine | None = None,
    max_false_positive_rate: float = 0.05,
    *,
    name: str = "trusted",
    seed: int = 13,
    progress: Callable[[int], None] | None = None,
) -> TrustedCalibration:
    """Draw a threshold from responses that are known to be consistent.

    Args:
        rows: A file of JSON Lines or CSV, examples, or mappings with ``response``, ``knowledge`` and perhaps
            ``history``; at least 20.
        engine: The engine whose fusion is kept; None takes ``default_engine``.
        max_false_positive_rate: The share, between 0 and 1, of right responses that may be called inconsistent.
        name: Name of the rows in the calibration.
        seed: Seed of the made errors.
        progress: Called with the number of scores so far, as by ``Engine.score_many``; made errors are scored too.

    Returns:
        The calibration, which ``LoadOptions(calibration=…)`` takes, and what to expect of it.

    Raises:
        InvalidRequest: The engine has no calibration, or rows are labelled inconsistent, unusable, or too few.
    """
    engine = engine or default_engine()
    if engine.core.calibration is None:
        raise InvalidRequest("The engine has no calibration, whose fusion trusted rows need; load a bundle with one.")
    trusted = read_rows(rows)
    check_trusted(trusted, max_false_positive_rate)
    twins = make_twin_examples(trusted, seed)
    requests = (example.request for example in (*trusted, *twins))
    scores = list(engine.score_many(requests, progress=progress))
    rights = decide_rows(trusted, scores[: len(trusted)], engine.core.calibration)
    wrongs = decide_rows(twins, scores[len(trusted) :], engine.core.calibration)
    return fit_trusted((name,), rights, wrongs, engine.core.calibration, max_false_positive_rate)


def check_trusted(trusted: Sequence[Example], max_false_positive_rate: float) -> None:
    """Raise InvalidRequest for rows that are labelled inconsistent, or too few, and for a rate that cannot be meant.

    Nothing needs to be scored for it.
    """
    if not 0 < max_false_positive_rate < 1:
        raise InvalidRequest(
            f"The false positive rate is to be at most {max_false_positive_rate:g}. Give a share above 0 and below 1, "
            "such as 0.05: no threshold that stops anything promises 0, and 1 promises nothing."
        )
    wrong = [row.id for row in trusted if row.label == 0]
    if wrong:
        raise InvalidRequest(
            f"{len(wrong)} of the {len(trusted)} trusted rows are labelled inconsistent, the first is {wrong[0]!r}. "
            "Trusted rows are consistent: leave these out, or fit to both labels without --trusted."
        )
    _check_count(len(trusted), "")


def _check_count(count: int, note: str) -> None:
    if count < MIN_TRUSTED:
        raise InvalidRequest(
            f"There are {count} trusted rows{note}; a threshold needs at least {MIN_TRUSTED}, and 100 make it twice as "
            f"good. Give {MIN_TRUSTED - count} more."
        )


def make_twin_examples(trusted: Sequence[Example], seed: int = 13) -> list[Example]:
    """The made errors of trusted rows as examples with the label inconsistent; ``source`` is the kind of the error."""
    twins = []
    for row in trusted:
        others = [other.response for other in trusted if not set(other.knowledge) & set(row.knowledge)]
        twins += [
            Example(
                f"{row.id}-{twin.kind}",
                twin.response,
                row.knowledge,
                row.history,
                label=0,
                unsupported=twin.spans,
                source=twin.kind,
            )
            for twin in make_twins(row.response, row.knowledge, others, seed)
        ]
    return twins


def fit_trusted(
    names: tuple[str, ...],
    trusted: Sequence[DecidedRow],
    twins: Sequence[DecidedRow],
    calibration: Calibration,
    max_false_positive_rate: float,
) -> TrustedCalibration:
    """The calibration of decided rows, and what to expect of it.

    ``twins`` are rows of ``make_twin_examples``; ``calibration`` has the fusion that decided all. InvalidRequest if too
    few rows state something for the bound.
    """
    scored, made = ([row for row in rows if row.verdict.probability is not None] for rows in (trusted, twins))
    decided = [row for row in scored if row.verdict.label != "unverifiable"]
    few = f" that state something, of {len(trusted)}" if len(decided) < len(trusted) else ""
    _check_count(len(decided), few)
    record = HeldOut(consistent=_keep(scored), inconsistent=_keep(made), made=True)
    threshold = find_threshold(record, max_false_positive_rate)
    point = Profile(
        threshold=threshold,
        max_false_positive_rate=max_false_positive_rate,
        false_positive_rate=0.0,
        false_negative_rate=1.0,
        unverifiable_rate=0.0,
        coverage=0.0,
        risk=0.0,
        sets=0,
    )
    quantities: list[dict[Quantity, float]] = [
        {**describe_texts(row.example.response, row.example.knowledge), "probability": probability}
        for row, probability in zip(decided, _list_probabilities(decided).tolist(), strict=True)
    ]
    fusion = replace(
        calibration.fusion(decided[0].verdict.fusion),
        profiles={PROFILE: point},
        held_out=record,
        distributions=describe_distributions(quantities),
    )
    fitted = replace(
        calibration,
        fitted_on=names,
        rows=len(decided),
        row_digests=tuple(sorted({row.example.digest for row in scored})),
        fusions=(fusion,),
    )
    stopped = sum(row.label_at(threshold) == "inconsistent" for row in decided)
    kinds = _count_errors(made, threshold)
    result = TrustedCalibration(
        calibration=fitted,
        threshold=threshold,
        max_false_positive_rate=max_false_positive_rate,
        trusted=len(decided),
        stopped=stopped,
        unverifiable=len(scored) - len(decided),
        unscored=len(trusted) - len(scored),
        kinds=kinds,
    )
    coverage, risk = _measure_sure(decided, [row for row in made if row.verdict.label != "unverifiable"], fusion.band)
    hidden = [kind.unverifiable / kind.made for kind in kinds.values()]
    measured = replace(
        point,
        false_positive_rate=round(stopped / len(decided), 4),
        false_negative_rate=1.0 if result.missed_rate is None else round(result.missed_rate, 4),
        unverifiable_rate=round(sum(hidden) / len(hidden), 4) if hidden else 0.0,
        coverage=coverage,
        risk=risk,
    )
    return replace(result, calibration=replace(fitted, fusions=(replace(fusion, profiles={PROFILE: measured}),)))


def _measure_sure(right: Sequence[DecidedRow], wrong: Sequence[DecidedRow], band: Band) -> tuple[float, float]:
    """The share of labels outside the band, and the share of these that is wrong, where both classes count the same."""
    sure, mistaken = 0.0, 0.0
    for rows, consistent in ((right, True), (wrong, False)):
        probabilities = _list_probabilities(rows)
        if not len(rows):
            continue
        above, below = float(np.mean(probabilities >= band.high)), float(np.mean(probabilities < band.low))
        sure += (above + below) / 2
        mistaken += (below if consistent else above) / 2
    return round(sure, 4), round(mistaken / sure, 4) if sure else 0.0


def _count_errors(made: Sequence[DecidedRow], threshold: float) -> dict[TwinKind, MadeErrors]:
    counts: dict[TwinKind, MadeErrors] = {}
    for kind in get_args(TwinKind):
        labels = [row.label_at(threshold) for row in made if row.example.source == kind]
        if labels:
            missed = [label for label in labels if label != "inconsistent"]
            counts[kind] = MadeErrors(len(labels), len(missed), missed.count("unverifiable"))
    return counts


def _keep(rows: Sequence[DecidedRow]) -> OrderStatistics:
    stating = [row for row in rows if row.verdict.label != "unverifiable"]
    statistics = keep_order_statistics(_list_probabilities(stating))
    return replace(statistics, unverifiable=len(rows) - len(stating))


def _list_probabilities(rows: Sequence[DecidedRow]) -> Floats:
    return np.array([row.verdict.probability for row in rows], dtype=np.float64)
