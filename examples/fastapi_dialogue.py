"""A dialogue server that checks what it is about to say, repairs it, and admits what it does not know.

pip install 'groundwire[serve]' fastapi
python examples/fastapi_dialogue.py 8000
curl localhost:8000/chat --json '{"history": ["I watched Alien last night.", "Oh, I like it. Who directed it?"]}'
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from groundwire import service
from groundwire.engine import Engine, Options
from groundwire.repair import KnowledgeGraph, Refiner

FILMS = Path(__file__).with_name("films.tsv")
NOT_SURE = "I am not sure about that."
OPTIONS = Options(deadline_ms=10_000)


class Chat(BaseModel):
    """The utterances so far, oldest first."""

    history: list[str]


class Answer(BaseModel):
    """What the server says, and what it would have said."""

    text: str
    label: str
    draft: str
    changes: list[str] = []


def write_draft(history: Sequence[str]) -> str:
    """Return a response to the last utterance: put your language model here. This one is often wrong."""
    return "It was directed by Christopher Nolan." if "direct" in history[-1] else "Nice to talk to you!"


def make_app(engine: Engine, graph: KnowledgeGraph, write: Callable[[Sequence[str]], str] = write_draft) -> FastAPI:
    """Return a server that answers with ``write``, checked against ``graph``; ``/check`` has the whole service."""
    checks = service.app(engine)

    @asynccontextmanager
    async def warm(_: FastAPI) -> AsyncIterator[None]:
        await checks.warm()
        yield

    server = FastAPI(lifespan=warm)
    server.mount("/check", checks)

    @server.post("/chat")
    async def chat(request: Chat) -> Answer:
        draft = write(request.history)
        repaired = await Refiner(engine).arefine(draft, graph, history=request.history, scoring=OPTIONS)
        facts = repaired.before.triples
        if repaired.status == "no_context" or not facts:  # it names nothing that the graph knows
            return Answer(text=draft, label="unverifiable", draft=draft)
        score = await engine.ascore(repaired.response, triples=facts, history=request.history, options=OPTIONS)
        if score.verdict.label not in ("consistent", "unverifiable"):  # `unknown` is "not checked", never "right"
            return Answer(text=NOT_SURE, label=score.verdict.label, draft=draft)
        changes = [f"{change.old} → {change.new}" for change in repaired.changes]
        return Answer(text=repaired.response, label=score.verdict.label, draft=draft, changes=changes)

    return server


def main() -> None:
    """Serve on the port of the command line until interrupted."""
    with Engine.load("compact", extra=["nph"]) as engine:
        uvicorn.run(make_app(engine, KnowledgeGraph.load(FILMS)), port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)


if __name__ == "__main__":
    main()
