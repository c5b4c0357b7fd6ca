"""Typed questions: two of them are answered, in two forms, and no other is guessed."""

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
import pytest

from groundwire.runtime.bundles.calibration import Band
from groundwire.service.front import Front
from tests.support.service import run
from tests.support.streams import CALIBRATION, METRICS, world

KNOWLEDGE = "Honey is sweet and golden."
RIGHT, WRONG = "Honey is sweet.", "Honey is blue."
SURE = msgspec.structs.replace(CALIBRATION.fusions[0], band=Band(low=0.4, high=0.6))
NOUL = {"type": "noul", "instructions": "Supported?"}
LABELS = ("consistent", "inconsistent")


def post(path: str, *bodies: Any, fusion: Any = SURE) -> list[httpx.Response]:
    async def test(client: httpx.AsyncClient, front: Front) -> list[httpx.Response]:
        return [await client.post(path, json=body) for body in bodies]

    return run(test, world(msgspec.structs.replace(CALIBRATION, fusions=(fusion,))), metrics=METRICS)


def ask(response: Any, questions: dict[str, Any], **options: Any) -> Any:
    """The answers of both forms, which must be the same, by the names of their questions."""
    state = {"response": response, "knowledge": KNOWLEDGE}
    listed = [
        {
            "name": name,
            "type": {"noul": "predicate"}.get(question["type"], question["type"]),
            "instructions": question.get("instructions", ""),
            "choices": [{"value": value} for value in question.get("criteria", ())],
        }
        for name, question in questions.items()
    ]
    (first,) = post("/v1/systemone", {"model": "any", "state": state, "questions": questions}, **options)
    (second,) = post("/v1/decisions", {"model": "any", "input": json.dumps(state), "questions": listed}, **options)
    assert first.status_code == second.status_code == 200, first.text + second.text
    answers: dict[str, Any] = first.json()["answers"]
    decided = {answer["name"]: answer for answer in second.json()["answers"]}
    for name, reason in first.json()["refusals"].items():
        assert decided.pop(name) == {"type": "refusal", "name": name, "reason": reason}
        answers[name] = reason
    for name, answer in decided.items():
        if answer["type"] == "predicate":
            assert answers[name]["noul"] == answer["probability"]
        else:
            shares = {part["value"]: part["probability"] for part in answer["probabilities"]}
            assert (answers[name]["choice"], answers[name]["probabilities"]) == (answer["choice"], shares)
    assert first.json()["usage"]["input_tokens"] == second.json()["usage"]["total_tokens"] > 0
    return answers


@pytest.mark.parametrize(("response", "label"), [(RIGHT, "consistent"), (WRONG, "inconsistent")])
def test_the_two_questions_have_one_verdict(response: str, label: str) -> None:
    answers = ask(response, {"ok": NOUL, "label": {"type": "choice", "criteria": dict.fromkeys(LABELS)}})
    probability = answers["ok"]["noul"]
    assert (probability > 0.5) is (label == "consistent")
    assert answers["label"] == {
        "type": "choice",
        "choice": label,
        "probabilities": {"consistent": probability, "inconsistent": 1 - probability},
        "confidence": max(probability, 1 - probability),
    }


def test_the_choice_is_the_label_that_the_threshold_gives() -> None:
    profiles = {name: msgspec.structs.replace(one, threshold=0.995) for name, one in SURE.profiles.items()}
    strict = msgspec.structs.replace(SURE, profiles=profiles, band=Band(low=0.99, high=1.0))
    answers = ask(RIGHT, {"ok": NOUL, "label": {"type": "choice", "criteria": dict.fromkeys(LABELS)}}, fusion=strict)
    probability = answers["ok"]["noul"]
    assert 0.5 < probability < 0.995
    assert (answers["label"]["choice"], answers["label"]["confidence"]) == ("inconsistent", 1 - probability)


def test_nothing_to_verify_and_a_verdict_that_is_not_sure_are_refused() -> None:
    questions = {"ok": NOUL, "label": {"type": "choice", "criteria": dict.fromkeys((*LABELS, "unverifiable"))}}
    answers = ask("Thanks!", questions)
    assert answers["ok"] == "The response states nothing that knowledge could confirm."
    assert answers["label"]["choice"] == "unverifiable"
    unsure = ask(RIGHT, questions, fusion=msgspec.structs.replace(SURE, band=Band()))
    assert set(unsure.values()) == {"The verdict is not sure."}


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"type": "noul", "instructions": "Is it urgent?"}, "its instructions are 'is it urgent'"),
        ({"type": "choice", "criteria": {"billing": None, "sales": None}}, "a choice of billing, sales"),
        ({"type": "choice", "criteria": {"consistent": None}}, "a choice of consistent"),
        ({"type": "choice", "criteria": {"a" * 100_000: None}}, "a choice of aaa"),
        ({"type": "score", "instructions": "supported", "criteria": ["bad", "good"]}, "it is a score of levels"),
    ],
)
def test_other_questions_are_refused_by_name(question: Any, reason: str) -> None:
    body = {"state": {"response": RIGHT, "knowledge": KNOWLEDGE}, "questions": {"ok": NOUL, "team": question}}
    (refused,) = post("/v1/systemone", body)
    assert refused.status_code == 422
    assert refused.json()["path"].startswith("$.questions.team")
    assert "'questions.team' is not known" in refused.json()["detail"]
    assert reason in refused.json()["detail"]
    assert len(refused.content) < 2_000


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"role": "system", "content": KNOWLEDGE},
            {"role": "user", "content": "Honey?"},
            {"role": "assistant", "content": [{"type": "output_text", "text": WRONG}]},
        ],
        [
            {"role": "user", "content": "Honey?"},
            {"type": "function_call", "call_id": "c", "name": "look_up", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": KNOWLEDGE},
            {"type": "message", "role": "assistant", "content": WRONG},
        ],
        [{"role": "user", "content": json.dumps({"response": WRONG, "knowledge": KNOWLEDGE})}],
    ],
)
def test_the_state_may_be_a_chat(messages: list[Any]) -> None:
    question = {"type": "predicate", "instructions": [{"type": "input_text", "text": "supported"}]}
    (answered,) = post("/v1/decisions", {"input": messages, "questions": [question]})
    (answer,) = answered.json()["answers"]
    assert (answer["type"], answer["name"]) == ("predicate", None)
    assert answer["probability"] < 0.5


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"knowledge": KNOWLEDGE}, "$.state.response"),
        ({"response": RIGHT, "facts": []}, "$.state.facts"),
        ("Honey is sweet.", "$.state"),
        ({"response": RIGHT, "knowledge": "a" * 60_000}, "$.state.knowledge"),
        ([{"role": "assistant", "content": RIGHT}, {"role": "user", "content": "Thanks"}], "$.state"),
    ],
)
def test_a_state_without_a_response_is_refused(state: Any, path: str) -> None:
    (refused,) = post("/v1/systemone", {"state": state, "questions": {"ok": NOUL}})
    assert refused.status_code in (400, 413, 422)
    assert refused.json()["path"] == path


def test_the_one_model_is_listed() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> Any:
        return (await client.get("/v1/models")).json()

    listed = run(test)
    assert [model["id"] for model in listed["data"]] == [model["name"] for model in listed["models"]] == ["groundwire"]
