"""ONNX Runtime sessions: devices, threads, rows taken where they are, and the translation of ONNX Runtime's errors.

``forward`` runs an encoder graph over many windows, in batches of one padded width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from weakref import WeakSet

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from .. import _native
from ..bundles.manifest import ShapePlan
from ..bundles.protobuf import encode_field, encode_message
from ..errors import BundleError, DeviceError, EngineClosed, ModelError, describe_shortage
from ..kserve.server import Server
from ..resources import usable_cores
from ..texts.tokenization import Window, flatten
from .dequantize import dequantize
from .device import Device, DeviceKind, find_failure, start_device
from .gate import GATE, GpuSession
from .placement import keep_on_device
from .providers import list_providers, share_arena, share_host_arena

Array: TypeAlias = NDArray[Any]

MAX_CONCURRENT_BATCHES = 4
"""Most batches that run at the same time on the CPU: each holds the GIL for about a fifth of its time."""
REMOTE_BATCHES = 8
"""Batches that a model server gets at the same time, which it may join or spread over its instances."""
SMALL_BUNDLE_BYTES = 128_000_000
"""Bytes of a bundle below which its graphs run on their pool's share of the threads."""
ROWS = "rows"
"""The input with the positions, int64 [N]; every other input is a value [B, ...] whose rows are taken."""
_ROW_TYPES = {"tensor(float)": 1, "tensor(int8)": 3, "tensor(int64)": 7, "tensor(float16)": 10}
"""ONNX's numbers of element types (onnx.proto)."""
_IR_VERSION, _OPSET = 8, 13


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """Where graphs run, and how much one batch may hold."""

    device: Device
    threads: int
    """Threads of one graph run on the CPU, at most (``share_threads``); 0 leaves ONNX Runtime's default: one per
    physical core."""
    max_tokens: int
    """Padded tokens in one batch of an encoder."""
    max_rows: int
    """Rows in one batch."""
    max_beams: int
    """Sources times beams that decode together."""
    concurrent_batches: int = 1
    """Batches that run at the same time."""
    memory_mb: int | None = None
    """Memory of the GPU that all graphs may take together, in MiB; None: as much as there is."""
    strict: bool = False
    """Whether shapes on a GPU depend on a text alone, but for response generation, so that no result depends on its
    batch."""
    server: Server | None = None
    """The model server that runs the graphs; None: this machine. ``device`` is then where values are between runs."""
    float_weights: bool = False
    """Whether int8 weights are turned into float32 on a CPU too, as they are on CUDA."""
    captured: WeakSet[Any] = field(default_factory=WeakSet, compare=False, repr=False)
    """The graphs that a runtime captures (``CapturedGraph``), for their counts."""
    run_options: ort.RunOptions = field(default_factory=ort.RunOptions, compare=False, repr=False)
    """The options of the runs of all sessions of a runtime; ``interrupt`` ends these runs."""

    @classmethod
    def of(
        cls,
        device: Device | DeviceKind,
        threads: int | None,
        memory_mb: int | None = None,
        *,
        strict: bool = False,
    ) -> DeviceProfile:
        """The defaults of a device: measured for the CPU (docs/adr, nr 14), chosen for GPUs. DeviceError for
        ``strict`` where it cannot be kept; a CPU keeps it anyway."""
        device = Device(device) if isinstance(device, str) else device
        if device.kind == "cpu":
            count = usable_cores() if threads is None else threads
            return cls(device, count, 1536, 64, 80, min(count, MAX_CONCURRENT_BATCHES))
        if strict and (device.runs_engines or memory_mb is not None):
            raise DeviceError(
                f"strict=True on {device}{'' if memory_mb is None else f' with device_memory_mb={memory_mb}'}: only "
                "CUDA without a limit of memory runs every batch at one shape. Leave one of them out."
            )
        # On a GPU only nodes that compute shapes run on the CPU, and every graph has a pool of its own.
        return cls(device, 1 if threads is None else threads, 32768, 512, 640, memory_mb=memory_mb, strict=strict)

    @classmethod
    def of_server(cls, server: Server) -> DeviceProfile:
        """The defaults of a model server, not measured: batches as on the CPU, several on their way at a time."""
        return cls(Device("cpu"), 1, 1536, 64, 80, REMOTE_BATCHES, server=server)

    def share_threads(self, size: int) -> DeviceProfile:
        """The profile of graphs from a bundle of ``size`` bytes.

        The operations of a small model are too short to split over threads, so its concurrent batches share the
        threads; a run of a large model may use all of them.
        """
        if self.device.kind != "cpu" or size >= SMALL_BUNDLE_BYTES:
            return self
        return replace(self, threads=max(1, self.threads // self.concurrent_batches))

    def interrupt(self) -> None:
        """End every run of the graphs of the runtime, now and later."""
        self.run_options.terminate = True

    def check_open(self) -> None:
        """Raise EngineClosed after ``interrupt``."""
        if self.run_options.terminate:
            raise EngineClosed("The runtime was closed while its models ran; load the bundle again.")


class Graph(Protocol):
    """The interface of a graph that runs on arrays in host memory, whatever library runs it."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        ...

    @property
    def plan(self) -> ShapePlan | None:
        """The shapes that it takes; None for any."""
        ...

    @property
    def input_types(self) -> dict[str, str]:
        """Their types as ONNX writes them, ``tensor(float16)`` say."""
        ...

    @property
    def run(self) -> Callable[[Mapping[str, Array]], list[Array]]:
        """All outputs, as arrays in host memory."""
        ...


class ValueGraph(Graph, Protocol):
    """A graph that also runs on values, which stay where they are from run to run: a session, or a remote graph."""

    def run_values(self, feeds: Mapping[str, ort.OrtValue], host: Sequence[str] = ()) -> dict[str, ort.OrtValue]:
        """All outputs by name, left on the device; those named in ``host`` come to host memory."""
        ...

    def run_to_values(self, feeds: Mapping[str, Array]) -> dict[str, ort.OrtValue]:
        """All outputs of arrays by name, left on the device."""
        ...

    def value(self, array: Array) -> ort.OrtValue:
        """An array as a value on the graph's device, for several runs."""
        ...

    def host_value(self, array: Array) -> ort.OrtValue:
        """An array as a value in host memory, for one run."""
        ...

    def take_rows(
        self, values: Mapping[str, ort.OrtValue], rows: NDArray[np.int64], *, share: bool = False
    ) -> dict[str, ort.OrtValue]:
        """The rows of every value at some positions of its first axis, on the device."""
        ...

    def prepare_rows(self, names: Sequence[str]) -> None:
        """Build what ``take_rows`` of these inputs needs, so that no request waits for it."""
        ...


class Session:
    """One graph on one device, for batches of any shape."""

    plan: ShapePlan | None = None

    def __init__(
        self, session: ort.InferenceSession, name: str, profile: DeviceProfile, options: ort.RunOptions | None = None
    ) -> None:
        """Every run has the same ``options``; None takes the profile's."""
        self._session = session
        self._options = profile.run_options if options is None else options
        self._name = name
        self._profile = profile
        self._device = profile.device
        self._row_graphs: dict[frozenset[tuple[str, str]], Session] = {}
        self.inputs = tuple(node.name for node in session.get_inputs())
        self.outputs = tuple(node.name for node in session.get_outputs())
        self.input_types = {node.name: str(node.type) for node in session.get_inputs()}

    @classmethod
    def load(cls, path: Path, profile: DeviceProfile) -> Session:
        """Build the session; BundleError for a graph that cannot be read, DeviceError for a device that cannot
        start."""
        return cls(open_file(path, profile), path.name, profile)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory; ModelError when the run fails, EngineClosed when it is interrupted."""
        try:
            with self._running():
                outputs: list[Array] = self._session.run(None, dict(feeds), self._options)
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self._translate(error) from error
        return outputs

    def run_values(self, feeds: Mapping[str, ort.OrtValue], host: Sequence[str] = ()) -> dict[str, ort.OrtValue]:
        """All outputs by name, left on the device; those named in ``host`` come to host memory."""
        try:
            if self._device.kind == "cpu":
                values = self._session.run_with_ort_values(list(self.outputs), dict(feeds), self._options)
                return dict(zip(self.outputs, values, strict=True))
            with self._running():
                binding = self._session.io_binding()
                for name, value in feeds.items():
                    binding.bind_ortvalue_input(name, value)
                for name in self.outputs:
                    memory = "cpu" if name in host else self._device.memory
                    binding.bind_output(name, memory, 0 if memory == "cpu" else self._device.index)
                self._session.run_with_iobinding(binding, self._options)
            return dict(zip(self.outputs, binding.get_outputs(), strict=True))
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self._translate(error) from error

    def run_to_values(self, feeds: Mapping[str, Array]) -> dict[str, ort.OrtValue]:
        """All outputs of arrays by name, left on the device."""
        return self.run_values({name: self.host_value(array) for name, array in feeds.items()})

    def value(self, array: Array) -> ort.OrtValue:
        """An array as a value on this session's device, for several runs."""
        try:
            with self._running():
                return ort.OrtValue.ortvalue_from_numpy(
                    np.ascontiguousarray(array), self._device.memory, self._device.index
                )
        except Exception as error:  # ONNX Runtime's exceptions share no public base
            raise self._translate(error) from error

    def host_value(self, array: Array) -> ort.OrtValue:
        """An array as a value in host memory, for one run: the run copies it to the device if the graph reads it
        there."""
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), "cpu")

    def take_rows(
        self, values: Mapping[str, ort.OrtValue], rows: NDArray[np.int64], *, share: bool = False
    ) -> dict[str, ort.OrtValue]:
        """The rows of every value at some positions of its first axis; on a GPU they are copied inside its memory.

        With ``share``, consecutive rows in host memory are views, so the caller keeps ``values`` as long as the result.
        """
        if self._device.kind == "cpu":
            return take_host_rows(values, rows, share=share)
        graph = self._row_graph({name: str(value.data_type()) for name, value in values.items()})
        taken = graph.run_values({**values, ROWS: self.host_value(rows)})
        return {name: taken[f"taken.{name}"] for name in values}

    def prepare_rows(self, names: Sequence[str]) -> None:
        """Build what ``take_rows`` of these inputs needs on a GPU, so that no request waits for it."""
        if self._device.kind != "cpu":
            self._row_graph({name: self.input_types[name] for name in names})

    def _running(self) -> AbstractContextManager[None]:
        return nullcontext() if self._device.kind == "cpu" else GATE.run()

    def _row_graph(self, types: Mapping[str, str]) -> Session:
        key = frozenset(types.items())
        if key not in self._row_graphs:
            graph = _open(build_row_graph(types), self._profile)
            self._row_graphs[key] = Session(graph, f"the row graph of {self._name}", self._profile)
        return self._row_graphs[key]

    def _translate(self, error: Exception) -> ModelError | DeviceError:
        self._profile.check_open()  # else the run has failed
        return translate(error, self._name, self._device)


