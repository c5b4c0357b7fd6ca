"""Chat completions in the form of OpenAI's interface: which parts of an answer may be released, and why.

Nothing here speaks HTTP. ``CheckedChat.check`` takes a completion, or one chunk of a stream, as a dictionary, and gives
the dictionary that the reader may have. ``run`` and ``arun`` drive it from threads and from asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from groundwire.engine import Engine, InvalidRequest, Score, UnsupportedSpan, Verdict
from groundwire.engine.extend import list_passages
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.chats import read_chat
from groundwire.engine.schema.results import Citation
from groundwire.runtime.arguments import OptionRecord, name_values
from groundwire.runtime.texts.unread import is_blank

from .records import FinalEvent, Release
from .stream import ResponseStream

T = TypeVar("T")
Steps: TypeAlias = Generator[tuple[ResponseStream, str | None], None, T]
"""Yields a stream and the text to feed it, None to finish it; returns a result."""
FIELD = "groundwire"
"""The field of a choice with its ``ChatVerdict``, and of a request with its ``ChatOptions``."""
KnowledgeSource: TypeAlias = Literal["system", "tool", "metadata"]
"""Where a request has its knowledge: in the texts of system and developer messages, in the results of tools, or in
``metadata.knowledge``."""
SOURCES: tuple[KnowledgeSource, ...] = ("system", "tool")
"""The sources that are read where none are named."""
FILTERED = "content_filter"
"""``finish_reason`` of a choice whose text has not left as a whole."""
Word: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[\w.:/@+-]{0,256}$")]
"""A name: no room for a sentence."""
Number: TypeAlias = int | float | bool | None
_TOP: Mapping[str, Any] = {
    "id": Word | None,
    "object": Word | None,
    "created": Number,
    "model": Word | None,
    "usage": dict[Word, Number | dict[Word, Number]] | None,
    "system_fingerprint": Word | None,
    "service_tier": Word | None,
}
"""Fields of an answer that are kept, each if it is of its type."""


class _Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of a message, or of a part of one; ``content`` is kept apart from what may leave unchecked."""

    role: Word | None = None
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    function_call: dict[str, Any] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    """What is read of a choice."""

    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: Word | None = None


class _Answer(msgspec.Struct, frozen=True):
    """What is read of a completion, or of a chunk."""

    choices: tuple[_Choice, ...]


class ChatOptions(OptionRecord, frozen=True, kw_only=True):
    """What a request says to the guard in its field ``groundwire``, which the model does not get."""

    knowledge: str | dict[str, Any] | tuple[str | dict[str, Any], ...] | None = None
    """The text that the answer should rest on, a JSON object, or several of these; None leaves it to the sources of the
    guard."""


class ChatVerdict(Record, frozen=True):
    """What came of checking one choice of a completion."""

    label: str
    """``consistent``, ``inconsistent``, ``unverifiable`` or ``unknown``, as of ``verdict``."""
    probability: float | None
    """Of being consistent, 0–1; None where the verdict has none."""
    verdict: Verdict
    """The verdict on the whole text, as the model wrote it."""
    unchanged: bool
    """Whether all of the text has left as the model wrote it."""
    unsupported: tuple[UnsupportedSpan, ...] = ()
    """Words without support, by their place in the text as the model wrote it."""
    citations: tuple[Citation, ...] = ()
    """Where in the knowledge the support of its sentences is."""


def read_knowledge(request: Mapping[str, Any], sources: Collection[KnowledgeSource] = SOURCES) -> tuple[str, ...]:
    """Return what the answer to a request should rest on.

    Args:
        request: The body of the request. The knowledge of its own field ``groundwire`` is all of it, where given.
        sources: Where else the knowledge may be; the texts of all of them are joined.

    Returns:
        The passages of the metadata, the texts of system messages, and the tool log: a passage for each call.

    Raises:
        InvalidRequest: The field ``groundwire``, or the knowledge of the metadata, cannot be used.
    """
    knowledge = read_options(request).knowledge
    if knowledge is not None:
        return list_passages(knowledge)
    metadata = request.get("metadata")
    passages = metadata.get("knowledge") if "metadata" in sources and isinstance(metadata, Mapping) else None
    chat = read_chat(request.get("messages") or ())
    texts = (chat.instructions if "system" in sources else (), chat.calls if "tool" in sources else ())
    return (*list_passages(passages or ()), *list_passages((*texts[0], *texts[1])))


def read_options(request: Mapping[str, Any]) -> ChatOptions:
    """Return the field ``groundwire`` of a request; InvalidRequest says what is wrong with it."""
    try:
        return msgspec.convert(request.get(FIELD) or {}, ChatOptions)
    except msgspec.ValidationError as error:
        reason = f"{error}{name_values(ChatOptions, str(error))}"
        raise InvalidRequest(f"The field {FIELD} of the request cannot be used: {reason}.") from error


