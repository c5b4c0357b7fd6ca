"""Memory at fixed addresses for the inputs and outputs of a graph, whose axes have sizes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import onnxruntime as ort

from .cuda import PinnedMemory
from .device import Device
from .session import Array

Sizes: TypeAlias = Mapping[str, int]
"""Of the axes of a graph, by the names that they have in it."""
TYPES: Mapping[str, Any] = {
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}
"""NumPy's types by ONNX Runtime's names."""


def find_shape(node: Any, sizes: Sizes) -> tuple[int, ...]:
    """The shape of an input or output; KeyError for an axis that ``sizes`` does not have."""
    return tuple(size if isinstance(size, int) else sizes[size] for size in node.shape)


def count_bytes(node: Any, sizes: Sizes) -> int:
    """Its bytes."""
    return int(np.prod(find_shape(node, sizes))) * int(np.dtype(TYPES[node.type]).itemsize)


class Buffer:
    """An input or an output of a graph: memory on the device for its largest shape, and page-locked memory."""

    def __init__(self, node: Any, device: Device, largest: Sequence[Sizes]) -> None:
        """``largest`` are the sizes of the largest runs. KeyError for an axis or a type that is not known."""
        self.node = node
        self.name = str(node.name)
        self.dtype: Any = TYPES[node.type]
        self._device = device
        self._size = max(count_bytes(node, sizes) for sizes in largest)
        self._value = ort.OrtValue.ortvalue_from_shape_and_type([self._size], np.uint8, device.memory, device.index)
        self.address: int = self._value.data_ptr()

    @cached_property
    def host(self) -> PinnedMemory:
        """Page-locked memory of the same size, zeros at first."""
        return PinnedMemory(self._device.index, self._size)

    def host_array(self, sizes: Sizes) -> Array:
        """The page-locked memory as a batch."""
        return self.host.array(find_shape(self.node, sizes), self.dtype)

    def host_bytes(self) -> Array:
        """All of the page-locked memory."""
        return self.host.array((self._size,), np.uint8)


class Staging:
    """Page-locked memory that is given out piece by piece, until a wait makes all of it free again."""

    def __init__(self, device: Device, size: int) -> None:
        self._memory = PinnedMemory(device.index, size)
        self._size = size
        self.used = 0
        """Bytes that are given out."""

    def fits(self, size: int) -> bool:
        """Whether so many bytes are free."""
        return self.used + size <= self._size

    def take(self, node: Any, sizes: Sizes) -> Array:
        """Zeros in the shape of an input or output."""
        shape, dtype = find_shape(node, sizes), TYPES[node.type]
        array = self._memory.array(shape, dtype, self.used)
        self.used += align(array.nbytes)
        array[:] = 0
        return array

    def reset(self) -> None:
        """Free everything that was given out."""
        self.used = 0


def align(size: int) -> int:
    """The bytes that a piece of ``Staging`` takes."""
    return -(-size // 64) * 64
