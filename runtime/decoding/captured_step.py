"""Decoder steps on a GPU that are captured: a step is one replay, one copy up, one down and one wait.

States are at fixed addresses. A step reads past keys and values from one buffer and writes them, longer by a token, to
the other; the next step goes the other way. So every number of past tokens is a run of its own, which is captured once
for each number of sources and beams and each width of the source.

A fused step extends one buffer in place, and reads each beam's past from where a table of the host says
(``BeamCache``).

Sources that end stay as rows that are not read, until the others fit half the rows; then these move up, inside the
device. Decoding beyond ``PAST_TOKENS``, and with more candidates than ``MAX_CANDIDATES``, goes on kernel by kernel from
the same states (``StepGraph``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundle import Bundle
from ..manifest import Plan, QuestionGeneratorRole
from ..ort.buffers import TYPES, Sizes, count_bytes, find_shape
from ..ort.captured import CapturedGraph
from ..ort.cuda import PinnedMemory, Stream
from ..ort.device import Device
from ..ort.forward import pack
from ..ort.ladder import list_rows
from ..ort.rungs import Rungs
from ..ort.session import Array, DeviceProfile, Session, translate
from ..tokenization import Window
from .beam_cache import BeamCache, StepRecord, pad_beams
from .fused_step import FusedStepGraph, is_fused
from .search import DecoderStep, StepHistory, TokenCandidates
from .step_graph import StepGraph, prepare_to_keep

BEAM_ROWS = 160
"""Sources times beams that decode together."""
MAX_BEAMS = 64
"""Of a call (``check_decoding``)."""
SOURCE_TOKENS = 4096
"""Padded tokens of the sources that decode together."""
PAST_TOKENS = 32
"""Steps of a sequence that are captured; questions are shorter."""
CANDIDATES, MAX_CANDIDATES = 32, 512
"""Candidates of each beam that a step gives, at least and at most."""
ALIGNMENT = 256
"""Bytes that the place of a value is a multiple of, as of memory that CUDA allocates."""
FEWEST_WIDTHS = 32
"""The least padded width of sources, in tokens; the others double it."""


class Transfer:
    """Values that one copy brings up or down: side by side in page-locked memory and on the device."""

    def __init__(self, nodes: Sequence[Any], largest: Sizes, device: Device) -> None:
        self._nodes = nodes
        size = self._find_offsets(largest)[-1]
        self._value = ort.OrtValue.ortvalue_from_shape_and_type([size], np.uint8, device.memory, device.index)
        self._host = PinnedMemory(device.index, size)

    def addresses(self, sizes: Sizes) -> dict[str, int]:
        """Where the values are on the device, by name."""
        first = int(self._value.data_ptr())
        pairs = zip(self._nodes, self._find_offsets(sizes), strict=False)
        return {node.name: first + offset for node, offset in pairs}

    def arrays(self, sizes: Sizes) -> list[Array]:
        """The values in page-locked memory."""
        pairs = zip(self._nodes, self._find_offsets(sizes), strict=False)
        return [self._host.array(find_shape(node, sizes), TYPES[node.type], offset) for node, offset in pairs]

    def upload(self, stream: Stream, sizes: Sizes) -> None:
        """Queue the copy to the device."""
        stream.upload(int(self._value.data_ptr()), self._host.array(self._find_offsets(sizes)[-1:], np.uint8))

    def download(self, stream: Stream, sizes: Sizes) -> None:
        """Queue the copy from the device."""
        stream.download(self._host.array(self._find_offsets(sizes)[-1:], np.uint8), int(self._value.data_ptr()))

    def _find_offsets(self, sizes: Sizes) -> tuple[int, ...]:
        """Where each value begins, and where the last ends."""
        ends = accumulate((-(-count_bytes(node, sizes) // ALIGNMENT) * ALIGNMENT for node in self._nodes), initial=0)
        return tuple(ends)


class DecoderBuffers:
    """The memory of a step's tokens, states and candidates, for the largest shapes."""

    def __init__(self, session: ort.InferenceSession, device: Device, vocabulary: int) -> None:
        self.most = min(MAX_CANDIDATES, vocabulary)
        nodes = [*session.get_inputs(), *session.get_outputs()]
        self.nodes = {node.name: node for node in nodes}
        self.fused = is_fused(list(self.nodes))
        rows = max(map(self.count_rows, range(1, MAX_BEAMS + 1)))
        largest = {
            "sources": rows, "beams": 1, "rows": rows, "before": 1, "past": PAST_TOKENS, "present": PAST_TOKENS,
            "positions": PAST_TOKENS, "candidates": self.most,
        }  # fmt: skip
        self._values: list[ort.OrtValue] = []

        def allocate(node: Any) -> int:
            size = count_bytes(node, largest)
            self._values.append(
                ort.OrtValue.ortvalue_from_shape_and_type([size], np.uint8, device.memory, device.index)
            )
            return int(self._values[-1].data_ptr())

        self.states = [name.removeprefix("past.") for name in self.nodes if name.startswith("past.")]
        # Read from the first by steps with an even number of past tokens, from the second by the others.
        self.past = {
            name: [allocate(self.nodes[f"past.{name}"])] * 2
            if self.fused
            else [allocate(self.nodes[f"past.{name}"]) for _ in range(2)]
            for name in self.states
        }
        # What says which past each beam continues.
        steering = "cache_indirection" if self.fused else "parents"
        self.up, self.down = (
            Transfer([self.nodes[name] for name in names], largest, device)
            for names in (("tokens", steering), ("scores", "candidates"))
        )
        self.counts = {
            count: ort.OrtValue.ortvalue_from_numpy(np.array([count], np.int64), "cpu")
            for count in list_counts(self.most)
        }
        self.lengths = [
            ort.OrtValue.ortvalue_from_numpy(np.array([past], np.int32), "cpu") for past in range(PAST_TOKENS)
        ]

    def count_rows(self, beams: int) -> int:
        """The rows of the most sources that decode with so many beams."""
        return count_sources(beams) * self.pad(beams)

    def pad(self, beams: int) -> int:
        """The rows of a source that decodes with so many beams."""
        return pad_beams(beams) if self.fused else beams


