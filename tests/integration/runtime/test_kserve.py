"""A bundle whose graphs run on a model server: equal values, and an error for each way in which the server fails."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from groundwire.engine import Engine, InvalidRequest, LoadOptions, ModelError, ServerError, ServerUnavailable
from groundwire.runtime import Endpoint
from groundwire.runtime.bundles.bundle import Bundle, embedded, locate
from groundwire.runtime.kserve.names import name_model
from groundwire.runtime.kserve.server import Server
from groundwire.runtime.kserve.specs import read_graph_spec
from groundwire.runtime.ort.remote import RemoteGraph
from groundwire.runtime.ort.session import DeviceProfile, Session
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")
ROWS = [
    ("Bob Ross hosted The Joy of Cooking.", "Bob Ross was the creator and host of The Joy of Painting."),
    ("The tower is 324 metres tall.", ("The Eiffel Tower is in Paris.", "It is 330 metres tall.")),
]
GRAPH = "detector.consistency.onnx"


@pytest.fixture(scope="module")
def compact() -> Path:
    return locate("compact")


@pytest.fixture(scope="module")
def all_models() -> ModelServer:
    return ModelServer.of_bundle("compact")


@pytest.fixture(scope="module")
def one_model(compact: Path) -> ModelServer:
    bundle = Bundle.open(compact)
    return ModelServer({name_model(bundle, GRAPH): bundle.file(GRAPH)})


@pytest.fixture
def small(one_model: ModelServer) -> Iterator[tuple[ModelServer, str]]:
    """A server with one model, and its URL."""
    before, one_model.binary, one_model.metadata = one_model.change, True, True
    one_model.requests.clear()
    with one_model.serve() as url:
        yield one_model, url
    one_model.change = before


Open = Callable[[str | Endpoint], RemoteGraph]


@pytest.fixture
def open_graph(compact: Path) -> Iterator[Open]:
    """Opens the graph at a server, whose connections are closed with the test."""
    with contextlib.ExitStack() as stack:

        def open_at(url: str | Endpoint) -> RemoteGraph:
            server = Server.open(url if isinstance(url, Endpoint) else Endpoint(url))
            stack.callback(server.close)
            return RemoteGraph.load(Bundle.open(compact), GRAPH, server)

        yield open_at


def feeds(rows: int = 3, width: int = 16) -> dict[str, np.ndarray]:
    ids = np.arange(rows * width, dtype=np.int64).reshape(rows, width) + 1000
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def test_every_metric_has_the_value_that_it_has_here(all_models: ModelServer) -> None:
    with Engine.load("compact", device="cpu", threads=1) as engine:
        expected = list(engine.score_many(ROWS, metrics="all"))
    with all_models.serve() as url:
        with Engine.load("compact", options=LoadOptions(backend="kserve", url=url)) as engine:
            scores = list(engine.score_many(ROWS, metrics="all"))
            signature = engine.plan("all").signature
        assert "(unverified)" in signature
        assert "|device:kserve/test-server-1.0|" in signature
        with pytest.raises(ServerUnavailable, match="broke"):
            engine.core.runtime.profile.server.check_model("m", read_graph_spec(locate("compact") / GRAPH))  # type: ignore[attr-defined]
    for score, other in zip(scores, expected, strict=True):
        assert {name: result.value for name, result in score.metrics.items()} == {
            name: result.value for name, result in other.metrics.items()
        }
        assert (score.verdict, score.unsupported) == (other.verdict, other.unsupported)


def test_what_is_read_of_graphs_is_what_onnx_runtime_says(compact: Path) -> None:
    for path in compact.glob("*.onnx"):
        session, spec = Session.load(path, DeviceProfile.of("cpu", 1)), read_graph_spec(path)
        assert tuple(tensor.name for tensor in spec.outputs) == session.outputs
        assert {tensor.name: tensor.datatype.onnx for tensor in spec.inputs} == session.input_types
        expected = [node.shape for node in session._session.get_inputs()]
        assert [list(tensor.shape) for tensor in spec.inputs] == expected


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("metadata", [True, False])
def test_a_graph_gives_the_numbers_of_a_session(
    small: tuple[ModelServer, str], open_graph: Open, compact: Path, binary: bool, metadata: bool
) -> None:
    server, url = small
    server.binary, server.metadata = binary, metadata
    graph = open_graph(url)
    expected = Session.load(compact / GRAPH, DeviceProfile.of("cpu", 1)).run(feeds())
    assert [array.tobytes() for array in graph.run(feeds())] == [array.tobytes() for array in expected]
    sent = server.requests[-1][2]
    assert ("inference-header-content-length" in sent) == binary


def test_headers_and_names_are_sent(small: tuple[ModelServer, str], open_graph: Open) -> None:
    server, url = small
    (model,) = server._sessions
    server._sessions["mine"] = server._sessions[model]
    try:
        endpoint = Endpoint(
            f"{url}", headers={"Authorization": "Bearer x", "Host": "nli.example"}, models={GRAPH: "mine"}
        )
        open_graph(endpoint).run(feeds())
    finally:
        del server._sessions["mine"]
    assert server.requests[-1][1] == "/v2/models/mine/infer"
    assert {request[2]["authorization"] for request in server.requests} == {"Bearer x"}
    assert {request[2]["host"] for request in server.requests} == {"nli.example"}


def test_other_weights_have_another_name(compact: Path) -> None:
    bundle = Bundle.open(compact)
    name = name_model(bundle, GRAPH)
    assert name.startswith("compact.detector.consistency-")
    entry = msgspec.structs.replace(bundle.manifest.files[GRAPH], sha256="0" * 64)
    files = {**bundle.manifest.files, GRAPH: entry}
    other = Bundle(bundle.directory, msgspec.structs.replace(bundle.manifest, files=files))
    assert name_model(other, GRAPH) != name


def test_no_server(compact: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ServerUnavailable, match="cannot be reached"):
        Engine.load("compact", options=LoadOptions(backend="kserve", url=url))


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://localhost", "http://", ""])
def test_no_address(url: str) -> None:
    with pytest.raises(InvalidRequest, match="is no address of a model server"):
        Engine.load("compact", options=LoadOptions(backend="kserve", url=url, verify=False))


def test_no_time() -> None:
    with pytest.raises(InvalidRequest, match="timeout_ms is 0; allowed are numbers from 1"):
        Server.open(Endpoint("http://localhost", timeout_ms=0))


def test_a_missing_model(small: tuple[ModelServer, str]) -> None:
    with pytest.raises(ServerError, match=r"status 404: .*\(groundwire export triton"):
        Engine.load("compact", options=LoadOptions(backend="kserve", url=small[1], verify=False))


def test_a_gpu_of_the_server_is_its_own_choice(small: tuple[ModelServer, str]) -> None:
    with pytest.raises(InvalidRequest, match="the model server chooses its GPU; pass 'cuda'"):
        Engine.load("compact", "cuda:1", options=LoadOptions(backend="kserve", url=small[1], verify=False))


@pytest.mark.parametrize(
    ("suffix", "reply", "kind", "message"),
    [
        ("/v2", (200, {}, b"<html>"), ServerError, "is no answer of the Open Inference Protocol"),
        ("/v2", (401, {}, b""), ServerError, "answers with status 401"),
        ("/v2", (503, {}, b'{"error": "starting"}'), ServerUnavailable, "status 503: starting"),
        ("/ready", (503, {}, b"{}"), ServerUnavailable, "The model is not ready"),
        ("/ready", (400, {}, b"{}"), ServerUnavailable, "The model is not ready"),
        ("/infer", (500, {}, b'{"error": "no memory"}'), ServerError, "status 500: no memory"),
        ("/infer", (429, {}, b"slow down"), ServerUnavailable, "status 429: slow down"),
        ("/infer", (302, {"Location": "http://elsewhere"}, b""), ServerError, "status 302"),
        ("/infer", (200, {}, b"{}"), ServerError, "otherwise than the protocol"),
    ],
)
def test_an_answer_that_is_an_error(
    small: tuple[ModelServer, str], open_graph: Open, suffix: str, reply: Reply, kind: type[ServerError], message: str
) -> None:
    server, url = small
    server.change = lambda method, path, good: reply if path.endswith(suffix) else good
    with pytest.raises(kind, match=message) as raised:
        open_graph(url).run(feeds())
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ({"name": "ids", "datatype": "INT64", "shape": [-1, -1]}, r"has the inputs \['ids'\], but its graph has"),
        ({"name": "input_ids", "datatype": "INT32", "shape": [-1, -1]}, "input input_ids .* is INT32"),
        ({"name": "input_ids", "datatype": "INT64", "shape": [-1]}, r"has the shape \[-1\]"),
    ],
)
def test_a_model_of_another_graph(
    small: tuple[ModelServer, str], open_graph: Open, tensor: dict[str, object], message: str
) -> None:
    server, url = small
    others = [{"name": name, "datatype": "INT64", "shape": [-1, -1]} for name in ("attention_mask", "token_type_ids")]
    given = [tensor] if tensor["name"] == "ids" else [tensor, *others]
    metadata = msgspec.json.encode({"name": "m", "inputs": given})
    server.change = lambda method, path, good: (
        (200, {}, metadata) if path.startswith("/v2/models/") and path.count("/") == 3 else good
    )
    with pytest.raises(ServerError, match=message):
        open_graph(url)


def test_rows_that_are_lost_or_added(small: tuple[ModelServer, str], open_graph: Open) -> None:
    server, url = small
    graph = open_graph(url)
    replies: list[Reply] = []
    server.change = lambda method, path, good: replies.append(good) or good  # type: ignore[func-returns-value]
    graph.run(feeds(rows=2))
    server.change = lambda method, path, good: replies[0]
    with pytest.raises(
        ServerError, match=r"gives detector.consistency the shape \[2, 2\], but its graph gives \[3, 2\]"
    ):
        graph.run(feeds(rows=3))


def test_a_server_that_does_not_answer(small: tuple[ModelServer, str], open_graph: Open) -> None:
    server, url = small
    graph = open_graph(Endpoint(url, timeout_ms=200))

    def wait(method: str, path: str, good: Reply) -> Reply:
        time.sleep(1)
        return good

    server.change = wait
    with pytest.raises(ServerUnavailable, match="did not answer within 200 ms"):
        graph.run(feeds())


def test_nothing_passes_while_the_server_fails(all_models: ModelServer) -> None:
    def fail(method: str, path: str, good: Reply) -> Reply:
        return (503, {}, b'{"error": "overloaded"}') if path.endswith("/infer") else good

    with (
        all_models.serve() as url,
        Engine.load("compact", options=LoadOptions(backend="kserve", url=url, verify=False)) as engine,
    ):
        all_models.change = fail
        try:
            score = engine.score(*ROWS[0], metrics=["nli"])
        finally:
            all_models.change = lambda method, path, good: good
        assert score.status == "failed"
        assert "overloaded" in score.message
        assert (score.value, score.verdict.label) == (None, "unknown")
        assert engine.score(*ROWS[0], metrics=["nli"]).status == "scored"


def test_models_that_answer_otherwise_are_found_when_they_are_loaded(all_models: ModelServer) -> None:
    def disturb(method: str, path: str, good: Reply) -> Reply:
        status, headers, content = good
        if not path.endswith("/infer") or ".detector.consistency-" not in path:
            return good
        length = int(headers["Inference-Header-Content-Length"])
        numbers = np.frombuffer(content[length:], np.float32)
        return status, headers, content[:length] + (-numbers).tobytes()

    all_models.change = disturb
    try:
        with (
            all_models.serve() as url,
            pytest.raises(ModelError, match=r"The role .* answers its stored input otherwise"),
        ):
            Engine.load("compact", options=LoadOptions(backend="kserve", url=url))
    finally:
        all_models.change = lambda method, path, good: good


def test_the_code_of_the_guide(all_models: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    guide = Path(__file__).resolve().parents[3] / "docs" / "guides" / "scale-out.md"
    (code,) = re.findall(
        r"# doc: skip \(needs a model server\)\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL
    )
    with all_models.serve() as url:
        exec(code.replace("http://localhost:8000", url), {})
    assert "|device:kserve/test-server-1.0|" in capsys.readouterr().out
