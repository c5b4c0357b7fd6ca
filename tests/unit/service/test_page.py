"""The page on which people try the service: what it is made of, and who may see it."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from groundwire.engine import Engine
from groundwire.service.front import Front
from groundwire.service.page import PATHS, choose_metrics
from tests.support.fakes import world as answering_world
from tests.support.service import run


@pytest.mark.parametrize(("path", "kind"), list(zip(PATHS, ("text/html", "text/css", "text/javascript"), strict=True)))
def test_the_page_needs_no_token_and_loads_nothing_from_elsewhere(path: str, kind: str) -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        assert (await client.post("/score", json={})).status_code == 401
        return await client.get(path)

    answer = run(test, tokens=("secret",))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"https?://|\beval\(|innerHTML", answer.text)


def test_the_page_knows_what_it_may_ask_for() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> str:
        return (await client.get("/ui")).text

    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', run(test), re.DOTALL)
    assert block is not None
    data = json.loads(block[1])
    assert data["metrics"]["default"]
    assert not data["needs_token"]
    assert all({"title", "knowledge", "response"} <= example.keys() for example in data["examples"])
    assert "<" not in block[1]
    assert '"needs_token": true' in run(test, tokens=("secret",))


def test_a_server_may_be_without_the_page() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> list[int]:
        return [(await client.get(path)).status_code for path in ("/", *PATHS)]

    assert run(test, ui=False) == [404] * 4


def test_the_root_leads_to_the_page() -> None:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        return await client.get("/", follow_redirects=True)

    assert "<title>" in run(test).text


def test_citations_are_shown_where_there_are_models_for_them() -> None:
    with Engine(answering_world()) as engine:
        offered = choose_metrics(engine, ("overlap",))
        assert offered["default"] == ("overlap",)
        assert "citations" not in offered["all"]
    with Engine(answering_world(embedder=lambda call: None)) as engine:
        assert choose_metrics(engine, ("overlap",))["default"] == ("overlap", "citations")