class CapturedDecoder:
    """An encoder and a decoder step on one stream, at fixed shapes."""

    def __init__(
        self, encoder: Rungs, graph: CapturedGraph, role: QuestionGeneratorRole, profile: DeviceProfile
    ) -> None:
        self.encoder = encoder
        self.role = role
        self.graph = graph
        self.buffers = DecoderBuffers(graph.session, profile.device, role.vocabulary)
        self._profile = profile
        self._device = profile.device
        self._lock = threading.Lock()
        self.rest = Session(graph.session, graph.name, profile, graph.eager)
        """The same step for any shapes."""
        prepare_to_keep(self.rest)

    @classmethod
    def load(cls, bundle: Bundle, role: QuestionGeneratorRole, profile: DeviceProfile) -> CapturedDecoder | None:
        """Open both graphs; None when ONNX Runtime does not capture the step, or its axes are others than this module
        knows. Raises as ``Session.load`` does."""
        stream = Stream(profile.device.index, urgent=True)
        graph = CapturedGraph.load(bundle.file(role.decoder), profile, stream)
        if not graph.captures:
            return None
        try:
            rungs = Rungs(
                CapturedGraph.load(bundle.file(role.encoder), profile, stream),
                make_plan(role.max_tokens),
                replace(profile, strict=False),
            )
            return cls(rungs, graph, role, profile)
        except KeyError:
            return None

    def start_batches(self, windows: Sequence[Window], beams: int) -> Iterator[tuple[NDArray[np.int64], DecoderStep]]:
        """Encode sources that will decode with so many beams, batch by batch: their indices, and the step over them."""
        plan = self._plan(beams)
        for indices, _, feeds in pack(self.encoder, windows, self.role.pad_id, self._profile, plan):
            count, width = feeds["input_ids"].shape
            ladder = self._list_rows(plan, width)
            rows = next(rows for rows in ladder if rows >= count)
            with self._lock:
                try:
                    self.encoder.run_on_device(feeds, rows)
                except Exception as error:  # ONNX Runtime's exceptions share no public base
                    raise self.translate(error) from error
                mask = feeds["attention_mask"]
                yield indices, CapturedStep(self, ladder[: ladder.index(rows) + 1], mask, beams)

    def _plan(self, beams: int) -> Plan:
        """The batches of sources that decode with so many beams: at most a power of two, as all shapes but the last."""
        most = count_sources(beams)
        plan = self.encoder.plan
        if self._profile.strict:
            rows = min(most, max(1, SOURCE_TOKENS // plan.widths[-1]))
            return Plan(plan.widths[-1:], rows * plan.widths[-1], rows, rows)
        return msgspec.structs.replace(plan, max_rows=most, usual_rows=most)

    def _list_rows(self, plan: Plan, width: int) -> tuple[int, ...]:
        most = next(profile.max_rows for profile in plan.profiles if profile.width == width)
        return list_rows(most, strict=self._profile.strict)

    def launch(self, sizes: Sizes) -> None:
        """Queue a step of these sizes."""
        past = sizes["past"]

        def bind(binding: ort.IOBinding) -> None:
            moved = self.buffers.up.addresses(sizes) | self.buffers.down.addresses(sizes)
            for name, node in self.buffers.nodes.items():
                if name == "count":
                    binding.bind_ortvalue_input(name, self.buffers.counts[sizes["candidates"]])
                    continue
                if name == "past_sequence_length":
                    binding.bind_ortvalue_input(name, self.buffers.lengths[past])
                    continue
                part, _, state = name.partition(".")
                if part in ("past", "present"):
                    address = self.buffers.past[state][(past + (part == "present")) % 2]
                else:
                    address = moved.get(name) or self.source_address(name)
                memory = self._device.memory, self._device.index
                arguments = name, *memory, TYPES[node.type], find_shape(node, sizes), address
                (binding.bind_output if name in outputs else binding.bind_input)(*arguments)

        outputs = {node.name for node in self.graph.session.get_outputs()}
        self.graph.launch(tuple(sorted(sizes.items())), bind)

    def source_address(self, name: str) -> int:
        """Where the encoder leaves what a step reads of its sources."""
        return self.encoder.addresses["attention_mask" if name == "cross_mask" else name]

    def source_names(self) -> list[str]:
        """The inputs of a step that the encoder gives."""
        inputs = [node.name for node in self.graph.session.get_inputs()]
        return [name for name in inputs if name == "cross_mask" or name.startswith(("cross.", "copied."))]

    def copy_value(self, name: str, sizes: Sizes, address: int) -> ort.OrtValue:
        """A value of its own with what is at an address."""
        node = self.buffers.nodes[name]
        value = ort.OrtValue.ortvalue_from_shape_and_type(
            find_shape(node, sizes), TYPES[node.type], self._device.memory, self._device.index
        )
        self.graph.stream.move(value.data_ptr(), address, count_bytes(node, sizes))
        return value

    def translate(self, error: Exception) -> Exception:
        """The error of a run as one of this package."""
        return translate(error, self.graph.name, self._device)

    def prepare(self, beams: int) -> None:
        """Capture the encoder, and all steps of a search with so many beams and few candidates."""
        with self._lock:
            try:
                plan = self._plan(beams)
                for width in plan.widths:
                    for sources in self._list_rows(plan, width):
                        self.encoder.launch(sources, width)
                        for past in range(PAST_TOKENS - 1):
                            before, now = (self.count_beams(beams, at) for at in (max(0, past - 1), past))
                            self.launch(make_sizes(sources, now, before, past, width, self.count(1)))
                        self.graph.stream.synchronize()
            except Exception as error:  # ONNX Runtime's exceptions share no public base
                raise self.translate(error) from error

    def count_beams(self, beams: int, past: int) -> int:
        """The beams of a step after so many past tokens: the first of a fused one has as many as the others."""
        return self.buffers.pad(beams) if self.buffers.fused or past else 1

    def count(self, wanted: int) -> int:
        """The least number of candidates of a captured step that has as many as are wanted; KeyError if none has."""
        for count in self.buffers.counts:
            if count >= wanted:
                return count
        raise KeyError(wanted)


class CapturedStep:
    """The steps over one batch of sources. It rules nothing out; the search does."""

    uses_history = False

    def __init__(self, decoder: CapturedDecoder, ladder: Sequence[int], mask: Array, beams: int) -> None:
        """``mask`` [A, T] of the sources, the first of as many rows as the last of ``ladder``; ``beams`` of each."""
        self._decoder = decoder
        self._ladder = ladder
        self._rows, self._width = ladder[-1], mask.shape[1]
        self._mask = mask
        self._open = np.arange(len(mask))
        self._past, self._beams = 0, decoder.count_beams(beams, 0)
        self._searched = beams
        self._cache = BeamCache(self._rows, self._beams, PAST_TOKENS) if decoder.buffers.fused else None
        self._record = StepRecord(len(mask))
        self._rest: StepGraph | FusedStepGraph | None = None

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        """As ``DecoderStep``; ModelError or DeviceError when the run fails."""
        buffers = self._decoder.buffers
        if self._rest is None and (self._past + 1 >= PAST_TOKENS or count > buffers.most):
            self._rest = self._go_on()
        if self._rest is not None:
            self._decoder.graph.uncaptured += 1
            scores, candidates = self._rest.step(tokens, parents, count, ("scores", "candidates"))
            return TokenCandidates(scores, candidates)
        beams = self._beams if buffers.fused else tokens.shape[1]
        sizes = make_sizes(self._rows, beams, self._beams, self._past, self._width, self._decoder.count(count))
        stream = self._decoder.graph.stream
        try:
            for array, values in zip(buffers.up.arrays(sizes), (tokens, self._steer(parents)), strict=True):
                array[:] = 0  # a token and a beam that exist, in rows that are not read
                array[self._open, : values.shape[1]] = values
            buffers.up.upload(stream, sizes)
            self._decoder.launch(sizes)
            buffers.down.download(stream, sizes)
            stream.synchronize()
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self._decoder.translate(error) from error
        self._past, self._beams = self._past + 1, beams
        if self._cache is not None:
            self._cache.end_step()
            self._record.add(tokens, parents)
        # The graph has candidates that were not wanted; sampling would draw among them too.
        scores, candidates = (
            np.ascontiguousarray(array[self._open, : tokens.shape[1], :count]) for array in buffers.down.arrays(sizes)
        )
        return TokenCandidates(scores, candidates)

    def _steer(self, parents: Array) -> Array:
        """What the graph reads to let each open source's beams continue ``parents``."""
        if self._cache is None:
            return parents
        every = np.zeros((self._rows, parents.shape[1]), np.int64)
        every[self._open] = parents
        self._cache.start_step(every)
        return self._cache.table[self._open]

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        if self._rest is not None:
            self._rest.keep_sources(rows)
            return
        self._open = self._open[rows]
        self._record.keep(rows)
        smaller = [rows for rows in self._ladder if len(self._open) <= rows <= self._rows // 2]
        if smaller:
            self._move_up(smaller[0])

    def _move_up(self, rows: int) -> None:
        """Move the open sources to the first rows of all states, of which ``rows`` are left."""
        stream, sizes = self._decoder.graph.stream, self._sizes(1)
        for name, address in self._states():
            size = count_bytes(self._decoder.buffers.nodes[name], sizes)
            for to, row in enumerate(self._open.tolist()):
                if to != row:
                    stream.move(address + to * size, address + row * size, size)
        self._mask = self._mask[self._open]
        if self._cache is not None:
            self._cache.keep(self._open, rows)
        self._rows, self._open = rows, np.arange(len(self._open))

    def _go_on(self) -> StepGraph | FusedStepGraph:
        """A step for any shapes that has the same states."""
        decoder = self._decoder
        self._move_up(len(self._open))
        sizes = self._sizes(len(self._open))
        values = {name: decoder.copy_value(name, sizes, address) for name, address in self._states()}
        decoder.graph.stream.synchronize()
        values.pop("cross_mask")
        past = {name.removeprefix("past."): value for name, value in values.items() if name.startswith("past.")}
        cross = {name: value for name, value in values.items() if not name.startswith("past.")}
        role = decoder.role
        if self._cache is not None:
            return FusedStepGraph(decoder.rest, cross, self._mask, role, self._searched, self._record)
        return StepGraph(
            decoder.rest, cross, self._mask, layers=role.layers, heads=role.heads, head_dim=role.head_dim, past=past
        )

    def _states(self) -> list[tuple[str, int]]:
        """All inputs that have a row for each source, with their addresses."""
        buffers = self._decoder.buffers
        past = [(f"past.{name}", buffers.past[name][self._past % 2]) for name in buffers.states]
        return [*past, *((name, self._decoder.source_address(name)) for name in self._decoder.source_names())]

    def _sizes(self, sources: int) -> Sizes:
        return make_sizes(sources, self._beams, self._beams, self._past, self._width, 0)


def make_plan(max_tokens: int) -> Plan:
    """The shapes of sources: widths that double up to the model's window."""
    widths = [FEWEST_WIDTHS]
    while widths[-1] < max_tokens:
        widths.append(2 * widths[-1])
    return Plan(tuple(widths), max(SOURCE_TOKENS, widths[-1]), BEAM_ROWS, BEAM_ROWS)


def make_sizes(sources: int, beams: int, before: int, past: int, width: int, candidates: int) -> dict[str, int]:
    """The axes of a step over ``sources`` of a ``width``, from ``before`` beams with ``past`` tokens to ``beams``."""
    return {
        "sources": sources, "beams": beams, "rows": sources * beams, "before": before, "past": past,
        "present": past + 1, "positions": PAST_TOKENS, "width": width, "candidates": candidates,
    }  # fmt: skip


def count_sources(beams: int) -> int:
    """The most sources that decode together with so many beams: a power of two."""
    return 1 << (BEAM_ROWS // beams).bit_length() - 1


def list_counts(most: int) -> Sequence[int]:
    """The numbers of candidates of captured steps, ascending: ``CANDIDATES``, doubled up to ``most``."""
    return [count for count in list_rows(most) if count >= CANDIDATES] or [most]
