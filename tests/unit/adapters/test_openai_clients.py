"""A guard for clients of OpenAI's interface: answers, streams, choices, tool calls, and what cannot be checked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from groundwire.adapters.openai import GuardedClient, guard
from groundwire.engine import Engine, InvalidRequest
from groundwire.guard import Fallback, Policy, TurnPolicy
from tests.support.small_talk import ASSERTIONS, SMALL_TALK
from tests.support.streams import METRICS, world

KNOWLEDGE = "Honey is sweet."
WRONG = "Honey is sweet. Honey is blue. Honey is sweet."


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(world()) as opened:
        yield opened


def completion(*texts: str | None, **message: Any) -> dict[str, Any]:
    """A completion with a choice for each text."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": text} | message,
            "logprobs": {"content": [{"token": text}]},
            "finish_reason": "stop",
        }
        for index, text in enumerate(texts)
    ]
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": choices, "note": "unknown field"}


class Chunks:
    """The chunks of a text, three characters each; counts those that were read, and knows whether it was closed."""

    def __init__(
        self, text: str, *, is_ended: bool = True, deltas: Sequence[dict[str, Any]] = (), reason: str = "stop"
    ) -> None:
        self.read = 0
        self.is_closed = False
        texts = ({"content": text[at : at + 3]} for at in range(0, len(text), 3))
        self._chunks = [self._make(delta, None) for delta in ({"role": "assistant"}, *texts, *deltas)]
        if is_ended:
            self._chunks.append(self._make({}, reason))

    def _make(self, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for chunk in self._chunks:
            self.read += 1
            yield chunk

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.is_closed = True


class AsyncChunks(Chunks):
    async def close(self) -> None:  # type: ignore[override]
        self.is_closed = True


def client(create: Callable[..., Any]) -> Any:
    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def guarded(engine: Engine, answer: Any, knowledge: Any = KNOWLEDGE, **options: Any) -> GuardedClient:
    return guard(client(lambda **_: answer), knowledge, engine, **{"metrics": METRICS} | options)


def read(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


def test_a_consistent_answer_leaves_as_it_is_with_its_verdict(engine: Engine) -> None:
    answer = guarded(engine, completion(KNOWLEDGE)).chat.completions.create(model="m", messages=[])
    assert answer.keys() == {"id", "object", "model", "choices"}
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": KNOWLEDGE}
    assert "logprobs" not in choice
    assert choice["finish_reason"] == "stop"
    assert (choice["groundwire"]["label"], choice["groundwire"]["unchanged"]) == ("consistent", True)


def test_an_answer_leaves_up_to_its_first_sentence_without_support(engine: Engine) -> None:
    (choice,) = guarded(engine, completion(WRONG)).create(model="m", messages=[])["choices"]
    assert choice["message"]["content"] == "Honey is sweet."
    assert choice["finish_reason"] == "content_filter"
    verdict = choice["groundwire"]
    assert (verdict["label"], verdict["unchanged"]) == ("inconsistent", False)
    assert [(span["text"], span["start"]) for span in verdict["unsupported"]] == [("blue", WRONG.index("blue"))]


def test_a_policy_that_flags_lets_all_of_it_leave(engine: Engine) -> None:
    policy = Policy(inconsistent="flag")
    (choice,) = guarded(engine, completion(WRONG), policy=policy).create(model="m", messages=[])["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (WRONG, "stop")
    assert (choice["groundwire"]["label"], choice["groundwire"]["unchanged"]) == ("inconsistent", True)


def test_choices_are_checked_one_by_one(engine: Engine) -> None:
    answer = guarded(engine, completion("Honey is blue.", KNOWLEDGE)).create(model="m", messages=[], n=2)
    assert [choice["message"]["content"] for choice in answer["choices"]] == ["", KNOWLEDGE]
    assert [choice["groundwire"]["label"] for choice in answer["choices"]] == ["inconsistent", "consistent"]


def test_tool_calls_and_refusals_pass_and_reasoning_does_not(engine: Engine) -> None:
    calls = [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    given = completion(None, tool_calls=calls, refusal="I can't.", reasoning_content="Honey is blue.")
    (choice,) = guarded(engine, given).create(model="m", messages=[])["choices"]
    assert choice["message"] == {"role": "assistant", "tool_calls": calls, "refusal": "I can't.", "content": None}
    verdict = choice["groundwire"]
    assert (verdict["label"], verdict["unchanged"]) == ("unknown", True)
    assert [(part["part"], part["reason"]) for part in verdict["not_checked"]] == [
        ("refusal", "policy"),
        ("calls", "policy"),
    ]


BOOK = [{"role": "user", "content": "Book a table for 4 in Leeds."}]
BLOCK, ANNOTATE = TurnPolicy(argument="block"), TurnPolicy(argument="annotate")


def make_call(arguments: str, **fields: Any) -> dict[str, Any]:
    return {"id": "t", "type": "function", "function": {"name": "book", "arguments": arguments}} | fields


def cut(call: dict[str, Any]) -> list[dict[str, Any]]:
    """The deltas of a streamed call: its name first, then two letters of its arguments at a time."""
    arguments = call["function"]["arguments"]
    first = call | {"index": 0, "function": {"name": "book", "arguments": ""}}
    parts = [arguments[at : at + 2] for at in range(0, len(arguments), 2)]
    return [first, *({"index": 0, "function": {"arguments": part}} for part in parts)]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("policy", "arguments", "leaves", "label", "status"),
    [
        (BLOCK, '{"guests": 4, "city": "Leeds"}', True, "consistent", "scored"),
        (BLOCK, '{"guests": 7, "city": "Leeds"}', False, "inconsistent", "scored"),
        (ANNOTATE, '{"guests": 7, "city": "Leeds"}', True, "inconsistent", "scored"),
        (TurnPolicy(action="block"), '{"guests": 7}', True, "unverifiable", "scored"),
        (TurnPolicy(argument="block", unknown="annotate"), '{"guests": 7', True, "unknown", "invalid"),
        (TurnPolicy(action="block"), '{"guests": 7', True, "unverifiable", "scored"),
        (BLOCK, "", True, "unverifiable", "scored"),
        (BLOCK, '{"guests": 4, "city": "Lee', False, "unknown", "invalid"),
        (BLOCK, '{"guests": 4,}', False, "unknown", "invalid"),
        (BLOCK, '{"guests": 7777, "guests": 4}', False, "unknown", "invalid"),
        (BLOCK, '{"table": {"guests": 7777, "guests": 4}}', False, "unknown", "invalid"),
        (BLOCK, '{"guests": NaN}', False, "unknown", "invalid"),
        (BLOCK, '{"guests": 4} {"guests": 7}', False, "unknown", "invalid"),
        (BLOCK, "[4]", False, "unknown", "invalid"),
        (BLOCK, "null", False, "unknown", "invalid"),
        (BLOCK, "[" * 20_000, False, "unknown", "invalid"),
    ],
)
def test_calls_leave_when_their_arguments_were_checked(
    engine: Engine, is_stream: bool, policy: TurnPolicy, arguments: str, leaves: bool, label: str, status: str
) -> None:
    call = make_call(arguments)
    if is_stream:
        chunks = Chunks("", deltas=[{"tool_calls": [part]} for part in cut(call)], reason="tool_calls")
        given = list(guarded(engine, chunks, None, turns=policy).create(model="m", messages=BOOK, stream=True))
        choices = [choice for chunk in given for choice in chunk["choices"]]
        assert all("tool_calls" not in choice["delta"] for choice in choices[:-1])
        choice, part = choices[-1], "delta"
    else:
        answer = completion(None, tool_calls=[call])
        (choice,) = guarded(engine, answer, None, turns=policy).create(model="m", messages=BOOK)["choices"]
        part = "message"
    functions = [given["function"] for given in choice[part].get("tool_calls", ())]
    assert functions == ([call["function"]] if leaves else [])
    assert (choice["finish_reason"] == "content_filter") is not leaves
    turn = choice["groundwire"]["turn"]
    assert (turn["label"], turn["status"]) == (label, status)
    assert choice["groundwire"]["unchanged"] is leaves


@pytest.mark.parametrize("guests", [4, 7])
def test_arguments_that_are_no_object_are_said_to_be_unchecked(engine: Engine, guests: int) -> None:
    calls = [make_call('{"guests": 4'), make_call(f'{{"guests": {guests}}}')]
    answer = completion(None, tool_calls=calls)
    (choice,) = guarded(engine, answer, None, turns=BLOCK).create(model="m", messages=BOOK)["choices"]
    assert "tool_calls" not in choice["message"]
    (finding,) = choice["groundwire"]["turn"]["findings"]
    assert (finding["where"], finding["status"]) == ("calls[1].arguments.guests", "user" if guests == 4 else "absent")
    (part,) = choice["groundwire"]["not_checked"]
    assert (part["part"], part["reason"]) == ("calls", "unknown")
    assert part["message"] == "calls[0] has arguments that are no JSON object with each key once."


def test_a_custom_tool_may_have_any_text(engine: Engine) -> None:
    call = {"id": "t", "type": "custom", "custom": {"name": "x", "input": "Leeds, 4"}}
    answer = completion(None, tool_calls=[call])
    (choice,) = guarded(engine, answer, None, turns=BLOCK).create(model="m", messages=BOOK)["choices"]
    assert choice["message"]["tool_calls"] == [call]
    assert choice["groundwire"]["turn"]["status"] == "scored"


@pytest.mark.parametrize(
    ("tool", "called"),
    [
        ("function", {"name": "book", "arguments": '{"guests": 4}'}),
        ("custom", {"name": "book", "input": "Leeds"}),
    ],
)
def test_of_a_call_one_text_is_read_and_leaves(engine: Engine, tool: str, called: dict[str, str]) -> None:
    both = {"arguments": '{"guests": 7777}', "input": "7777 guests in Paris"} | called
    answer = completion(None, tool_calls=[{"id": "t", "type": tool, tool: both}])
    (choice,) = guarded(engine, answer, None, turns=BLOCK).create(model="m", messages=BOOK)["choices"]
    assert choice["message"]["tool_calls"] == [{"id": "t", "type": tool, tool: called}]
    assert choice["groundwire"]["label"] == "consistent"


def test_a_turn_that_cannot_be_checked_is_stopped_and_said_to_be(engine: Engine) -> None:
    calls = [{"id": "t", "type": "odd"}]
    for policy, leaves in ((BLOCK, False), (TurnPolicy(argument="block", unknown="annotate"), True)):
        answer = completion(None, tool_calls=calls)
        (choice,) = guarded(engine, answer, None, turns=policy).create(model="m", messages=BOOK)["choices"]
        assert ("tool_calls" in choice["message"]) is leaves
        (part,) = choice["groundwire"]["not_checked"]
        assert (part["part"], part["reason"]) == ("calls", "unknown")
        assert "calls[0] has no name" in part["message"]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("action", "left"), [("block", ""), ("annotate", "It's booked."), ("pass", "It's booked.")])
def test_a_claim_without_a_call_may_be_held_back(engine: Engine, is_stream: bool, action: Any, left: str) -> None:
    flag = Policy(inconsistent="flag", unknown="flag")
    checked = guarded(
        engine, Chunks("It's booked.") if is_stream else completion("It's booked."), None, policy=flag,
        turns=TurnPolicy(action=action, argument="annotate"),
    )  # fmt: skip
    given = checked.create(model="m", messages=BOOK, stream=is_stream)
    if is_stream:
        chunks = list(given)
        text, choice = read(chunks), chunks[-1]["choices"][0]
    else:
        (choice,) = given["choices"]
        text = choice["message"]["content"]
    assert text == left
    assert choice["finish_reason"] == ("stop" if left else "content_filter")
    assert [found["status"] for found in choice["groundwire"]["turn"]["findings"]] == ["absent"] * (action != "pass")


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("policy", "turns", "left"),
    [
        (Policy(), TurnPolicy(action="block"), ""),
        (Policy(), TurnPolicy(action="block", fallback="Let me check."), "Let me check."),
        (Policy(inconsistent=Fallback("One moment.")), TurnPolicy(action="block"), "One moment."),
        (Policy(inconsistent=Fallback("One moment.")), TurnPolicy(action="block", fallback="Hm."), "Hm."),
        (Policy(inconsistent="redact"), TurnPolicy(action="annotate"), "Honey is […] and it's booked."),
    ],
)
def test_the_turn_is_what_the_model_wrote(
    engine: Engine, is_stream: bool, policy: Policy, turns: TurnPolicy, left: str
) -> None:
    text = "Honey is blue and it's booked."
    answer = Chunks(text) if is_stream else completion(text)
    given = guarded(engine, answer, policy=policy, turns=turns).create(model="m", messages=BOOK, stream=is_stream)
    chunks = list(given) if is_stream else [given]
    (choice,) = chunks[-1]["choices"]
    assert (read(chunks) if is_stream else choice["message"]["content"]) == left
    assert choice["finish_reason"] == "content_filter"
    assert [found["status"] for found in choice["groundwire"]["turn"]["findings"]] == ["absent"]


def test_a_text_may_leave_in_the_place_of_calls(engine: Engine) -> None:
    answer = completion(None, tool_calls=[make_call('{"guests": 7}')])
    policy = TurnPolicy(argument="block", fallback="How many are you?")
    (choice,) = guarded(engine, answer, None, turns=policy).create(model="m", messages=BOOK)["choices"]
    assert choice["message"] == {"role": "assistant", "content": "How many are you?"}


def test_calls_do_not_leave_after_a_text_that_was_blocked(engine: Engine) -> None:
    answer = completion("Honey is blue.", tool_calls=[make_call("{}")])
    (choice,) = guarded(engine, answer).create(model="m", messages=[])["choices"]
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "content_filter"


def test_what_system_messages_and_knowledge_say_may_be_an_argument(engine: Engine) -> None:
    call = make_call('{"account": "AC-771", "limit": 250}')
    messages = [{"role": "system", "content": "The account of the user is AC-771."}, *BOOK]
    log = {"name": "get_limit", "arguments": {}, "result": {"limit": 250}}
    answer = completion(None, tool_calls=[call])
    (choice,) = guarded(engine, answer, [log], turns=BLOCK).create(model="m", messages=messages)["choices"]
    assert [found["status"] for found in choice["groundwire"]["turn"]["findings"]] == ["result", "result"]


def test_a_policy_for_turns_has_three_words(engine: Engine) -> None:
    for policy in (TurnPolicy(argument="flag"), "block"):  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="'pass', 'annotate' or 'block'"):
            guarded(engine, completion(""), turns=policy)


