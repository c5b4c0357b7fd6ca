"""Memory at fixed addresses for the inputs and outputs of a graph, whose axes have sizes by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import onnxruntime as ort

from ..ort.cuda import PinnedMemory, Stream
from ..ort.device import Device
from ..ort.gate import GATE
from ..ort.session import Array

Sizes: TypeAlias = Mapping[str, int]
"""The sizes of a graph's axes, by the names that they have in it."""
TYPES: Mapping[str, Any] = {
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
"""NumPy's types by ONNX Runtime's names."""
ALIGNMENT = 256
"""Values begin at multiples of so many bytes, as memory does that CUDA allocates."""


def find_shape(node: Any, sizes: Sizes) -> tuple[int, ...]:
    """The shape of an input or output; KeyError for an axis that ``sizes`` does not have."""
    return tuple(size if isinstance(size, int) else sizes[size] for size in node.shape)


def count_bytes(node: Any, sizes: Sizes) -> int:
    """Its bytes."""
    return int(np.prod(find_shape(node, sizes))) * int(np.dtype(TYPES[node.type]).itemsize)


def count_aligned(nodes: Sequence[Any], sizes: Sizes) -> int:
    """The bytes of several, side by side."""
    return sum(-(-count_bytes(node, sizes) // ALIGNMENT) * ALIGNMENT for node in nodes)


def allocate(shape: tuple[int, ...], dtype: Any, device: Device) -> ort.OrtValue:
    """Memory on a device."""
    with GATE.run():
        return ort.OrtValue.ortvalue_from_shape_and_type(shape, dtype, device.memory, device.index)


class Buffer:
    """An input or an output of a graph: memory on the device for its largest shape, and page-locked memory."""

    def __init__(self, node: Any, device: Device, largest: Sequence[Sizes]) -> None:
        """``largest`` are the sizes of the largest runs. KeyError for an axis or a type that is not known."""
        self.node = node
        self.name = str(node.name)
        self._dtype: Any = TYPES[node.type]
        self._device = device
        self._size = max(count_bytes(node, sizes) for sizes in largest)
        self._value = allocate((self._size,), np.uint8, device)
        self.address: int = self._value.data_ptr()

    @cached_property
    def host(self) -> PinnedMemory:
        """Page-locked memory of the same size, zeros at first."""
        return PinnedMemory(self._device.index, self._size)

    def host_array(self, sizes: Sizes) -> Array:
        """The page-locked memory as a batch."""
        return self.host.array(find_shape(self.node, sizes), self._dtype)

    def host_bytes(self) -> Array:
        """All of the page-locked memory."""
        return self.host.array((self._size,), np.uint8)

    def read_row(self, stream: Stream, sizes: Sizes, row: int) -> Array:
        """Wait for the row of a batch whose one row has these sizes, without its first axis."""
        size = count_bytes(self.node, sizes)
        memory = PinnedMemory(self._device.index, size)  # it is freed with this name
        array = memory.array(find_shape(self.node, sizes)[1:], self._dtype)
        stream.download(array, self.address + row * size)
        stream.synchronize()
        return array.copy()


class Transfer:
    """Values that one copy brings up or down: side by side in page-locked memory and on the device."""

    def __init__(self, nodes: Sequence[Any], largest: Sizes, device: Device) -> None:
        self._nodes = nodes
        size = count_aligned(nodes, largest)
        self._value = allocate((size,), np.uint8, device)
        self._host = PinnedMemory(device.index, size)

    def addresses(self, sizes: Sizes) -> dict[str, int]:
        """Where the values are on the device, by name."""
        first = int(self._value.data_ptr())
        return {node.name: first + offset for node, offset in self._list_offsets(sizes)}

    def arrays(self, sizes: Sizes) -> dict[str, Array]:
        """The values in page-locked memory, by name."""
        nodes, array = self._list_offsets(sizes), self._host.array
        return {node.name: array(find_shape(node, sizes), TYPES[node.type], offset) for node, offset in nodes}

    def upload(self, stream: Stream, sizes: Sizes) -> None:
        """Queue the copy to the device."""
        stream.upload(int(self._value.data_ptr()), self._host.array((count_aligned(self._nodes, sizes),), np.uint8))

    def download(self, stream: Stream, sizes: Sizes) -> None:
        """Queue the copy from the device."""
        stream.download(self._host.array((count_aligned(self._nodes, sizes),), np.uint8), int(self._value.data_ptr()))

    def _list_offsets(self, sizes: Sizes) -> Iterator[tuple[Any, int]]:
        """The nodes, and where the value of each begins."""
        ends = accumulate((count_aligned([node], sizes) for node in self._nodes), initial=0)
        return zip(self._nodes, ends, strict=False)


class Staging:
    """Page-locked memory that is given out value by value, until a wait makes all of it free again."""

    def __init__(self, device: Device, size: int) -> None:
        self._memory = PinnedMemory(device.index, size)
        self._size = size
        self.used = 0
        """Bytes that are given out."""

    def take(self, nodes: Sequence[Any], sizes: Sizes) -> dict[str, Array] | None:
        """Zeros in the shapes of inputs and outputs, by name; None when no memory is left for them."""
        if self.used + count_aligned(nodes, sizes) > self._size:
            return None
        arrays = {}
        for node in nodes:
            array = self._memory.array(find_shape(node, sizes), TYPES[node.type], self.used)
            array[:] = 0
            arrays[node.name] = array
            self.used += count_aligned([node], sizes)
        return arrays

    def reset(self) -> None:
        """Free everything that was given out."""
        self.used = 0
