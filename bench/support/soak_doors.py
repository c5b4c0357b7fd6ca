"""The doors of the service that a soak comes through: what each is asked, and what of its answer is always the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"
VOLATILE = frozenset({"timings", "created", "digest", "id", "request_id", "result"})
"""Fields that differ between two answers to one request."""
STOPPED = frozenset({"deadline", "failed", "cancelled"})
"""Outcomes of sentences that were not checked, because time was over or a worker process had ended."""
LINES_OF_ONE = 12
"""Lines of a request to ``/score_many``."""


class Door(NamedTuple):
    """A path of the service."""

    path: str
    share: int
    """How often it is asked, beside the other shares."""
    make: Callable[[str, Sequence[str], Sequence[str]], Any]
    """A body, or its lines, from a response, its knowledge and metrics."""
    has_options: bool = True
    """Whether its body names a tenant, which changes nothing of its answer."""
    media_type: str = JSON


def _make_turn(response: str, knowledge: Sequence[str], metrics: Sequence[str]) -> Any:
    log = [{"name": "look_up", "arguments": {"topic": "honey"}, "result": list(knowledge)}]
    calls = [{"name": "book_table", "arguments": {"name": "Ann", "guests": 4}}]
    history = ["Please book a table for four.", "Under which name?", "Ann. And what is honey?"]
    return {"text": response, "calls": calls, "log": log, "history": history, "metrics": metrics}


def _make_tensors(response: str, knowledge: Sequence[str], metrics: Sequence[str]) -> Any:
    texts = {"response": [response, response], "knowledge": [" ".join(knowledge), "Honey is golden."]}
    inputs = [{"name": name, "shape": [2], "datatype": "BYTES", "data": data} for name, data in texts.items()]
    outputs = [{"name": "label"}, {"name": "status"}]
    return {"inputs": inputs, "outputs": outputs, "parameters": {"metrics": ",".join(metrics)}}


def _make_stream(response: str, knowledge: Sequence[str], metrics: Sequence[str]) -> Any:
    size = 24
    parts = (response[start : start + size] for start in range(0, len(response), size))
    return [{"knowledge": knowledge, "metrics": metrics, "policy": {"inconsistent": "redact"}}, *parts]


def _make_score(response: str, knowledge: Sequence[str], metrics: Sequence[str]) -> Any:
    return {"response": response, "knowledge": knowledge, "metrics": metrics}


STREAM = Door("/stream", 6, _make_stream, media_type=LINES)
MANY = Door(
    "/score_many",
    6,
    lambda response, knowledge, _: [
        {"response": f"{response} {number}", "knowledge": knowledge, "id": number} for number in range(LINES_OF_ONE)
    ],
    has_options=False,
    media_type=LINES,
)
DOORS = (
    Door("/score", 48, _make_score),
    STREAM,
    MANY,
    Door("/check_turn", 10, _make_turn),
    Door("/correct", 8, _make_score),
    Door("/evidence", 4, _make_score, has_options=False),
    Door(
        "/classify",
        8,
        lambda response, knowledge, _: {"inputs": response, "parameters": {"context": knowledge, "question": "And?"}},
        has_options=False,
    ),
    Door(
        "/beta/litellm_basic_guardrail_api",
        6,
        lambda response, knowledge, _: {
            "input_type": "response",
            "texts": [response],
            "additional_provider_specific_params": {"knowledge": knowledge, "on_inconsistent": "redact"},
        },
        has_options=False,
    ),
    Door("/v2/models/groundwire/infer", 4, _make_tensors, has_options=False),
)


class Sample(NamedTuple):
    """A right request and its answer without load."""

    door: Door
    body: bytes
    status: int
    """200, or 422 where the metrics draw no verdict and the door needs one."""
    expected: Any

    def name_tenant(self, tenant: str) -> bytes:
        """The body as a tenant's, where the door takes one."""
        return b'{"options": {"tenant": "%s"}, %s' % (tenant.encode(), self.body[1:])


def encode(door: Door, response: str, knowledge: Sequence[str], metrics: Sequence[str]) -> bytes:
    """The body of a request."""
    made = door.make(response, knowledge, metrics)
    return "\n".join(map(json.dumps, made if door.media_type == LINES else [made])).encode()


def read_content(media_type: str, body: bytes) -> Any:
    """What of an answer is the same each time: JSON, a list of lines or a list of events, without volatile fields."""
    text = body.decode()
    if media_type.startswith(EVENTS):
        return [strip(json.loads(event.partition("data: ")[2])) for event in text.split("\n\n") if "data: " in event]
    if media_type.startswith(LINES):
        return [strip(json.loads(line)) for line in text.splitlines()]
    return strip(json.loads(text))


def strip(content: Any) -> Any:
    """JSON without volatile fields."""
    if isinstance(content, dict):
        return {name: strip(value) for name, value in content.items() if name not in VOLATILE}
    return [strip(value) for value in content] if isinstance(content, list) else content


def is_cut(content: Any) -> bool:
    """Whether a list of lines or events says that something of it was stopped, each with a code or an outcome."""
    return isinstance(content, list) and any(
        "error" in item or item.get("type") == "error" or item.get("outcome") in STOPPED for item in content
    )
