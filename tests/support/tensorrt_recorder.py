"""A recorder in place of the Python module ``tensorrt`` 10: notes how engines are built and computes what they would.

It has the part of the module that Groundwire calls, with the signatures and results of the real bindings (10.16). An
"engine" is the graph with its profiles; it runs on ONNX Runtime's CPU provider, from and to the addresses that it is
given, and refuses what TensorRT refuses: shapes outside the active profile, inputs without an address, other types.
What it cannot show: whether TensorRT reads a graph, what it computes, and how fast.
"""

from __future__ import annotations

import ctypes
import enum
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

VERSION = "10.16.1.11"
Shape = tuple[int, ...]


class Recorder(ModuleType):
    """The module, and what was asked of it."""

    def __init__(self) -> None:
        super().__init__("tensorrt")
        self.__version__ = VERSION
        self.calls: list[str] = []
        """Builder calls, in order."""
        self.refuse: set[str] = set()
        """What fails: ``parse``, ``profile``, ``build``, ``deserialize``, ``context``, ``execute``."""
        self.noise = 0.0
        """Added to every number that an engine gives."""
        self.runs: list[tuple[int, Shape]] = []
        """Profile and shape of each run."""
        self.read: list[list[int]] = []
        """The ids of the last run, read from the address that it was given."""
        self.measured: list[int] = []
        """Kinds of layers that each build had to measure."""
        self.streams: set[int] = set()
        """The streams of all runs."""
        recorder = self

        class ILogger:
            INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)

            def log(self, severity: int, message: str) -> None:
                raise NotImplementedError

        class DataType(enum.Enum):
            FLOAT, HALF, INT64, BOOL = range(4)

        class TensorIOMode(enum.Enum):
            INPUT, OUTPUT = 1, 2

        class NetworkDefinitionCreationFlag(enum.IntEnum):
            EXPLICIT_BATCH, STRONGLY_TYPED = 0, 1

        class BuilderFlag(enum.Enum):
            FP16, INT8, TF32 = range(3)

        class Network:
            def __init__(self, flags: int) -> None:
                self.flags = flags
                self.path: str | None = None
                self.names: list[str] = []

            @property
            def num_inputs(self) -> int:
                return len(self.names)

            def get_input(self, index: int) -> Any:
                return type("Tensor", (), {"name": self.names[index]})()

        class OnnxParser:
            def __init__(self, network: Network, logger: ILogger) -> None:
                self._network, self._logger = network, logger
                self.num_errors = 0

            def parse_from_file(self, path: str) -> bool:
                recorder.calls.append(f"parse {Path(path).name}")
                if "parse" in recorder.refuse:
                    self.num_errors = 1
                    return False
                model = onnx.load(path)  # with its weights, which are found beside it
                self._network.path = path
                self._network.names = [value.name for value in model.graph.input]
                return True

            def get_error(self, index: int) -> str:
                return f"In node {index} (importNode): UNSUPPORTED_NODE"

        class Profile:
            def __init__(self) -> None:
                self.shapes: dict[str, tuple[Shape, Shape, Shape]] = {}

            def set_shape(self, name: str, least: Shape, usual: Shape, most: Shape) -> None:
                if not all(a <= b <= c for a, b, c in zip(least, usual, most, strict=True)):
                    raise ValueError(f"{name}: {least} {usual} {most}")
                self.shapes[name] = tuple(map(tuple, (least, usual, most)))  # type: ignore[assignment]

        class TimingCache:
            def __init__(self, content: bytes) -> None:
                header, *kinds = content.decode().splitlines() or [recorder.__version__]
                self.header, self.kinds = header, set(kinds)

            def serialize(self) -> bytes:
                return "\n".join([self.header, *sorted(self.kinds)]).encode()

        class Config:
            def __init__(self) -> None:
                self.profiles: list[Profile] = []
                self.flags = {BuilderFlag.TF32}
                self.timings: TimingCache | None = None

            def create_timing_cache(self, content: bytes) -> TimingCache | None:
                return None if content.startswith(b"damaged") else TimingCache(content)

            def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
                if cache.header != recorder.__version__ and not ignore_mismatch:
                    return False
                self.timings = cache
                return True

            def clear_flag(self, flag: BuilderFlag) -> None:
                recorder.calls.append(f"clear {flag.name}")
                self.flags.discard(flag)

            def add_optimization_profile(self, profile: Profile) -> int:
                if "profile" in recorder.refuse:
                    return -1
                self.profiles.append(profile)
                return len(self.profiles) - 1

        class Builder:
            def __init__(self, logger: ILogger) -> None:
                self._logger = logger

            def create_network(self, flags: int = 0) -> Network:
                recorder.calls.append(f"network {flags}")
                return Network(flags)

            def create_builder_config(self) -> Config:
                return Config()

            def create_optimization_profile(self) -> Profile:
                return Profile()

            def build_serialized_network(self, network: Network, config: Config) -> bytes | None:
                recorder.calls.append(f"build {len(config.profiles)} profiles")
                if "build" in recorder.refuse:
                    self._logger.log(ILogger.ERROR, "No implementation\nfor node Softmax")
                    return None
                assert network.path is not None
                kinds = {node.op_type for node in onnx.load(network.path, load_external_data=False).graph.node}
                timings = TimingCache(b"") if config.timings is None else config.timings
                recorder.measured.append(len(kinds - timings.kinds))
                timings.kinds |= kinds
                shapes = [profile.shapes for profile in config.profiles]
                assert all(set(of_profile) == set(network.names) for of_profile in shapes)
                return pickle.dumps((onnx.load(network.path).SerializeToString(), shapes))

        class Context:
            def __init__(self, engine: Engine) -> None:
                self._engine = engine
                self._profile = 0
                self._shapes: dict[str, Shape] = {}
                self._addresses: dict[str, int] = {}

            def set_optimization_profile_async(self, index: int, stream: int) -> bool:
                self._profile = index
                self._shapes.clear()
                return index < self._engine.num_optimization_profiles

            def set_input_shape(self, name: str, shape: Shape) -> bool:
                least, _, most = self._engine.shapes[self._profile][name]
                self._shapes[name] = tuple(shape)
                fits = all(a <= size <= c for a, size, c in zip(least, shape, most, strict=True))
                if not fits:
                    self._engine.logger.log(ILogger.ERROR, f"{name} {shape} does not satisfy profile {self._profile}")
                return fits

            def set_tensor_address(self, name: str, address: int) -> bool:
                self._addresses[name] = address
                return True

            def execute_async_v3(self, stream: int) -> bool:
                if "execute" in recorder.refuse or set(self._addresses) != set(self._engine.names):
                    self._engine.logger.log(ILogger.ERROR, "Error Code 1: Cuda Runtime")
                    return False
                recorder.streams.add(stream)
                recorder.runs.append((self._profile, next(iter(self._shapes.values()))))
                feeds = {name: _read(self._addresses[name], shape) for name, shape in self._shapes.items()}
                recorder.read = feeds["input_ids"].tolist()
                for name, array in self._outputs(feeds).items():
                    result = array + np.float32(recorder.noise)
                    ctypes.memmove(self._addresses[name], result.ctypes.data, result.nbytes)
                return True

            def _outputs(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
                session = self._engine.session
                arrays = session.run(None, feeds)
                names = [value.name for value in session.get_outputs()]
                return {name: array.astype(np.float32) for name, array in zip(names, arrays, strict=True)}

        class Engine:
            def __init__(self, content: bytes, logger: ILogger) -> None:
                graph, self.shapes = pickle.loads(content)
                options = ort.SessionOptions()
                options.log_severity_level = 3
                options.add_session_config_entry("session.disable_quant_qdq", "1")
                self.session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
                self.logger = logger
                self.inputs = [value.name for value in self.session.get_inputs()]
                self.names = [*self.inputs, *(value.name for value in self.session.get_outputs())]
                self.num_io_tensors = len(self.names)
                self.num_optimization_profiles = len(self.shapes)

            def get_tensor_name(self, index: int) -> str:
                return self.names[index]

            def get_tensor_mode(self, name: str) -> TensorIOMode:
                return TensorIOMode.INPUT if name in self.inputs else TensorIOMode.OUTPUT

            def get_tensor_dtype(self, name: str) -> DataType:
                return DataType.INT64 if name in self.inputs else DataType.FLOAT

            def get_tensor_shape(self, name: str) -> Shape:
                values = [*self.session.get_inputs(), *self.session.get_outputs()]
                (shape,) = [value.shape for value in values if value.name == name]
                return tuple(size if isinstance(size, int) else -1 for size in shape)

            def get_tensor_profile_shape(self, name: str, index: int) -> list[Shape]:
                return list(self.shapes[index][name])

            def create_execution_context(self) -> Context | None:
                return None if "context" in recorder.refuse else Context(self)

        class Runtime:
            def __init__(self, logger: ILogger) -> None:
                self._logger = logger

            def deserialize_cuda_engine(self, content: bytes) -> Engine | None:
                if "deserialize" in recorder.refuse:
                    self._logger.log(ILogger.ERROR, "The engine plan file is not compatible with this version")
                    return None
                return Engine(content, self._logger)

        self.ILogger, self.DataType, self.TensorIOMode = ILogger, DataType, TensorIOMode
        self.NetworkDefinitionCreationFlag, self.BuilderFlag = NetworkDefinitionCreationFlag, BuilderFlag
        self.OnnxParser, self.Builder, self.Runtime = OnnxParser, Builder, Runtime


def _read(address: int, shape: Shape) -> np.ndarray:  # type: ignore[type-arg]
    size = int(np.prod(shape))
    return np.ctypeslib.as_array((ctypes.c_int64 * size).from_address(address)).reshape(shape).copy()


@contextmanager
def installed() -> Iterator[Recorder]:
    """Inside the block, ``import tensorrt`` gives a new recorder."""
    former = sys.modules.get("tensorrt")
    recorder = Recorder()
    sys.modules["tensorrt"] = recorder
    try:
        yield recorder
    finally:
        if former is None:
            del sys.modules["tensorrt"]
        else:
            sys.modules["tensorrt"] = former
