"""The proxy's three protocols: one meaning, streamed or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.chat_server import ChatServer
from tests.support.proxy import ASKED, BOOK, FORMS, GIVEN, RIGHT, TEXT, WRONG, fail, make_body, run
from tests.support.streams import world

SAID, INVENTED = {"guests": 4, "city": "Leeds"}, {"guests": 7, "city": "Leeds"}


class Answer(NamedTuple):
    """What an answer says in each protocol."""

    text: str
    calls: list[Any]
    is_filtered: bool
    verdict: dict[str, Any]
    tokens: int | None
    """None of a stream that a policy has ended before."""


async def ask(
    client: httpx.AsyncClient, form: str, *, stream: bool, messages: Any = ASKED, given: Any = GIVEN
) -> Answer:
    answer = await client.post(f"/v1/{form}", json=make_body(form, messages, given, stream=stream))
    assert answer.status_code == 200, answer.text
    return read_events(form, answer) if stream else READERS[form](answer.json())


def read_completion(answer: Mapping[str, Any]) -> Answer:
    (choice,) = answer["choices"]
    calls = [json.loads(call["function"]["arguments"]) for call in choice["message"].get("tool_calls", ())]
    reason = choice["finish_reason"]
    return Answer(
        choice["message"]["content"] or "", calls, reason == "content_filter", choice["groundwire"],
        (answer["usage"] or {}).get("completion_tokens"),
    )  # fmt: skip


def read_response(answer: Mapping[str, Any]) -> Answer:
    parts = [part for item in answer["output"] if item["type"] == "message" for part in item["content"]]
    calls = [json.loads(item["arguments"]) for item in answer["output"] if item["type"] == "function_call"]
    is_filtered = answer["incomplete_details"] == {"reason": "content_filter"}
    assert answer["status"] == ("incomplete" if is_filtered else "completed")
    text = "".join(part["text"] for part in parts)
    return Answer(text, calls, is_filtered, answer["groundwire"], (answer["usage"] or {}).get("output_tokens"))


def read_message(answer: Mapping[str, Any]) -> Answer:
    text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
    calls = [block["input"] for block in answer["content"] if block["type"] == "tool_use"]
    is_filtered = answer["stop_reason"] == "refusal"
    return Answer(text, calls, is_filtered, answer["groundwire"], (answer["usage"] or {}).get("output_tokens"))


READERS: dict[str, Callable[[Mapping[str, Any]], Answer]] = {
    "chat/completions": read_completion,
    "responses": read_response,
    "messages": read_message,
}


def list_events(form: str, answer: httpx.Response) -> list[Any]:
    """The events of a stream; the end of chat completions is no event."""
    events = []
    for event in answer.text.split("\n\n")[:-1]:
        *names, data = event.split("\n")
        if data == "data: [DONE]":
            continue
        events.append(json.loads(data.removeprefix("data: ")))
        assert names == ([] if form == "chat/completions" else [f"event: {events[-1]['type']}"])
    return events


def read_events(form: str, answer: httpx.Response) -> Answer:
    """What a stream's client puts together."""
    events = list_events(form, answer)
    if form == "chat/completions":
        choices = [choice for event in events for choice in event["choices"]]
        text = "".join(choice["delta"].get("content") or "" for choice in choices)
        calls = [call for choice in choices for call in choice["delta"].get("tool_calls", ())]
        message = {"content": text, "tool_calls": calls}
        return read_completion({"choices": [choices[-1] | {"message": message}], "usage": events[-1].get("usage")})
    if form == "responses":
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        last = read_response(events[-1]["response"])
        assert deltas == last.text
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert items == events[-1]["response"]["output"]
        return last
    blocks = [dict(event["content_block"]) for event in events if event["type"] == "content_block_start"]
    for event in events:
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            blocks[event["index"]]["text"] += event["delta"]["text"]
        elif event["type"] == "content_block_delta":
            blocks[event["index"]]["input"] = json.loads(event["delta"]["partial_json"])
    *_, last_delta, stop = events
    assert stop == {"type": "message_stop"}
    return read_message({"content": blocks, **last_delta, "stop_reason": last_delta["delta"]["stop_reason"]})


