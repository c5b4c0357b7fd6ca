"""Compares the graphs of a bundle with their checkpoints on this machine, from the logits that the bundle keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bundle import Bundle
from .manifest import EncoderRole, ExtractiveQARole, Parity, ReaderRole, ReferenceRole
from .models.graphs import find_output, load_encoder, load_graph, place_role
from .ort.device import Device
from .ort.forward import forward
from .ort.session import DeviceProfile, Graph
from .parity import Gate, collect_outputs, compared_outputs
from .reference import ReferenceLogits
from .tokenization import Window

COPIES = 5
"""How often each text is in the largest batches that are compared: an odd number, so that other rows have it."""


@dataclass(frozen=True)
class Certified:
    """How a role's graph compares with its checkpoint on one device."""

    parity: Parity
    batch_spread: float
    """The largest difference of a logit of one text between batches: the text alone, with the others, and with many.
    A device that chooses kernels by the size of a batch has one; 0 on the CPU."""
    failures: tuple[str, ...]
    """The bounds of the gate that it fails, in words; none where the export waived the gate."""


def certify(bundle: Bundle, device: Device) -> dict[str, Certified | None]:
    """Run each role that has reference logits on a device, and compare; None for roles without.

    Raises BundleError for a damaged bundle, DeviceError for a device that cannot run it.
    """
    profile = DeviceProfile.of(device, None)
    reports: dict[str, Certified | None] = {}
    for name, role in bundle.manifest.roles.items():
        reports[name] = None
        if isinstance(role, ReferenceRole) and isinstance(role.reference, str):
            placed, of_role = place_role(name, role, profile)
            if isinstance(placed, EncoderRole):
                graph = load_graph(bundle, placed, of_role)
            else:
                assert isinstance(placed, ReaderRole)
                graph = load_encoder(bundle, placed.graph, placed.max_tokens, of_role)
            reports[name] = certify_graph(bundle, placed, graph, of_role)
    return reports


def certify_graph(bundle: Bundle, role: ReferenceRole, graph: Graph, profile: DeviceProfile) -> Certified:
    """Compare a loaded graph of ``role``, which keeps reference logits, with its checkpoint."""
    compared = compared_outputs(role)
    assert isinstance(role.reference, str)
    reference = ReferenceLogits.read(bundle.file(role.reference))
    outputs = [0, 1]
    if isinstance(role, ReaderRole):
        outputs = [find_output(graph.outputs, name, role.graph) for name in role.heads]
    elif not isinstance(role, ExtractiveQARole):
        outputs = [find_output(graph.outputs, role.output, role.graph)]

    def run(windows: Sequence[Window]) -> list[list[NDArray[Any]]]:
        rows: list[list[NDArray[Any]]] = [[] for _ in windows]
        for batch, _, of_batch in forward(graph, windows, role.pad_id, profile):
            for position, row in enumerate(batch):
                length = len(windows[row].ids)
                rows[row] = [
                    of_batch[index][position][: length if of_tokens else None]
                    for index, of_tokens in zip(outputs, reference.per_token, strict=True)
                ]
        return rows

    together = run(reference.windows)
    others = [[run([window])[0] for window in reference.windows], run(reference.windows * COPIES)]
    spread = max(
        float(np.abs(output - other).max(initial=0.0))
        for rows in others
        for index, row in enumerate(rows)
        for output, other in zip(together[index % len(together)], row, strict=True)
    )
    expected = collect_outputs(compared, reference.outputs)
    parity = expected.parity(collect_outputs(compared, together), len(reference.windows))
    waived = role.parity is not None and role.parity.gate == "waived"
    failures = () if waived else tuple(Gate.of(role.precision).failures(parity))
    return Certified(parity, spread, failures)
