"""A small server of the Open Inference Protocol, version 2, over ONNX Runtime, whose answers a test may change.

The adapters' tests use MLServer in its place, where it is installed.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from groundwire.runtime.bundles.bundle import open_bundles
from groundwire.runtime.kserve.names import name_model

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""
Change = Callable[[str, str, Reply], Reply]
"""From method, path and the server's own reply to the one that is sent."""
HEADER_LENGTH = "Inference-Header-Content-Length"
TYPES = {
    "tensor(float)": ("FP32", np.float32),
    "tensor(float16)": ("FP16", np.float16),
    "tensor(int64)": ("INT64", np.int64),
    "tensor(int32)": ("INT32", np.int32),
    "tensor(uint8)": ("UINT8", np.uint8),
    "tensor(int8)": ("INT8", np.int8),
    "tensor(bool)": ("BOOL", np.bool_),
}


class ModelServer:
    """ONNX graphs by name. ``change`` replaces replies, ``requests`` lists what was asked."""

    def __init__(self, models: Mapping[str, Path], *, binary: bool = True, metadata: bool = True) -> None:
        self.binary = binary
        self.metadata = metadata
        self.change: Change = lambda method, path, reply: reply
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self._sessions = {
            name: ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            for name, path in models.items()
        }

    @classmethod
    def of_bundle(cls, where: str | Path, **options: bool) -> ModelServer:
        """The graphs of a bundle and of its companion under the names that their engine asks for."""
        return cls(
            {
                name_model(bundle, graph): bundle.file(graph)
                for bundle in open_bundles(where)
                for role in bundle.manifest.roles.values()
                for graph in (*role.graph_files, *role.target_files)
            },
            **options,
        )

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        """The reply to a request."""
        self.requests.append((method, path, headers))
        status, content = 200, {}
        parts = path.split("/")[1:]
        if parts == ["v2"]:
            extensions = ["binary_tensor_data"] if self.binary else []
            content = {"name": "test-server", "version": "1.0", "extensions": extensions}
        elif parts[:2] == ["v2", "models"] and parts[2] in self._sessions:
            if parts[3:] == ["infer"] and method == "POST":
                return self._infer(self._sessions[parts[2]], headers, body)
            content = self._describe(parts[2]) if len(parts) == 3 else {"ready": True}
        else:
            status, content = 404, {"error": f"{path} was not found"}
        return status, {}, json.dumps(content).encode()

    def _describe(self, name: str) -> dict[str, Any]:
        session = self._sessions[name]

        def describe(nodes: Any) -> list[dict[str, Any]]:
            return [
                {
                    "name": node.name,
                    "datatype": TYPES[node.type][0],
                    "shape": [size if isinstance(size, int) else -1 for size in node.shape],
                }
                for node in nodes
            ]

        if not self.metadata:
            return {"name": name, "platform": "onnxruntime_onnx"}
        return {"name": name, "inputs": describe(session.get_inputs()), "outputs": describe(session.get_outputs())}

    def _infer(self, session: ort.InferenceSession, headers: dict[str, str], body: bytes) -> Reply:
        length = int(headers.get(HEADER_LENGTH.lower(), len(body)))
        request, position, feeds = json.loads(body[:length]), length, {}
        types = {node.name: TYPES[node.type] for node in session.get_inputs()}
        for tensor in request["inputs"]:
            datatype, numpy = types[tensor["name"]]
            assert tensor["datatype"] == datatype, tensor
            if "data" in tensor:
                array = np.array(tensor["data"], dtype=numpy)
            else:
                size = tensor["parameters"]["binary_data_size"]
                array = np.frombuffer(body[position : position + size], dtype=numpy)
                position += size
            feeds[tensor["name"]] = array.reshape(tensor["shape"])
        assert position == len(body)
        names = [output["name"] for output in request["outputs"]]
        tensors, contents = [], []
        for name, array in zip(names, session.run(names, feeds), strict=True):
            datatype = next(kind for kind, numpy in TYPES.values() if array.dtype == numpy)
            tensor = {"name": name, "datatype": datatype, "shape": array.shape}
            if length < len(body):
                contents.append(array.tobytes())
                tensor["parameters"] = {"binary_data_size": len(contents[-1])}
            else:
                tensor["data"] = array.ravel().tolist()
            tensors.append(tensor)
        header = json.dumps({"model_name": "m", "outputs": tensors}).encode()
        return 200, {HEADER_LENGTH: str(len(header))} if contents else {}, b"".join((header, *contents))

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on a port of this machine; yields the URL."""
        models = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def log_message(self, *args: Any) -> None:
                pass

            def _answer(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, extra, content = models.change(
                    method, self.path, models.answer(method, self.path, headers, body)
                )
                with contextlib.suppress(OSError):  # the client may have gone
                    self.send_response(status)
                    for name, value in extra.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