@pytest.mark.parametrize(
    ("messages", "label"),
    [
        ([{"role": "system", "content": KNOWLEDGE}], "consistent"),
        ([{"role": "tool", "content": [{"type": "text", "text": KNOWLEDGE}, {"type": "image_url"}]}], "consistent"),
        ([{"role": "user", "content": KNOWLEDGE}], "unknown"),
        ([], "unknown"),
    ],
)
def test_the_knowledge_is_what_the_messages_bring(engine: Engine, messages: list[Any], label: str) -> None:
    (choice,) = guarded(engine, completion(KNOWLEDGE), None).create(model="m", messages=messages)["choices"]
    assert choice["groundwire"]["label"] == label


def test_the_knowledge_may_depend_on_the_call(engine: Engine) -> None:
    def find(arguments: Mapping[str, Any]) -> str:
        return str(arguments["messages"][-1]["content"])

    messages = [{"role": "user", "content": KNOWLEDGE}]
    (choice,) = guarded(engine, completion(KNOWLEDGE), find).create(model="m", messages=messages)["choices"]
    assert choice["groundwire"]["label"] == "consistent"


def test_a_stream_gives_text_when_its_sentence_was_checked(engine: Engine) -> None:
    chunks = Chunks(WRONG)
    stream = guarded(engine, chunks).create(model="m", messages=[], stream=True)
    given = list(stream)
    assert read(given) == "Honey is sweet."
    last = given[-1]["choices"][0]
    assert last["finish_reason"] == "content_filter"
    assert last["groundwire"]["label"] == "inconsistent"
    assert all("groundwire" not in chunk["choices"][0] for chunk in given[:-1])
    assert chunks.is_closed
    assert chunks.read * 3 < len(WRONG)  # nothing is asked of the model once nothing of it can leave


