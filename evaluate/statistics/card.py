"""The error card of an installation: how often its verdict is wrong, by kind of text, for the people who rely on it.

Two rates for each kind, with their intervals, and what the labelled responses do not cover. Positive is a response that
is called inconsistent, as everywhere (``delivered``). Responses that the calibration was fitted to are left
out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from groundwire.engine import Score
from groundwire.engine.schema.base import Record
from groundwire.monitor.kinds import find_language
from groundwire.monitor.records import MIN_RESPONSES, Estimate
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest

from ..datasets.examples import Example
from .analysis import measure_verdicts
from .human_labels import HumanLabels

SCHEMA = 1
ALL = "all kinds"


class KindErrors(Record, frozen=True):
    """How often the verdict is wrong on the responses of one kind."""

    kind: str
    responses: int
    """Those with a label, without those that the calibration was fitted to."""
    consistent: int
    """Those labelled consistent that got a verdict."""
    false_positive_rate: Estimate | None
    """Share of them, 0–1, that is called inconsistent; None without any."""
    inconsistent: int
    """Those labelled inconsistent that got a verdict."""
    false_negative_rate: Estimate | None
    """Share of them, 0–1, that is called consistent or unverifiable; None without any."""
    unknown: int
    """Those without a verdict, which are in no rate."""

    @property
    def is_small(self) -> bool:
        """Whether either rate is of fewer than 30 responses, so that its interval is wide."""
        return min(self.consistent, self.inconsistent) < MIN_RESPONSES


class ErrorCard(Record, frozen=True):
    """The error rates of an installation by kind of text."""

    schema: int
    when: str
    """ISO 8601."""
    signature: str
    """What determined the verdicts: version, bundle digests, precision, device, options."""
    profile: str
    threshold: float | None
    """Probability from which a response is called consistent."""
    total: KindErrors
    """All responses together: a mixture of kinds that need not be yours."""
    kinds: tuple[KindErrors, ...]
    fitted: int
    """Labelled responses that were left out because the calibration was fitted to them."""
    not_covered: tuple[str, ...]
    """What the labelled responses say nothing about, one sentence each."""
    sources: dict[str, str]
    """SHA-256 of the responses, knowledge and labels of each set, by its name."""


def measure_card(
    sets: Mapping[str, Sequence[Example]],
    scores: Mapping[str, Sequence[Score]],
    calibration: Calibration | None,
    signature: str,
    *,
    seed: int = 0,
    repeats: int = 1000,
) -> ErrorCard:
    """Measure the error rates of verdicts by kind of text.

    Args:
        sets: Labelled responses by the name of their set. A kind is ``Example.source``, or else the name of the set.
        scores: The scores of these responses, in the same order.
        calibration: The calibration that drew the verdicts; responses that it was fitted to are left out.
        signature: What determined the scores.
        seed: Seed of the bootstrap samples.
        repeats: Bootstrap samples of every interval, 1 or more.

    Returns:
        The card, of now.

    Raises:
        InvalidRequest: No labelled response is left, or none has a verdict.
    """
    fitted = frozenset((calibration.row_digests if calibration else ()) or ())
    labelled = [
        (example.source or name, example, score)
        for name, examples in sets.items()
        for example, score in zip(examples, scores[name], strict=True)
        if example.label is not None
    ]
    rows = [row for row in labelled if row[1].digest not in fitted]
    if not rows:
        raise InvalidRequest(
            f"None of {len(labelled)} labelled responses is left, as the calibration was fitted to all of them; give "
            "others."
        )

    def measure(kind: str, of_kind: Sequence[tuple[str, Example, Score]]) -> KindErrors:
        examples, verdicts = [row[1] for row in of_kind], [row[2].verdict for row in of_kind]
        figures = measure_verdicts("", verdicts, examples, HumanLabels(examples, repeats, seed), {})
        called = [sum(figures.called[label].values()) for label in ("consistent", "inconsistent")]
        unknown = [figures.called[label].get("unknown", 0) for label in ("consistent", "inconsistent")]
        return KindErrors(
            kind,
            len(examples),
            called[0] - unknown[0],
            figures.false_positive_rate,
            called[1] - unknown[1],
            figures.false_negative_rate,
            sum(unknown),
        )

    kinds = tuple(measure(kind, [row for row in rows if row[0] == kind]) for kind in sorted({row[0] for row in rows}))
    verdict = next((row[2].verdict for row in rows if row[2].verdict.threshold is not None), None)
    if verdict is None:
        raise InvalidRequest(
            f"None of {len(rows)} labelled responses has a verdict: {rows[0][2].verdict.message} Load a bundle with a "
            "calibration, and compute the metrics that its verdict needs."
        )
    return ErrorCard(
        schema=SCHEMA,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        signature=signature,
        profile=verdict.profile or "",
        threshold=verdict.threshold,
        total=measure(ALL, rows),
        kinds=kinds,
        fitted=len(labelled) - len(rows),
        not_covered=tuple(_list_uncovered([row[1] for row in rows], kinds)),
        sources={name: _digest(examples) for name, examples in sets.items()},
    )


def _digest(examples: Sequence[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(f"{example.digest} {example.label}\n".encode())
    return digest.hexdigest()


def _list_uncovered(examples: Sequence[Example], kinds: Sequence[KindErrors]) -> list[str]:
    """What labelled responses say nothing about."""
    longest = max(len(example.response.split()) for example in examples)
    most = max(sum(len(passage.split()) for passage in example.knowledge) for example in examples)
    languages = sorted({example.language or find_language(example.response) for example in examples} - {""})
    uncovered = [
        "Kinds of text that have no row in the table.",
        f"Responses of more than {longest:,} words, and knowledge of more than {most:,} words.",
        f"Other languages than {', '.join(languages)}." if languages else "Languages: none was found out.",
        "Whether the knowledge is true, and whether the response answers the question.",
    ]
    if small := [kind.kind for kind in kinds if kind.is_small]:
        uncovered.append(
            f"Kinds with fewer than {MIN_RESPONSES} consistent or {MIN_RESPONSES} inconsistent responses, whose rates "
            f"are known roughly: {', '.join(small)}."
        )
    if not any(example.history for example in examples):
        uncovered.append("Responses after a history: none has one.")
    if unknown := sum(kind.unknown for kind in kinds):
        uncovered.append(f"{unknown:,} responses without a verdict: they are in no rate.")
    return uncovered
