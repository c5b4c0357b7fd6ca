"""Scores texts on a GPU at captured shapes: a run is one replay, and a batch waits once.

Ids go up from page-locked memory and log-probabilities come down into it; all shapes share the graph's buffers on the
device, since runs follow each other on one stream. The keys and values of a prefix that many texts share are written
where the runs of these texts read them, and never leave the device.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import LanguageModelRole
from ..decoding.scoring import ScoringInput
from ..ort.session import Array, DeviceProfile
from .graph import CapturedGraph, RunLayout, Runnable
from .memory import Buffer, Staging, count_aligned, count_bytes
from .scoring_shapes import EMPTY, ScoringShapes, SharedPrefix, TargetRange
from .shapes import BatchShape

STATE_BYTES = 512 << 20
"""Keys and values of a prefix that is read by itself, at most: 2,700 tokens of BLOOM-560m in float32."""
STAGING_BYTES = 4 << 20
"""Page-locked memory of a graph; a batch that needs more waits more than once."""
RESULT = "log_probs"
"""The output that comes down."""


class CapturedScorer:
    """A language model's graph with its head inside, on one stream."""

    def __init__(self, runnable: Runnable, role: LanguageModelRole, vocabulary: int) -> None:
        """KeyError for a graph whose axes or types ``export/roles/language_model`` does not write."""
        self.runnable = runnable
        self.graph = CapturedGraph(runnable, self._layout)
        self.pad_id = role.pad_id
        self._lock = threading.Lock()
        device, strict = runnable.profile.device, runnable.profile.strict
        nodes = {**runnable.inputs, **runnable.outputs}
        past = [name for name in nodes if name.startswith("past.")]
        one_token = name_axes(BatchShape(1, 1, past=1, scored=1))
        token_bytes = sum(count_bytes(nodes[name], one_token) for name in past)
        state_tokens = STATE_BYTES // token_bytes if past else 0
        self.shapes = ScoringShapes.make(role.max_tokens, vocabulary, state_tokens, strict=strict)
        self._runs = self.shapes.list_runs()
        largest = [name_axes(run) for run in self._runs]
        self._nodes = [node for name, node in nodes.items() if not name.startswith(("past.", "present."))]
        self._moved = {node.name: Buffer(node, device, largest) for node in self._nodes}
        prefixes = [name_axes(BatchShape(1, width, past=width)) for width in self.shapes.shared or (EMPTY,)]
        self._states = {name: Buffer(nodes[name], device, prefixes) for name in past}
        # A past that nothing is in is the same for all layers: zeros.
        rows = [name_axes(run) for run in self._runs if run.past == EMPTY]
        self._empty = [Buffer(nodes[name], device, rows) for name in past[:1]]
        self._staging = Staging(device, max(STAGING_BYTES, *(count_aligned(self._nodes, axes) for axes in largest)))
        self._sources = {name: buffer.address for name, buffer in self._moved.items() if name != RESULT}
        for buffer in (*self._moved.values(), *self._empty):
            runnable.stream.upload(buffer.address, buffer.host_bytes())
        runnable.stream.synchronize()

    @classmethod
    def load(cls, bundle: Bundle, role: LanguageModelRole, vocabulary: int, profile: DeviceProfile) -> Self | None:
        """Open the role's graph; None when ONNX Runtime does not capture it, or its axes are others than this module
        knows. Raises as ``Session.load`` does."""
        runnable = Runnable.load(bundle.file(role.graph), profile)
        try:
            return cls(runnable, role, vocabulary) if runnable.captures else None
        except KeyError:
            return None

    def score(self, inputs: Mapping[int, ScoringInput]) -> list[tuple[int, NDArray[np.float32]]]:
        """As ``TextScorer``; ModelError or DeviceError when a run fails."""
        with self._lock, self.runnable.translating():
            if self._staging.used:  # by a batch that failed
                self.wait()
            return list(ScoringBatch(self, inputs).run().items())

    def prepare(self) -> None:
        """Capture every shape, so that no request waits for it; the largest first, which need the most memory."""
        with self._lock, self.runnable.translating():
            self.graph.prepare(self._runs)

    def stage(self, run: BatchShape) -> dict[str, Array] | None:
        """Zeros for the inputs and the result of a run, in page-locked memory; None when there is no more of it."""
        return self._staging.take(self._nodes, name_axes(run))

    def queue(self, run: BatchShape, staged: Mapping[str, Array]) -> None:
        """Queue a run of staged inputs, and the copy of its result."""
        stream = self.runnable.stream
        for name, address in self._sources.items():
            stream.upload(address, staged[name])
        self.graph.run(run)
        if run.scored:
            stream.download(staged[RESULT], self._moved[RESULT].address)

    def wait(self) -> None:
        """Wait for what was queued; what was staged is not valid after the next ``stage``."""
        self.runnable.stream.synchronize()
        self._staging.reset()

    def _layout(self, run: BatchShape) -> RunLayout:
        addresses = dict(self._sources)
        for name, state in self._states.items():
            addresses[name] = (self._empty[0] if run.past == EMPTY else state).address
            if not run.scored:
                addresses[name.replace("past", "present", 1)] = state.address
        if run.scored:
            addresses[RESULT] = self._moved[RESULT].address
        return RunLayout(name_axes(run), addresses)


