"""Steps of response generation on a GPU that are captured, with the interface of ``StepGraph``.

As in ``captured_step.py`` a step reads past keys and values at one address and writes them, longer by a token, to
another. Rows are all sources in their first context, then all in their second; sources that ended stay as rows that are
not read, until the others fit half the rows. Beyond ``PAST_TOKENS``, and with more candidates or banned tokens than are
captured, decoding goes on kernel by kernel from copies of the states.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundle import Bundle
from ..manifest import ResponseGeneratorRole
from ..ort.buffers import TYPES, Buffer, Sizes, count_bytes, find_shape
from ..ort.captured import CapturedGraph
from ..ort.cuda import PinnedMemory, Stream
from ..ort.ladder import list_rows
from ..ort.rungs import Rungs
from ..ort.session import Array, DeviceProfile, Session, translate
from .captured_step import BEAM_ROWS, list_counts, make_plan
from .step_graph import StepGraph, prepare_to_keep

PAST_TOKENS = 32
"""Steps of a response that are captured."""
MAX_CANDIDATES = 512
"""Candidates of each beam that a captured step gives, at most."""
BANNED = 8
"""Tokens that may not follow a beam in a captured step, at most."""


class CapturedContrast:
    """An encoder and a decoder step with two contexts on one stream, at fixed shapes."""

    def __init__(
        self, encoder: Rungs, graph: CapturedGraph, role: ResponseGeneratorRole, profile: DeviceProfile
    ) -> None:
        """KeyError for a graph with other axes or inputs than those of ``export/roles/generation``."""
        self.encoder = encoder
        self.graph = graph
        self.role = role
        self.lock = threading.Lock()
        """Held while a batch decodes: the states have one place."""
        self.most = min(MAX_CANDIDATES, role.vocabulary)
        self._device = profile.device
        nodes = [*graph.session.get_inputs(), *graph.session.get_outputs()]
        self.nodes: dict[str, Any] = {node.name: node for node in nodes}
        largest = [self.make_sizes(BEAM_ROWS, BEAM_ROWS, 1, 1, PAST_TOKENS, 1, self.most)]
        self.states = [name.removeprefix("past.") for name in self.nodes if name.startswith("past.")]
        self.cross = [name for name in self.nodes if name == "cross_mask" or name.startswith(("cross.", "copied."))]
        past = {name: self.nodes[f"past.{name}"] for name in self.states}
        self._past = {name: [Buffer(node, profile.device, largest) for _ in range(2)] for name, node in past.items()}
        moved = [
            name
            for name in self.nodes
            if name not in self.cross and not name.startswith(("past.", "present.", "count"))
        ]
        self.buffers = {name: Buffer(self.nodes[name], profile.device, largest) for name in moved}
        self.counts = {
            count: ort.OrtValue.ortvalue_from_numpy(np.array([count], np.int64), "cpu")
            for count in list_counts(self.most)
        }
        self.find_address("cross_mask", 0)
        self.rest = Session(graph.session, graph.name, profile, graph.waited)
        """The same step for any shapes."""
        prepare_to_keep(self.rest)

    @classmethod
    def load(cls, bundle: Bundle, role: ResponseGeneratorRole, profile: DeviceProfile) -> CapturedContrast | None:
        """Open both graphs; None when ONNX Runtime does not capture the step, or its axes are others than this module
        knows. Raises as ``Session.load`` does."""
        stream = Stream(profile.device.index)
        graph = CapturedGraph.load(bundle.file(role.decoder), profile, stream)
        if not graph.captures:
            return None
        try:
            encoder = CapturedGraph.load(bundle.file(role.encoder), profile, stream)
            return cls(Rungs(encoder, make_plan(role.max_tokens), replace(profile, strict=False)), graph, role, profile)
        except KeyError:
            return None

    def count_sources(self, beams: int, contexts: int, width: int) -> int:
        """The most sources of a width that decode together; 0 if not even one does."""
        rows = next(profile.max_rows for profile in self.encoder.plan.profiles if profile.width == width)
        return min(BEAM_ROWS // beams, rows) // contexts

    def find_width(self, tokens: int) -> int:
        """The padded width of sources with at most so many tokens."""
        return next(width for width in self.encoder.plan.widths if width >= tokens)

    def start(self, ids: Array, mask: Array, contexts: int, beams: int) -> CapturedContrastSteps:
        """Encode prompts [C · A, T], of a width that ``find_width`` gave: the steps over them. ``lock`` is held."""
        sources, width = len(ids) // contexts, ids.shape[1]
        ladder = list_rows(self.count_sources(beams, contexts, width))
        rows = next(rows for rows in ladder if rows >= sources)
        feeds = {}
        for name, values in (("input_ids", ids), ("attention_mask", mask), ("token_type_ids", np.zeros_like(ids))):
            if name in self.encoder.inputs:
                padded = np.zeros((contexts, rows, width), np.int64)
                padded[:, :sources] = values.reshape(contexts, sources, width)
                feeds[name] = padded.reshape(contexts * rows, width)
        try:
            self.encoder.run_on_device(feeds, contexts * rows)
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self.translate(error) from error
        return CapturedContrastSteps(self, ladder[: ladder.index(rows) + 1], mask, contexts)

    def launch(self, sizes: Sizes) -> None:
        """Queue a step of these sizes."""
        past = sizes["past"]

        def bind(binding: ort.IOBinding) -> None:
            for name, node in self.nodes.items():
                if name == "count":
                    binding.bind_ortvalue_input(name, self.counts[sizes["chosen"]])
                    continue
                memory = self._device.memory, self._device.index
                arguments = name, *memory, TYPES[node.type], find_shape(node, sizes), self.find_address(name, past)
                (binding.bind_output if name in outputs else binding.bind_input)(*arguments)

        outputs = {node.name for node in self.graph.session.get_outputs()}
        self.graph.launch(tuple(sizes.items()), bind)

    def find_address(self, name: str, past: int) -> int:
        """Where an input or output of a step after so many tokens is."""
        part, _, state = name.partition(".")
        if part in ("past", "present"):
            return self._past[state][(past + (part == "present")) % 2].address
        if name in self.cross:
            return self.encoder.addresses["attention_mask" if name == "cross_mask" else name]
        return self.buffers[name].address

    def copy_value(self, name: str, sizes: Sizes, past: int) -> ort.OrtValue:
        """A value of its own with what an input of a step after so many tokens has."""
        node = self.nodes[name]
        shape = find_shape(node, sizes)
        value = ort.OrtValue.ortvalue_from_shape_and_type(
            shape, TYPES[node.type], self._device.memory, self._device.index
        )
        self.graph.stream.move(value.data_ptr(), self.find_address(name, past), count_bytes(node, sizes))
        return value

    def translate(self, error: Exception) -> Exception:
        """The error of a run as one of this package."""
        return translate(error, self.graph.name, self._device)

    def prepare(self, beams: int, contexts: int) -> None:
        """Capture the encoder, and all steps of a search with so many beams and few candidates."""
        with self.lock:
            try:
                for width in self.encoder.plan.widths:
                    most = self.count_sources(beams, contexts, width)
                    for rows in list_rows(most) if most else ():
                        self.encoder.launch(contexts * rows, width)
                        for past in range(PAST_TOKENS - 1):
                            before, now = (1 if at == 0 else beams for at in (max(0, past - 1), past))
                            self.launch(self.make_sizes(contexts * rows, rows, now, before, past, width, self.count(1)))
                        self.graph.stream.synchronize()
            except Exception as error:  # ONNX Runtime's exceptions share no public base
                raise self.translate(error) from error

    def count(self, wanted: int) -> int:
        """The least number of candidates of a captured step that has as many as are wanted."""
        return next(count for count in self.counts if count >= wanted)

    def make_sizes(
        self, rows: int, sources: int, beams: int, before: int, past: int, width: int, count: int
    ) -> dict[str, int]:
        """The axes of a step over ``rows``, those of ``sources`` in every context."""
        return {
            "sources": rows, "contrasted": sources, "beams": beams, "before": before, "past": past,
            "present": past + 1, "width": width, "chosen": count, "banned": BANNED, "vocabulary": self.role.vocabulary,
        }  # fmt: skip


class CapturedContrastSteps:
    """The steps over one batch of sources, as ``StepGraph`` runs them."""

    def __init__(self, decoder: CapturedContrast, ladder: Sequence[int], mask: Array, contexts: int) -> None:
        """``mask`` [C · A, T] of the prompts, A at most the last of ``ladder``."""
        self._decoder = decoder
        self._ladder = ladder
        self._rows, self._width = ladder[-1], mask.shape[1]
        self._contexts = contexts
        self._mask = mask.reshape(contexts, -1, self._width)
        self._open = np.arange(self._mask.shape[1])
        self._past, self._beams = 0, 1
        self._rest: StepGraph | None = None
        self._last: Sizes = {}

    def step(
        self,
        tokens: Array,
        parents: Array,
        count: int,
        outputs: tuple[str, ...],
        extra: Mapping[str, Array],
    ) -> list[Array]:
        """As ``StepGraph.step``; ModelError or DeviceError when the run fails."""
        decoder = self._decoder
        too_much = count > decoder.most or extra["banned"].shape[-1] > BANNED
        if self._rest is None and (self._past + 1 >= PAST_TOKENS or too_much):
            self._rest = self._go_on()
        if self._rest is not None:
            decoder.graph.uncaptured += 1
            values = {name: self._rest.host_value(array) for name, array in extra.items()}
            return self._rest.step(tokens, parents, count, outputs, values)
        sizes = self._sizes(tokens.shape[1], decoder.count(count))
        banned = np.full((*extra["banned"].shape[:2], BANNED), -1)
        banned[..., : extra["banned"].shape[2]] = extra["banned"]
        feeds: dict[str, Array] = {**extra, "banned": banned, "tokens": tokens}
        feeds["parents"] = self.repeat_for_contexts(parents)
        try:
            for name, array in feeds.items():
                self._upload(name, array, sizes)
            decoder.launch(sizes)
            down = [decoder.buffers[name].host_array(sizes) for name in outputs]
            for name, array in zip(outputs, down, strict=True):
                decoder.graph.stream.download(array, decoder.buffers[name].address)
            decoder.graph.stream.synchronize()
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise decoder.translate(error) from error
        self._past, self._beams, self._last = self._past + 1, tokens.shape[1], sizes
        return [array[self._open] for array in down]

    @property
    def outputs(self) -> tuple[str, ...]:
        """As ``StepGraph.outputs``."""
        return self._decoder.rest.outputs

    def value(self, array: Array) -> Array:
        """As ``StepGraph.value``; here arrays go up with every step."""
        return array

    def host_value(self, array: Array) -> Array:
        """As ``StepGraph.host_value``."""
        return array

    def read_row(self, name: str, source: int) -> Array:
        """An output [K, V] of the last step for one source, in host memory."""
        if self._rest is not None:
            return self._rest.read_row(name, source)
        buffer, sizes = self._decoder.buffers[name], {**self._last, "contrasted": 1}
        size = count_bytes(buffer.node, sizes)
        memory = PinnedMemory(self._decoder.graph.device.index, size)
        array = memory.array(find_shape(buffer.node, sizes)[1:], buffer.dtype)
        self._decoder.graph.stream.download(array, buffer.address + int(self._open[source]) * size)
        self._decoder.graph.stream.synchronize()
        return array.copy()

    def repeat_for_contexts(self, rows: Array) -> Array:
        """As ``StepGraph.repeat_for_contexts``."""
        return np.concatenate([rows] * self._contexts) if self._contexts > 1 else rows

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """As ``StepGraph.keep_sources``."""
        if self._rest is not None:
            self._rest.keep_sources(rows)
            return
        self._open = self._open[rows]
        smaller = [rows for rows in self._ladder if len(self._open) <= rows <= self._rows // 2]
        if smaller:
            self._move_up(smaller[0])

    def _upload(self, name: str, values: Array, sizes: Sizes) -> None:
        buffer = self._decoder.buffers[name]
        array = buffer.host_array(sizes)
        array[:] = 0  # a token, a beam and a rule that exist, in rows that are not read
        contexts = len(array) // self._rows
        array.reshape(contexts, self._rows, *array.shape[1:])[:, self._open] = values.reshape(
            contexts, len(self._open), *values.shape[1:]
        )
        self._decoder.graph.stream.upload(buffer.address, array)

    def _move_up(self, rows: int) -> None:
        """Move the open sources to the first rows of all states, of which ``rows`` are left in every context."""
        stream, sizes = self._decoder.graph.stream, {**self._sizes(1, 0), "sources": 1, "before": self._beams}
        for name in self._list_states():
            node, address = self._decoder.nodes[name], self._decoder.find_address(name, self._past)
            size = count_bytes(node, sizes)
            for context in range(self._contexts):
                for to, row in enumerate(self._open.tolist()):
                    target, source = context * rows + to, context * self._rows + row
                    if target != source:
                        stream.move(address + target * size, address + source * size, size)
        self._mask = self._mask[:, self._open]
        self._rows, self._open = rows, np.arange(len(self._open))

    def _go_on(self) -> StepGraph:
        """A step for any shapes that has the same states."""
        decoder, role = self._decoder, self._decoder.role
        self._move_up(len(self._open))
        sizes = self._sizes(1, 0)
        values = {name: decoder.copy_value(name, sizes, self._past) for name in self._list_states()}
        decoder.graph.stream.synchronize()
        values.pop("cross_mask")
        past = {name.removeprefix("past."): value for name, value in values.items() if name.startswith("past.")}
        cross = {name: value for name, value in values.items() if not name.startswith("past.")}
        mask = self._mask.reshape(-1, self._width)
        return StepGraph(
            decoder.rest,
            cross,
            mask,
            layers=role.layers,
            heads=role.heads,
            head_dim=role.head_dim,
            contexts=self._contexts,
            past=past,
        )

    def _list_states(self) -> list[str]:
        """All inputs that have a row for each source and context."""
        return [*(f"past.{name}" for name in self._decoder.states), *self._decoder.cross]

    def _sizes(self, beams: int, count: int) -> dict[str, int]:
        rows = self._contexts * self._rows
        return self._decoder.make_sizes(rows, self._rows, beams, self._beams, self._past, self._width, count)
