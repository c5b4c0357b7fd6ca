"""OpenAI's own client asks typed questions of the service."""

from __future__ import annotations

import json

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, INCONSISTENT, KNOWLEDGE, load

openai = load("openai")
load("prometheus_client")
from groundwire.service.application import app  # noqa: E402
from tests.support.chat_server import listen  # noqa: E402

QUESTIONS = [
    {"type": "predicate", "name": "ok", "instructions": "supported"},
    {"type": "choice", "instructions": "", "choices": [{"value": "consistent"}, {"value": "inconsistent"}]},
]


@pytest.mark.skipif(not hasattr(openai.OpenAI, "decisions"), reason="this version of the client has no decisions")
def test_the_client_reads_the_answers(engine: Engine) -> None:
    with listen(app(engine)) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=9) as client:
        assert [model.id for model in client.models.list()] == ["groundwire"]
        for response in (CONSISTENT, INCONSISTENT):
            state = {"response": response, "knowledge": KNOWLEDGE}
            asked = {"model": "groundwire", "input": json.dumps(state), "questions": QUESTIONS}
            first, second = client.decisions.create(**asked).answers
            assert {first.type, second.type} <= {"refusal", "predicate", "choice"}
            if first.type == "predicate":
                assert (first.probability > 0.5) is (response == CONSISTENT)
                assert second.choice == ("consistent" if response == CONSISTENT else "inconsistent")