def read_history(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the dialogue before an answer: the texts of user and assistant messages.

    Args:
        messages: The messages of a request.

    Returns:
        The utterances, oldest first.
    """
    return [text for _, text in read_chat(messages).history]


def add_citing(engine: Engine, names: Sequence[str]) -> tuple[str, ...]:
    """Return metrics, and after them the engine's metrics for citations."""
    citing = [metric.name for metric in engine.plan("all").metrics if metric.cites]
    return tuple(dict.fromkeys((*names, *citing)))


class CheckedChat:
    """The answer to one request while it is checked: a completion, or the chunks of a stream.

    Each choice has a stream of its own. Only fields that are known to be without unchecked text are kept: the text of
    the choice is replaced by what the policy lets leave, ``refusal`` and tool calls stay, and log probabilities,
    reasoning, audio and fields of other kinds are left out.
    """

    def __init__(self, open_stream: Callable[[], ResponseStream], choices: int = 1) -> None:
        """Check an answer.

        Args:
            open_stream: Opens the stream of a choice, when its first text comes.
            choices: How many choices were asked for (``n`` of the request).
        """
        self._open_stream = open_stream
        self._choices = choices
        self._streams: dict[int, ResponseStream] = {}
        self._ended: set[int] = set()
        self._stopped = 0
        self._top: dict[str, Any] = {}
        """The fields of the last chunk that are not of a choice."""

    @property
    def is_stopped(self) -> bool:
        """Whether the policy has ended every choice before the model did: nothing that is still written can leave."""
        return self._stopped >= self._choices

    @property
    def scores(self) -> list[Score]:
        """The scores of the choices that have ended."""
        return [stream.score for stream in self._streams.values() if stream.score is not None]

    def close(self) -> None:
        """Cancel the checks."""
        for stream in self._streams.values():
            stream.close()

    def check(self, answer: Mapping[str, Any]) -> Steps[dict[str, Any] | None]:
        """Check a completion or a chunk.

        Args:
            answer: The dictionary.

        Returns:
            Steps that return what the reader may have of it; None where that is nothing yet.
        """
        try:
            written = msgspec.convert(answer, _Answer).choices
        except msgspec.ValidationError as error:
            raise InvalidRequest(f"The answer is not a chat completion: {error}.") from error
        choices = []
        for choice in written:
            if choice.index >= self._choices:
                raise InvalidRequest(f"The answer has a choice {choice.index}, and {self._choices} were asked for.")
            checked = yield from self._check_choice(choice)
            if checked is not None:
                choices.append(checked)
        self._top = _read_top(answer)
        if written and not choices:
            return None
        return self._top | {"choices": choices}

    def finish(self) -> Steps[dict[str, Any] | None]:
        """Check what is held of choices that the model has not ended, and return a chunk with it, or None."""
        choices = []
        for index in tuple(self._streams.keys() - self._ended):
            choices.append((yield from self._end(index, {"index": index, "delta": {}, "finish_reason": "stop"})))
        return self._top | {"choices": choices} if choices else None

    def _check_choice(self, choice: _Choice) -> Steps[dict[str, Any] | None]:
        index, part = choice.index, "delta" if choice.message is None else "message"
        if index in self._ended:
            return None
        message = choice.message or choice.delta or _Message()
        content, reason = message.content, choice.finish_reason
        allowed: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(message, content=None))
        checked: dict[str, Any] = {"index": index, part: allowed, "finish_reason": reason}
        if part == "message":
            allowed["content"] = content
        if content:
            allowed["content"] = yield from self._feed(index, content)
        stream = self._streams.get(index)
        is_stopped = stream is not None and stream.is_ended
        if part == "message" or reason is not None or is_stopped:
            self._stopped += is_stopped
            return (yield from self._end(index, checked))
        return checked if allowed.get("content") or allowed.keys() - {"content"} else None

    def _feed(self, index: int, text: str) -> Steps[str]:
        stream = self._streams.get(index)
        if stream is None:
            stream = self._streams[index] = self._open_stream()
        yield stream, text
        return _join_released(stream)

    def _end(self, index: int, choice: dict[str, Any]) -> Steps[dict[str, Any]]:
        """The choice with the last of its text, and its verdict if it has a text."""
        self._ended.add(index)
        stream = self._streams.get(index)
        if stream is None:
            return choice
        part = choice["message" if "message" in choice else "delta"]
        if is_blank(stream.text):
            stream.close()
            return choice
        yield stream, None
        text = (part.get("content") or "") + _join_released(stream)
        (final,) = (event for event in stream.last_events if isinstance(event, FinalEvent))
        unchanged = final.released == stream.text
        part.pop("content", None)
        if text or "message" in choice:
            part["content"] = text
        if not unchanged:
            choice["finish_reason"] = FILTERED
        chat_verdict = ChatVerdict(
            final.score.verdict.label,
            final.score.verdict.probability,
            final.score.verdict,
            unchanged,
            final.score.unsupported,
            final.score.citations,
        )
        return choice | {FIELD: msgspec.to_builtins(chat_verdict)}


def _read_top(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an answer that are not of a choice, as far as they have no room for a text."""
    top = {}
    for name, kind in _TOP.items():
        with suppress(KeyError, msgspec.ValidationError):
            top[name] = msgspec.convert(answer[name], kind)
    return top


def _join_released(stream: ResponseStream) -> str:
    return "".join(event.text for event in stream.last_events if isinstance(event, Release))


def run(steps: Steps[T]) -> T:
    """Take steps, and return their result."""
    while True:
        try:
            stream, text = next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        if text is None:
            stream.finish()
        else:
            stream.feed(text)


async def arun(steps: Steps[T]) -> T:
    """Take steps in asyncio, as ``run``."""
    while True:
        try:
            stream, text = next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        if text is None:
            await stream.afinish()
        else:
            await stream.afeed(text)
