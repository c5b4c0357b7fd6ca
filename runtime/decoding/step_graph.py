"""The decoder step graph of a generator over a batch of sources; its keys and values stay on the device."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..ort.remote import open_graph
from ..ort.session import Array, DeviceProfile, ValueGraph
from .fused_step import is_fused, prepare_fused

_BY_SOURCE = ("cross", "copied", "past")
"""How the names of the inputs begin that have a row for every source, from step to step."""

TABLES = ("likely", "difference")
"""Outputs over the whole vocabulary that a graph has for CUDA (``runtime/ort/placement.py``)."""


def load_decoder(bundle: Bundle, graph: str, profile: DeviceProfile) -> ValueGraph:
    """A step graph, ready to drop sources."""
    session = open_graph(bundle, graph, profile)
    prepare_to_keep(session)
    return session


def prepare_to_keep(session: ValueGraph) -> None:
    """Build what ``StepGraph.keep_sources`` needs, so that no request waits for it."""
    if is_fused(session.inputs):
        prepare_fused(session)
        return
    session.prepare_rows([name for name in session.inputs if name.startswith(_BY_SOURCE)])


class StepGraph:
    """A step graph with the state of a batch of sources: cross-attention, masks, and past keys and values.

    With several ``contexts`` the graph reads as many rows for every source: all sources in their first context, then
    all in their second. The same tokens are appended to all contexts.
    """

    def __init__(
        self,
        session: ValueGraph,
        cross: Mapping[str, ort.OrtValue],
        mask: Array,
        *,
        layers: int,
        heads: int,
        head_dim: int,
        contexts: int = 1,
        past: Mapping[str, ort.OrtValue] | None = None,
    ) -> None:
        """``past`` are the keys and values of earlier steps, ``key.0`` and so on; None before the first."""
        self._session = session
        self._contexts = contexts
        self._tables: dict[str, ort.OrtValue] = {}
        self._cross = dict(cross)
        self._mask = session.value(mask)
        if past is not None:
            self._past = dict(past)
            return
        half = session.input_types.get("past.key.0") == "tensor(float16)"
        empty = session.value(np.zeros((len(mask), 1, heads, 0, head_dim), dtype=np.float16 if half else np.float32))
        self._past = {f"{part}.{i}": empty for part in ("key", "value") for i in range(layers)}

    def step(
        self,
        tokens: Array,
        parents: Array,
        count: int,
        outputs: tuple[str, ...],
        extra: Mapping[str, ort.OrtValue] = MappingProxyType({}),
    ) -> list[Array]:
        """Append ``tokens`` [C · A, K] to the beams ``parents`` [A, K]; return the ``outputs``, in host memory."""
        feeds: dict[str, ort.OrtValue] = {
            "tokens": self._session.host_value(tokens),
            "parents": self._session.host_value(self.repeat_for_contexts(parents)),
            "cross_mask": self._mask,
            "count": self._session.host_value(np.array([count], dtype=np.int64)),
            **extra,
            **self._cross,
            **{f"past.{name}": value for name, value in self._past.items()},
        }
        out = self._session.run_values(feeds, host=outputs)
        self._past = {name: out[f"present.{name}"] for name in self._past}
        self._tables = {name: out[name] for name in TABLES if name in out}
        return [out[name].numpy() for name in outputs]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the graph's outputs."""
        return self._session.outputs

    def value(self, array: Array) -> ort.OrtValue:
        """An input that stays the same for several steps."""
        return self._session.value(array)

    def host_value(self, array: Array) -> ort.OrtValue:
        """An input of one step."""
        return self._session.host_value(array)

    def read_row(self, name: str, source: int) -> Array:
        """One of ``TABLES`` [K, V] of the last step for one source."""
        row: Array = self._tables[name].numpy()[source]
        return row

    def repeat_for_contexts(self, rows: Array) -> Array:
        """[A, ...] as [C · A, ...]: the same for every context."""
        return np.concatenate([rows] * self._contexts) if self._contexts > 1 else rows

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        sources = self._mask.shape()[0] // self._contexts
        if len(rows) == sources:
            return
        context_rows = np.concatenate([rows + context * sources for context in range(self._contexts)])
        past = {f"past.{name}": value for name, value in self._past.items()}
        taken = self._session.take_rows({**self._cross, **past, "cross_mask": self._mask}, context_rows)
        self._mask = taken.pop("cross_mask")
        self._past = {name: taken.pop(f"past.{name}") for name in self._past}
        self._cross = taken