def test_a_stream_that_breaks_off_is_finished(engine: Engine) -> None:
    given = list(guarded(engine, Chunks(KNOWLEDGE, is_ended=False)).create(model="m", messages=[], stream=True))
    assert read(given) == KNOWLEDGE
    assert given[-1]["choices"][0]["groundwire"]["label"] == "consistent"


def test_a_stream_that_is_closed_closes_the_models(engine: Engine) -> None:
    chunks = Chunks(KNOWLEDGE)
    stream = guarded(engine, chunks).create(model="m", messages=[], stream=True)
    next(stream)
    stream.close()
    assert chunks.is_closed


def test_asynchronous_clients(engine: Engine) -> None:
    chunks = AsyncChunks(WRONG)

    async def create(**arguments: Any) -> Any:
        return chunks if arguments.get("stream") else completion(WRONG)

    async def run() -> tuple[Any, list[Any]]:
        checked = guard(client(create), KNOWLEDGE, engine, metrics=METRICS)
        answer = await checked.create(model="m", messages=[])
        stream = await checked.create(model="m", messages=[], stream=True)
        return answer, [chunk async for chunk in stream]

    answer, given = asyncio.run(run())
    assert answer["choices"][0]["message"]["content"] == read(given) == "Honey is sweet."
    assert given[-1]["choices"][0]["finish_reason"] == "content_filter"
    assert chunks.is_closed


