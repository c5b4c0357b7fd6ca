"""The proxy before a server of OpenAI's chat protocol: what leaves, what is passed on, and what is refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import msgspec
import pytest

from groundwire.engine import Engine, InvalidRequest
from groundwire.runtime.bundles.calibration import Band
from groundwire.runtime.fake import FakeRuntime
from groundwire.service.proxy import make_proxy
from groundwire.service.settings import ProxySettings
from tests.support.broken_folds import break_folds
from tests.support.chat_server import ERROR, ChatServer
from tests.support.proxy import ASKED, GIVEN, RIGHT, TEXT, UPSTREAM, WRONG, fail, run
from tests.support.small_talk import ASSERTIONS, SMALL_TALK
from tests.support.streams import CALIBRATION, KNOWLEDGE, world
from tests.support.verdicts import make_profile

PATH = "/v1/chat/completions"


def ask(body: dict[str, Any] | None = None, headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
    """The answer to one chat, whose body has the fields besides."""
    content = {"model": "m", "messages": ASKED, "groundwire": GIVEN} | (body or {})
    return run(lambda client, _: client.post(PATH, json=content, headers=headers), **options)


def read_stream(answer: httpx.Response) -> list[Any]:
    """The chunks of a stream, None for its end."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = answer.text.split("\n\n")
    assert events.pop() == ""
    data = [event.removeprefix("data: ") for event in events]
    return [None if part == "[DONE]" else json.loads(part) for part in data]


def join(chunks: list[Any]) -> str:
    choices = [choice for chunk in chunks if chunk for choice in chunk.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("policy", "left", "reason"),
    [
        ("block", RIGHT, "content_filter"),
        ("annotate", TEXT, "stop"),
        ("redact", f"{RIGHT} Honey is […]. {RIGHT}", "content_filter"),
    ],
)
def test_a_policy_decides_what_leaves(policy: str, left: str, reason: str, stream: bool) -> None:
    answer = ask({"stream": stream}, policy=policy)
    assert answer.status_code == 200
    if stream:
        *chunks, end = read_stream(answer)
        assert end is None
        assert join(chunks) == left
        (last,) = (chunk["choices"][0] for chunk in chunks if chunk["choices"] and chunk["choices"][0]["finish_reason"])
    else:
        (last,) = answer.json()["choices"]
        assert last["message"] == {"role": "assistant", "content": left}
        assert answer.json()["usage"]["total_tokens"] == 3
    assert last["finish_reason"] == reason
    assert last["groundwire"]["label"] == "inconsistent"
    assert [span["text"] for span in last["groundwire"]["unsupported"]] == ["blue"]


ALL_SURE, RIGHT_SURE, NONE_SURE = Band(low=0.4, high=0.6), Band(low=0.05, high=0.6), Band()
"""The right sentence has the probability 0.88, the wrong one 0.12."""


@pytest.mark.parametrize(
    ("band", "policy", "unsure", "left"),
    [
        (ALL_SURE, "annotate", "block", TEXT),
        (ALL_SURE, "block", "annotate", RIGHT),
        (RIGHT_SURE, "annotate", "block", RIGHT),
        (RIGHT_SURE, "block", "annotate", TEXT),
        (RIGHT_SURE, "block", "redact", f"{RIGHT} Honey is […]. {RIGHT}"),
        (RIGHT_SURE, "block", "label", RIGHT),
        (NONE_SURE, "annotate", "block", ""),
        (NONE_SURE, "annotate", "label", TEXT),
    ],
)
def test_labels_that_are_not_sure_have_a_policy_of_their_own(band: Band, policy: str, unsure: str, left: str) -> None:
    fusions = (msgspec.structs.replace(CALIBRATION.fusions[0], band=band),)
    runtime = world(msgspec.structs.replace(CALIBRATION, fusions=fusions))
    (choice,) = ask(policy=policy, unsure=unsure, runtime=runtime).json()["choices"]
    assert choice["message"]["content"] == left
    assert choice["groundwire"]["verdict"]["sure"] is (band == ALL_SURE)


def test_the_profile_is_a_setting_of_the_proxy() -> None:
    fusion = CALIBRATION.fusions[0]
    profiles = {**fusion.profiles, "lenient": make_profile(0.1)}
    runtime = world(msgspec.structs.replace(CALIBRATION, fusions=(msgspec.structs.replace(fusion, profiles=profiles),)))
    (choice,) = ask(profile="lenient", runtime=runtime).json()["choices"]
    assert (choice["message"]["content"], choice["groundwire"]["verdict"]["threshold"]) == (TEXT, 0.1)
    with pytest.raises(InvalidRequest, match="no profile 'strict'; it has balanced"):
        ask(profile="strict")


@pytest.mark.parametrize("stream", [False, True])
def test_a_supported_answer_leaves_as_it_is(stream: bool) -> None:
    answer = ask({"stream": stream}, text=RIGHT)
    if stream:
        chunks = read_stream(answer)
        assert join(chunks) == RIGHT
        assert chunks[-2]["usage"]["total_tokens"] == 3
        last = chunks[-3]["choices"][0]
    else:
        (last,) = answer.json()["choices"]
    assert (last["finish_reason"], last["groundwire"]["label"]) == ("stop", "consistent")
    assert last["groundwire"]["unchanged"] is True


