"""Checks a turn of an assistant, its text and its calls, against the dialogue and the tool log."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from groundwire.engine import Engine, InvalidRequest, Options, Pending, Request, Score, ToolCall
from groundwire.engine.extend import Metrics, list_passages, make_request
from groundwire.engine.schema.chats import read_chat, read_tool_call
from groundwire.engine.schema.knowledge import read_call
from groundwire.runtime.arguments import check_sequence
from groundwire.runtime.texts.unread import is_blank

from .actions import check_actions
from .arguments import Argument, check_argument, find_insertion, is_prose, list_arguments
from .context import Tools, TurnContext, read_tools
from .figures import check_figures
from .mentions import stem_words
from .records import Finding, TurnCheck, TurnLabel

Call: TypeAlias = ToolCall | Mapping[str, Any]
"""A call, in its own form or in the form of OpenAI, Anthropic or LangChain."""


class TurnChecker:
    """Checks turns of assistants that call tools, before a call is made or a text is shown.

    >>> checked = TurnChecker(engine).check("It's booked.", log=log, history=history)           # doctest: +SKIP
    >>> checked.label, [(finding.where, finding.status) for finding in checked.problems]       # doctest: +SKIP
    ('inconsistent', [("It's booked.", 'failed')])
    """

    def __init__(
        self,
        engine: Engine,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        actions: Collection[str] = (),
        metrics: Metrics = None,
        options: Options | None = None,
    ) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine that scores the text and what arguments say in sentences. The caller closes it.
            tools: Definitions of the tools, as OpenAI, Anthropic or the Model Context Protocol write them. Of their
                schemas the enumerations are read, and of their annotations ``readOnlyHint``.
            actions: Names of tools that change something although their names begin as those of tools that read, such
                as ``get_taxi``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.

        Raises:
            InvalidRequest: A definition has no name, or the metrics cannot be computed.
        """
        self._engine = engine
        self._tools = read_tools(check_sequence("tools", tools, "definitions of tools"), actions)
        self._plan = engine.plan(metrics, options)

    def check(
        self,
        text: str = "",
        calls: Sequence[Call] = (),
        *,
        log: Sequence[Any] = (),
        history: Sequence[Any] = (),
        sentences: bool = True,
    ) -> TurnCheck:
        """Check what the assistant says and the calls that it is about to make.

        Args:
            text: What the assistant says; empty for nothing.
            calls: The calls that it is about to make.
            log: The calls that were made, oldest first, or the messages of a chat with them.
            history: The dialogue before the turn, oldest first: messages with ``role`` and ``content``, or texts, of
                which the last is the user's and the others alternate. Calls in messages are added to the log.
            sentences: Whether the text is scored too, by the models, against the log.

        Returns:
            The findings and the label. The models' score of the text is beside them, and does not decide the label.

        Raises:
            InvalidRequest: An argument is not usable.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
            EngineClosed: The engine is closed.
        """
        turn = self._read(text, calls, log, history, sentences=sentences)
        return _fold(turn, [self._engine.submit(request, self._plan).result() for request in turn.requests])

    async def acheck(
        self,
        text: str = "",
        calls: Sequence[Call] = (),
        *,
        log: Sequence[Any] = (),
        history: Sequence[Any] = (),
        sentences: bool = True,
    ) -> TurnCheck:
        """Check a turn in asyncio, as ``check``."""
        turn = await asyncio.to_thread(self._read, text, calls, log, history, sentences=sentences)
        pending: list[Pending[Score]] = [self._engine.submit(request, self._plan) for request in turn.requests]
        return _fold(turn, [await score for score in pending])

    def _read(
        self, text: str, calls: Sequence[Call], log: Sequence[Any], history: Sequence[Any], *, sentences: bool
    ) -> _Turn:
        try:
            context = _read_context(text, calls, log, history, self._tools)
            _ = context.siblings  # read here, as they go into the depth of results
        except RecursionError as error:
            raise InvalidRequest(
                "calls or log are nested too deeply; pass the parts that the turn rests on."
            ) from error
        knowledge = list_passages(context.log)
        spoken = tuple(said for _, said in context.history)
        arguments = list(list_arguments(context))
        prose = [argument for argument in arguments if is_prose(argument)]
        requests = [
            make_request(argument.value, (*spoken, *knowledge), (), self._plan.options)
            for argument in prose
            if not is_blank(argument.value)
        ]
        has_score = sentences and not is_blank(text)
        if has_score:
            requests.append(make_request(text, knowledge, spoken, self._plan.options))
        return _Turn(context, arguments, requests, has_score)


class _Turn(NamedTuple):
    """A turn that was read, and what models are asked about it."""

    context: TurnContext
    arguments: Sequence[Argument]
    requests: Sequence[Request]
    """The arguments that are prose, and the text at the end."""
    has_score: bool


def _fold(turn: _Turn, scores: Sequence[Score]) -> TurnCheck:
    prose = iter(scores[:-1] if turn.has_score else scores)
    findings = [
        _read_prose(argument, finding, next(prose), turn.context) if is_prose(argument) else finding
        for argument in turn.arguments
        for finding in (check_argument(argument, turn.context),)
    ]
    said = [*check_actions(turn.context), *check_figures(turn.context)]
    findings += sorted(said, key=lambda finding: finding.start or 0)
    label: TurnLabel = "consistent" if findings else "unverifiable"
    if any(finding.is_problem for finding in findings):
        label = "inconsistent"
    return TurnCheck(label=label, findings=tuple(findings), score=scores[-1] if turn.has_score else None)


def _read_prose(argument: Argument, finding: Finding, score: Score, context: TurnContext) -> Finding:
    """Return a composed text's finding: absent if models doubt words that are not in the dialogue or the log."""
    if finding.status != "composed":
        return finding
    mentioned = context.everything.stems
    doubted = [
        span.text
        for sentence in score.sentences
        if sentence.verdict.label == "inconsistent" and "please" not in sentence.text.lower()
        for span in sentence.unsupported
        if stem_words(span.text) - mentioned
    ]
    doubted = doubted or find_insertion(argument.value, context)
    if not doubted:
        return finding
    return replace(finding, status="absent", message=f"Not in the dialogue or the log: {doubted[0]}.")


def _read_context(
    text: str, calls: Sequence[Call], log: Sequence[Any], history: Sequence[Any], tools: Tools
) -> TurnContext:
    if not isinstance(text, str):
        raise InvalidRequest(f"text is {type(text).__name__}; pass what the assistant says, or an empty string.")
    made = [_read_made(call, f"calls[{index}]") for index, call in enumerate(check_sequence("calls", calls, "calls"))]
    logged = read_chat(check_sequence("log", log, "calls that were made, or messages"))
    said = read_chat(check_sequence("history", history, "messages, or texts"))
    texts = [turn for turn in said.others if isinstance(turn, str)]
    if len(texts) < len(said.others):
        other = next(turn for turn in said.others if not isinstance(turn, str))
        raise InvalidRequest(f"history has {type(other).__name__} that is no message; pass texts, or role and content.")
    roles = ("user", "assistant")
    alternating = [(roles[(len(texts) - 1 - index) % 2], turn) for index, turn in enumerate(texts)]
    others = [read_call(call, f"log[{index}]") for index, call in enumerate(logged.others)]
    return TurnContext(text, made, (*said.calls, *logged.calls, *others), (*alternating, *said.history), tools)


def _read_made(call: Any, name: str) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    read = read_tool_call(call)
    if read is None:
        raise InvalidRequest(f"{name} has no name; pass a ToolCall, or a call of OpenAI, Anthropic or LangChain.")
    return read
