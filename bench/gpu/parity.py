"""Whether the device gives right results: the parity report of the embedded, trained bundle, and its values, verdicts
and marked words against the CPU's."""

from __future__ import annotations

import msgspec

from groundwire.engine import Engine, Score
from groundwire.runtime.bundles.bundle import Bundle, embedded
from groundwire.runtime.ort.device import Device, parse_device
from groundwire.runtime.parity.certify import certify_each

from ..support.dialogues import distinct
from .setup import EMBEDDED, Setup, is_double
from .stages import Save, Skipped


class Difference(msgspec.Struct, frozen=True):
    """A response with another result on the device."""

    response: str
    what: str


class Parity(msgspec.Struct):
    """The same responses on the CPU and on the device."""

    bundle: str
    responses: int
    signatures: tuple[str, str]
    largest: dict[str, float]
    """By metric, the largest difference of a value that both have."""
    largest_probability: float
    same_statuses: float
    """Share of all values that both have, or both have not."""
    same_verdicts: float
    same_marks: float
    """Share of the responses with the same marked words."""
    differences: tuple[Difference, ...]


def measure(setup: Setup, save: Save) -> None:
    """Score the examples, and others like them, on both, by all metrics."""
    if is_double():
        raise Skipped("the double computes nothing")
    dialogues = list(distinct(2 if setup.tiny else 64))
    scores: list[list[Score]] = []
    signatures = []
    for device in ("cpu", setup.device):
        with Engine.load(EMBEDDED[0], device) as engine:
            scores.append(list(engine.score_many(dialogues, metrics="all")))
            signatures.append(engine.plan("all").signature)
    save(compare(scores[0], scores[1], [dialogue.response for dialogue in dialogues], (signatures[0], signatures[1])))


class RoleReport(msgspec.Struct, frozen=True):
    """How a role of an embedded bundle compares with its checkpoint on the device, and with itself."""

    bundle: str
    role: str
    failures: tuple[str, ...]
    """The bounds that it fails, in words."""
    error: float
    """Largest error of a number, in standard deviations."""
    batch_spread: float
    captured_spread: float | None


def certify_embedded(setup: Setup, save: Save) -> None:
    """``groundwire bundle certify`` of the embedded, trained bundles that are installed."""
    if is_double():
        raise Skipped("the double computes nothing")
    device = parse_device(setup.device) or Device("cpu")
    rows: list[RoleReport] = []
    for name in EMBEDDED:
        if name not in embedded():
            continue
        for role, report in certify_each(Bundle.open(name), device):
            if report is not None:
                error = report.parity.max_logit_error / report.parity.logit_std
                rows.append(RoleReport(name, role, report.failures, error, report.batch_spread, report.captured_spread))
                save(rows)


def compare(ours: list[Score], others: list[Score], responses: list[str], signatures: tuple[str, str]) -> Parity:
    """Compare the CPU's scores with the device's."""
    largest: dict[str, float] = {}
    probability = 0.0
    values = same_values = verdicts = marks = 0
    differences = []
    for text, score, other in zip(responses, ours, others, strict=True):
        for name, result in score.metrics.items():
            left, right = result.value, other.metrics[name].value
            values += 1
            same_values += (left is None) == (right is None)
            if left is not None and right is not None:
                largest[name] = max(largest.get(name, 0.0), abs(left - right))
        if score.verdict.probability is not None and other.verdict.probability is not None:
            probability = max(probability, abs(score.verdict.probability - other.verdict.probability))
        verdicts += score.verdict.label == other.verdict.label
        marked, marked_there = (_list_marks(result) for result in (score, other))
        marks += marked == marked_there
        if score.verdict.label != other.verdict.label:
            differences.append(Difference(text, f"verdict {score.verdict.label}, on the device {other.verdict.label}"))
        if marked != marked_there:
            differences.append(Difference(text, f"marked {marked}, on the device {marked_there}"))
    count = len(responses)
    return Parity(
        "+".join(EMBEDDED),
        count,
        signatures,
        largest,
        probability,
        same_values / max(values, 1),
        verdicts / count,
        marks / count,
        tuple(differences),
    )


def _list_marks(score: Score) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in score.unsupported]
