"""A server of the Model Context Protocol with the tools ``check``, ``check_turn``, ``correct`` and ``explain``.

``groundwire mcp`` runs it on standard input and output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from groundwire.engine import Engine, GroundwireError, Score, default_engine
from groundwire.guard.chat import add_citing
from groundwire.repair import Corrector
from groundwire.turns import TurnChecker

INSTRUCTIONS = (
    "Checks whether a response is supported by the knowledge that it should rest on. Pass the response word for word, "
    "and each passage of the knowledge as one text; a tool call is an object with name, arguments, result and status. "
    "A result without a probability is no approval."
)


Knowledge: TypeAlias = str | dict[str, Any] | list[str | dict[str, Any]]
"""A text, an object such as a tool's result, or several of these."""


def make_server(engine: Engine | None = None) -> MCPServer[Any]:
    """Return a server for an engine; its ``run`` serves standard input and output.

    Args:
        engine: The engine; None is ``default_engine``, at the first call of a tool.

    Returns:
        The server. What the engine refuses is the result of a tool with ``is_error`` and the reason.
    """
    server: MCPServer[Any] = MCPServer("groundwire", instructions=INSTRUCTIONS)

    async def check(response: str, knowledge: Knowledge, history: str | list[str] | None = None) -> dict[str, Any]:
        """Say whether the knowledge supports a response, by sentences, and which of its words it does not support.

        ``label`` is consistent, inconsistent, unverifiable (it states nothing) or unknown (it could not be checked).
        ``history`` has the turns of the dialogue before the response, oldest first.
        """
        return _summarize(await (engine or default_engine()).ascore(response, knowledge, history=history or ()))

    async def check_turn(
        text: str = "",
        calls: list[dict[str, Any]] | None = None,
        log: list[dict[str, Any]] | None = None,
        history: list[str | dict[str, Any]] | None = None,
        tools: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Check what an assistant says and the tool calls that it is about to make, before they are made.

        ``log`` has the calls that were made: name, arguments, result and status. ``findings`` says where each argument
        is from (user, result, composed, absent, other_record), and what came of each action that the text claims
        (succeeded, failed, pending, absent). ``tools`` has the definitions of the tools. Do not make a call with a
        problem, or when ``label`` is unknown: then it could not be checked.
        """
        checker = TurnChecker(engine or default_engine(), tools=tools or ())
        checked = await checker.acheck(text, calls or (), log=log or (), history=history or (), sentences=False)
        record: dict[str, Any] = msgspec.to_builtins(checked)
        return {name: record[name] for name in ("label", "findings", "status", "message")}

    async def correct(response: str, knowledge: Knowledge, history: str | list[str] | None = None) -> dict[str, Any]:
        """Correct a response with words of the knowledge.

        ``status`` is corrected, partial (better, and still inconsistent), clean (nothing to correct), refused or
        unknown; ``response`` differs from the given one under corrected and partial alone.
        """
        corrector = Corrector(engine or default_engine())
        done = await asyncio.to_thread(corrector.correct, response, knowledge, history=history or ())
        record: dict[str, Any] = msgspec.to_builtins(done)
        return {name: record[name] for name in ("status", "message", "response", "edits", "unresolved")}

    async def explain(response: str, knowledge: Knowledge, history: str | list[str] | None = None) -> dict[str, Any]:
        """Check a response with all metrics of the verdict, and return the whole record: questions, values, citations.

        This is slower than ``check``.
        """
        chosen = engine or default_engine()
        calibration = chosen.core.calibration
        fused = [name for fusion in (calibration.fusions if calibration else ()) for name in fusion.metrics]
        names = add_citing(chosen, (*chosen.plan().names, *fused))
        score = await chosen.ascore(response, knowledge, history=history or (), metrics=names)
        record: dict[str, Any] = msgspec.to_builtins(score)
        return record

    for tool in (check, check_turn, correct, explain):
        server.add_tool(_tell_reason(tool))
    return server


def _tell_reason(tool: Callable[..., Awaitable[dict[str, Any]]]) -> Callable[..., Awaitable[dict[str, Any]]]:
    """The tool, raising what the engine refuses as ToolError: of any other error the server withholds the text."""

    @wraps(tool)
    async def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return await tool(*args, **kwargs)
        except GroundwireError as error:
            raise ToolError(str(error)) from error

    return call


def _summarize(score: Score) -> dict[str, Any]:
    """The verdict of a score and what it rests on, without the metrics."""
    verdict = score.verdict
    return {
        "status": score.status,
        "label": verdict.label,
        "probability": verdict.probability,
        "message": verdict.message or score.message,
        "unsupported": msgspec.to_builtins(score.unsupported),
        "sentences": [
            {"text": part.text, "label": part.verdict.label, "probability": part.verdict.probability}
            for part in score.sentences
        ],
    }
