"""A node for LangGraph's graphs.

Needs the extra: ``pip install 'groundwire[langgraph]'``.

>>> from groundwire.adapters.langgraph import make_node                                     # doctest: +SKIP
>>> graph.add_node("check", make_node())                                                        # doctest: +SKIP
>>> graph.add_conditional_edges("check", lambda state: state["groundwire"]["passed"] is True, paths)  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.schema.chats import read_chat

from .checking import Checker
from .extras import needs
from .texts import read_text, read_texts

with needs("langgraph"):
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableLambda
    from langgraph import graph as graph  # the extra's own package

__all__ = ["make_node"]


def make_node(
    engine: Engine | None = None,
    *,
    response: str = "messages",
    knowledge: str = "documents",
    key: str = "groundwire",
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Runnable[Any, dict[str, Any]]:
    """Return a node that checks a response of the state, and writes ``Checked.to_dict()`` to ``state[key]``.

    Args:
        engine: The engine; None is ``default_engine``.
        response: The key of the response: a text, a message, or messages. The last message is the response, the others
            are the dialogue before it.
        knowledge: The key of the knowledge: texts, documents, or messages. The knowledge of messages is in the results
            of tools.
        key: The key of the result, which the state must have.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The node, for asyncio too. A graph may go on only if ``passed`` is True; it is None without a score. The node
        raises InvalidRequest if the state lacks a key.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    def read(state: Any) -> tuple[str, Any, list[str]]:
        answer, history = _read_response(_read(state, response))
        return answer, _read_knowledge(_read(state, knowledge)), history

    def check(state: Any) -> dict[str, Any]:
        return {key: checker.check(*read(state)).to_dict()}

    async def acheck(state: Any) -> dict[str, Any]:
        return {key: (await checker.acheck(*read(state))).to_dict()}

    return RunnableLambda(check, afunc=acheck, name="groundwire")


def _read(state: Any, name: str) -> Any:
    """A field of a state, which is a dictionary, or an object with attributes."""
    fields = state if isinstance(state, Mapping) else vars(state)
    if name not in fields:
        raise InvalidRequest(
            f"The state has {list(fields)} and no {name!r}; name the key of the response or knowledge."
        )
    return fields[name]


def _read_response(value: Any) -> tuple[str, list[str]]:
    if not isinstance(value, list | tuple):
        return read_text(value), []
    *before, last = value or ("",)
    turns = [message for message in before if getattr(message, "type", None) in ("human", "ai")]
    return read_text(last), [text for text in map(read_text, turns) if text]


def _read_knowledge(value: Any) -> Any:
    if isinstance(value, list | tuple):
        messages = [item for item in value if isinstance(item, BaseMessage)]
        return [*read_texts([item for item in value if item not in messages]), *read_chat(messages).calls]
    return read_texts(value)
