"""Compares the models of a bundle with their checkpoints on this machine, from what the bundle keeps: the checkpoint's
logits, or recorded answers (``recorded.py``); and the runs of one device with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import ExtractiveQARole, Parity, ReaderRole, ReferenceRole, Role, SpansRole
from ..capture.encoder import CapturedEncoder
from ..errors import ModelError
from ..models.graphs import find_output, load_graph, place_role
from ..models.loading import load_group
from ..ort.device import Device
from ..ort.session import DeviceProfile, Graph, forward
from ..protocol import Outcome
from ..texts.tokenization import Window
from .parity import Gate, collect_outputs, compared_outputs
from .recorded import (
    RecordedCall,
    RoleAnswers,
    compare_answers,
    read_answers,
    read_decision,
    read_numbers,
    read_sequences,
)
from .reference import ReferenceLogits

COPIES = 5
"""How often each text is in the largest batches that are compared: an odd number, so that other rows have it."""
MISMATCHES = (LookupError, TypeError, ValueError)
WINDOWS = 512
"""Windows of a recorded call, at most."""
SEARCHED = 0.9
"""Share of the recorded answers whose best sequence must be the same in float16: a search ends otherwise where two
tokens are nearly as probable."""
PLAIN = Gate.exact()
"""How close captured runs must be to plain ones at the same shapes and addresses: the kernels are the same."""


@dataclass(frozen=True)
class Certified:
    """How a role's models compare with its checkpoint, and with themselves, on one device."""

    parity: Parity
    batch_spread: float
    """The largest difference of a number of one text between batches: the text alone, with the others, and with many. A
    device that chooses kernels by the size of a batch has one; 0 on the CPU."""
    failures: tuple[str, ...]
    """The bounds of the gate that it fails, in words; of the comparison with the checkpoint none where the export
    waived the gate."""
    captured_spread: float | None = None
    """The largest difference between runs that were captured and runs that were not; None where none was."""


def certify(bundle: Bundle, device: Device) -> dict[str, Certified | None]:
    """Run each role that has reference logits or recorded answers on a device, and compare; None for roles without.

    Raises BundleError for a damaged bundle, DeviceError for a device that cannot run it.
    """
    return dict(certify_each(bundle, device))


def certify_each(
    bundle: Bundle, device: Device, *, watch: Callable[[str], None] = lambda role: None
) -> Iterator[tuple[str, Certified | None]]:
    """Yield what ``certify`` returns, each role as soon as it is compared. ``watch`` is called with each role that is
    run, before it is.

    Raises BundleError for a damaged bundle, DeviceError for a device that cannot run it.
    """
    answers = read_answers(bundle)
    for name, role in bundle.manifest.roles.items():
        if isinstance(role, SpansRole):  # no graph
            continue
        placed, profile = place_role(name, role, DeviceProfile.of(device, None))
        report = None
        if isinstance(placed, ReferenceRole) and isinstance(placed.reference, str):
            watch(name)
            report = certify_graph(bundle, placed, load_graph(bundle, placed, profile), profile)
        elif name in answers:
            watch(name)
            report = certify_answers(bundle, name, placed, answers[name], profile)
        yield name, report