def ask_all(
    check: Callable[[Answer], None],
    *,
    made: Any = (),
    messages: Any = ASKED,
    given: Any = GIVEN,
    **options: Any,
) -> None:
    """Check what each protocol answers, streamed and whole, and that it is the same."""

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        upstream.calls = list(made)
        answers = [
            await ask(client, form, stream=stream, messages=messages, given=given)
            for form in FORMS
            for stream in (False, True)
        ]
        for answer in answers:
            check(answer)
            assert answer.verdict == answers[0].verdict

    run(test, **options)


@pytest.mark.parametrize(
    ("policy", "left", "is_filtered"),
    [("block", RIGHT, True), ("annotate", TEXT, False), ("redact", f"{RIGHT} Honey is […]. {RIGHT}", True)],
)
def test_a_policy_decides_what_leaves(policy: str, left: str, is_filtered: bool) -> None:
    def check(answer: Answer) -> None:
        assert (answer.text, answer.is_filtered) == (left, is_filtered)
        assert answer.tokens in ((None, 2) if policy == "block" else (2,))
        assert answer.verdict["label"] == "inconsistent"

    ask_all(check, policy=policy)


@pytest.mark.parametrize(
    ("calls", "setting", "leaves", "label"),
    [
        ([SAID], "block", True, "consistent"),
        ([SAID, INVENTED], "block", False, "inconsistent"),
        ([INVENTED], "annotate", True, "inconsistent"),
    ],
)
def test_calls_are_checked_before_they_leave(calls: Any, setting: str, leaves: bool, label: str) -> None:
    def check(answer: Answer) -> None:
        assert (answer.calls, answer.is_filtered) == (calls if leaves else [], not leaves)
        assert answer.verdict["turn"]["label"] == answer.verdict["label"] == label
        assert answer.verdict["not_checked"] == []

    ask_all(check, text="", made=calls, messages=BOOK, given=None, calls=setting)


@pytest.mark.parametrize("stopped_text", [None, "A colleague will answer."])
def test_a_claim_is_held_back(stopped_text: str | None) -> None:
    def check(answer: Answer) -> None:
        assert (answer.text, answer.is_filtered) == (stopped_text or "", True)
        assert [found["status"] for found in answer.verdict["turn"]["findings"]] == ["absent"]

    ask_all(check, text="It's booked.", messages=BOOK, policy="annotate", claims="block", stopped_text=stopped_text)


def test_a_text_leaves_in_the_place_of_calls_that_are_stopped() -> None:
    def check(answer: Answer) -> None:
        assert (answer.text, answer.calls, answer.is_filtered) == ("Please call us.", [], True)

    ask_all(check, text="", made=[INVENTED], messages=BOOK, given=None, calls="block", stopped_text="Please call us.")


def test_calls_that_pass_are_said_to_be_unchecked_and_counted() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        upstream.calls = [INVENTED]
        for form in FORMS:
            for stream in (False, True):
                answer = await ask(client, form, stream=stream, messages=BOOK)
                assert answer.calls == [INVENTED]
                assert [(part["part"], part["reason"]) for part in answer.verdict["not_checked"]] == [
                    ("calls", "policy")
                ]
        numbers = (await client.get("/metrics")).text
        assert 'groundwire_not_checked_total{part="calls",reason="policy"} 6.0' in numbers

    run(test, text=RIGHT)


def test_a_text_that_cannot_be_checked_says_why() -> None:
    def check(answer: Answer) -> None:
        assert (answer.text, answer.calls, answer.is_filtered) == ("", [], True)
        (part,) = answer.verdict["not_checked"]
        assert (part["part"], part["reason"]) == ("text", "failed")
        assert "out of memory" in part["message"]

    ask_all(check, text=RIGHT, made=[SAID], runtime=world(nli=fail))