def open_file(path: Path, profile: DeviceProfile, options: Mapping[str, str] | None = None) -> ort.InferenceSession:
    """ONNX Runtime's session of a file, with further ``options`` of its provider.

    BundleError for a graph that cannot be read, DeviceError for a device that cannot start.
    """
    try:
        return _open(str(path), profile, options)
    except DeviceError:
        raise
    except Exception as error:  # ONNX Runtime's exceptions share no public base
        if shortage := describe_shortage(error):
            raise BundleError(f"{path} cannot be loaded: {shortage}. Give the process more memory.") from error
        raise BundleError(
            f"{path} cannot be loaded: {error}. Run `groundwire bundle verify {path.parent}`; "
            "if it is intact, export the bundle with this version of ONNX Runtime."
        ) from error


def translate(error: Exception, name: str, device: Device) -> ModelError | DeviceError:
    """A device that cannot run a graph of one node any more is lost, whatever the error says; else the run of the graph
    ``name`` failed, for want of memory say."""
    failure = None if device.kind == "cpu" else find_failure(device)
    if failure is None and (shortage := describe_shortage(error)):
        return ModelError(f"{name} failed on {device}: {shortage}. Send shorter texts, or give it more memory.")
    if failure is None:
        return ModelError(f"{name} failed on {device}: {error}")
    return DeviceError(
        f"{name} failed on {device}, and so does everything else there: {failure}. After such an "
        "error a process cannot use the GPU any more: start another one, and look at nvidia-smi and the system log."
    )


