"""A fused decoder step over a batch of sources, for batches of any shape (``StepGraph`` is for the other steps)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundles.manifest import QuestionGeneratorRole
from ..ort.session import Array, ValueGraph
from .beam_cache import BeamCache, StepRecord, pad_beams

FIRST_POSITIONS = 32
"""Tokens that the buffers of keys and values hold at first."""


def is_fused(inputs: Sequence[str]) -> bool:
    """Whether a step with these inputs is a fused one."""
    return "cache_indirection" in inputs


class FusedStepGraph:
    """A fused step graph with the state of a batch of sources: cross-attention, mask, and past keys and values.

    When the buffers are full, all steps are taken again with buffers twice as long: how keys lie in a buffer is known
    to the graph's operators alone.
    """

    def __init__(
        self,
        session: ValueGraph,
        cross: Mapping[str, ort.OrtValue],
        mask: Array,
        role: QuestionGeneratorRole,
        beams: int,
        record: StepRecord | None = None,
    ) -> None:
        """``record`` has the steps that were taken elsewhere; None before the first."""
        self._session = session
        self._role = role
        self._cross = dict(cross)
        self._mask = session.value(mask)
        self._rows = pad_beams(beams)
        self._record = StepRecord(len(mask)) if record is None else record
        positions = max(FIRST_POSITIONS, 2 * len(self._record))
        self._cache, self._past = self._make_buffers(len(mask), positions)
        self._take_again()

    def step(self, tokens: Array, parents: Array, count: int, outputs: tuple[str, ...]) -> list[Array]:
        """Append ``tokens`` [A, K] to the beams ``parents`` [A, K]; return the ``outputs``, in host memory."""
        sources, _, positions = self._cache.table.shape
        if self._cache.length == positions:
            self._cache, self._past = self._make_buffers(sources, 2 * positions)
            self._take_again()
        self._record.add(tokens, parents)
        return self._run(tokens, parents, count, outputs)

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        if len(rows) == len(self._cache.table):
            return
        self._cache.keep(rows, len(rows))
        self._record.keep(rows)
        taken = self._session.take_rows({**self._cross, "cross_mask": self._mask}, rows)
        self._mask = taken.pop("cross_mask")
        self._cross = taken
        beams = (rows[:, None] * self._rows + np.arange(self._rows)).ravel()
        self._past = self._session.take_rows(self._past, beams)

    def _make_buffers(self, sources: int, positions: int) -> tuple[BeamCache, dict[str, ort.OrtValue]]:
        half = self._session.input_types["past.key.0"] == "tensor(float16)"
        shape = sources * self._rows, self._role.heads, positions, self._role.head_dim
        empty = self._session.value(np.zeros(shape, np.float16 if half else np.float32))
        past = {f"past.{part}.{i}": empty for part in ("key", "value") for i in range(self._role.layers)}
        return BeamCache(sources, self._rows, positions), past

    def _take_again(self) -> None:
        for tokens, parents in self._record:
            self._run(tokens, parents, 1, ())

    def _run(self, tokens: Array, parents: Array, count: int, outputs: tuple[str, ...]) -> list[Array]:
        sources, beams = tokens.shape
        self._cache.start_step(parents)
        padded = np.zeros((sources, self._rows), np.int64)
        padded[:, :beams] = tokens
        host: dict[str, Array] = {
            "tokens": padded,
            "cache_indirection": self._cache.table,
            "past_sequence_length": np.array([self._cache.length], np.int32),
            "count": np.array([count], np.int64),
        }
        feeds = {name: self._session.host_value(array) for name, array in host.items()}
        feeds |= {"cross_mask": self._mask, **self._cross, **self._past}
        out = self._session.run_values(feeds, host=outputs)
        self._past = {name: out[name.replace("past", "present")] for name in self._past}
        self._cache.end_step()
        return [np.ascontiguousarray(out[name].numpy()[:, :beams]) for name in outputs]


def prepare_fused(session: ValueGraph) -> None:
    """Build what ``FusedStepGraph.keep_sources`` needs, so that no request waits for it."""
    for part in ("cross", "past."):
        session.prepare_rows([name for name in session.inputs if name.startswith(part)])
