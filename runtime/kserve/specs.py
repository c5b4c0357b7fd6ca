"""The inputs and outputs of an ONNX graph, read off its file without loading it."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..bundles.protobuf import Buffer, iterate_fields, read_varint
from ..errors import BundleError, ServerError

Dimension: TypeAlias = int | str
"""A fixed size, or the name of a size that a request chooses; "" for one without a name."""


class Datatype(NamedTuple):
    """A type of numbers under its three names."""

    name: str
    """The protocol's name."""
    onnx: str
    numpy: np.dtype[np.generic]


_DATATYPES = {
    number: Datatype(name, f"tensor({onnx})", np.dtype(numpy))
    for number, name, onnx, numpy in (
        (1, "FP32", "float", "<f4"),
        (2, "UINT8", "uint8", "u1"),
        (3, "INT8", "int8", "i1"),
        (6, "INT32", "int32", "<i4"),
        (7, "INT64", "int64", "<i8"),
        (9, "BOOL", "bool", "?"),
        (10, "FP16", "float16", "<f2"),
        (11, "FP64", "double", "<f8"),
    )
}
"""By ONNX's number."""
_MODEL_GRAPH, _INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 7, 5, 11, 12


class TensorSpec(NamedTuple):
    """The name, type and shape of an input or output."""

    name: str
    datatype: Datatype
    shape: tuple[Dimension, ...]

    def check(self, shape: Sequence[int], sizes: Mapping[str, int], model: str) -> None:
        """Raise ServerError unless an array of ``shape`` fits; ``sizes`` has the named dimensions so far."""
        expected = [sizes.get(size, -1) if isinstance(size, str) else size for size in self.shape]
        if len(shape) != len(expected) or any(
            wanted not in (-1, length) for wanted, length in zip(expected, shape, strict=True)
        ):
            raise ServerError(
                f"The server's model {model} gives {self.name} the shape {list(shape)}, but its graph gives "
                f"{expected} (-1: any). Deploy the graphs of this bundle: groundwire export triton."
            )


class GraphSpec(NamedTuple):
    """What a graph takes and gives, in order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @property
    def is_batched(self) -> bool:
        """Whether every input and output has the same first dimension, of any size: then batches may be joined."""
        first = {spec.shape[0] if spec.shape else 0 for spec in (*self.inputs, *self.outputs)}
        return len(first) == 1 and isinstance(next(iter(first)), str) and first != {""}

    def name_sizes(self, feeds: Mapping[str, NDArray[np.generic]]) -> dict[str, int]:
        """The sizes of the named dimensions in a request."""
        return {
            name: size
            for spec in self.inputs
            if spec.name in feeds
            for name, size in zip(spec.shape, feeds[spec.name].shape, strict=False)
            if isinstance(name, str) and name
        }


def read_graph_spec(path: Path) -> GraphSpec:
    """Read the inputs and outputs of the graph at ``path``; BundleError when it is not an ONNX graph."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read_model(data)
    except (ValueError, IndexError, KeyError, OSError) as error:
        raise BundleError(
            f"{path} cannot be read as an ONNX graph ({error!r}). Restore the file or export the bundle again."
        ) from error


def _read_model(data: Buffer) -> GraphSpec:
    inputs, outputs, weights = [], [], set()
    for number, begin, end in iterate_fields(data, 0, len(data)):
        if number == _MODEL_GRAPH:
            for part, first, last in iterate_fields(data, begin, end):
                if part == _GRAPH_INPUT:
                    inputs.append(_read_tensor(data, first, last))
                elif part == _GRAPH_OUTPUT:
                    outputs.append(_read_tensor(data, first, last))
                elif part == _INITIALIZER:
                    weights |= {data[a:b].decode() for field, a, b in iterate_fields(data, first, last) if field == 8}
    # Weights of old graphs are among the inputs too.
    return GraphSpec(tuple(spec for spec in inputs if spec.name not in weights), tuple(outputs))


def _read_tensor(data: Buffer, begin: int, end: int) -> TensorSpec:
    """A ``ValueInfoProto``: its name (1) and its type (2), in which a tensor (1) has a type (1) and a shape (2)."""
    fields = {number: (first, last) for number, first, last in iterate_fields(data, begin, end)}
    name = data[slice(*fields[1])].decode()
    tensor = next((a, b) for number, a, b in iterate_fields(data, *fields[2]) if number == 1)
    shape: list[Dimension] = []
    for number, first, last in iterate_fields(data, *tensor):
        if number == 2:
            for _, a, b in iterate_fields(data, first, last):
                shape.append(_read_dimension(data[a:b]))
    return TensorSpec(name, _DATATYPES[_read_number(data[slice(*tensor)])], tuple(shape))


def _read_dimension(content: bytes) -> Dimension:
    names = [content[a:b].decode() for number, a, b in iterate_fields(content, 0, len(content)) if number == 2]
    return names[0] if names else _read_number(content) if content else ""


def _read_number(content: bytes) -> int:
    """The first field of a message, a number (1) in all messages here; 0 without one."""
    return read_varint(content, 1)[0] if content[:1] == b"\x08" else 0
