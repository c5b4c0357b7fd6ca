"""Items of knowledge: one log has one meaning, whatever form it comes in."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest, Passage, ToolCall
from groundwire.engine.extend import list_passages
from groundwire.engine.schema.chats import read_chat
from groundwire.engine.schema.knowledge import find_status, format_record, is_record
from groundwire.evaluate.datasets.plain import ExampleLine, build_examples
from groundwire.files.columns import rename_fields
from groundwire.guard.chat import read_knowledge
from groundwire.guard.forms import CompletionsForm, MessagesForm, ResponsesForm
from groundwire.service.records import DecisionState, ScoreBody
from groundwire.testing import FakeRuntime
from groundwire.turns.checker import _read_context
from groundwire.turns.context import NO_TOOLS

T = TypeVar("T")

WORDS = st.text("abcdefgh _é", min_size=1, max_size=12).map(str.strip).filter(bool)
LEAVES = st.none() | st.booleans() | st.integers(-999, 999) | WORDS
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=4
)
RESULTS = (
    st.dictionaries(WORDS, JSON, min_size=1, max_size=3) | st.lists(st.dictionaries(WORDS, LEAVES), max_size=3) | WORDS
)
CALLS = st.lists(
    st.builds(
        ToolCall,
        name=st.sampled_from(("find", "book")),
        arguments=st.dictionaries(WORDS, JSON, max_size=2),
        result=RESULTS,
    ),
    min_size=1,
    max_size=3,
)


def write_openai(calls: list[ToolCall]) -> list[dict[str, Any]]:
    """Each call with its answer, in the form of chat completions."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hello."}]
    for number, call in enumerate(calls):
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        made = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": write_result(call)})
    return messages


def write_anthropic(calls: list[ToolCall]) -> list[dict[str, Any]]:
    """All calls in one message, and all answers in the next."""
    made = [
        {"type": "tool_use", "id": f"c{number}", "name": call.name, "input": call.arguments}
        for number, call in enumerate(calls)
    ]
    answers = [
        {"type": "tool_result", "tool_use_id": f"c{number}", "content": [{"type": "text", "text": write_result(call)}]}
        for number, call in enumerate(calls)
    ]
    return [{"role": "assistant", "content": made}, {"role": "user", "content": answers}]


def write_responses(calls: list[ToolCall]) -> list[dict[str, Any]]:
    """The items of OpenAI's responses."""
    items: list[dict[str, Any]] = []
    for number, call in enumerate(calls):
        made = {"name": call.name, "arguments": json.dumps(call.arguments)}
        items.append({"type": "function_call", "call_id": f"c{number}", **made})
    for number, call in enumerate(calls):
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": write_result(call)})
    return items


def write_langchain(calls: list[ToolCall]) -> list[Any]:
    """LangChain's messages, which are objects."""
    messages: list[Any] = []
    for number, call in enumerate(calls):
        made = [{"name": call.name, "args": call.arguments, "id": f"c{number}", "type": "tool_call"}]
        messages.append(SimpleNamespace(type="ai", content="", tool_calls=made))
        messages.append(
            SimpleNamespace(type="tool", content=write_result(call), tool_call_id=f"c{number}", name=call.name)
        )
    return messages


def write_result(call: ToolCall) -> str:
    return call.result if isinstance(call.result, str) else json.dumps(call.result)


def decode(body: Any, record: type[T]) -> T:
    return msgspec.json.decode(json.dumps(body), type=record)


@given(CALLS)
def test_one_log_has_one_meaning_in_all_forms(calls: list[ToolCall]) -> None:
    passages = list_passages(calls)
    as_objects = [json.loads(call.to_json()) for call in calls]
    chat = write_openai(calls)
    row = rename_fields({"messages": [*chat, {"role": "assistant", "content": "Done."}]}, {})
    (example,) = build_examples(0, ExampleLine(response="Done.", knowledge=as_objects))
    forms = {
        "objects": list_passages(as_objects),
        "openai": list_passages(chat),
        "anthropic": list_passages(write_anthropic(calls)),
        "responses": list_passages(write_responses(calls)),
        "langchain": list_passages(write_langchain(calls)),
        "guard": read_knowledge({"messages": chat}),
        "request": read_knowledge({"groundwire": {"knowledge": as_objects}}),
        "proxy, chat completions": read_knowledge(CompletionsForm().read_request({"messages": chat})),
        "proxy, responses": read_knowledge(ResponsesForm().read_request({"input": write_responses(calls)})),
        "proxy, messages": read_knowledge(MessagesForm().read_request({"messages": write_anthropic(calls)})),
        "http": list_passages(decode({"response": "Done.", "knowledge": as_objects}, ScoreBody).knowledge),
        "decisions": list_passages(decode({"response": "Done.", "knowledge": as_objects}, DecisionState).knowledge),
        "turn": list_passages(_read_context("", (), as_objects, (), NO_TOOLS, None).log),
        "turn, messages": list_passages(_read_context("", (), (), chat, NO_TOOLS, None).log),
        "file": tuple(row["knowledge"]),
        "evaluate": example.knowledge,
    }
    assert forms == dict.fromkeys(forms, passages)