def test_choices_are_checked_one_by_one() -> None:
    choices = ask({"n": 2}, text=WRONG).json()["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["", ""]
    assert ask({"n": 65}).json()["path"] == "$.n"


def test_the_upstream_gets_the_request_without_the_proxys_field() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        body = {"model": "m", "messages": ASKED, "groundwire": GIVEN, "temperature": 0.5, "seed": 1}
        await client.post(f"{PATH}?api-version=1", json=body, headers={"OpenAI-Project": "p", "Cookie": "c"})
        assert upstream.bodies == [{"model": "m", "messages": ASKED, "temperature": 0.5, "seed": 1}]
        assert upstream.headers[0]["openai-project"] == "p"
        assert "cookie" not in upstream.headers[0]

    run(test)


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, "Bearer mine"),
        ({"tokens": ("mine",)}, None),
        ({"upstream_key": "theirs"}, "Bearer theirs"),
        ({"tokens": ("mine",), "upstream_key": "theirs"}, "Bearer theirs"),
    ],
)
def test_a_token_of_the_proxy_stays_with_it(settings: dict[str, Any], sent: str | None) -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        answer = await client.get("/v1/models", headers={"Authorization": "Bearer mine"})
        assert answer.json()["data"] == [{"id": "m", "object": "model"}]
        assert upstream.headers[0].get("authorization") == sent
        if "tokens" in settings:
            refused = await client.get("/v1/models", headers={"Authorization": "Bearer other"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
            assert len(upstream.headers) == 1

    run(test, **settings)


@pytest.mark.parametrize(
    ("messages", "given", "settings", "label"),
    [
        ([{"role": "system", "content": KNOWLEDGE}], None, {}, "consistent"),
        ([{"role": "tool", "content": KNOWLEDGE}], None, {}, "consistent"),
        ([{"role": "system", "content": KNOWLEDGE}], None, {"knowledge_from": ("tool",)}, "unknown"),
        ([{"role": "system", "content": WRONG}], {"knowledge": RIGHT}, {"knowledge_from": ("tool",)}, "consistent"),
        ([], {"knowledge": {"Honey": "is sweet."}}, {}, "consistent"),
        ([{"role": "system", "content": RIGHT}], {"knowledge": []}, {}, "unknown"),
        ([{"role": "user", "content": RIGHT}], None, {}, "unknown"),
    ],
)
def test_the_knowledge_is_in_a_stated_place(messages: Any, given: Any, settings: dict[str, Any], label: str) -> None:
    (choice,) = ask({"messages": messages, "groundwire": given}, text=RIGHT, **settings).json()["choices"]
    assert choice["groundwire"]["label"] == label


def test_small_talk_leaves_without_knowledge_and_an_assertion_does_not() -> None:
    hi = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        for text in (*SMALL_TALK, *ASSERTIONS):
            upstream.text = text
            answer, stream = [await client.post(PATH, json=hi | {"stream": stream}) for stream in (False, True)]
            left = answer.json()["choices"][0]["message"]["content"]
            assert (left == text) == (text in SMALL_TALK), text
            assert join(read_stream(stream)) == left

    run(test)


def test_a_request_without_knowledge_may_be_refused() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        refused = await client.post(PATH, json={"model": "m", "messages": ASKED})
        assert (refused.status_code, refused.json()["path"]) == (422, "$.groundwire.knowledge")
        assert "has no knowledge" in refused.json()["error"]["message"]
        assert upstream.bodies == []

    run(test, without_knowledge="refuse")
    (choice,) = ask({"groundwire": None}, text="Thanks!").json()["choices"]
    assert choice["message"]["content"] == "Thanks!"


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_the_upstream_is_passed_back(stream: bool) -> None:
    answer = ask({"model": "busy", "stream": stream})
    assert (answer.status_code, answer.json()) == (429, ERROR)
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["x-ratelimit-remaining-requests"] == "0"
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"model": "mute"}, "is not JSON"),
        ({"model": "list"}, "is not a chat completion"),
        ({"model": "made"}, "has the status 201"),
        ({"model": "mute", "stream": True}, "is not a stream"),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused(body: dict[str, Any], reason: str) -> None:
    answer = ask(body)
    assert (answer.status_code, answer.json()["code"]) == (502, "upstream")
    assert reason in answer.json()["error"]["message"]
    assert RIGHT not in answer.text


@pytest.mark.parametrize(("model", "code"), [("broken", "upstream"), ("error", ERROR["error"]["code"])])
def test_what_is_held_does_not_leave_with_an_error(model: str, code: str) -> None:
    *chunks, last = read_stream(ask({"model": model, "stream": True}, text=f"{RIGHT} Honey"))
    assert join(chunks) == RIGHT
    assert last["error"]["code"] == code
    assert "choices" not in last