def _open(
    graph: str | bytes, profile: DeviceProfile, provider_options: Mapping[str, str] | None = None
) -> ort.InferenceSession:
    """A session of a graph: its path, or its bytes."""
    options = ort.SessionOptions()
    on_cuda = profile.device.kind == "cuda"
    if isinstance(graph, str) and (on_cuda or profile.float_weights):
        folder, content = str(Path(graph).parent), Path(graph).read_bytes()
        rewritten = dequantize(content)
        rewritten = (keep_on_device(rewritten or content) if on_cuda else None) or rewritten
        if rewritten is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
            graph = rewritten
    options.intra_op_num_threads = profile.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what fails is in the error
    # Several graphs share the cores; a pool that spins while another graph runs takes its time away.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Addition and Gelu as one operator take longer than as two: 4.5 % of a BERT's time (ONNX Runtime 1.31).
    slow = ["BiasGeluFusion"] if profile.device.kind == "cpu" else []
    if profile.device.kind == "cpu":
        share_host_arena()
    else:
        start_device(profile.device)
        if profile.memory_mb is not None:
            share_arena(profile.device, profile.memory_mb)
    if profile.device.kind == "cpu" or profile.memory_mb is not None:
        options.add_session_config_entry("session.use_env_allocators", "1")
    # A plan of the memory of each shape takes as much again as the runs that are captured: 40 % of an encoder's.
    options.enable_mem_pattern = provider_options is None
    providers = list_providers(profile.device, provider_options)
    opened = ort.InferenceSession if profile.device.kind == "cpu" else GpuSession
    return opened(graph, options, providers=providers, disabled_optimizers=slow, enable_fallback=0)


