"""Chat completions in the form of OpenAI's interface: which parts of an answer may be released, and why.

Nothing here speaks HTTP. ``CheckedChat.check`` takes a completion, or one chunk of a stream, as a dictionary, and gives
the dictionary that the reader may have. ``steps`` drives it from threads and from asyncio, and ``forms`` has other
protocols in the form of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from groundwire.engine import Engine, InvalidRequest, Score, UnsupportedSpan, Verdict
from groundwire.engine.extend import list_passages
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.chats import read_chat
from groundwire.engine.schema.results import Citation, Label
from groundwire.runtime.arguments import OptionRecord, name_values
from groundwire.runtime.texts.unread import is_blank
from groundwire.turns import TurnCheck

from .records import Blocked, FinalEvent, NotChecked, Outcome, Release, SentenceEvent
from .steps import Steps
from .stream import ResponseStream
from .turns import TurnGuard

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
MAX_CALLS, MAX_CALL_CHARACTERS = 1_000, 1_000_000
"""Calls of a choice, and characters of their arguments, which are held until they are whole."""
UNCHECKED: frozenset[Outcome] = frozenset({"unknown", "deadline", "failed", "truncated", "overflow"})
"""Outcomes without a verdict."""
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


class _Function(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of a call of a function, or of a part of it."""

    name: Word | None = None
    arguments: str | dict[str, Any] | None = None