@dataclass(frozen=True)
class ReferenceTexts:
    """The texts of a role's reference logits, for a loaded graph of the role."""

    role: ReferenceRole
    graph: Graph
    profile: DeviceProfile
    reference: ReferenceLogits
    outputs: Sequence[int]
    """Positions of the outputs of the graph that the reference has."""

    @classmethod
    def open(cls, bundle: Bundle, role: ReferenceRole, graph: Graph, profile: DeviceProfile) -> ReferenceTexts:
        """Read the reference logits; BundleError for a damaged file."""
        assert isinstance(role.reference, str)
        outputs = [0, 1]
        if isinstance(role, ReaderRole):
            outputs = [find_output(graph.outputs, name, role.graph) for name in role.heads]
        elif not isinstance(role, ExtractiveQARole):
            outputs = [find_output(graph.outputs, role.output, role.graph)]
        return cls(role, graph, profile, ReferenceLogits.read(bundle.file(role.reference)), outputs)

    def run(self, windows: Sequence[Window]) -> list[list[NDArray[Any]]]:
        """The outputs of each text, without padding."""
        rows: list[list[NDArray[Any]]] = [[] for _ in windows]
        for batch, _, of_batch in forward(self.graph, windows, self.role.pad_id, self.profile):
            for position, row in enumerate(batch):
                length = len(windows[row].ids)
                rows[row] = [
                    of_batch[index][position][: length if of_tokens else None]
                    for index, of_tokens in zip(self.outputs, self.reference.per_token, strict=True)
                ]
        return rows

    def compare(self, rows: Sequence[Sequence[NDArray[Any]]]) -> Parity:
        """How outputs of all texts differ from the checkpoint's."""
        compared = compared_outputs(self.role)
        expected = collect_outputs(compared, self.reference.outputs)
        return expected.parity(collect_outputs(compared, rows), len(self.reference.windows))

    def list_failures(self, parity: Parity) -> tuple[str, ...]:
        """The bounds of the role's gate that it fails, in words."""
        return _fail(self.role, self.profile, parity)


def certify_graph(bundle: Bundle, role: ReferenceRole, graph: Graph, profile: DeviceProfile) -> Certified:
    """Compare a loaded graph of ``role``, which keeps reference logits, with its checkpoint."""
    texts = ReferenceTexts.open(bundle, role, graph, profile)
    windows = texts.reference.windows
    together = texts.run(windows)
    others = [[texts.run([window])[0] for window in windows], texts.run(windows * COPIES)]
    spread = max(_find_spread(rows, together) for rows in others)
    if isinstance(graph, CapturedEncoder):
        spread = max(spread, compare_sizes(graph, texts.outputs, windows))
    replayed = texts.run(windows) if profile.captured else together
    with run_plain(profile) as captures:
        captured_spread = _find_spread(replayed, texts.run(windows)) if captures else None
    return _make_report(role, profile, texts.compare(together), spread, captured_spread)


def certify_answers(bundle: Bundle, name: str, role: Role, answers: RoleAnswers, profile: DeviceProfile) -> Certified:
    """Compare the model of ``role`` with its recorded answers, and all calls together with batches of every size."""
    model = load_group((name,), {name: (role, bundle)}, profile)
    calls = answers.decode_calls()

    def run(batch: Sequence[RecordedCall]) -> list[Outcome]:
        try:
            return list(model.run(batch, WINDOWS))
        except (ModelError, *MISMATCHES) as error:  # numbers that no search and no reader takes
            return [ModelError(str(error))] * len(batch)

    together = run(calls)
    parity = answers.compare(together)
    if not np.isfinite(parity.max_logit_error):
        errors = {str(outcome) for outcome in together if isinstance(outcome, ModelError)}
        return Certified(parity, float("inf"), (*_fail(role, profile, parity), *sorted(errors)[:1]))
    decisions = [read_decision(outcome) for outcome in together]
    numbers = [read_numbers(outcome) for outcome in together]
    batched: list[Outcome] = []
    for size in cycle_sizes(len(calls)):
        batched += run(calls[len(batched) : len(batched) + size])
    of_batches = compare_answers(decisions, numbers, batched, [read_sequences(outcome) for outcome in together])
    agree = of_batches.decision_agreement >= _find_gate(role, profile).decision_agreement
    spread = of_batches.max_logit_error if agree else float("inf")
    captured_spread, replayed = None, run(calls) if profile.captured else together
    with run_plain(profile) as captures:
        if captures:
            captured_spread = max(
                compare_answers(decisions, numbers, outcomes).max_logit_error for outcomes in (replayed, run(calls))
            )
    return _make_report(role, profile, parity, spread, captured_spread)


def cycle_sizes(count: int) -> Iterator[int]:
    """The sizes of batches that ``count`` calls are cut to: each power of two and the number after it, again and again,
    so that every capture size has full and padded batches, and calls are alone."""
    sizes = [size for power in range(8) for size in (1 << power, (1 << power) + 1)]
    position = 0
    while count > 0:
        size = sizes[position % len(sizes)]
        yield min(size, count)
        count, position = count - size, position + 1