def build_row_graph(types: Mapping[str, str]) -> bytes:
    """An ONNX graph with an input and an output of each name, ``taken.NAME``: the rows ``ROWS`` of the input.

    ``types`` are the inputs' types as ONNX Runtime names them.
    """
    graph = encode_message(2, b"rows") + _describe(11, ROWS, _ROW_TYPES["tensor(int64)"])
    for name, kind in types.items():
        node = encode_message(1, name.encode()) + encode_message(1, ROWS.encode())
        node += encode_message(2, f"taken.{name}".encode()) + encode_message(4, b"Gather")
        graph += encode_message(1, node)
        graph += _describe(11, name, _ROW_TYPES[kind]) + _describe(12, f"taken.{name}", _ROW_TYPES[kind])
    return encode_field(1, _IR_VERSION) + encode_message(8, encode_field(2, _OPSET)) + encode_message(7, graph)


def take_host_rows(
    values: Mapping[str, ort.OrtValue], rows: NDArray[np.int64], *, share: bool = False
) -> dict[str, ort.OrtValue]:
    """The rows of values in host memory; with ``share``, consecutive ones are views of ``values``."""
    consecutive = share and bool((np.diff(rows) == 1).all())
    index = slice(rows[0], rows[0] + len(rows)) if consecutive else rows
    return {
        name: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value.numpy()[index]), "cpu")
        for name, value in values.items()
    }


def _describe(field: int, name: str, element: int) -> bytes:
    """An input (11) or output (12) of the graph, of any shape."""
    kind = encode_message(2, encode_message(1, encode_field(1, element)))
    return encode_message(field, encode_message(1, name.encode()) + kind)


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