ANSWERS = st.lists(
    st.tuples(st.sampled_from(("call", "answer")), st.sampled_from(("", "a", "b")), st.sampled_from(("", "f", "g"))),
    max_size=12,
)


@given(ANSWERS)
def test_a_result_is_written_into_the_first_call_that_waits(steps: list[tuple[str, str, str]]) -> None:
    messages, expected = [], list[list[Any]]()
    for number, (kind, id_, name) in enumerate(steps):
        if kind == "call":
            made = {"id": id_, "function": {"name": name or "f", "arguments": "{}"}}
            messages.append({"role": "assistant", "tool_calls": [made]})
            expected.append([id_, name or "f", None])
            continue
        messages.append({"role": "tool", "tool_call_id": id_, "name": name, "content": str(number)})
        waiting = (call for call in expected if call[2] is None and (call[0] == id_ if id_ else name in ("", call[1])))
        call = next(waiting, None)
        if call is None:
            expected.append([id_, name, str(number)])
        else:
            call[2] = str(number)
    assert [[call.id, call.name, call.result] for call in read_chat(messages).calls] == expected


def test_the_score_of_a_log_is_that_of_its_text() -> None:
    call = ToolCall(name="find_order", arguments={"id": 7}, result={"id": 7, "total": 42.5, "currency": "EUR"})
    with Engine(FakeRuntime({})) as engine:
        scores = [
            engine.score("Order 7 costs €42.50.", knowledge, metrics="values").value
            for knowledge in (call, [call], json.loads(call.to_json()), write_openai([call]), list_passages(call))
        ]
    assert scores == [1.0] * 5


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("It costs £5.", "It costs £5."),
        (Passage(text="It costs £5.", title="Prices", source="https://a.example"), "Prices\nIt costs £5."),
        ({"text": "It costs £5.", "title": None}, "It costs £5."),
        ({"text": "It costs £5.", "page": 3}, "text: It costs £5.\npage: 3"),
        ({"name": "Ann", "result": "passed"}, "name: Ann\nresult: passed"),
        (ToolCall(name="book", arguments={"seats": [61, 65]}), "tool: book\nseats: 61, 65\nstatus: pending"),
        (ToolCall(name="book", result={"error": "closed"}), "tool: book\nstatus: failed\nresult error: closed"),
        (ToolCall(name="find", result=[]), "tool: find\nresult: none"),
        (ToolCall(name="fetch", result="It costs £5."), "tool: fetch\n\nIt costs £5."),
        ({"role": "tool", "content": '{"paid": true}'}, "result paid: true"),
    ],
)
def test_an_item_is_read_as_a_text(item: Any, text: str) -> None:
    assert list_passages([item]) == (text,)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"distance_to_beach_m": 350}, "distance to beach: 350 m"),
        ({"price_per_night": 59, "currency": "EUR"}, "price per night: 59 EUR\ncurrency: EUR"),
        ({"inns": [{"fare": 5}], "currency": "GBP"}, "inns 1: fare: 5 GBP\ncurrency: GBP"),
        ({"fare_eur": 5, "gbp": 38.4, "rate_pct": 7}, "fare: 5 EUR\ngbp: 38.4 GBP\nrate: 7%"),
        ({"price_known": True, "currency": "EUR", "m": 1}, "price known: true\ncurrency: EUR\nm: 1"),
        (
            {"order": {"ids": [1, 2], "lines": [{"sku": "a"}, "b"]}},
            "order ids: 1, 2\norder lines 1: sku: a\norder lines 2: b",
        ),
    ],
)
def test_keys_name_units_and_a_record_of_a_list_is_a_line(record: dict[str, Any], text: str) -> None:
    assert format_record(record) == text


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (ToolCall(name="a"), "pending"),
        (ToolCall(name="a", result=""), "succeeded"),
        (ToolCall(name="a", result='{"error": null}'), "succeeded"),
        (ToolCall(name="a", result='{"error": "closed"}'), "failed"),
        (ToolCall(name="a", result={"success": False}), "failed"),
        (ToolCall(name="a", result={"errors": {}}), "succeeded"),
        (ToolCall(name="a", result={"errors": {"id": "unknown"}}), "failed"),
        (ToolCall(name="a", result={"success": False}, status="succeeded"), "succeeded"),
        (ToolCall(name="a", result="Error: no table left"), "failed"),
        (ToolCall(name="a", result="Traceback (most recent call last): …"), "failed"),
        (ToolCall(name="a", result="ToolException: closed"), "failed"),
        (ToolCall(name="a", result="Errors in your form are shown in red."), "succeeded"),
        (ToolCall(name="a", result={"status": "error", "message": "no table"}), "failed"),
        (ToolCall(name="a", result={"status_code": 409, "detail": "conflict"}), "failed"),
        (ToolCall(name="find_order", result={"status": "cancelled"}), "succeeded"),
    ],
)
def test_the_status_of_a_call(call: ToolCall, status: str) -> None:
    assert find_status(call) == status


