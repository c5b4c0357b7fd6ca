"""Requests and responses of the Open Inference Protocol: tensors as bytes (the binary tensor extension) or as JSON.

https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol and, for bytes, the "binary tensor
data extension" of Triton's documentation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, ServerError
from .specs import GraphSpec, TensorSpec

BINARY = "binary_tensor_data"
"""The extension, as a server's metadata names it."""
HEADER_LENGTH = "Inference-Header-Content-Length"
"""The HTTP header with the length of the JSON part; bytes follow it."""

Array = NDArray[Any]


class TensorDescription(msgspec.Struct, frozen=True):
    """An input or output that a server's model has; -1 is any size."""

    name: str
    datatype: str
    shape: tuple[int, ...] = ()


class ModelMetadataResponse(msgspec.Struct, frozen=True):
    """What a server says of a model; servers may leave the tensors out."""

    name: str
    inputs: tuple[TensorDescription, ...] | None = None
    outputs: tuple[TensorDescription, ...] | None = None


class ServerMetadataResponse(msgspec.Struct, frozen=True):
    """What a server says of itself."""

    name: str
    version: str = ""
    extensions: tuple[str, ...] = ()

    @property
    def reads_bytes(self) -> bool:
        """Whether it has the binary tensor extension. KServe's own server, which has it from 0.14 on, does not say."""
        return BINARY in self.extensions or self.name == "kserve"


class ErrorResponse(msgspec.Struct, frozen=True):
    """What a server says in place of an answer."""

    error: Any = ""


class _Tensor(msgspec.Struct, frozen=True):
    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Any = None
    parameters: dict[str, Any] | None = None


class _Response(msgspec.Struct, frozen=True):
    outputs: tuple[_Tensor, ...]


def encode_request(
    spec: GraphSpec, feeds: Mapping[str, Array], model: str, *, binary: bool
) -> tuple[bytes, dict[str, str]]:
    """The body and the HTTP headers of a request for all outputs; ModelError for numbers that JSON does not have."""
    inputs: list[dict[str, Any]] = []
    contents: list[bytes] = []
    for tensor in spec.inputs:
        array = np.asarray(feeds[tensor.name], tensor.datatype.numpy, order="C")
        fields: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype.name, "shape": array.shape}
        if binary:
            contents.append(array.tobytes())
            fields["parameters"] = {"binary_data_size": len(contents[-1])}
        else:
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelError(f"{model} cannot get {tensor.name} as JSON, because a number of it is not finite.")
            fields["data"] = array.ravel().tolist()
        inputs.append(fields)
    outputs = [
        {"name": tensor.name, **({"parameters": {"binary_data": True}} if binary else {})} for tensor in spec.outputs
    ]
    header = msgspec.json.encode({"inputs": inputs, "outputs": outputs})
    if not binary:
        return header, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(header))}
    return b"".join((header, *contents)), headers


def decode_response(
    spec: GraphSpec, content: bytes, header_length: str | None, sizes: Mapping[str, int], model: str
) -> list[Array]:
    """All outputs of the graph, in order; ServerError when one is absent, or has another type, shape or size.

    ``sizes`` are the dimensions that the request named.
    """
    try:
        length = len(content) if header_length is None else int(header_length)
        if not 0 <= length <= len(content):
            raise ValueError(f"{HEADER_LENGTH} is {length}, but the body has {len(content)} bytes")
        response = msgspec.json.decode(content[:length], type=_Response)
        arrays: dict[str, tuple[_Tensor, Array]] = {}
        position = length
        for tensor in response.outputs:
            expected = next((output for output in spec.outputs if output.name == tensor.name), None)
            size = (tensor.parameters or {}).get("binary_data_size")
            end = position + (size if isinstance(size, int) else 0)
            if expected is not None:
                arrays[tensor.name] = tensor, _read_array(tensor, expected, content[position:end], size)
            position = end
    except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise ServerError(f"The server's model {model} answers otherwise than the protocol says: {error}.") from error
    outputs = []
    for expected in spec.outputs:
        if expected.name not in arrays:
            raise ServerError(f"The server's model {model} gave no output {expected.name}; it gave {list(arrays)}.")
        tensor, array = arrays[expected.name]
        expected.check(tensor.shape, sizes, model)
        outputs.append(array)
    return outputs


def _read_array(tensor: _Tensor, expected: TensorSpec, content: bytes, size: object) -> Array:
    """The array of an output, writable; ValueError when it is not what the message says of it."""
    dtype = expected.datatype.numpy
    if tensor.datatype != expected.datatype.name:
        raise ValueError(f"{tensor.name} is {tensor.datatype}, not {expected.datatype.name}")
    if min(tensor.shape, default=0) < 0:
        raise ValueError(f"{tensor.name} has the shape {list(tensor.shape)}")
    count = prod(tensor.shape)
    if size is None:
        array = _flatten(tensor.data, dtype)
    elif len(content) == size == count * dtype.itemsize:
        array = np.frombuffer(content, dtype).copy()
    else:
        raise ValueError(f"{tensor.name} has {len(content)} bytes for the shape {list(tensor.shape)}")
    if array.size != count:
        raise ValueError(f"{tensor.name} has {array.size} numbers for the shape {list(tensor.shape)}")
    return array.reshape(tensor.shape)


def _flatten(data: Any, dtype: np.dtype[np.generic]) -> Array:
    """Numbers of JSON, flat or nested; ``null`` is not a number."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise ValueError(f"a tensor's data is {type(data).__name__}")
    array = np.asarray(data)
    kinds = {"f": "fiu", "b": "b"}.get(dtype.kind, "iu")
    if array.size and array.dtype.kind not in kinds:
        raise ValueError(f"a tensor's data are not numbers of type {dtype}")
    return array.astype(dtype).ravel()