def test_what_cannot_be_checked_is_an_error(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match=r"client is int, which has no chat\.completions\.create"):
        guard(3, KNOWLEDGE, engine)
    with pytest.raises(InvalidRequest, match="The answer is not a chat completion"):
        guarded(engine, {"object": "list"}).create(model="m", messages=[])
    with pytest.raises(InvalidRequest, match=r"got `array` - at `\$\.choices\[0\]\.message\.content`"):
        guarded(engine, completion([{"type": "audio"}])).create(model="m", messages=[])  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="dictionaries or pydantic models, not int"):
        guarded(engine, 3).create(model="m", messages=[])
    with pytest.raises(AttributeError, match="A guarded client has no 'responses'"):
        _ = guarded(engine, completion("")).responses


def test_small_talk_leaves_without_knowledge_and_an_assertion_does_not(engine: Engine) -> None:
    messages = [{"role": "user", "content": "hi"}]
    for text in (*SMALL_TALK, *ASSERTIONS):
        answer = guarded(engine, completion(text), []).chat.completions.create(messages=messages)
        chunks = guarded(engine, Chunks(text), []).chat.completions.create(messages=messages, stream=True)
        left = answer["choices"][0]["message"]["content"]
        assert (left == text) == (text in SMALL_TALK), text
        assert read(list(chunks)) == left