def test_a_chat_is_dialogue_instructions_and_log() -> None:
    chat = read_chat(
        [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Book it."}]},
            {
                "role": "assistant",
                "content": "Sure.",
                "tool_calls": [{"id": "a", "function": {"name": "book", "arguments": "{"}}],
            },
            {"role": "tool", "tool_call_id": "b", "content": "OK"},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}],
            },
            {"role": "function", "name": "pay", "content": "paid"},
            "a text",
        ]
    )
    assert chat.history == (("user", "Book it."), ("assistant", "Sure."))
    assert chat.instructions == ("Be kind.",)
    assert chat.others == ("a text",)
    assert [(call.name, call.arguments, call.result, call.status) for call in chat.calls] == [
        ("book", {"arguments": "{"}, "no", "failed"),
        ("", {}, "OK", None),
        ("pay", {}, "paid", None),
    ]


@pytest.mark.parametrize("odd", [["user"], {"a": 1}, 3, True])
def test_odd_fields_of_messages_are_no_roles_calls_or_names(odd: Any) -> None:
    items = [
        {"role": odd, "content": "a"},
        {"type": odd, "content": "b"},
        {"role": "assistant", "content": "", "tool_calls": odd},
        {"role": "tool", "name": odd, "tool_call_id": "a", "content": "c"},
    ]
    chat = read_chat(items)
    assert chat.others == tuple(items[:2])
    assert [(call.name, call.result) for call in chat.calls] == [("", "c")]
    assert len(list_passages(items)) == 3


@pytest.mark.parametrize("arguments", ["[" * 100_000, "\ud800", "{"])
def test_arguments_that_are_no_json_are_a_text(arguments: str) -> None:
    call = {"id": "a", "function": {"name": "book", "arguments": arguments}}
    (read,) = read_chat([{"role": "assistant", "content": None, "tool_calls": [call]}]).calls
    assert read.arguments == {"arguments": arguments}


def test_a_record_with_a_type_is_no_message() -> None:
    record = {"type": "user", "content": "Honey is sweet."}
    assert list_passages([record]) == ("type: user\ncontent: Honey is sweet.",)


def test_items_among_messages_keep_their_places() -> None:
    call = {"id": "a", "function": {"name": "find", "arguments": "{}"}}
    items = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "system", "content": "Honey is golden."},
        "Honey is sweet.",
        {"role": "tool", "tool_call_id": "a", "content": "paid"},
        {"role": "developer", "content": "Be kind."},
    ]
    expected = ("tool: find\n\npaid", "Honey is golden.", "Honey is sweet.", "Be kind.")
    assert list_passages(items) == expected


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("[\ud800", r"knowledge\[0\] has a lone surrogate"),
        (ToolCall(name="find", result="[\ud800"), r"knowledge\[0\] has a lone surrogate"),
        (7, r"knowledge\[0\] is int; pass a string"),
        (
            {"name": "book", "arguments": {}, "status": "done"},
            r"knowledge\[0\] cannot be used: .*'done'.*allowed are .*pending",
        ),
        ({"text": "a", "title": 3}, r"knowledge\[0\] cannot be used: .*title"),
    ],
)
def test_an_item_that_cannot_be_read_is_refused(item: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        list_passages([item])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        ("tool: find\ncity: Bonn\n", True),
        ("tool: find\nDie Frist ist um.", False),
        ("Eins: zwei drei", True),
        ("", False),
    ],
)
def test_records_are_distinguished_from_texts(text: str, expected: bool) -> None:
    assert is_record(text) is expected


def test_lines_with_many_colons_are_read_at_once() -> None:
    assert not is_record("a: b: c: d\n" * 2_000 + "a line without a key\n")


def test_a_wide_record_is_read_once() -> None:
    (text,) = list_passages([{f"key_{number}_m": number for number in range(50_000)}])
    assert text.count("\n") == 49_999


@pytest.mark.parametrize("kind", ["record", "result"])
def test_a_record_that_is_nested_too_deeply_is_refused(kind: str) -> None:
    record: Any = {}
    for _ in range(5_000):
        record = {"a": record}
    item = record if kind == "record" else ToolCall(name="find", result=record)
    with pytest.raises(InvalidRequest, match=r"knowledge\[0\] is nested too deeply"):
        list_passages([item])


def test_records_bring_no_warning_about_their_language() -> None:
    record = {"suche": [{"titel": f"wort{number}", "ort": "dorf ufer wald feld berg"} for number in range(9)]}
    with Engine(FakeRuntime({})) as engine:
        for knowledge in (record, json.dumps(record)):
            assert not engine.score("Wort is in the village, I think.", [knowledge], metrics="overlap").warnings