def test_an_answer_over_the_limit_of_bytes_is_refused() -> None:
    assert ask(text=RIGHT * 100, max_body_bytes=1000).json()["code"] == "upstream"
    last = read_stream(ask({"stream": True}, text=RIGHT, max_body_bytes=150))[-1]
    assert "more than 150 bytes" in last["error"]["message"]


def test_an_answer_of_a_transport_that_is_whole_is_checked() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": RIGHT}, "finish_reason": "stop"}
    answer = ask(transport=httpx.MockTransport(lambda request: httpx.Response(200, json={"choices": [choice]})))
    assert answer.json()["choices"][0]["message"]["content"] == RIGHT


def test_an_upstream_that_is_not_there_is_an_error() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    def wait(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("late", request=request)

    assert ask(transport=httpx.MockTransport(refuse)).json()["code"] == "upstream"
    late = ask({"stream": True}, transport=httpx.MockTransport(wait))
    assert (late.status_code, late.json()["error"]["type"]) == (504, "deadline")


@pytest.mark.parametrize("policy", ["block", "annotate", "redact", "correct"])
@pytest.mark.parametrize("stream", [False, True])
def test_nothing_leaves_without_a_check(policy: str, stream: bool) -> None:
    answer = ask({"stream": stream}, text=RIGHT, runtime=world(nli=fail), policy=policy)
    if stream:
        chunks = read_stream(answer)
        assert join(chunks) == ""
    else:
        (choice,) = answer.json()["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("", "content_filter")
        assert choice["groundwire"]["unchanged"] is False


@pytest.mark.parametrize("stream", [False, True])
def test_a_defect_of_the_verdict_is_a_blocked_answer(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    break_folds(monkeypatch)
    answer = ask({"stream": stream}, text="Honey is sweet. Honey is broken.")
    assert answer.status_code == 200
    if stream:
        chunks = read_stream(answer)
        reasons = [choice["finish_reason"] for chunk in chunks if chunk for choice in chunk["choices"]]
        assert (join(chunks).strip(), reasons[-1], chunks[-1]) == ("Honey is sweet.", "content_filter", None)
    else:
        (choice,) = answer.json()["choices"]
        assert (choice["message"]["content"].strip(), choice["finish_reason"]) == ("Honey is sweet.", "content_filter")


def test_a_request_that_is_not_usable_does_not_reach_the_upstream() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        bodies: list[tuple[Any, str]] = [
            ({"model": "m"}, "$.messages"),
            ({"messages": ASKED, "groundwire": {"knowlege": "a"}}, "$.groundwire.knowlege"),
            ({"messages": ASKED, "groundwire": {"knowledge": [5]}}, "$.groundwire.knowledge[0]"),
            ({"messages": ASKED, "groundwire": {"knowledge": "a" * 60_000}}, "$.groundwire.knowledge"),
            ({"messages": [{"role": "system", "content": "a" * 60_000}]}, "$.messages"),
        ]
        for body, path in bodies:
            refused = await client.post(PATH, json=body)
            assert (refused.status_code in (413, 422), refused.json()["path"]) == (True, path), refused.text
        twice = await client.post(PATH, content=b'{"messages": [], "messages": []}')
        assert twice.status_code == 400
        assert upstream.bodies == []

    run(test)


def test_other_paths_are_refused() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        for path in ("/v1/embeddings", "/v1/completions", "/score", "/ui"):
            refused = await client.post(path, json={})
            assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
        assert "would let answers of other paths leave unchecked" in refused.json()["detail"]
        assert (await client.get(PATH)).status_code == 405
        numbers = (await client.get("/metrics")).text
        assert 'groundwire_refusals_total{code="not_found",route="other"} 4.0' in numbers
        assert f'groundwire_refusals_total{{code="method_not_allowed",route="{PATH}"}} 1.0' in numbers
        assert (await client.get("/readyz")).status_code == 200
        assert 'groundwire_verdicts_total{label="consistent"' not in (await client.get("/metrics")).text
        await client.post(PATH, json={"model": "m", "messages": ASKED, "groundwire": GIVEN})
        assert (
            'groundwire_verdicts_total{label="inconsistent",profile="balanced"} 1.0'
            in (await client.get("/metrics")).text
        )

    run(test)


def test_as_many_answers_as_allowed_are_open() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        body = {"model": "m", "messages": ASKED, "groundwire": GIVEN}
        answers = await asyncio.gather(*(client.post(PATH, json=body) for _ in range(3)))
        assert sorted(answer.status_code for answer in answers) == [200, 429, 429]

    run(test, max_streams=1)


def test_settings_that_do_not_fit_are_refused() -> None:
    with Engine(world()) as engine:
        for address in ("", "localhost:8001", "http://", "ftp://a"):
            with pytest.raises(InvalidRequest, match=r"write http://HOST:PORT/v1"):
                make_proxy(engine, ProxySettings(upstream=address))
    with Engine(FakeRuntime({})) as engine, pytest.raises(InvalidRequest, match="has no calibration"):
        make_proxy(engine, ProxySettings(upstream=UPSTREAM))