def compare_sizes(encoder: CapturedEncoder, outputs: Sequence[int], windows: Sequence[Window]) -> float:
    """The largest difference of an output of a row between a capture size and the next smaller one, over all widths."""
    ids = [token for window in windows for token in window.ids]
    spread = 0.0
    for width, sizes in encoder.sizes.items():
        rows = np.resize(np.array(ids, np.int64), (sizes[-1], width))
        feeds = {name: np.zeros_like(rows) for name in encoder.inputs}
        feeds |= {"input_ids": rows, "attention_mask": np.ones_like(rows)}
        smaller: list[NDArray[Any]] | None = None
        for size in sizes:
            outcome = encoder.run({name: values[:size] for name, values in feeds.items()})
            if smaller is not None:
                pairs = zip((smaller[index] for index in outputs), (outcome[index] for index in outputs), strict=True)
                spread = max(spread, *(_difference(left, right[: len(left)]) for left, right in pairs))
            smaller = outcome
    return spread


@contextmanager
def run_plain(profile: DeviceProfile) -> Iterator[int]:
    """Inside the block, captured graphs run kernel by kernel; the number of captured shapes."""
    graphs = list(profile.captured)
    for graph in graphs:
        graph.replays = False
    try:
        yield sum(len(graph.captured) for graph in graphs)
    finally:
        for graph in graphs:
            graph.replays = True


def record_answers(bundle: Bundle, calls: Mapping[str, Sequence[RecordedCall]]) -> dict[str, RoleAnswers]:
    """What the roles of ``calls`` answer here, on the CPU with float32 weights; raises the error of a call."""
    profile = replace(DeviceProfile.of("cpu", None), float_weights=True)
    answers = {}
    for name, of_role in calls.items():
        model = load_group((name,), {name: (bundle.manifest.roles[name], bundle)}, profile)
        answers[name] = RoleAnswers.make(of_role, model.run(of_role, WINDOWS))
    return answers


def _make_report(
    role: Any, profile: DeviceProfile, parity: Parity, spread: float, captured_spread: float | None
) -> Certified:
    failures = list(_fail(role, profile, parity))
    gate = _find_gate(role, profile)
    if not spread <= gate.max_error * parity.logit_std:  # NaN must fail
        failures.append(f"batch spread {spread:.4g} > {gate.max_error * parity.logit_std:.4g} ({gate.max_error} std)")
    if captured_spread is not None and not captured_spread <= PLAIN.max_error * parity.logit_std:
        bound = PLAIN.max_error * parity.logit_std
        failures.append(f"captured runs differ from plain ones by {captured_spread:.4g} > {bound:.4g}")
    return Certified(parity, spread, tuple(failures), captured_spread)


def _fail(role: Any, profile: DeviceProfile, parity: Parity) -> tuple[str, ...]:
    waived = isinstance(role, ReferenceRole) and role.parity is not None and role.parity.gate == "waived"
    return () if waived else tuple(_find_gate(role, profile).failures(parity))


def _find_gate(role: Any, profile: DeviceProfile) -> Gate:
    """The gate of the role's precision; recorded answers are from float32 weights, as int8 weights are on a GPU."""
    if isinstance(role, ReferenceRole) and isinstance(role.reference, str):
        return Gate.of(role.precision, len(role.heads) if isinstance(role, ReaderRole) else 1)
    dequantized = role.precision in ("int8", "mixed") and profile.device.kind != "cpu"
    gate = Gate.of("fp32" if dequantized else role.precision)
    return gate if gate == Gate.exact() else replace(gate, decision_agreement=SEARCHED)


def _find_spread(rows: Sequence[Sequence[NDArray[Any]]], others: Sequence[Sequence[NDArray[Any]]]) -> float:
    """The largest difference of the rows from ``others``, which come again and again."""
    return max(
        _difference(output, other)
        for index, row in enumerate(rows)
        for output, other in zip(others[index % len(others)], row, strict=True)
    )


def _difference(left: NDArray[Any], right: NDArray[Any]) -> float:
    return float(np.abs(left.astype(np.float32) - right.astype(np.float32)).max(initial=0.0))
