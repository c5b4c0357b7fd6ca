"""A graph on a model server, with the interface of a session: arrays go there and back with each run.

The protocol keeps nothing on the server from request to request, so the keys and values of a decoder travel with every
step. Values between runs are in host memory here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..kserve.names import name_model
from ..kserve.server import Server
from ..kserve.specs import GraphSpec, read_graph_spec
from .session import Array, DeviceProfile, Session, ValueGraph, take_host_rows


class RemoteGraph:
    """One graph on a server; batches of any shape, from many threads at once."""

    plan = None

    def __init__(self, server: Server, model: str, spec: GraphSpec) -> None:
        self._server = server
        self._model = model
        self._spec = spec
        self.inputs = tuple(tensor.name for tensor in spec.inputs)
        self.outputs = tuple(tensor.name for tensor in spec.outputs)
        self.input_types = {tensor.name: tensor.datatype.onnx for tensor in spec.inputs}

    @classmethod
    def load(cls, bundle: Bundle, graph: str, server: Server) -> RemoteGraph:
        """Find the graph on the server; ServerError when it is not there, or is another one."""
        spec = read_graph_spec(bundle.file(graph))
        model = server.endpoint.models.get(graph) or name_model(bundle, graph)
        server.check_model(model, spec)
        return cls(server, model, spec)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs, as arrays in host memory; ServerError when the server fails."""
        return self._server.infer(self._model, self._spec, feeds)

    def run_values(self, feeds: Mapping[str, ort.OrtValue], host: Sequence[str] = ()) -> dict[str, ort.OrtValue]:
        """All outputs by name, as values in host memory."""
        return self.run_to_values({name: value.numpy() for name, value in feeds.items()})

    def run_to_values(self, feeds: Mapping[str, Array]) -> dict[str, ort.OrtValue]:
        """All outputs of arrays by name, as values in host memory."""
        return {name: _own_value(array) for name, array in zip(self.outputs, self.run(feeds), strict=True)}

    def value(self, array: Array) -> ort.OrtValue:
        """An array as a value in host memory."""
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), "cpu")

    def host_value(self, array: Array) -> ort.OrtValue:
        """As ``value``."""
        return self.value(array)

    def take_rows(
        self, values: Mapping[str, ort.OrtValue], rows: NDArray[np.int64], *, share: bool = False
    ) -> dict[str, ort.OrtValue]:
        """The rows of every value at some positions of its first axis; ``share`` as in ``Session.take_rows``."""
        return take_host_rows(values, rows, share=share)

    def prepare_rows(self, names: Sequence[str]) -> None:
        """Nothing has to be built."""


def _own_value(array: Array) -> ort.OrtValue:
    """A value with its own memory, as a session gives: memory of ``ortvalue_from_numpy`` goes with its last reference,
    and the arrays that ``numpy()`` returns would be left with none."""
    value = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype)
    if array.size:
        value.update_inplace(np.ascontiguousarray(array))
    return value


def open_graph(bundle: Bundle, graph: str, profile: DeviceProfile) -> ValueGraph:
    """A graph of a bundle where the profile says: on its server, or in a session here.

    Raises BundleError, DeviceError or ServerError.
    """
    if profile.server is not None:
        return RemoteGraph.load(bundle, graph, profile.server)
    return Session.load(bundle.file(graph), profile)
