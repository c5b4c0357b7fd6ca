"""Answers of upstreams in three protocols: odd ones are refused, and bring no other error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest
from groundwire.guard import Guard, Policy
from groundwire.guard.chat import CheckedChat
from groundwire.guard.forms import ChatForm, CompletionsForm, MessagesForm, ResponsesForm
from groundwire.guard.steps import run
from tests.support.streams import METRICS, world

FORMS = (CompletionsForm, MessagesForm, ResponsesForm)
TYPES = st.sampled_from(
    (
        "message", "text", "tool_use", "output_text", "refusal", "function_call", "custom_tool_call", "text_delta",
        "input_json_delta", "message_start", "content_block_start", "content_block_delta", "message_delta",
        "message_stop", "error", "response.created", "response.output_text.delta", "response.refusal.delta",
        "response.output_item.done", "response.completed", "response.incomplete", "response.failed",
    )
)  # fmt: skip
NAMES = st.sampled_from(
    (
        "id", "model", "usage", "content", "text", "input", "name", "index", "output_index", "content_index", "item",
        "response", "output", "delta", "message", "content_block", "partial_json", "arguments", "call_id", "error",
        "stop_reason", "status", "refusal", "choices", "tool_calls", "function", "finish_reason", "incomplete_details",
    )
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(("", "{}", "stop", "Honey is sweet.", "{"))


def make_objects(inner: Any) -> Any:
    return st.builds(
        lambda fields, kind: fields if kind is None else {**fields, "type": kind},
        st.dictionaries(NAMES, inner, max_size=4),
        st.none() | TYPES,
    )


JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | make_objects(inner), max_leaves=8)
OBJECTS = make_objects(JSON)


@pytest.fixture(scope="module")
def engine() -> Any:
    with Engine(world()) as opened:
        yield opened


def open_chat(engine: Engine) -> CheckedChat:
    policy = Policy(inconsistent="flag", unknown="flag")
    return CheckedChat(lambda: Guard(engine).open("Honey is sweet.", policy, metrics=METRICS))


@pytest.mark.parametrize("form", FORMS)
@given(answer=OBJECTS)
def test_an_odd_answer_is_refused(engine: Engine, form: type[ChatForm], answer: dict[str, Any]) -> None:
    try:
        read = form().read_answer(answer)
        part = run(open_chat(engine).check(read))
        if part is not None and len(part["choices"]) == 1 and "message" in part["choices"][0]:
            form().write_answer(part)
    except InvalidRequest:
        pass


def make_delta(*calls: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("form", "events"),
    [
        (CompletionsForm, [make_delta({"function": {"arguments": {}}}), make_delta({"function": {"arguments": "{}"}})]),
        (MessagesForm, [{"type": "content_block_delta", "index": [], "delta": {"type": "input_json_delta"}}]),
        (MessagesForm, [{"type": "content_block_start", "index": {}, "content_block": {"type": "tool_use"}}]),
        (ResponsesForm, [{"type": "response.output_text.delta", "output_index": [], "delta": "Honey."}]),
    ],
)
def test_odd_parts_of_calls_are_joined_or_dropped(engine: Engine, form: type[ChatForm], events: list[Any]) -> None:
    this, checked = form(), open_chat(engine)
    for event in events:
        if (chunk := this.read_event(event)) is not None:
            run(checked.check(chunk))
    part = run(checked.finish())
    assert part is None or list(this.write_chunk(part))


@pytest.mark.parametrize("form", FORMS)
@given(events=st.lists(OBJECTS, max_size=5))
def test_odd_events_are_refused(engine: Engine, form: type[ChatForm], events: list[dict[str, Any]]) -> None:
    this, checked = form(), open_chat(engine)
    try:
        for event in events:
            if this.find_error(event) is not None or this.is_last(event):
                break
            chunk = this.read_event(event)
            part = None if chunk is None else run(checked.check(chunk))
            if part is not None:
                list(this.write_chunk(part))
        part = run(checked.finish())
        if part is not None:
            list(this.write_chunk(part))
    except InvalidRequest:
        pass
    finally:
        checked.close()


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        (('{"gue', 'sts": 4}'), '{"guests": 4}'),
        (("", '{"guests"', ": 4}"), '{"guests": 4}'),
        (({"tags": ["a", "b"]},), {"tags": ["a", "b"]}),
    ],
)
def test_the_arguments_of_a_streamed_call_leave_as_they_came(engine: Engine, parts: Any, left: Any) -> None:
    checked = open_chat(engine)
    names: list[dict[str, Any]] = [{"name": "book"}, *[{} for _ in parts[1:]]]
    for name, part in zip(names, parts, strict=True):
        delta = make_delta({"index": 0, "id": "c", "type": "function", "function": {**name, "arguments": part}})
        run(checked.check(delta))
    chunk = run(checked.finish())
    assert chunk is not None
    (call,) = chunk["choices"][0]["delta"]["tool_calls"]
    assert call["function"] == {"name": "book", "arguments": left}
