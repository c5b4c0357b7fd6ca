"""The node in graphs of LangGraph, on texts, documents and messages."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest

from groundwire.engine import Engine, InvalidRequest
from tests.support.adapters import CONSISTENT, FAILURE, INCONSISTENT, KNOWLEDGE, load

load("langgraph.graph")
from langchain_core.documents import Document  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.graph.message import add_messages  # noqa: E402

from groundwire.adapters.langgraph import make_node  # noqa: E402


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    documents: list[Document]
    groundwire: dict[str, Any]


def make_graph(node: Any) -> Any:
    """A graph that says the right thing where the answer does not pass."""
    graph = StateGraph(State)
    graph.add_node("check", node)
    graph.add_node("rewrite", lambda state: {"messages": [AIMessage(CONSISTENT)]})
    graph.add_edge(START, "check")
    graph.add_conditional_edges(
        "check", lambda state: state["groundwire"]["passed"] is True, {True: END, False: "rewrite"}
    )
    graph.add_edge("rewrite", "check")
    return graph.compile()


@pytest.mark.parametrize("answer", [CONSISTENT, INCONSISTENT])
def test_a_graph_goes_on_when_the_answer_passes(engine: Engine, answer: str) -> None:
    graph = make_graph(make_node(engine))
    state = {"messages": [HumanMessage("Honey?"), AIMessage(answer)], "documents": [Document(KNOWLEDGE)]}
    for final in (graph.invoke(state), asyncio.run(graph.ainvoke(state))):
        assert final["groundwire"]["label"] == "consistent"
        assert [message.content for message in final["messages"][1:]] == list(dict.fromkeys([answer, CONSISTENT]))


def test_the_results_of_tools_are_the_knowledge(engine: Engine) -> None:
    node = make_node(engine, knowledge="messages", key="check")
    messages = [SystemMessage("Be kind."), HumanMessage(INCONSISTENT), ToolMessage(KNOWLEDGE, tool_call_id="1")]
    for answer, passed in ((CONSISTENT, True), (INCONSISTENT, False)):
        assert node.invoke({"messages": [*messages, AIMessage(answer)]})["check"]["passed"] is passed
    check = node.invoke({"messages": [HumanMessage(KNOWLEDGE), AIMessage(CONSISTENT)]})["check"]
    assert (check["label"], check["passed"]) == ("unknown", None)


def test_a_state_may_be_an_object_with_a_text(engine: Engine, failing_engine: Engine) -> None:
    state = SimpleNamespace(answer=CONSISTENT, documents=KNOWLEDGE)
    assert make_node(engine, response="answer").invoke(state)["groundwire"]["passed"] is True
    check = make_node(failing_engine, response="answer").invoke(state)["groundwire"]
    assert check["passed"] is None
    assert FAILURE in check["reason"]
    with pytest.raises(InvalidRequest, match="no 'messages'"):
        make_node(engine).invoke(state)
