"""A guard for any client of OpenAI's interface: an object with ``chat.completions.create``.

It needs no extra: the client is the caller's, synchronous or asynchronous.

>>> from groundwire.adapters.openai import guard                                            # doctest: +SKIP
>>> client = guard(OpenAI(), knowledge=documents)                                               # doctest: +SKIP
>>> answer = client.chat.completions.create(model="gpt-4o", messages=messages)                  # doctest: +SKIP
>>> answer.choices[0].groundwire["label"]                                                       # doctest: +SKIP
'consistent'
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeAlias

from groundwire.engine import Engine, InvalidRequest, Options, default_engine
from groundwire.engine.extend import Knowledge
from groundwire.guard import Guard, Policy, TurnPolicy
from groundwire.guard.chat import CheckedChat, add_citing, read_history, read_knowledge
from groundwire.guard.policies import check_turn_policy
from groundwire.guard.steps import arun, run
from groundwire.guard.turns import TurnGuard

__all__ = ["GuardedClient", "guard"]

KnowledgeOf: TypeAlias = Callable[[Mapping[str, Any]], Knowledge]
"""Returns the knowledge for the arguments of a call of ``create``."""


def guard(
    client: Any,
    knowledge: Knowledge | KnowledgeOf | None = None,
    engine: Engine | None = None,
    *,
    policy: Policy | None = None,
    turns: TurnPolicy | None = None,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> GuardedClient:
    """Return a client whose answers are checked before anything of them can be read.

    Args:
        client: An object with ``chat.completions.create``, as ``openai.OpenAI`` and ``openai.AsyncOpenAI`` have it.
        knowledge: The answers' source: one text, several passages, or a function of the arguments of a call.
            None: the texts of the call's system, developer and tool messages; where there is none, what the answer
            states has no support.
        engine: The engine; None is ``default_engine``.
        policy: The actions by outcome, as for ``Guard.open``; None lets a text leave up to its first
            sentence that is not supported.
        turns: What happens to tool calls, and to what the text claims to have done, by ``TurnChecker``; None lets both
            leave unchecked.
        metrics: As for ``Engine.score``; None is the verdict's metrics, and citations.
        options: Options of the checks.

    Returns:
        A client with ``chat.completions.create`` alone, as other methods would answer unchecked.
    """
    return GuardedClient(client, knowledge, engine, policy, turns, metrics, options)


class GuardedClient:
    """A client whose ``chat.completions.create`` returns checked answers; ``guard`` makes it.

    An answer is of the client's own type. The text of a choice is what the policy lets leave; ``finish_reason`` is
    ``content_filter`` where this is not all; ``groundwire`` is a dictionary with the fields of
    ``groundwire.guard.chat.ChatVerdict``. With ``stream=True`` text comes when its sentence was checked, and the
    verdict in the last chunk of a choice; the result is a generator, which cancels the model's stream when it is
    closed. Tool calls come whole, at the end of a choice, and not after a text that the policy has ended; log
    probabilities, reasoning and audio are left out. An answer that cannot be checked raises an error of
    ``groundwire.engine``, and nothing of it leaves.
    """

    def __init__(
        self,
        client: Any,
        knowledge: Knowledge | KnowledgeOf | None,
        engine: Engine | None,
        policy: Policy | None,
        turns: TurnPolicy | None,
        metrics: Sequence[str] | str | None,
        options: Options | None,
    ) -> None:
        """Wrap a client.

        Args:
            client: As for ``guard``.
            knowledge: As for ``guard``.
            engine: As for ``guard``.
            policy: As for ``guard``.
            turns: As for ``guard``.
            metrics: As for ``guard``.
            options: As for ``guard``.

        Raises:
            InvalidRequest: The client has no ``chat.completions.create``, or a field of ``turns`` is not usable.
        """
        completions = getattr(getattr(client, "chat", None), "completions", None)
        if not callable(getattr(completions, "create", None)):
            raise InvalidRequest(
                f"client is {type(client).__name__}, which has no chat.completions.create; pass a client of OpenAI's "
                "interface, such as openai.OpenAI()."
            )
        self._client, self._knowledge, self._engine = client, knowledge, engine
        self._policy, self._metrics, self._options = policy, metrics, options
        self._turns = check_turn_policy(turns, policy)

    @property
    def chat(self) -> GuardedClient:
        """This object, which is also ``chat.completions``."""
        return self

    @property
    def completions(self) -> GuardedClient:
        """This object, which has ``create``."""
        return self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"A guarded client has no {name!r}: it has chat.completions.create alone, whose answers are checked. "
            "Use the client that you passed for everything else."
        )

    def create(self, **arguments: Any) -> Any:
        """Ask the model, and check its answer.

        Args:
            **arguments: Those of the client's ``create``.

        Returns:
            The answer of the client's ``create``, checked: a completion; with ``stream=True`` a generator of chunks; of
            an asynchronous client a coroutine that returns an answer or an asynchronous generator.

        Raises:
            InvalidRequest: The knowledge cannot be used, or the answer cannot be read.
            GroundwireError: The engine cannot check.
        """
        checked = self._open(arguments)
        answer = self._client.chat.completions.create(**arguments)
        is_stream = bool(arguments.get("stream"))
        if inspect.isawaitable(answer):
            return _complete_async(checked, answer, is_stream=is_stream)
        return _stream(checked, answer) if is_stream else _complete(checked, answer)

    def _open(self, arguments: Mapping[str, Any]) -> CheckedChat:
        engine = self._engine or default_engine()
        messages = [_to_dict(message) for message in arguments.get("messages") or ()]
        knowledge = self._knowledge
        if knowledge is None:
            knowledge = read_knowledge({"messages": messages})
        elif callable(knowledge):
            knowledge = knowledge(arguments)
        metrics = add_citing(engine, engine.plan().names) if self._metrics is None else self._metrics

        def open_stream() -> Any:
            return Guard(engine).open(
                knowledge, self._policy, history=read_history(messages), metrics=metrics, scoring=self._options
            )

        open_stream().close()  # unusable knowledge is an error before the model is asked
        turns = None
        if self._turns.checks:
            request = {"messages": messages, "tools": arguments.get("tools")}
            turns = TurnGuard(engine, self._turns, request, () if self._knowledge is None else knowledge, self._options)
        return CheckedChat(open_stream, arguments.get("n") or 1, turns)


def _complete(checked: CheckedChat, answer: Any) -> Any:
    with closing(checked):
        return _rebuild(answer, run(checked.check(_to_dict(answer))))


async def _complete_async(checked: CheckedChat, answer: Any, *, is_stream: bool) -> Any:
    if is_stream:
        return _stream_async(checked, await answer)
    with closing(checked):
        answer = await answer
        return _rebuild(answer, await arun(checked.check(_to_dict(answer))))


def _stream(checked: CheckedChat, chunks: Any) -> Generator[Any]:
    last = None
    with closing(checked):
        try:
            for last in chunks:
                part = run(checked.check(_to_dict(last)))
                if part is not None:
                    yield _rebuild(last, part)
                if checked.is_stopped:
                    return
            part = run(checked.finish())
            if part is not None:
                yield _rebuild(last, part)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()


async def _stream_async(checked: CheckedChat, chunks: Any) -> AsyncGenerator[Any]:
    last = None
    with closing(checked):
        try:
            async for last in chunks:
                part = await arun(checked.check(_to_dict(last)))
                if part is not None:
                    yield _rebuild(last, part)
                if checked.is_stopped:
                    return
            part = await arun(checked.finish())
            if part is not None:
                yield _rebuild(last, part)
        finally:
            close = getattr(chunks, "close", None) or getattr(chunks, "aclose", None)
            if close is not None:
                await close()


def _to_dict(value: Any) -> dict[str, Any]:
    """A message, an answer or a chunk as a dictionary."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "model_dump"):
        dumped: dict[str, Any] = value.model_dump()
        return dumped
    raise InvalidRequest(
        f"The client's messages and answers must be dictionaries or pydantic models, not {type(value).__name__}."
    )


def _rebuild(original: Any, content: Any) -> Any:
    """``content`` as an object of the type of ``original``."""
    return content if isinstance(original, Mapping) else type(original).model_construct(**content)
