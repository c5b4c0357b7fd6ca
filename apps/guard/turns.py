"""The answer of an assistant that calls tools, checked as a turn: which of its calls and claims may leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from groundwire.engine import Engine, InvalidRequest, Options, ToolCall
from groundwire.engine.extend import Knowledge, list_passages
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.chats import SYSTEM, is_message
from groundwire.engine.schema.knowledge import is_call
from groundwire.runtime.arguments import check_sequence
from groundwire.turns import TurnCheck, TurnChecker
from groundwire.turns.records import label_turn

from .policies import TurnPolicy
from .steps import Steps


class TurnGuard:
    """Checks the answers to one request of a chat, by a policy."""

    def __init__(
        self,
        engine: Engine,
        policy: TurnPolicy,
        request: Mapping[str, Any],
        knowledge: Knowledge = (),
        options: Options | None = None,
    ) -> None:
        """Read what the answers should rest on.

        Args:
            engine: The engine. The caller closes it.
            policy: What happens to a problem.
            request: A request with ``messages`` and perhaps ``tools``, in the form of OpenAI's chats.
            knowledge: Further knowledge. Its tool calls join the log, and its texts count as said.
            options: As for ``TurnChecker``.
        """
        self.policy = policy
        tools = check_sequence("tools", request.get("tools") or (), "definitions of tools")
        self._checker = TurnChecker(engine, tools=list(_list_defined(tools)), options=options)
        items = [knowledge] if isinstance(knowledge, str | Mapping | Record) else list(knowledge)
        self._log = [
            item for item in items if isinstance(item, ToolCall) or (isinstance(item, Mapping) and is_call(item))
        ]
        texts = list_passages([item for item in items if item not in self._log])
        instructions = [{"role": SYSTEM, "content": text} for text in texts]
        self._history = [*instructions, *filter(is_message, request.get("messages") or ())]

    def check(self, text: str, calls: Sequence[Mapping[str, Any]]) -> Steps[TurnCheck]:
        """Check an answer.

        Args:
            text: What the model wrote.
            calls: The calls, in the form of OpenAI's chats.

        Returns:
            Steps that return the findings of the kinds that the policy looks at; ``invalid`` if it looks at arguments
            that cannot be read.
        """
        calls = () if self.policy.argument == "pass" else calls
        turn: TurnCheck = yield partial(self._check, text, calls), partial(self._acheck, text, calls)
        findings = tuple(finding for finding in turn.findings if getattr(self.policy, finding.kind) != "pass")
        return replace(turn, findings=findings, label=label_turn(findings, turn.status))

    def _check(self, text: str, calls: Sequence[Mapping[str, Any]]) -> TurnCheck:
        try:
            return self._checker.check(text, calls, log=self._log, history=self._history, sentences=False)
        except InvalidRequest as error:
            return _refuse(error)

    async def _acheck(self, text: str, calls: Sequence[Mapping[str, Any]]) -> TurnCheck:
        try:
            return await self._checker.acheck(text, calls, log=self._log, history=self._history, sentences=False)
        except InvalidRequest as error:
            return _refuse(error)


def _list_defined(tools: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The definitions of tools that have a name; a tool of the provider has a type alone."""
    for tool in tools:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        definition = function if isinstance(function, Mapping) else tool
        if isinstance(definition, Mapping) and isinstance(definition.get("name"), str):
            yield {name: value for name, value in definition.items() if name != "function"}


def _refuse(error: InvalidRequest) -> TurnCheck:
    """The check of calls that cannot be read, which the upstream's model wrote."""
    return TurnCheck(label="unknown", findings=(), status="invalid", message=str(error))
