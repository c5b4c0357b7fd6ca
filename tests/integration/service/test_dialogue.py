"""The example of a dialogue server, on the embedded bundles."""

from __future__ import annotations

import asyncio
import runpy
from typing import Any

import httpx
import pytest

from groundwire.engine import Engine
from groundwire.repair import KnowledgeGraph
from groundwire.runtime.bundles.bundle import embedded
from tests.support.offline import ROOT
from tests.support.service import connect

pytestmark = pytest.mark.skipif(
    not {"compact", "nph"} <= set(embedded()), reason="this checkout does not have the embedded bundles"
)
ALIEN = ["I watched Alien last night.", "Oh, I like it. Who directed it?"]


def test_it_answers_checks_and_repairs() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "fastapi_dialogue.py"), run_name="example")

    async def chat(server: Any, history: list[str]) -> dict[str, Any]:
        async with connect(server) as client:
            answer = await client.post("/chat", json={"history": history})
            assert answer.status_code == 200, answer.text
            content: dict[str, Any] = answer.json()
            return content

    async def main(engine: Engine) -> None:
        graph = KnowledgeGraph.load(example["FILMS"])
        server = example["make_app"](engine, graph)
        async with server.router.lifespan_context(server):
            assert await chat(server, ALIEN) == {
                "text": "It was directed by Ridley Scott.",
                "label": "consistent",
                "draft": "It was directed by Christopher Nolan.",
                "changes": ["Christopher Nolan → Ridley Scott"],
            }
            assert (await chat(server, ["Hello!"]))["label"] == "unverifiable"
            doubted = example["make_app"](engine, graph, lambda _: "I believe that it has no director at all.")
            assert (await chat(doubted, ["Who directed Alien?"]))["text"] == example["NOT_SURE"]
            async with connect(server) as client:
                ready: httpx.Response = await client.get("/check/readyz")
                assert ready.json() == {"status": "ready"}
                assert (await client.post("/check/score", json={})).json()["path"] == "$.response"

    with Engine.load("compact", extra=["nph"], threads=1) as engine:
        asyncio.run(main(engine))
