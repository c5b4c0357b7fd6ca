"""LiteLLM's generic guardrail: a request is remembered, and its answer is checked by it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from groundwire.runtime.errors import ModelError
from groundwire.service import chats
from groundwire.service.chats import RememberedChat, RememberedChats
from groundwire.service.front import Front
from groundwire.service.guardrail import PATH
from tests.support.service import run
from tests.support.streams import world

SYSTEM = {"role": "system", "content": "Honey is golden. Honey is sweet."}
USER = {"role": "user", "content": "What is honey?"}
REQUEST = {"input_type": "request", "litellm_call_id": "c-1", "texts": ["What is honey?"]}
RIGHT, WRONG = "Honey is sweet.", "Honey is blue."


def post(*bodies: dict[str, Any], runtime: Any = None, **settings: Any) -> list[httpx.Response]:
    async def test(client: httpx.AsyncClient, front: Front) -> list[httpx.Response]:
        return [await client.post(PATH, json=body) for body in bodies]

    return run(test, runtime or world(), **settings)


def answer(*texts: str, call_id: str = "c-1", **parameters: Any) -> dict[str, Any]:
    return {
        "input_type": "response",
        "litellm_call_id": call_id,
        "texts": list(texts),
        "additional_provider_specific_params": parameters,
        "images": [],
    }


def ask(*texts: str, **parameters: Any) -> dict[str, Any]:
    """What is answered about an answer after its request."""
    asked, answered = post(REQUEST | {"structured_messages": [SYSTEM, USER]}, answer(*texts, **parameters))
    assert asked.json() == {"action": "NONE"}
    assert answered.status_code == 200, answered.text
    body: dict[str, Any] = answered.json()
    return body


def test_an_answer_is_checked_by_its_request() -> None:
    assert ask(RIGHT) == {"action": "NONE"}
    blocked = ask(RIGHT, WRONG)
    assert blocked["action"] == "BLOCKED"
    assert "blue" in blocked["blocked_reason"]
    assert ask("", " ") == {"action": "NONE"}


def test_inconsistent_sentences_may_be_redacted() -> None:
    redacted = ask(f"{RIGHT} {WRONG}", RIGHT, on_inconsistent="redact")
    assert redacted["action"] == "GUARDRAIL_INTERVENED"
    first, second = redacted["texts"]
    assert second == RIGHT
    assert first.startswith(RIGHT)
    assert "blue" not in first


def test_a_stream_is_checked_several_times() -> None:
    _, first, second = post(
        REQUEST | {"structured_messages": [SYSTEM, USER]}, answer(RIGHT), answer(f"{RIGHT} {WRONG}")
    )
    assert [part.json()["action"] for part in (first, second)] == ["NONE", "BLOCKED"]


@pytest.mark.parametrize(
    ("text", "waits", "checked"),
    [
        ("Honey is", "NONE", "NONE"),
        ("Honey is blue", "NONE", "BLOCKED"),
        ("Honey is blue.", "BLOCKED", "BLOCKED"),
        ("Honey is blue\n", "BLOCKED", "BLOCKED"),
        ("“Honey is blue.”", "BLOCKED", "BLOCKED"),
        ("Honey is blue. [1]", "BLOCKED", "BLOCKED"),
        ("Honey is blue.</p>", "BLOCKED", "BLOCKED"),
        ("Honey is blue.\u200b", "BLOCKED", "BLOCKED"),
        ("Honey is blue. Hon", "BLOCKED", "BLOCKED"),
        (f"{RIGHT} Honey is blue", "NONE", "BLOCKED"),
        ("Honey is blue 4.", "NONE", "BLOCKED"),
        ("Honey is blue 5.", "BLOCKED", "BLOCKED"),
    ],
)
def test_a_sentence_may_wait_for_its_end(text: str, waits: str, checked: str) -> None:
    system = {"role": "system", "content": f"{SYSTEM['content']} Honey costs 4.95."}
    answers = [answer(text, on_unfinished="wait"), answer(text)]
    _, *answered = post(REQUEST | {"structured_messages": [system, USER]}, *answers)
    assert [part.json()["action"] for part in answered] == [waits, checked]


def test_what_waits_stays_in_a_redacted_answer() -> None:
    redacted = ask(f"{RIGHT} {WRONG} Honey", on_inconsistent="redact", on_unfinished="wait")
    assert redacted["texts"] == [f"{RIGHT} […] Honey"]


def test_the_request_may_have_the_knowledge_in_its_parameters() -> None:
    parameters = {"additional_provider_specific_params": {"knowledge": [SYSTEM["content"]]}}
    _, answered = post(REQUEST | parameters, answer(WRONG))
    assert "blue" in answered.json()["blocked_reason"]


def test_fields_may_be_null() -> None:
    names = ("texts", "litellm_call_id", "structured_messages", "images", "additional_provider_specific_params")
    asked, answered = post(*({"input_type": kind} | dict.fromkeys(names) for kind in ("request", "response")))
    assert (asked.json(), answered.json()) == ({"action": "NONE"}, {"action": "NONE"})


def test_the_configuration_may_have_the_knowledge() -> None:
    (answered,) = post(answer(WRONG, knowledge=SYSTEM["content"]))
    assert "blue" in answered.json()["blocked_reason"]


def test_what_was_not_checked_is_blocked_unless_the_configuration_says_otherwise() -> None:
    def fail(call: Any) -> ModelError:
        return ModelError("out of memory")

    for bodies in ([answer(RIGHT)], [REQUEST, answer(RIGHT)], [REQUEST, answer(RIGHT, call_id="c-2")]):
        (*_, answered) = post(*bodies)
        assert answered.json()["action"] == "BLOCKED"
        assert answered.json()["blocked_reason"].startswith("Not checked")
    for call_id in (None, ""):  # which are the calls of many
        request = REQUEST | {"litellm_call_id": "", "structured_messages": [SYSTEM, USER]}
        assert post(request, answer(RIGHT) | {"litellm_call_id": call_id})[1].json()["action"] == "BLOCKED"
    (passed,) = post(answer(RIGHT, on_unknown="pass"))
    assert passed.json() == {"action": "NONE"}
    (failed,) = post(answer(RIGHT, knowledge=SYSTEM["content"]), runtime=world(nli=fail))
    assert failed.status_code >= 500


CALLS_BLOCKED = {"on_invented": "block"}
BOOK = {"role": "user", "content": "A table for three at Lido, please."}


@pytest.mark.parametrize(
    ("arguments", "parameters", "reason"),
    [
        ({"place": "Lido", "guests": 3}, CALLS_BLOCKED, None),
        ({"place": "Lido", "guests": 7}, CALLS_BLOCKED, "calls[0].arguments.guests"),
        ("{", CALLS_BLOCKED, "Not checked"),
        ("{", CALLS_BLOCKED | {"on_unknown": "pass"}, None),
        ({"place": "Lido", "guests": 7}, {}, None),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_calls_of_an_answer_may_be_checked(
    arguments: Any, parameters: dict[str, Any], reason: str | None, is_known: bool
) -> None:
    said = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": "1", "index": 0, "type": "function", "function": {"name": "book_table", "arguments": said}}
    sent = {"additional_provider_specific_params": parameters, "structured_messages": [SYSTEM, BOOK]}
    tools = [{"type": "function", "function": {"name": "book_table"}}]
    _, answered = post(
        REQUEST | sent | {"tools": tools},
        answer(call_id="c-1" if is_known else "c-2", **parameters) | {"tool_calls": [call]},
    )
    if not is_known and parameters == CALLS_BLOCKED:
        reason = "Not checked: the request is not known here."
    assert answered.json()["action"] == ("BLOCKED" if reason else "NONE"), answered.text
    assert (reason or "") in answered.json().get("blocked_reason", "")


def test_an_answer_is_not_checked_by_the_request_of_another_tenant() -> None:
    remembered = RememberedChats()
    chat = RememberedChat(("Honey is golden.",), ())
    remembered.add("a", "c-1", chat)
    assert remembered.get("b", "c-1").knowledge == ()
    assert remembered.get("a", "c-1") == chat
    assert remembered.get("a", None).knowledge == ()


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "MAX_CHATS", 2)
    monkeypatch.setattr(chats, "MAX_CHARACTERS", 12)
    remembered = RememberedChats()

    def list_known() -> str:
        return "".join(name for name in "abcd" if remembered.get("", name).knowledge)

    for name in "abbc":
        remembered.add("", name, RememberedChat((name,), ()))
    assert list_known() == "bc"
    remembered.add("", "b", RememberedChat(("b" * 9,), ()))
    assert list_known() == "bc"
    remembered.add("", "d", RememberedChat(("d" * 9,), ("ddd",)))
    assert list_known() == ""
    remembered.add("", "d" * 12, RememberedChat(("d",), ()))
    assert remembered.get("", "d" * 12).knowledge == ()


@pytest.mark.parametrize(("limit", "most"), [("MAX_CHATS", 2), ("MAX_CHARACTERS", 4)])
def test_a_tenant_makes_no_other_ones_requests_forgotten(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(chats, limit, most)
    remembered = RememberedChats()
    for tenant, name in ("ax", "bx", "by", "bz"):
        remembered.add(tenant, name, RememberedChat((name,), ()))
    known = [(tenant, name) for tenant in "ab" for name in "xyz" if remembered.get(tenant, name).knowledge]
    assert known == [("a", "x"), ("b", "z")]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"texts": "a"}, 422),
        (REQUEST | {"litellm_call_id": "c" * 257}, 422),
        ({"input_type": "other"}, 422),
        (answer(RIGHT, on_unknown="maybe"), 422),
        (answer(*["a"] * 3), 413),
        (REQUEST | {"structured_messages": [SYSTEM, *[USER] * 9]}, 413),
    ],
)
def test_what_is_refused(body: dict[str, Any], status: int) -> None:
    (answered,) = post(body, max_candidates=2, max_turns=4)
    assert answered.status_code == status