def name_axes(run: BatchShape) -> dict[str, int]:
    """The sizes of the graph's axes: one scored position is the least a graph takes."""
    return {
        "sources": run.rows, "batch": run.rows, "texts": run.texts, "width": run.tokens, "past": run.past,
        "present": run.texts * run.tokens, "scored": max(1, run.scored),
    }  # fmt: skip


class ScoringBatch:
    """Calls on their way through the graph."""

    def __init__(self, scorer: CapturedScorer, inputs: Mapping[int, ScoringInput]) -> None:
        self._scorer = scorer
        self._inputs = inputs
        self._values = {index: np.zeros(len(scored.targets), np.float32) for index, scored in inputs.items()}
        self._queued: list[tuple[Sequence[TargetRange], Array]] = []
        """The targets of each row, and the log-probabilities [rows, scored positions of a row]."""

    def run(self) -> dict[int, NDArray[np.float32]]:
        """The log-probabilities of each call's targets."""
        shapes, rest = self._scorer.shapes, dict(self._inputs)
        for prefix in shapes.share_prefixes(self._inputs):
            self._read_prefix(prefix)
            for width, calls in prefix.texts.items():
                for count, indices in shapes.cut_texts(prefix.width, width, calls):
                    self._score_texts(BatchShape(1, width, prefix.width, count, count * width), prefix, indices)
                    for index in indices:
                        del rest[index]
        for run, rows in shapes.cut_calls(rest):
            self._score_rows(run, rows)
        self._collect()
        return self._values

    def _read_prefix(self, prefix: SharedPrefix) -> None:
        run = BatchShape(1, prefix.width, EMPTY)
        staged = self._stage(run)
        staged["tokens"][0, 0, : len(prefix.past)] = prefix.past
        self._scorer.queue(run, staged)

    def _score_texts(self, run: BatchShape, prefix: SharedPrefix, indices: Sequence[int]) -> None:
        """Texts after the prefix that was read last: each a row of the run's texts."""
        staged = self._stage(run)
        staged["past_mask"][:, : len(prefix.past)] = 1
        rows = [TargetRange(index, 0, len(self._inputs[index].targets)) for index in indices]
        for row, (call, _, _) in enumerate(rows):
            new = self._inputs[call].new
            staged["tokens"][0, row, : len(new)] = new
        self._queue(run, staged, rows, [0] * len(rows))

    def _score_rows(self, run: BatchShape, rows: Sequence[TargetRange]) -> None:
        """Texts with their prefixes, one a row."""
        staged = self._stage(run)
        ids = staged.get("tokens", staged.get("input_ids"))
        assert ids is not None
        ids = ids.reshape(run.rows, run.tokens)
        for row, (call, _, _) in enumerate(rows):
            read = [*self._inputs[call].past, *self._inputs[call].new]
            ids[row, : len(read)] = read
            if "attention_mask" in staged:
                staged["attention_mask"][row, : len(read)] = 1
        self._queue(run, staged, rows, [len(self._inputs[call].past) for call, _, _ in rows])

    def _stage(self, run: BatchShape) -> dict[str, Array]:
        staged = self._scorer.stage(run)
        if staged is None:
            self._collect()
            staged = self._scorer.stage(run)
        assert staged is not None
        staged["tokens" if "tokens" in staged else "input_ids"][:] = self._scorer.pad_id
        return staged

    def _queue(
        self, run: BatchShape, staged: dict[str, Array], rows: Sequence[TargetRange], before: Sequence[int]
    ) -> None:
        """Queue a run whose rows have so many tokens before the first that is scored."""
        positions, targets = (staged[name].reshape(run.rows * run.texts, -1) for name in ("rows", "targets"))
        for row, (call, first, size) in enumerate(rows):
            positions[row, :size] = row * run.tokens + before[row] + first + np.arange(size)
            targets[row, :size] = self._inputs[call].targets[first : first + size]
        self._scorer.queue(run, staged)
        self._queued.append((rows, staged[RESULT].reshape(run.rows * run.texts, -1)))

    def _collect(self) -> None:
        """Wait for what was queued, and keep its results."""
        self._scorer.wait()
        for rows, values in self._queued:
            for row, (call, first, size) in zip(values, rows, strict=False):
                self._values[call][first : first + size] = row[:size]
        self._queued.clear()
