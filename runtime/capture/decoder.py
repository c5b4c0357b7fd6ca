"""Decoder steps on a GPU that are captured: a step is one replay, one copy up, one down and one wait.

States are at fixed addresses. A step reads past keys and values from one buffer and writes them, longer by a token, to
the other; the next step goes the other way. So every number of past tokens is a shape of its own, which is captured
once for each number of sources and beams and each width of the source. A fused step extends one buffer in place, and
reads each beam's past from where a table of the host says (``BeamCache``).

Rows are all sources in their first context, then all in their second. Sources that end stay as rows that are not read,
until the others fit a capture size of half the rows; then these move up, inside the device. Decoding beyond
``PAST_TOKENS``, and with more candidates or banned tokens than are captured, goes on kernel by kernel from copies of
the states (``StepGraph``).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import QuestionGeneratorRole, ResponseGeneratorRole
from ..decoding.beam_cache import BeamCache, StepRecord, pad_beams
from ..decoding.fused_step import FusedStepGraph, is_fused
from ..decoding.step_graph import TABLES, StepGraph, prepare_to_keep
from ..ort.session import Array, DeviceProfile
from .encoder import CapturedEncoder
from .graph import Address, CapturedGraph, RunLayout, Runnable
from .memory import TYPES, Buffer, Sizes, Transfer, allocate, count_bytes, find_shape
from .shapes import BEAM_ROWS, BatchShape, list_sizes, plan_sources

MAX_BEAMS = 64
"""Beams of a call, at most (``check_decoding``)."""
PAST_TOKENS = 32
"""Steps of a sequence that are captured; questions are shorter."""
CANDIDATES, MAX_CANDIDATES = 32, 512
"""Candidates of each beam that a step gives, at least and at most."""
BANNED = 8
"""Tokens that may not follow a beam in a captured step, at most."""
_NO_INPUTS: Mapping[str, Array] = MappingProxyType({})
GeneratorRole: TypeAlias = QuestionGeneratorRole | ResponseGeneratorRole


class CapturedDecoder:
    """An encoder and a decoder step on one stream, at the shapes that ``list_sizes`` says."""

    urgent = False
    """Whether its kernels go before the kernels of other graphs."""

    def __init__(self, encoder: CapturedEncoder, runnable: Runnable, role: GeneratorRole) -> None:
        """KeyError for a graph whose axes or inputs ``export/roles/generation`` does not write."""
        self.encoder = encoder
        self.runnable = runnable
        self.graph = CapturedGraph(runnable, self._layout)
        self.role = role
        self.lock = threading.Lock()
        """Held while a batch decodes: the states have one place."""
        self.fused = is_fused(list(runnable.inputs))
        self.most = min(MAX_CANDIDATES, role.vocabulary)
        inputs, device = runnable.inputs, runnable.profile.device
        rows = max(count_sources(beams) * self.pad(beams) for beams in range(1, MAX_BEAMS + 1))
        largest = self.name_axes(BatchShape(rows, 0, PAST_TOKENS, candidates=self.most))
        del largest["width"]  # nothing but what the encoder leaves has it
        past = [name for name in inputs if name.startswith("past.")]
        cross = [name for name in inputs if name == "cross_mask" or name.startswith(("cross.", "copied."))]
        up = [node for name, node in inputs.items() if not name.startswith(("past", "cross", "copied", "count"))]
        names = [name for name in TABLES if name in runnable.outputs]
        down = [node for name, node in runnable.outputs.items() if not name.startswith(("present.", *TABLES))]
        self.up, self.down = Transfer(up, largest, device), Transfer(down, largest, device)
        self.tables = {name: Buffer(runnable.outputs[name], device, [largest]) for name in names}
        # Read from the first by steps with an even number of past tokens, from the second by the others.
        self._past = {name: [Buffer(inputs[name], device, [largest]) for _ in range(2 - self.fused)] for name in past}
        self._counts = {count: _on_host(count, np.int64) for count in list_counts(self.most)}
        self._lengths = [_on_host(length, np.int32) for length in range(PAST_TOKENS)]
        self.states = [*past, *cross]
        """Inputs that have a row for each source and context."""
        self._fixed = {name: self.find_address(name, 0) for name in cross}
        self._fixed |= {name: table.address for name, table in self.tables.items()}
        prepare_to_keep(runnable.any_shape)

    @classmethod
    def load(cls, bundle: Bundle, role: GeneratorRole, profile: DeviceProfile) -> Self | None:
        """Open both graphs; None when ONNX Runtime does not capture the step, or its axes are others than this module
        knows. Raises as ``Session.load`` does."""
        step = Runnable.load(bundle.file(role.decoder), profile, urgent=cls.urgent)
        if not step.captures:
            return None
        encoder = Runnable.load(bundle.file(role.encoder), replace(profile, strict=False), step.stream)
        try:
            return cls(CapturedEncoder(encoder, plan_sources(role.max_tokens)), step, role)
        except KeyError:
            return None

    def list_sizes(self, beams: int, contexts: int, width: int) -> tuple[int, ...]:
        """The capture sizes of sources of a width that decode together; empty if not even one does."""
        raise NotImplementedError

    def start(self, feeds: Mapping[str, Array], beams: int, contexts: int = 1) -> CapturedSteps:
        """Encode prompts [C · A, T] of a width of the encoder's plan: the steps over them. ``lock`` is held."""
        mask = feeds["attention_mask"]
        count, width = len(mask) // contexts, mask.shape[1]
        sizes = self.list_sizes(beams, contexts, width)
        rows = next(rows for rows in sizes if rows >= count)
        if contexts > 1:
            feeds = {name: _pad_contexts(values, contexts, rows) for name, values in feeds.items()}
        with self.runnable.translating():
            self.encoder.run_on_device(feeds, contexts * rows)
        return CapturedSteps(self, sizes[: sizes.index(rows) + 1], mask, beams, contexts)

    def prepare(self, beams: int, contexts: int = 1) -> None:
        """Capture the encoder, and all steps of a search with so many beams and few candidates."""
        with self.lock, self.runnable.translating():
            for width in self.encoder.plan.widths:
                for rows in self.list_sizes(beams, contexts, width):
                    self.encoder.graph.run(BatchShape(contexts * rows, width))
                    step = BatchShape(rows, width, contexts=contexts, candidates=self.count(1))
                    for past in range(PAST_TOKENS - 1):
                        before, now = (self.count_beams(beams, position) for position in (max(0, past - 1), past))
                        self.graph.run(step._replace(past=past, beams=now, before=before))
                    self.runnable.stream.synchronize()

    def pad(self, beams: int) -> int:
        """The rows of a source that decodes with so many beams."""
        return pad_beams(beams) if self.fused else beams

    def count_beams(self, beams: int, past: int) -> int:
        """The beams of a step after so many past tokens: the first of a fused one has as many as the others."""
        return self.pad(beams) if self.fused or past else 1

    def count(self, wanted: int) -> int:
        """The least number of candidates of a captured step that has as many as are wanted."""
        return next(count for count in self._counts if count >= wanted)

    def find_address(self, name: str, past: int) -> int:
        """Where a state of a step after so many tokens is."""
        part, _, state = name.partition(".")
        if part in ("past", "present"):
            buffers = self._past[f"past.{state}"]
            return buffers[(past + (part == "present")) % len(buffers)].address
        return self.encoder.addresses["attention_mask" if name == "cross_mask" else name]

    def copy_state(self, name: str, shape: BatchShape) -> ort.OrtValue:
        """A value of its own with what a state of a step has."""
        node, axes = self.runnable.inputs[name], self.name_axes(shape)
        value = allocate(find_shape(node, axes), TYPES[node.type], self.runnable.profile.device)
        self.runnable.stream.move(value.data_ptr(), self.find_address(name, shape.past), count_bytes(node, axes))
        return value

    def name_axes(self, shape: BatchShape) -> dict[str, int]:
        """The sizes of a step by the graphs' names of its axes: ``contrasted`` are sources, ``sources`` rows of all
        contexts, and ``rows`` beams of all sources."""
        rows = shape.contexts * shape.rows
        return {
            "sources": rows, "contrasted": shape.rows, "beams": shape.beams, "rows": rows * shape.beams,
            "before": shape.before, "past": shape.past, "present": shape.past + 1, "positions": PAST_TOKENS,
            "width": shape.tokens, "candidates": shape.candidates, "chosen": shape.candidates, "banned": BANNED,
            "vocabulary": self.role.vocabulary,
        }  # fmt: skip

    def _layout(self, shape: BatchShape) -> RunLayout:
        axes = self.name_axes(shape)
        addresses: dict[str, Address] = {**self._fixed, **self.up.addresses(axes), **self.down.addresses(axes)}
        for name in self._past:
            present = name.replace("past", "present", 1)
            addresses |= {state: self.find_address(state, shape.past) for state in (name, present)}
        addresses |= {"count": self._counts[shape.candidates], "past_sequence_length": self._lengths[shape.past]}
        return RunLayout(axes, addresses)


