"""The tools of the Model Context Protocol, called by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import embedded
from tests.support.adapters import CONSISTENT, FAILURE, INCONSISTENT, KNOWLEDGE, PROBABILITY, fail, load, open_engine
from tests.support.broken_folds import MESSAGE, break_folds

load("mcp")
from mcp import Client, StdioServerParameters  # noqa: E402

from groundwire.adapters.mcp import make_server  # noqa: E402

TOOLS_OF_A_RESPONSE = ("check", "correct", "explain")


def call(engine: Engine, tool: str, **arguments: Any) -> Any:
    async def run() -> Any:
        async with Client(make_server(engine)) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(run())


@pytest.mark.parametrize(("text", "label"), [(CONSISTENT, "consistent"), (INCONSISTENT, "inconsistent")])
def test_check(engine: Engine, text: str, label: str) -> None:
    result = call(engine, "check", response=text, knowledge=[KNOWLEDGE])
    assert not result.is_error
    answer = json.loads(result.content[0].text)
    assert (answer["status"], answer["label"], answer["probability"]) == ("scored", label, PROBABILITY[text])
    assert [part["text"] for part in answer["sentences"]] == [text]


def test_check_turn(engine: Engine) -> None:
    log = [{"name": "cancel_order", "arguments": {"id": "A-7"}, "result": {"error": "closed"}}]
    result = call(engine, "check_turn", text="It's cancelled.", log=log, history=["Cancel A-7."])
    answer = json.loads(result.content[0].text)
    assert answer["label"] == "inconsistent"
    assert [finding["status"] for finding in answer["findings"]] == ["failed"]
    assert answer["status"] == "scored"


def test_check_turn_reads_definitions_of_tools(engine: Engine) -> None:
    log = [{"name": "get_taxi", "arguments": {}, "result": {"minutes": 4}}]
    tools = [{"name": "get_taxi", "annotations": {"readOnlyHint": False}}]
    result = call(engine, "check_turn", text="Your taxi has been booked.", log=log, tools=tools)
    assert json.loads(result.content[0].text)["label"] == "consistent"


def test_explain_returns_the_record(engine: Engine) -> None:
    answer = json.loads(call(engine, "explain", response=CONSISTENT, knowledge=[KNOWLEDGE]).content[0].text)
    assert answer["verdict"]["label"] == "consistent"
    assert answer["metrics"]["nli"]["status"] == "scored"


def test_what_cannot_be_checked_has_no_number() -> None:
    with open_engine(nli=fail) as engine:
        answer = json.loads(call(engine, "check", response=CONSISTENT, knowledge=[KNOWLEDGE]).content[0].text)
    assert (answer["label"], answer["probability"]) == ("unknown", None)
    assert FAILURE in json.dumps(answer)
    assert answer["status"] != "scored"


def test_a_defect_of_the_verdict_is_an_answer_without_a_verdict(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_folds(monkeypatch)
    result = call(engine, "check", response=f"{CONSISTENT} It is broken.", knowledge=[KNOWLEDGE])
    answer = json.loads(result.content[0].text)
    assert (answer["label"], answer["probability"]) == ("unknown", None)
    assert MESSAGE in json.dumps(answer)


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        *((tool, {"response": "", "knowledge": [KNOWLEDGE]}, "response is empty") for tool in TOOLS_OF_A_RESPONSE),
        ("check_turn", {"calls": [{"id": "A-7"}]}, "calls[0] has no name"),
    ],
)
def test_what_the_engine_refuses_is_an_error_with_its_reason(
    engine: Engine, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    result = call(engine, tool, **arguments)
    assert result.is_error
    assert reason in result.content[0].text


def test_an_argument_of_another_type_is_an_error_with_its_name(engine: Engine) -> None:
    result = call(engine, "check", response=3, knowledge=[KNOWLEDGE])
    assert result.is_error
    assert "response" in result.content[0].text


@pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")
def test_the_command_serves_standard_input_and_output() -> None:
    async def run() -> Any:
        server = StdioServerParameters(command=sys.executable, args=["-m", "groundwire", "mcp"])
        async with Client(server) as client:
            tools = await client.list_tools()
            arguments = {
                "response": "Bill Alexander hosted The Joy of Painting.",
                "knowledge": ["Bob Ross was the creator and host of The Joy of Painting."],
            }
            checked = await client.call_tool("check", arguments)
            corrected = await client.call_tool("correct", arguments)
        return tools.tools, json.loads(checked.content[0].text), json.loads(corrected.content[0].text)

    tools, checked, corrected = asyncio.run(run())
    required = {tool.name: tool.input_schema.get("required", []) for tool in tools}
    assert required == {"check_turn": []} | {name: ["response", "knowledge"] for name in TOOLS_OF_A_RESPONSE}
    assert all(tool.description for tool in tools)
    assert checked["label"] == "inconsistent"
    assert "Bill Alexander" in {span["text"] for span in checked["unsupported"]}
    assert corrected["status"] == "corrected"
    assert corrected["response"] == "Bob Ross hosted The Joy of Painting."