def test_knowledge_and_log_are_in_each_protocols_own_messages() -> None:
    call = {"type": "function", "id": "c", "function": {"name": "find", "arguments": "{}"}}
    result = '{"honey": "sweet", "guests": 7}'
    messages: dict[str, Any] = {
        "chat/completions": [
            *BOOK,
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": result},
        ],
        "responses": [
            *BOOK,
            {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": result},
        ],
        "messages": [
            *BOOK,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "find", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": result}]},
        ],
    }

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        upstream.calls = [INVENTED]
        for form in FORMS:
            answer = await ask(client, form, stream=False, messages=messages[form], given=None)
            assert answer.calls == [INVENTED]
            found = {finding["where"]: finding["status"] for finding in answer.verdict["turn"]["findings"]}
            assert found == {"calls[0].arguments.guests": "result", "calls[0].arguments.city": "user"}

    run(test, text="", calls="block")


@pytest.mark.parametrize(("model", "code"), [("broken", "upstream"), ("error", None)])
def test_what_is_held_does_not_leave_with_an_error(model: str, code: str | None) -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        for form in FORMS[1:]:
            body = make_body(form, ASKED, GIVEN, stream=True) | {"model": model}
            *events, last = list_events(form, await client.post(f"/v1/{form}", json=body))
            assert last["type"] == "error"
            assert code is None or code in json.dumps(last)
            text = json.dumps(events)
            assert RIGHT in text or all(letter in text for letter in "Honey")
            assert WRONG not in text

    run(test, text=f"{RIGHT} Honey")


def test_what_an_upstream_keeps_is_refused() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        for field, value in (("previous_response_id", "r"), ("background", True), ("conversation", "c")):
            body = make_body("responses", ASKED, GIVEN, stream=False) | {field: value}
            refused = await client.post("/v1/responses", json=body)
            assert (refused.status_code, refused.json()["path"]) == (422, f"$.{field}")
        assert upstream.bodies == []
        refused = await client.post("/v1/messages", json={"messages": [], "groundwire": {"knowledge": "a" * 60_000}})
        assert (refused.json()["type"], refused.json()["path"]) == ("error", "$.groundwire.knowledge")

    run(test)


def test_anthropics_key_is_a_token_and_the_upstreams_key_takes_its_place() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        body = make_body("messages", ASKED, GIVEN, stream=False)
        headers = {"X-Api-Key": "mine", "Anthropic-Version": "2023-06-01"}
        assert (await client.post("/v1/messages", json=body, headers={"X-Api-Key": "other"})).status_code == 401
        assert (await client.post("/v1/messages", json=body, headers=headers)).status_code == 200
        assert (upstream.headers[0]["x-api-key"], upstream.headers[0]["anthropic-version"]) == ("theirs", "2023-06-01")
        assert "authorization" not in upstream.headers[0]

    run(test, tokens=("mine",), upstream_key="theirs")


def serve(*events: dict[str, Any], end: str = "") -> httpx.MockTransport:
    """An upstream that streams these events."""
    text = "".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n" for event in events) + end
    headers = {"content-type": "text/event-stream"}
    return httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, text=text))


def answer_with(choice: Any) -> httpx.MockTransport:
    """An upstream that answers with a completion of one choice."""
    return httpx.MockTransport(lambda request: httpx.Response(200, json={"choices": [choice]}))


def make_start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


BEGIN: dict[str, Any] = {"type": "message_start", "message": {"id": "m", "content": []}}
END: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}


@pytest.mark.parametrize(("given", "leaves"), [(SAID, True), (INVENTED, False)])
def test_an_input_that_comes_at_once_is_checked(given: Any, leaves: bool) -> None:
    block = {"type": "tool_use", "id": "c", "name": "book", "input": given}
    events = (BEGIN, make_start(0, block), {"type": "content_block_stop", "index": 0}, END, {"type": "message_stop"})

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        answer = await ask(client, "messages", stream=True, messages=BOOK, given=None)
        assert answer.calls == ([given] if leaves else [])

    run(test, transport=serve(*events), calls="block")


