"""ONNX Runtime sessions over graphs that are still in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import onnxruntime

from groundwire.runtime.errors import ExportError

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


class CpuSession:
    """A graph on the CPU provider with all graph optimizations of ONNX Runtime, as the runtime loads it."""

    def __init__(self, model: ir.Model) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Threads that wait sleep, as in the runtime: a spinning pool takes the cores of every process beside it.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if any(node.op_type == "DequantizeLinear" for node in model.graph):
            # A pair is there to round. ONNX Runtime would join pairs and products otherwise than TensorRT does, and
            # makes a product of fp8 that it then refuses.
            options.add_session_config_entry("session.disable_quant_qdq", "1")
        # A protobuf holds at most 2 GiB, so the weights are stored beside the graph here too.
        with tempfile.TemporaryDirectory(prefix="groundwire-") as folder:
            path = Path(folder, "model.onnx")
            ir.save(model, path, external_data="weights.bin")
            try:
                self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            except Exception as error:  # onnxruntime's exceptions share no base class
                raise ExportError(f"ONNX Runtime refuses the exported graph: {error}") from error
        self._nodes = {value.name: value for value in self._session.get_inputs()}
        self.inputs: list[str] = list(self._nodes)
        self.outputs: list[str] = [value.name for value in self._session.get_outputs()]

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        """Run on the ``inputs`` that the graph has; return outputs by name."""
        feed = {name: inputs[name] for name in self.inputs}
        return dict(zip(self.outputs, self._session.run(self.outputs, feed), strict=True))

    def dtype(self, name: str) -> type[np.floating[Any]]:
        """Return the type of the input ``name``: float16 or float32."""
        return np.float16 if self._nodes[name].type == "tensor(float16)" else np.float32

    def shape(self, name: str) -> list[Any]:
        """Return the shape of the input ``name``: sizes, and names of the dynamic axes."""
        return list(self._nodes[name].shape)
