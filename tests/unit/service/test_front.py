"""Tokens, ids, logs, numbers, readiness and the OpenAPI document: what every request shares."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import Any

import httpx
import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from groundwire import service
from groundwire.engine import Engine, InvalidRequest, Score
from groundwire.runtime.calls import Classify
from groundwire.runtime.errors import ModelError
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from groundwire.service import health
from groundwire.service.application import OPERATIONS, app
from groundwire.service.front import TOKENLESS, Front
from groundwire.service.logs import FIELDS
from groundwire.service.problems import STATUS, Problem
from groundwire.service.settings import Settings
from tests.support import correcting
from tests.support.generation import language_model
from tests.support.graph_world import FILMS
from tests.support.graph_world import world as graph_world
from tests.support.offline import ROOT
from tests.support.service import HONEY, connect, run, serve
from tests.support.streams import classify, world


@pytest.mark.anyio
async def test_a_token_is_needed_but_for_health() -> None:
    async with serve(tokens=("a", "b")) as (client, _):
        for operation in OPERATIONS:
            answer = await client.request(operation.method, operation.path)
            assert (answer.status_code == 401) == (operation.path not in TOKENLESS), operation.path
        assert (await client.get("/openapi.json")).status_code == 401
        assert (await client.get("/nothing")).status_code == 401, "what there is, is not for everyone"
        refused = await client.post("/score", json=HONEY, headers={"Authorization": "Bearer wrong"})
        assert refused.headers["www-authenticate"].startswith("Bearer")
        for token in ("a", "b"):
            answer = await client.post("/score", json=HONEY, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200


def test_an_id_goes_through(caplog: pytest.LogCaptureFixture) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> None:
        for body in (HONEY, {}):
            answer = await client.post("/score", json=body, headers={"X-Request-Id": "mine"})
            assert answer.headers["x-request-id"] == "mine"
        assert answer.json()["request_id"] == "mine"
        assert len((await client.get("/healthz")).headers["x-request-id"]) == 32

    with caplog.at_level(logging.INFO, "groundwire.service"):
        run(test)
    lines = [getattr(record, FIELDS) for record in caplog.records if record.getMessage() == "request"]
    assert [line["request_id"] for line in lines] == ["mine", "mine"], "health checks are no news"


@pytest.mark.parametrize("log_texts", [False, True])
def test_a_log_has_texts_only_if_asked(caplog: pytest.LogCaptureFixture, log_texts: bool) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> None:
        await client.post("/score", json=HONEY)
        await client.post("/score", json=HONEY | {"response": 7})
        await client.post("/score", json=HONEY | {"response": "Honey \0"})

    with caplog.at_level(logging.DEBUG, "groundwire.service"):
        run(test, log_texts=log_texts)
    lines = [getattr(record, FIELDS) for record in caplog.records if record.getMessage() == "request"]
    assert ("Honey" in json.dumps(lines)) == log_texts
    assert {name: lines[0][name] for name in ("route", "status", "method", "tokens", "verdict", "score_status")} == {
        "route": "/score", "status": 200, "method": "POST", "tokens": 20, "verdict": "consistent",
        "score_status": "scored",
    }  # fmt: skip
    assert [(line["status"], line.get("code")) for line in lines[1:]] == [(422, "invalid")] * 2


def test_a_refusal_is_logged_with_its_tenant_and_its_peer(caplog: pytest.LogCaptureFixture) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> None:
        for token, response in (("secret", "Honey."), ("secret", 7), ("guess", "Honey.")):
            await client.post(
                "/score", json=HONEY | {"response": response}, headers={"Authorization": f"Bearer {token}"}
            )

    with caplog.at_level(logging.INFO, "groundwire.service"):
        run(test, tenant_tokens={"shop": ("secret",)})
    lines = [getattr(record, FIELDS) for record in caplog.records if record.getMessage() == "request"]
    logged = [(line["status"], line.get("tenant"), line.get("peer")) for line in lines]
    assert logged == [(200, "shop", None), (422, "shop", "127.0.0.1"), (401, None, "127.0.0.1")]
    assert "secret" not in caplog.text + str(lines)
    assert "guess" not in caplog.text + str(lines)


def test_a_request_that_the_stop_cuts_off_gets_503() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> None:
        started, answers = asyncio.Event(), []

        async def wait(*_: object) -> None:
            started.set()
            await asyncio.sleep(60)

        async def keep(message: Any) -> None:
            answers.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request"}

        front._router = wait
        for is_draining in (True, False):
            scope = {"type": "http", "method": "POST", "path": "/score", "headers": [], "query_string": b""}
            task = asyncio.create_task(front(scope, receive, keep))
            await started.wait()
            started.clear()
            front.service.readiness.is_draining = is_draining
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(outcome, asyncio.CancelledError) == (not is_draining)
        problem = msgspec.json.decode(answers[1]["body"], type=Problem)
        assert (answers[0]["status"], problem.code, problem.status) == (503, "closed", 503)
        assert len(answers) == 2, "without a stop the client has left"

    run(test)


def test_a_refusal_before_the_handler_has_the_route_of_its_path(caplog: pytest.LogCaptureFixture) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        await client.post("/score", json=HONEY)
        await client.get("/v2/models/groundwire")
        await client.get("/ui/nothing")
        authorized = {"Authorization": "Bearer a"}
        await client.get("/score", headers=authorized)
        return (await client.get("/metrics", headers=authorized)).text

    with caplog.at_level(logging.INFO, "groundwire.service"):
        text = run(test, tokens=("a",))
    for line in (
        'groundwire_refusals_total{code="unauthorized",route="/score"} 1.0',
        'groundwire_refusals_total{code="unauthorized",route="/v2/models/{name}"} 1.0',
        'groundwire_refusals_total{code="unauthorized",route="other"} 1.0',
        'groundwire_requests_total{route="/score",status="405"} 1.0',
    ):
        assert line in text, line
    lines = [getattr(record, FIELDS) for record in caplog.records if record.getMessage() == "request"]
    assert (lines[0]["route"], lines[0]["status"]) == ("/score", 401)


def test_the_page_of_paths_links_the_document_only_where_a_browser_gets_it() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        return (await client.get("/docs")).text

    assert 'href="openapi.json"' in run(test)
    assert 'href="openapi.json"' not in run(test, tokens=("a",))
    assert "<code>/openapi.json</code>, with a token" in run(test, tokens=("a",))


def test_numbers_are_counted() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        await client.post("/score", json=HONEY)
        await client.post("/score", json=HONEY | {"response": "Honey is blue."})
        await client.post("/score", json={})
        await client.get("/somewhere/else")
        return (await client.get("/metrics")).text

    text = run(test)
    for line in (
        'groundwire_requests_total{route="/score",status="200"} 2.0',
        'groundwire_requests_total{route="/score",status="422"} 1.0',
        'groundwire_requests_total{route="other",status="404"} 1.0',
        'groundwire_verdicts_total{label="consistent",profile="balanced"} 1.0',
        'groundwire_verdicts_total{label="inconsistent",profile="balanced"} 1.0',
        'groundwire_metric_results_total{metric="nli",status="scored"} 2.0',
        'groundwire_request_duration_seconds_count{route="/score"} 3.0',
        "groundwire_queue_duration_seconds_count 2.0",
        'groundwire_stage_duration_seconds_count{role="nli"} 2.0',
        'groundwire_batch_size_count{role="nli"}',
        'groundwire_batch_duration_seconds_count{role="detector.verifiability"}',
        "groundwire_queue_size 0.0",
        "groundwire_queue_tokens 0.0",
        "groundwire_active_requests 0.0",
        "groundwire_waiting_calls 0.0",
        "groundwire_ready 1.0",
        "groundwire_processes 1.0",
        "groundwire_configured_processes 1.0",
        "groundwire_process_restarts_total 0.0",
        "groundwire_cache_misses_total",
        "groundwire_captured_shapes 0.0",
        "groundwire_uncaptured_runs_total 0.0",
        "groundwire_failed_captures_total 0.0",
        'groundwire_refusals_total{code="invalid",route="/score"} 1.0',
        'groundwire_refusals_total{code="not_found",route="other"} 1.0',
    ):
        assert line in text, line


class Model:
    """A classifier that fails while ``broken``; ``calls`` counts what it was asked."""

    def __init__(self) -> None:
        self.broken = False
        self.calls = 0

    def __call__(self, call: Classify) -> Outcome:
        self.calls += 1
        if self.broken:
            raise ModelError("out of memory")
        return classify(call)


@pytest.mark.anyio
async def test_a_server_is_ready_after_a_real_score(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    seconds = [0.0]

    with Engine(world(nli=model)) as engine:
        front = app(engine)
        front.service.readiness._now = lambda: seconds[0]
        async with connect(front) as client:
            assert (await client.post("/score", json=HONEY)).status_code == 503, "models are being warmed"
            assert (await client.get("/healthz")).status_code == 200, "it lives all the same"
            await front.warm()
            calls = model.calls
            assert calls > 0
            assert (await client.get("/readyz")).json() == {"status": "ready"}
            assert model.calls == calls, "that score is new enough"
            seconds[0] += health.PROBE_SECONDS
            model.broken = True
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
            assert "out of memory" in answer.json()["detail"]
            model.broken = False
            assert (await client.get("/readyz")).status_code == 200, "it is asked again at once"
            assert (await client.post("/score", json=HONEY)).status_code == 200
            front.service.readiness.is_draining = True
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.post("/score", json=HONEY)).status_code == 200, "until it stops"


@pytest.mark.anyio
async def test_a_server_that_cannot_be_warmed_is_not_ready_and_tries_again() -> None:
    model = Model()
    model.broken = True

    with Engine(world(nli=model)) as engine:
        front = app(engine)
        async with connect(front) as client:
            await front.warm()
            for _ in range(2):
                answer = await client.post("/score", json=HONEY)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            model.broken = False
            await front.warm()
            assert (await client.post("/score", json=HONEY)).status_code == 200


@pytest.mark.anyio
async def test_a_server_is_warmed_when_it_starts() -> None:
    messages: asyncio.Queue[Any] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    with Engine(world()) as engine:
        front = app(engine)
        task = asyncio.create_task(front({"type": "lifespan"}, messages.get, sent.put))
        await messages.put({"type": "lifespan.startup"})
        assert (await sent.get())["type"] == "lifespan.startup.complete"
        await front.warm()
        assert front.service.readiness.is_warm
        await messages.put({"type": "lifespan.shutdown"})
        assert (await sent.get())["type"] == "lifespan.shutdown.complete"
        await task


def test_settings_must_fit_the_engine() -> None:
    with Engine(world()) as engine:
        with pytest.raises(InvalidRequest, match="nil"):
            app(engine, Settings(metrics=("nil",)))
        with pytest.raises(InvalidRequest, match="pass an Engine"):
            app("compact")  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_candidates_are_ranked() -> None:
    async with serve(FakeRuntime({"lm": language_model})) as (client, _):
        body = {"candidates": ["honey is blue", "bees make honey"], "knowledge": "bees make honey", "history": ["hi"]}
        ranked = (await client.post("/rank", json=body)).json()["ranked"]
        assert [candidate["index"] for candidate in ranked] == [1, 0]
        answer = await client.post("/rank", json=body | {"candidates": []})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.candidates")
        answer = await client.post("/rank", json=body | {"candidates": ["a"] * 65})
        assert (answer.status_code, answer.json()["path"]) == (413, "$.candidates")
        assert (await client.post("/rank", json=body | {"metric": "fast"})).json()["path"] == "$.metric"
        scored = (await client.post("/score", json=HONEY)).json()
        assert scored["metrics"]["pmi"]["status"] == "scored", "without a calibration: all metrics of its models"
        unread = await client.post("/rank", json=body | {"candidates": ["x " * 8, "bees make honey"]})
        assert [candidate["result"]["status"] for candidate in unread.json()["ranked"]] == ["scored", "truncated"]


@pytest.mark.anyio
async def test_names_are_repaired() -> None:
    async with serve(graph_world()) as (client, _):
        body = {
            "response": "It was directed by James Cameron.",
            "history": ["Do you know Alien?"],
            "triples": [[triple.subject, triple.predicate, triple.object] for triple in FILMS],
        }
        answer = await client.post("/refine", json=body)
        assert answer.json()["response"] == "It was directed by Ridley Scott."
        answer = await client.post("/refine", json=body | {"triples": []})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.triples")
        answer = await client.post("/refine", json=body | {"top": 0})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.top")


def test_a_response_is_corrected_by_its_knowledge() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> None:
        body = {"response": "The violin has six strings.", "knowledge": ["The violin has four strings."]}
        answer = await client.post("/correct", json=body)
        assert (answer.status_code, answer.json()["status"]) == (200, "corrected")
        assert answer.json()["response"] == "The violin has four strings."
        assert answer.json()["edits"][0]["evidence"] == {"passage": 0, "start": 15, "end": 19}
        answer = await client.post("/correct", json=body | {"max_drafts": 0})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.max_drafts")
        answer = await client.post("/correct", json=body | {"knowledge": "\0"})
        assert (answer.status_code, answer.json()["path"]) == (422, "$.knowledge[0]")
        answer = await client.post("/correct", json=body | {"knowledge": ["a"] * 10_000})
        assert answer.status_code == 413

    def fail(call: Classify) -> Outcome:
        if "Six" in call.hypothesis:
            raise ModelError("out of order")
        return correcting.entail(call)

    async def test_failure(client: httpx.AsyncClient, front: Front) -> None:
        answer = await client.post("/correct", json={"response": "Six strings.", "knowledge": "Four strings."})
        assert answer.status_code == 500
        assert answer.json()["result"]["status"] == "failed"

    run(test, FakeRuntime(correcting.ROLES, calibration=correcting.CALIBRATION))
    run(test_failure, FakeRuntime({"nli": fail}, calibration=correcting.CALIBRATION))


@pytest.mark.anyio
async def test_what_the_bundle_lacks_is_said() -> None:
    async with serve() as (client, _):
        answer = await client.post("/refine", json={"response": "a", "triples": [["a", "b", "c"]]})
        assert (answer.status_code, "Load the bundle 'nph'" in answer.json()["detail"]) == (422, True)
        answer = await client.post("/generate", json={"knowledge": "a", "history": ["b"]})
        assert (answer.status_code, "role 'generator'" in answer.json()["detail"]) == (422, True)


def test_the_document_describes_what_is_there() -> None:
    document = run(lambda client, _: client.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    for operation in OPERATIONS:
        entry = document["paths"][operation.path][operation.method.lower()]
        assert entry["summary"], operation.path
        assert set(entry["responses"]) == {"200", *(str(STATUS[code]) for code in operation.problems)}
    schemas = document["components"]["schemas"]
    references = set(json.dumps(document).split("#/components/schemas/")[1:])
    assert {reference.partition('"')[0] for reference in references} <= set(schemas)
    assert schemas["ScoreBody"]["required"] == ["response"]
    assert schemas["ScoreBody"]["additionalProperties"] is False
    assert schemas["Options"]["properties"]["deadline_ms"]["description"].startswith("Milliseconds after which")


@pytest.mark.anyio
async def test_answers_have_the_documents_types() -> None:
    async with serve() as (client, _):
        msgspec.json.decode((await client.post("/score", json=HONEY)).content, type=Score)
        msgspec.json.decode((await client.post("/score", json={})).content, type=Problem)


def test_the_package_has_what_it_says() -> None:
    """No module takes the place of a function of its name."""
    assert service.app is app
    assert [getattr(service, name).__name__ for name in service.__all__] == service.__all__
    with pytest.raises(AttributeError, match="nothing"):
        _ = service.nothing  # type: ignore[attr-defined]


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "groundwire.service.application")
    monkeypatch.setitem(sys.modules, "starlette.requests", None)
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(ImportError, match=r"pip install 'groundwire\[serve\]'"):
        _ = service.app


def test_the_engine_needs_no_web_framework() -> None:
    code = "import sys, groundwire.cli.program, groundwire.cli.serve; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not {"starlette", "uvicorn", "prometheus_client"} & set(modules.split())


def test_a_request_is_a_span_of_its_callers_trace(caplog: pytest.LogCaptureFixture) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def test(client: httpx.AsyncClient, front: Front) -> None:
        exporter.clear()
        await client.post("/score", json=HONEY, headers={"traceparent": parent})
        front.service.engine.close()
        await client.post("/score", json=HONEY)
        await client.get("/somewhere")

    with caplog.at_level(logging.INFO, "groundwire.service"):
        run(test, log_texts=True)
    first, second, third = exporter.get_finished_spans()
    assert (first.name, second.name, third.name) == ("POST /score", "POST /score", "GET other")
    assert first.context is not None
    assert first.parent is not None
    assert trace.format_trace_id(first.context.trace_id) == parent[3:35]
    assert trace.format_span_id(first.parent.span_id) == parent[36:52]
    assert first.attributes is not None
    assert {**first.attributes}.items() >= {
        ("http.route", "/score"), ("http.response.status_code", 200), ("groundwire.verdict", "consistent"),
    }  # fmt: skip
    assert "Honey" not in str({**first.attributes}), "texts are for the log, if at all"
    assert (first.status.is_ok, second.status.is_ok) == (True, False)
    lines = [getattr(record, FIELDS) for record in caplog.records if record.getMessage() == "request"]
    assert lines[0]["trace_id"] == parent[3:35]