@pytest.mark.parametrize(
    ("form", "events", "end"),
    [
        ("messages", (BEGIN, make_start(0, {"type": "tool_use", "name": "delete_all"})), ""),
        ("messages", (BEGIN, make_start(0, {"type": "tool_use", "name": "delete_all"}), {"type": "message_stop"}), ""),
        ("messages", (BEGIN, make_start(0, {"type": "text", "text": RIGHT})), "data: [DONE]\n\n"),
        ("responses", ({"type": "response.output_text.delta", "delta": RIGHT},), "data: [DONE]\n\n"),
    ],
)
def test_a_stream_without_its_last_event_is_refused(form: str, events: Any, end: str) -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        answer = await client.post(f"/v1/{form}", json=make_body(form, BOOK, GIVEN, stream=True))
        assert "ended before it was complete" in answer.text
        last = list_events(form, answer)[-1]
        assert last["type"] == "error"
        assert "delete_all" not in answer.text

    run(test, transport=serve(*events, end=end))


@pytest.mark.parametrize("setting", ["block", "annotate"])
@pytest.mark.parametrize(
    "call",
    [
        {"custom": {"name": "x", "input": "Leeds"}, "function": {"name": "book", "arguments": json.dumps(INVENTED)}},
        {"function": {"name": "book", "arguments": [INVENTED]}},
        {"function": "book"},
        {"id": "a sentence of its own", "function": {"name": "book", "arguments": "{}"}},
    ],
)
def test_a_call_that_cannot_be_read_as_one_is_refused(call: Any, setting: str) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function"} | call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        refused = await client.post(f"/v1/{FORMS[0]}", json=make_body(FORMS[0], BOOK, GIVEN, stream=False))
        assert (refused.status_code, refused.json()["code"]) == (502, "upstream")

    run(test, transport=answer_with(choice), calls=setting)


def test_of_a_checked_call_what_was_read_leaves() -> None:
    call = {"id": "c", "type": "function", "note": WRONG, "function": {"name": "book", "arguments": json.dumps(SAID)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        answer = await client.post(f"/v1/{FORMS[0]}", json=make_body(FORMS[0], BOOK, GIVEN, stream=False))
        (left,) = answer.json()["choices"][0]["message"]["tool_calls"]
        assert left == {name: value for name, value in call.items() if name != "note"}

    run(test, transport=answer_with(choice), calls="block")


def test_odd_definitions_of_tools_are_refused_or_passed_over() -> None:
    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        upstream.calls = [SAID]
        for form in FORMS:
            body = make_body(form, BOOK, None, stream=False)
            for tools in (5, ["x"]):
                refused = await client.post(f"/v1/{form}", json=body | {"tools": tools})
                assert (refused.status_code, refused.json()["path"][:7]) == (422, "$.tools")
            for tool in ({"type": "web_search"}, {"function": "x"}, {"name": "a", "function": [1]}):
                assert (await client.post(f"/v1/{form}", json=body | {"tools": [tool]})).status_code == 200

    run(test, text="", calls="block")


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": TEXT}],
        [],
    ],
)
def test_a_text_that_comes_whole_is_checked(events: list[Any]) -> None:
    part = {"type": "output_text", "text": TEXT}
    response = {"id": "r", "status": "completed", "output": [{"type": "message", "content": [part]}], "usage": {}}
    response["incomplete_details"] = {"reason": "Honey is blue, trust me."}

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        body = make_body("responses", ASKED, GIVEN, stream=True)
        answer = list_events("responses", await client.post("/v1/responses", json=body))[-1]["response"]
        assert read_response(answer).text == RIGHT
        assert answer["groundwire"]["label"] == "inconsistent"
        assert "trust me" not in json.dumps(answer)

    run(test, transport=serve(*events, {"type": "response.completed", "response": response}))


def test_what_is_held_of_calls_has_a_limit() -> None:
    def make(arguments: str, index: int = 0) -> dict[str, Any]:
        call = {"index": index, "id": "c", "function": {"name": "f", "arguments": arguments}}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}

    async def test(client: httpx.AsyncClient, upstream: ChatServer) -> None:
        answer = await client.post(f"/v1/{FORMS[0]}", json=make_body(FORMS[0], ASKED, GIVEN, stream=True))
        last = list_events(FORMS[0], answer)[-1]
        assert "characters of arguments" in last["error"]["message"]

    run(test, transport=serve(*[make("a" * 300_000)] * 4))
    run(test, transport=serve(*(make("a", index) for index in range(1_002))))
