"""Runs an encoder graph over many windows, in batches of one padded width, and reads logits as probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from .. import _native
from ..bundles.manifest import ShapePlan
from ..texts.tokenization import Window, flatten
from .session import Array, DeviceProfile, Graph, ValueGraph


def forward(
    session: Graph, windows: Sequence[Window], pad_id: int, profile: DeviceProfile
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], list[Array]]]:
    """Run the graph; yield ``(rows, lengths, outputs)`` per batch: its windows' indices, their lengths, the outputs.

    A window is padded to a width that depends on its own length alone and shares its batch with windows of that width
    only, so its outputs do not depend on the other windows (docs/architecture.md).
    """
    for rows, lengths, feeds in pack(session, windows, pad_id, profile, session.plan):
        yield rows, lengths, session.run(feeds)


def forward_values(
    session: ValueGraph, windows: Sequence[Window], pad_id: int, profile: DeviceProfile, plan: ShapePlan | None = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], dict[str, ort.OrtValue]]]:
    """As ``forward``, but yield ``(rows, attention_mask, outputs)``: the outputs by name, left on the device. ``plan``
    takes the place of the session's."""
    for rows, _, feeds in pack(session, windows, pad_id, profile, plan or session.plan):
        yield rows, feeds["attention_mask"], session.run_to_values(feeds)


def pack(
    session: Graph, windows: Sequence[Window], pad_id: int, profile: DeviceProfile, plan: ShapePlan | None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], dict[str, Array]]]:
    """Yield the batches of a plan, or of the profile: indices of the windows, their lengths, the graph's inputs."""
    ids, offsets = flatten([window.ids for window in windows])
    types = flatten([window.type_ids for window in windows])[0] if "token_type_ids" in session.inputs else None
    lengths = offsets[1:] - offsets[:-1]
    order, bounds, widths = plan_batches(lengths, plan, profile)
    for index, width in enumerate(widths):
        profile.check_open()
        rows = order[bounds[index] : bounds[index + 1]]
        padded, mask = _native.pad_rows(ids, offsets, rows, int(width), pad_id)
        feeds: dict[str, Array] = {"input_ids": padded, "attention_mask": mask}
        if types is not None:
            feeds["token_type_ids"] = _native.pad_rows(types, offsets, rows, int(width), 0)[0]
        yield rows, lengths[rows], feeds


def plan_batches(
    lengths: NDArray[np.int64], plan: ShapePlan | None, profile: DeviceProfile
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The order of the windows, the bounds of batches in it, and the width of each: one of the plan's, if there is
    one."""
    if plan is None:
        return _native.plan_batches(lengths, profile.max_tokens, profile.max_rows)
    # Batches have these widths anyway.
    return _native.plan_batches(plan.fit(lengths), plan.max_tokens, plan.max_rows)


def softmax(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Row-wise softmax in double precision."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))