class CapturedSteps:
    """The steps over one batch of sources, as ``StepGraph`` runs them. They rule nothing out; the search does."""

    def __init__(self, decoder: CapturedDecoder, sizes: Sequence[int], mask: Array, beams: int, contexts: int) -> None:
        """``mask`` [C · A, T] of the prompts, A at most the last of the capture sizes ``sizes``."""
        self._decoder = decoder
        self._sizes = sizes
        self._contexts = contexts
        self._rows, self._width = sizes[-1], mask.shape[1]
        self._mask = mask.reshape(contexts, -1, self._width)
        self._open = np.arange(self._mask.shape[1])
        self._past, self._beams, self._searched = 0, decoder.count_beams(beams, 0), beams
        self._cache = BeamCache(self._rows, self._beams, PAST_TOKENS) if decoder.fused else None
        self._record = StepRecord(len(self._open))
        self._rest: StepGraph | FusedStepGraph | None = None
        self._last: Sizes = {}

    @property
    def outputs(self) -> tuple[str, ...]:
        """As ``StepGraph.outputs``."""
        return self._decoder.runnable.any_shape.outputs

    def step(
        self,
        tokens: Array,
        parents: Array,
        count: int,
        outputs: tuple[str, ...],
        extra: Mapping[str, Array] = _NO_INPUTS,
    ) -> list[Array]:
        """As ``StepGraph.step``; ModelError or DeviceError when the run fails."""
        decoder, banned = self._decoder, extra.get("banned")
        too_much = count > decoder.most or (banned is not None and banned.shape[-1] > BANNED)
        if self._rest is None and (self._past + 1 >= PAST_TOKENS or too_much):
            self._rest = self._go_on()
        if self._rest is not None:
            decoder.graph.uncaptured += 1
            if isinstance(self._rest, FusedStepGraph):
                return self._rest.step(tokens, parents, count, outputs)
            values = {name: self._rest.host_value(array) for name, array in extra.items()}
            return self._rest.step(tokens, parents, count, outputs, values)
        beams = self._beams if decoder.fused else tokens.shape[1]
        feeds = {**extra, "tokens": tokens, **self._steer(parents)}
        if banned is not None:
            feeds["banned"] = np.full((*banned.shape[:2], BANNED), -1)
            feeds["banned"][..., : banned.shape[2]] = banned
        shape = self._shape(self._rows, beams, decoder.count(count))
        axes, stream = decoder.name_axes(shape), decoder.runnable.stream
        with decoder.runnable.translating():
            for name, array in decoder.up.arrays(axes).items():
                self._fill(array, feeds[name])
            decoder.up.upload(stream, axes)
            decoder.graph.run(shape)
            decoder.down.download(stream, axes)
            stream.synchronize()
        self._past, self._beams, self._last = self._past + 1, beams, axes
        if self._cache is not None:
            self._cache.end_step()
            self._record.add(tokens, parents)
        # The graph has candidates that were not wanted; sampling would draw among them too.
        down = decoder.down.arrays(axes)
        return [np.ascontiguousarray(down[name][self._open, : tokens.shape[1], :count]) for name in outputs]

    def value(self, array: Array) -> Array:
        """As ``StepGraph.value`` and ``host_value``; here arrays go up with every step."""
        return array

    host_value = value

    def read_row(self, name: str, source: int) -> Array:
        """An output [K, V] of the last step for one source, in host memory."""
        if isinstance(self._rest, StepGraph):
            return self._rest.read_row(name, source)
        row_axes, stream = {**self._last, "contrasted": 1}, self._decoder.runnable.stream
        return self._decoder.tables[name].read_row(stream, row_axes, int(self._open[source]))

    def repeat_for_contexts(self, rows: Array) -> Array:
        """As ``StepGraph.repeat_for_contexts``."""
        return np.concatenate([rows] * self._contexts) if self._contexts > 1 else rows

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        if self._rest is not None:
            self._rest.keep_sources(rows)
            return
        self._open = self._open[rows]
        self._record.keep(rows)
        smaller = [rows for rows in self._sizes if len(self._open) <= rows <= self._rows // 2]
        if smaller:
            self._move_up(smaller[0])

    def _steer(self, parents: Array) -> dict[str, Array]:
        """What the graph reads to let each open source's beams continue ``parents``."""
        if self._cache is None:
            return {"parents": self.repeat_for_contexts(parents)}
        every = np.zeros((self._rows, parents.shape[1]), np.int64)
        every[self._open] = parents
        self._cache.start_step(every)
        return {"cache_indirection": self._cache.table[self._open]}

    def _fill(self, array: Array, values: Array) -> None:
        """Write what the open sources have into an input of the step."""
        array[:] = 0  # a token, a beam and a rule that exist, in rows that are not read
        used: Any = (slice(None), self._open, *(slice(0, size) for size in values.shape[1:]))
        padded = array.reshape(-1, self._rows, *array.shape[1:])
        padded[used] = values.reshape(-1, len(self._open), *values.shape[1:])

    def _move_up(self, rows: int) -> None:
        """Move the open sources to the first rows of all states, so that ``rows`` are left in every context."""
        decoder = self._decoder
        row_axes = decoder.name_axes(self._shape(1, self._beams, 0)._replace(contexts=1))
        for name in decoder.states:
            address = decoder.find_address(name, self._past)
            size = count_bytes(decoder.runnable.inputs[name], row_axes)
            for context in range(self._contexts):
                for to, row in enumerate(self._open.tolist()):
                    target, source = context * rows + to, context * self._rows + row
                    if target != source:
                        decoder.runnable.stream.move(address + target * size, address + source * size, size)
        self._mask = self._mask[:, self._open]
        if self._cache is not None:
            self._cache.keep(self._open, rows)
        self._rows, self._open = rows, np.arange(len(self._open))

    def _go_on(self) -> StepGraph | FusedStepGraph:
        """A step for any shapes that has the same states."""
        decoder, role = self._decoder, self._decoder.role
        self._move_up(len(self._open))
        shape = self._shape(self._rows, self._beams, 0)
        values = {name: decoder.copy_state(name, shape) for name in decoder.states}
        decoder.runnable.stream.synchronize()
        values.pop("cross_mask")
        past = {name.removeprefix("past."): values.pop(name) for name in list(values) if name.startswith("past.")}
        mask = self._mask.reshape(-1, self._width)
        if isinstance(role, QuestionGeneratorRole) and self._cache is not None:
            return FusedStepGraph(decoder.runnable.any_shape, values, mask, role, self._searched, self._record)
        sizes: dict[str, int] = {"layers": role.layers, "heads": role.heads, "head_dim": role.head_dim}
        return StepGraph(decoder.runnable.any_shape, values, mask, **sizes, contexts=self._contexts, past=past)

    def _shape(self, rows: int, beams: int, candidates: int) -> BatchShape:
        return BatchShape(
            rows, self._width, self._past,
            contexts=self._contexts, beams=beams, before=self._beams, candidates=candidates,
        )  # fmt: skip


def count_sources(beams: int) -> int:
    """The most sources that decode together with so many beams: a power of two."""
    return 1 << (BEAM_ROWS // beams).bit_length() - 1


def list_counts(most: int) -> Sequence[int]:
    """The numbers of candidates of captured steps, ascending: ``CANDIDATES``, doubled up to ``most``."""
    return [count for count in list_sizes(most) if count >= CANDIDATES] or [most]


def _pad_contexts(values: Array, contexts: int, rows: int) -> Array:
    """[C · A, T] with zeros up to ``rows`` rows in each context."""
    padded = np.zeros((contexts, rows, values.shape[1]), np.int64)
    padded[:, : len(values) // contexts] = values.reshape(contexts, -1, values.shape[1])
    return padded.reshape(contexts * rows, -1)


def _on_host(number: int, dtype: Any) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(np.array([number], dtype), "cpu")