class _Custom(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of a call of a custom tool, or of a part of it."""

    name: Word | None = None
    input: str | None = None


class _Call(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of a call, or of a part of it."""

    index: int | None = None
    id: Annotated[str, msgspec.Meta(pattern=r"^[\w.:/@+|=-]{0,256}$")] | None = None
    type: Word | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class _Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of a message, or of a part of one; ``content`` is kept apart from what may leave unchecked."""

    role: Word | None = None
    content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    function_call: _Function | None = None
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

    label: Label
    """The worst of ``verdict`` and ``turn``: inconsistent, unknown, consistent, unverifiable."""
    probability: float | None
    """Of being consistent, 0–1; None where the verdict has none."""
    verdict: Verdict | None
    """The verdict on the whole text, as the model wrote it; None without a text."""
    unchanged: bool
    """Whether all of the text and all calls have left as the model wrote them."""
    unsupported: tuple[UnsupportedSpan, ...] = ()
    """Words without support, by their place in the text as the model wrote it."""
    citations: tuple[Citation, ...] = ()
    """Where in the knowledge the support of its sentences is."""
    turn: TurnCheck | None = None
    """What was found in its calls and claims, if that was asked for."""
    not_checked: tuple[NotChecked, ...] = ()
    """What was not checked, whether it has left or not."""


_WORST: tuple[Label, ...] = ("inconsistent", "unknown", "consistent", "unverifiable")


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


@dataclass(slots=True)
class _ChoiceState:
    """What is known of a choice."""

    stream: ResponseStream | None = None
    """None before its first text."""
    held_text: str = ""
    """What the policy has released, and the check of the turn has not."""
    held_size: int = 0
    """Characters of what is held of calls, and of refusals."""
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Its tool calls by their index, as far as they have come; they are held back until they are whole."""
    function_call: dict[str, Any] = field(default_factory=dict)
    """A call in the older form."""
    not_checked: dict[tuple[str, str], NotChecked] = field(default_factory=dict)
    """By part and reason."""
    turn: TurnCheck | None = None
    """The check of its calls and claims."""
    is_cut: bool = False
    """Whether the policy has ended its text."""
    has_ended: bool = False

    @property
    def text(self) -> str:
        """Its text as the model wrote it."""
        return "" if self.stream is None else self.stream.text

    @property
    def is_waiting(self) -> bool:
        """Whether something of it is held, and may leave."""
        return not self.has_ended and (self.stream is not None or bool(self.calls or self.function_call))

    def add_calls(self, message: _Message) -> None:
        """Add the calls of a message, or further parts of them."""
        self.held_size += len(message.refusal or "") + sum(map(_count, (message.function_call, *_list_tools(message))))
        if self.held_size > MAX_CALL_CHARACTERS or len(self.calls) > MAX_CALLS:
            raise InvalidRequest(
                f"The answer has more than {MAX_CALLS} calls, or {MAX_CALL_CHARACTERS} characters of arguments."
            )
        for position, call in enumerate(message.tool_calls or ()):
            _join(self.calls.setdefault(position if call.index is None else call.index, {}), msgspec.to_builtins(call))
        _join(self.function_call, msgspec.to_builtins(message.function_call or _Function()))

    def list_calls(self) -> list[dict[str, Any]]:
        """Its calls, as ``TurnChecker`` reads them; InvalidRequest for a call of two tools at once."""
        for call in (*self.calls.values(), self.function_call):
            _close(call)
        if any("function" in call and "custom" in call for call in self.calls.values()):
            raise InvalidRequest("The answer has a call of two tools at once, function and custom.")
        calls = [call.get("custom") or call for call in self.calls.values()]
        return [*calls, self.function_call] if self.function_call else calls

    def build_calls(self) -> dict[str, Any]:
        """The fields of a message with its calls."""
        fields = {"tool_calls": list(self.calls.values()), "function_call": self.function_call}
        return {name: value for name, value in fields.items() if value}

    def note(self, part: NotChecked) -> None:
        """Remember what was not checked; the first message of a reason counts."""
        self.not_checked.setdefault((part.part, part.reason), part)

    def take_released(self) -> str:
        """The text that the last step of the stream has released."""
        assert self.stream is not None
        for event in self.stream.last_events:
            if isinstance(event, SentenceEvent | Release | Blocked) and event.outcome in UNCHECKED:
                message = event.verdict.message if isinstance(event, SentenceEvent) else getattr(event, "message", "")
                self.note(NotChecked("text", event.outcome, message))
            self.is_cut |= isinstance(event, Blocked) or (isinstance(event, Release) and event.action == "fallback")
        return "".join(event.text for event in self.stream.last_events if isinstance(event, Release))


def _join(call: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of a call: texts of arguments continue, other fields are replaced."""
    for key, value in part.items():
        before = call.get(key)
        if key in ("function", "custom") and isinstance(value, dict):
            _join(call.setdefault(key, {}), value)
        elif isinstance(value, str) and key in ("arguments", "input"):
            call[key] = before if isinstance(before, list) else []  # parts, which are joined at the end
            call[key].append(value)
        else:
            call[key] = value


def _close(call: dict[str, Any]) -> None:
    """Join the parts of a call's arguments."""
    for called in (call, call.get("function") or {}, call.get("custom") or {}):
        for key, value in called.items():
            if isinstance(value, list):
                called[key] = "".join(value)


def _list_tools(message: _Message) -> Iterator[_Function | _Custom | None]:
    for call in message.tool_calls or ():
        yield from (call.function, call.custom)


def _count(called: _Function | _Custom | None) -> int:
    """Characters of the arguments."""
    text = called.input if isinstance(called, _Custom) else None if called is None else called.arguments
    return len(text) if isinstance(text, str) else 0


class CheckedChat:
    """The answer to one request while it is checked: a completion, or the chunks of a stream.

    Each choice has a stream of its own. Only fields that are known to be without unchecked text are kept: the text of
    the choice is replaced by what the policy lets leave, and log probabilities, reasoning, audio and fields of other
    kinds are left out. Tool calls leave at the end of the choice, whole, and not after a text that the policy has
    ended.
    """

    def __init__(
        self, open_stream: Callable[[], ResponseStream], choices: int = 1, turns: TurnGuard | None = None
    ) -> None:
        """Check an answer.

        Args:
            open_stream: Opens the stream of a choice, when its first text comes.
            choices: How many choices were asked for (``n`` of the request).
            turns: Checks the calls and what the text claims to have done; None lets calls leave unchecked.
        """
        self._open_stream = open_stream
        self._count = choices
        self._turns = turns
        self._choices: dict[int, _ChoiceState] = {}
        self._stopped = 0
        self._top: dict[str, Any] = {}
        """The fields of the last chunk that are not of a choice."""

    @property
    def is_stopped(self) -> bool:
        """Whether the policy has ended every choice before the model did: nothing that is still written can leave."""
        return self._stopped >= self._count

    @property
    def is_complete(self) -> bool:
        """Whether every choice has ended."""
        return sum(choice.has_ended for choice in self._choices.values()) >= self._count

    @property
    def scores(self) -> list[Score]:
        """The scores of the choices that have ended."""
        streams = [choice.stream for choice in self._choices.values() if choice.stream is not None]
        return [stream.score for stream in streams if stream.score is not None]

    @property
    def checked_turns(self) -> list[TurnCheck]:
        """The checks of calls and claims of the choices that have ended."""
        return [choice.turn for choice in self._choices.values() if choice.turn is not None]

    @property
    def not_checked(self) -> list[NotChecked]:
        """What was not checked so far, by choice."""
        return [part for choice in self._choices.values() for part in choice.not_checked.values()]

    def close(self) -> None:
        """Cancel the checks."""
        for choice in self._choices.values():
            if choice.stream is not None:
                choice.stream.close()

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
            if choice.index >= self._count:
                raise InvalidRequest(f"The answer has a choice {choice.index}, and {self._count} were asked for.")
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
        for index, state in self._choices.items():
            if state.is_waiting:
                choices.append((yield from self._end(state, {"index": index, "delta": {}, "finish_reason": "stop"})))
        return self._top | {"choices": choices} if choices else None

    def _check_choice(self, choice: _Choice) -> Steps[dict[str, Any] | None]:
        state = self._choices.setdefault(choice.index, _ChoiceState())
        if state.has_ended:
            return None
        part = "delta" if choice.message is None else "message"
        message = choice.message or choice.delta or _Message()
        state.add_calls(message)
        if message.refusal:
            state.note(NotChecked("refusal", "policy"))
        unchecked = msgspec.structs.replace(message, content=None, tool_calls=None, function_call=None)
        allowed: dict[str, Any] = msgspec.to_builtins(unchecked)
        checked: dict[str, Any] = {"index": choice.index, part: allowed, "finish_reason": choice.finish_reason}
        if part == "message":
            allowed["content"] = message.content
        if message.content:
            allowed["content"] = yield from self._feed(state, message.content)
        if part == "message" or choice.finish_reason is not None or state.is_cut:
            self._stopped += state.is_cut
            return (yield from self._end(state, checked))
        return checked if allowed.get("content") or allowed.keys() - {"content"} else None

    def _feed(self, state: _ChoiceState, text: str) -> Steps[str]:
        if state.stream is None:
            state.stream = self._open_stream()
        yield partial(state.stream.feed, text), partial(state.stream.afeed, text)
        released = state.take_released()
        if self._turns is None or not self._turns.policy.holds_text:
            return released
        state.held_text += released
        return ""

    def _end(self, state: _ChoiceState, choice: dict[str, Any]) -> Steps[dict[str, Any]]:
        """The choice with the last of its text, its calls, and its verdict."""
        state.has_ended = True
        part, final, text = choice["message" if "message" in choice else "delta"], None, ""
        if state.stream is not None and is_blank(state.stream.text):
            state.stream.close()
        elif state.stream is not None:
            yield state.stream.finish, state.stream.afinish
            text = state.held_text + (part.pop("content", None) or "") + state.take_released()
            (final,) = (event for event in state.stream.last_events if isinstance(event, FinalEvent))
        calls = [] if state.is_cut else state.list_calls()
        blocked = frozenset[str]()
        if self._turns is not None and (calls or final is not None):
            turn = state.turn = yield from self._turns.check(state.text, calls)
            blocked = self._turns.policy.list_blocked(turn)
            if turn.label == "unknown" or turn.status == "invalid":
                reason = turn.status if turn.status in UNCHECKED else "unknown"
                state.note(NotChecked("calls" if calls else "text", reason, turn.message))
        if calls and (self._turns is None or self._turns.policy.argument == "pass"):
            state.note(NotChecked("calls", "policy"))
        fallback = self._turns.policy.fallback or "" if self._turns is not None and blocked else ""
        if fallback and ("text" in blocked or final is None):
            part["content"] = fallback
        elif final is not None and (text or "message" in choice):
            part["content"] = "" if "text" in blocked else text
        if calls and "calls" not in blocked:
            part |= state.build_calls()
        is_whole = final is None or final.released == state.text
        unchanged = is_whole and not (blocked & {"text"} and text) and not (blocked and calls)
        if not unchanged:
            choice["finish_reason"] = FILTERED
        if final is None and state.turn is None and not state.not_checked:
            return choice
        score = None if final is None else final.score
        chat_verdict = ChatVerdict(
            min(
                (made.label for made in (score and score.verdict, state.turn) if made),
                key=_WORST.index,
                default="unknown",
            ),
            None if score is None else score.verdict.probability,
            None if score is None else score.verdict,
            unchanged,
            () if score is None else score.unsupported,
            () if score is None else score.citations,
            state.turn,
            tuple(state.not_checked.values()),
        )
        return choice | {FIELD: msgspec.to_builtins(chat_verdict)}


def _read_top(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an answer that are not of a choice, as far as they have no room for a text."""
    top = {}
    for name, kind in _TOP.items():
        with suppress(KeyError, msgspec.ValidationError):
            top[name] = msgspec.convert(answer[name], kind)
    return top
