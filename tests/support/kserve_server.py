"""KServe's own model server over ONNX Runtime: ``python -m tests.support.kserve_server PORT NAME=GRAPH …``.

KServe brings the protocol and the HTTP server; how a model runs is for its user to write, here.
"""

from __future__ import annotations

import sys
from typing import Any

import onnxruntime as ort
from kserve import InferOutput, InferRequest, InferResponse, Model, ModelServer

TYPES = {
    "tensor(float)": "FP32",
    "tensor(int64)": "INT64",
    "tensor(int8)": "INT8",
    "tensor(uint8)": "UINT8",
}


class OnnxModel(Model):
    """A graph under a name."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.ready = True

    def get_input_types(self) -> list[dict[str, Any]]:
        return [_describe(node) for node in self._session.get_inputs()]

    def get_output_types(self) -> list[dict[str, Any]]:
        return [_describe(node) for node in self._session.get_outputs()]

    def predict(self, payload: InferRequest, *args: Any, **given: Any) -> InferResponse:
        feeds = {tensor.name: tensor.as_numpy() for tensor in payload.inputs}
        outputs = []
        for node, array in zip(self._session.get_outputs(), self._session.run(None, feeds), strict=True):
            outputs.append(InferOutput(node.name, list(array.shape), TYPES[node.type], data=array))
        return InferResponse(payload.id, self.name, outputs, requested_outputs=payload.request_outputs)


def _describe(node: Any) -> dict[str, Any]:
    shape = [size if isinstance(size, int) else -1 for size in node.shape]
    return {"name": node.name, "datatype": TYPES[node.type], "shape": shape}


if __name__ == "__main__":
    port, *models = sys.argv[1:]
    ModelServer(http_port=int(port), enable_grpc=False, workers=1).start(
        [OnnxModel(*model.split("=", 1)) for model in models]
    )
