"""Checks a turn of an assistant, its text and its calls, against the dialogue and the tool log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from groundwire.engine import Engine, InvalidRequest, Options, Pending, Request, Score, ToolCall
from groundwire.engine.extend import Metrics, list_passages, make_request
from groundwire.engine.schema.chats import ASSISTANT, SYSTEM, USER, read_chat
from groundwire.engine.schema.knowledge import read_call
from groundwire.engine.schema.results import STOPPED, Status
from groundwire.runtime.arguments import check_sequence
from groundwire.runtime.texts.unread import is_blank

from .actions import check_actions
from .arguments import check_argument, find_insertion, is_prose
from .calls import Argument, list_arguments
from .context import DeadlinePassed, Tools, TurnContext, read_tools
from .figures import check_figures
from .mentions import stem_words
from .reading import read_made_call
from .records import Finding, TurnCheck, label_turn

Call: TypeAlias = ToolCall | Mapping[str, Any]
"""A call, in its own form or in the form of OpenAI, Anthropic or LangChain."""
MAX_RULES_MS = 10_000.0
"""Time for the rules where no deadline is given."""
MAX_PROSE = 64
"""Arguments of a turn that models read, at most."""


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
            options: As for ``Engine.score``; ``deadline_ms`` holds for the rules too, which have ten seconds without.

        Raises:
            InvalidRequest: A definition has no name, or the metrics cannot be computed.
        """
        self._engine = engine
        if not isinstance(actions, set | frozenset):
            check_sequence("actions", actions, "names of tools")
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
            calls: The calls that it is about to make. Arguments whose text is not a JSON object with each key once are
                not checked: the status is ``invalid`` and the label ``unknown``, or ``inconsistent`` by the rest.
            log: The calls that were made, oldest first, or the messages of a chat with them.
            history: The dialogue before the turn, oldest first: messages with ``role`` and ``content``, or texts, of
                which the last is the user's and the others alternate. Calls in messages are added to the log; what
                system messages say counts as said.
            sentences: Whether the text is scored too, by the models, against the log.

        Returns:
            The findings and the label. The models' score of the text is beside them, and does not decide the label.

        Raises:
            InvalidRequest: An argument is not usable, or more than ``MAX_PROSE`` arguments are sentences.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
            EngineClosed: The engine is closed.
        """
        turn = self._read(text, calls, log, history, sentences=sentences)
        with self._submit(turn) as pending:
            by_rules = _apply_rules(turn)
            return _fold(turn, by_rules, [score.result() for score in pending])

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
        with self._submit(turn) as pending:
            by_rules = await asyncio.to_thread(_apply_rules, turn)
            return await asyncio.to_thread(_fold, turn, by_rules, [await score for score in pending])

    @contextmanager
    def _submit(self, turn: _Turn) -> Iterator[list[Pending[Score]]]:
        """The requests of a turn, all under way; what is not finished at the end is cancelled."""
        pending: list[Pending[Score]] = []
        try:
            for request in turn.requests:
                pending.append(self._engine.submit(request, self._plan))
            yield pending
        finally:
            for score in pending:
                score.cancel()

    def _read(
        self, text: str, calls: Sequence[Call], log: Sequence[Any], history: Sequence[Any], *, sentences: bool
    ) -> _Turn:
        deadline_ms = self._plan.options.deadline_ms
        end = time.monotonic() + (MAX_RULES_MS if deadline_ms is None else deadline_ms) / 1000
        try:
            read = [
                read_made_call(call, f"calls[{index}]")
                for index, call in enumerate(check_sequence("calls", calls, "calls"))
            ]
            context = _read_context(text, [call for call, _ in read], log, history, self._tools, end)
            _ = context.siblings  # read here, as they go into the depth of results
            turn = self._plan_requests(context, sentences=sentences)
            return turn._replace(unread=next((reason for _, reason in read if reason), ""))
        except RecursionError as error:
            raise InvalidRequest(
                "calls or log are nested too deeply; pass the parts that the turn rests on."
            ) from error

    def _plan_requests(self, context: TurnContext, *, sentences: bool) -> _Turn:
        instructions = tuple(said for role, said in context.history if role == SYSTEM)
        spoken = tuple(said for role, said in context.history if role != SYSTEM)
        arguments = list(list_arguments(context))
        prose = [argument for argument in arguments if is_prose(argument)]
        if len(prose) > MAX_PROSE:
            raise InvalidRequest(
                f"calls have {len(prose)} arguments that are sentences; allowed are {MAX_PROSE}. Check them in parts."
            )

        def ask(said: str, others: tuple[str, ...], dialogue: tuple[str, ...]) -> Request:
            knowledge = (*others, *instructions, *list_passages(context.select_log(said)))
            return make_request(said, knowledge, dialogue, self._plan.options)

        requests = [ask(argument.value, spoken, ()) for argument in prose]
        has_score = sentences and not is_blank(context.text)
        if has_score:
            requests.append(ask(context.text, (), spoken))
        return _Turn(context, arguments, requests, has_score)


class _Turn(NamedTuple):
    """A turn that was read, and what models are asked about it."""

    context: TurnContext
    arguments: Sequence[Argument]
    requests: Sequence[Request]
    """The arguments that are prose, and the text at the end."""
    has_score: bool
    unread: str = ""
    """Why the arguments of a call could not be read; empty if they all were."""


class _Found(NamedTuple):
    """What the rules found of a turn."""

    arguments: list[Finding]
    said: list[Finding]
    late: str
    """Why the findings are not all; empty if they are."""


def _apply_rules(turn: _Turn) -> _Found:
    arguments: list[Finding] = []
    said: list[Finding] = []
    try:
        for argument in turn.arguments:
            turn.context.check_time()
            arguments.append(check_argument(argument, turn.context))
        said += check_actions(turn.context)
        said += check_figures(turn.context)
    except DeadlinePassed as passed:
        return _Found(arguments, said, str(passed))
    return _Found(arguments, sorted(said, key=lambda finding: finding.start or 0), "")


def _fold(turn: _Turn, by_rules: _Found, scores: Sequence[Score]) -> TurnCheck:
    status: Status = "deadline" if by_rules.late else "invalid" if turn.unread else "scored"
    message = by_rules.late or turn.unread
    prose = iter(scores)
    findings = []
    for argument, finding in zip(turn.arguments, by_rules.arguments, strict=False):  # fewer after a deadline
        if is_prose(argument):
            score = next(prose)
            finding = _read_prose(argument, finding, score, turn.context)
            if finding.status == "unknown" and not message:
                status = score.status if score.status in STOPPED else status
                message = finding.message
        findings.append(finding)
    findings += by_rules.said
    of_text = scores[-1] if turn.has_score else None
    label = label_turn(findings, status)
    return TurnCheck(label=label, findings=tuple(findings), status=status, message=message, score=of_text)


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
    if doubted:
        return replace(finding, status="absent", message=f"Not in the dialogue or the log: {doubted[0]}.")
    if score.verdict.label == "unknown":
        return replace(finding, status="unknown", message=score.verdict.message or score.message)
    return finding


def _read_context(
    text: str, made: Sequence[ToolCall], log: Sequence[Any], history: Sequence[Any], tools: Tools, end: float | None
) -> TurnContext:
    if not isinstance(text, str):
        raise InvalidRequest(f"text is {type(text).__name__}; pass what the assistant says, or an empty string.")
    logged = read_chat(check_sequence("log", log, "calls that were made, or messages"))
    said = read_chat(_name_roles(check_sequence("history", history, "messages, or texts")))
    if said.others:
        kind = type(said.others[0]).__name__
        raise InvalidRequest(f"history has {kind} that is no message; pass texts, or role and content.")
    others = [read_call(call, f"log[{index}]") for index, call in enumerate(logged.others)]
    instructions = [(SYSTEM, instruction) for instruction in (*said.instructions, *logged.instructions)]
    return TurnContext(text, made, (*said.calls, *logged.calls, *others), (*instructions, *said.history), tools, end)


def _name_roles(history: Sequence[Any]) -> list[Any]:
    """Messages in the place of texts: of the user before the assistant's, and the other way round."""
    messages, following = [], ASSISTANT
    for turn in reversed(history):
        if isinstance(turn, str):
            following = USER if following == ASSISTANT else ASSISTANT
            messages.append({"role": following, "content": turn})
        else:
            messages.append(turn)
            following = next((role for role, _ in read_chat([turn]).history), following)
    return messages[::-1]
