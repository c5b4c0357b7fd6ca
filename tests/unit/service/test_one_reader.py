"""One meaning for a JSON value at every door: the models read the same of it, or each door refuses it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.extend import make_history
from groundwire.files.reading import read_lines
from groundwire.guard import Guard, Policy
from groundwire.runtime.calls import Classify
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from groundwire.service.application import app
from groundwire.service.front import Front
from groundwire.service.proxy import make_proxy
from groundwire.service.settings import ProxySettings, Settings
from tests.support.chat_server import ChatServer
from tests.support.proxy import UPSTREAM
from tests.support.service import NDJSON, connect
from tests.support.streams import METRICS, classify, world

RESPONSE = "Honey is sweet."
Fields: TypeAlias = dict[str, Any]
"""``knowledge``, and perhaps ``history``, as JSON has them."""
REFUSED = "refused"
Read: TypeAlias = frozenset[tuple[str, str]] | str
"""The premises and hypotheses that a model was asked about, or ``REFUSED``."""


class Recorder:
    """A runtime that keeps what it is asked."""

    def __init__(self) -> None:
        self.read: set[tuple[str, str]] = set()

    def classify(self, call: Classify) -> Outcome:
        if call.hypothesis == RESPONSE:  # and not a text of the warm-up
            self.read.add((str(call.premises), call.hypothesis))
        return classify(call)

    def open(self) -> FakeRuntime:
        return world(nli=self.classify)


def ask_score(engine: Engine, fields: Fields) -> bool:
    try:
        engine.score(RESPONSE, fields["knowledge"], history=fields.get("history", ()), metrics=METRICS)
    except InvalidRequest:
        return False
    return True


def ask_many(engine: Engine, fields: Fields) -> bool:
    (score,) = engine.score_many([{"response": RESPONSE} | fields], metrics=METRICS)
    return score.status != "invalid"


def ask_file(engine: Engine, fields: Fields) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text(json.dumps({"response": RESPONSE} | fields) + "\n")
        with read_lines(path) as lines:
            (row,) = (line.row for line in lines)
    assert row is not None
    (score,) = engine.score_many([row], metrics=METRICS)
    return score.status != "invalid"


def ask_guard(engine: Engine, fields: Fields) -> bool:
    try:
        stream = Guard(engine).open(fields["knowledge"], Policy(), history=fields.get("history", ()), metrics=METRICS)
    except InvalidRequest:
        return False
    with stream:
        stream.feed(RESPONSE)
        stream.finish()
    return True


def ask_http(engine: Engine, fields: Fields) -> bool:
    async def post(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/score", json={"response": RESPONSE, "metrics": METRICS} | fields)

    return _post(app(engine, Settings()), post)


def ask_lines(engine: Engine, fields: Fields) -> bool:
    async def post(client: httpx.AsyncClient) -> httpx.Response:
        content = json.dumps({"response": RESPONSE} | fields).encode()
        return await client.post(f"/score_many?metrics={','.join(METRICS)}", content=content, headers=NDJSON)

    return _post(app(engine, Settings()), post)


def ask_proxy(engine: Engine, fields: Fields) -> bool:
    upstream = ChatServer(RESPONSE)
    settings = ProxySettings(upstream=UPSTREAM, metrics=METRICS)

    async def post(client: httpx.AsyncClient) -> httpx.Response:
        body = {"model": "m", "messages": [], "groundwire": {"knowledge": fields["knowledge"]}}
        return await client.post("/v1/chat/completions", json=body)

    return _post(make_proxy(engine, settings, httpx.ASGITransport(upstream.app)), post)


def _post(application: Front, post: Callable[[httpx.AsyncClient], Any]) -> bool:
    async def main() -> httpx.Response:
        await application.warm()
        async with connect(application) as client:
            response: httpx.Response = await post(client)
            return response

    answer = asyncio.run(main())
    assert answer.status_code in (200, 422), answer.text
    return answer.status_code == 200 and '"code":"invalid"' not in answer.text  # the error of a line


DOORS = (ask_score, ask_many, ask_file, ask_guard, ask_http, ask_lines)
OF_KNOWLEDGE = (*DOORS, ask_proxy)


def compare(fields: Fields, doors: tuple[Callable[[Engine, Fields], bool], ...]) -> dict[str, Read]:
    """What each door makes of the fields."""
    read: dict[str, Read] = {}
    for door in doors:
        recorder = Recorder()
        with Engine(recorder.open()) as engine:
            accepted = door(engine, fields)
        read[door.__name__] = frozenset(recorder.read) if accepted else REFUSED
    return read


WORDS = st.sampled_from(["Honey is golden.", "It costs £5.", "", " ", "paid", "[1]", '{"a": 1}'])
SCALARS = WORDS | st.none() | st.booleans() | st.integers(-5, 5) | st.just(2.5)
OBJECTS = st.dictionaries(st.sampled_from(["price", "role", "content", "name", "title", "text"]), SCALARS, max_size=3)
ITEMS = WORDS | OBJECTS | st.none() | st.integers(0, 9)
KNOWLEDGE = WORDS | OBJECTS | st.integers(0, 9) | st.lists(ITEMS, max_size=3)
HISTORY = WORDS | st.none() | st.integers(0, 9) | st.lists(WORDS | OBJECTS | st.none(), max_size=3)


@given(KNOWLEDGE)
def test_knowledge_is_read_alike(knowledge: Any) -> None:
    read = compare({"knowledge": knowledge}, OF_KNOWLEDGE)
    assert len(set(read.values())) == 1, read


def test_null_is_no_knowledge_to_compare_with() -> None:
    """Of the proxy null is documented: the knowledge is in the messages."""
    assert set(compare({"knowledge": None}, DOORS).values()) == {frozenset()}


@given(HISTORY)
def test_history_is_read_alike(history: Any) -> None:
    read = compare({"knowledge": "Honey is golden.", "history": history}, DOORS)
    assert len(set(read.values())) == 1, read


@pytest.mark.parametrize(
    ("history", "turns"), [(None, 0), ("", 0), ("Is it sweet?", 1), (["Is it sweet?"], 1), (["Is it?", "So?"], 2)]
)
def test_a_string_is_one_turn_and_null_is_none(history: Any, turns: int) -> None:
    assert len(make_history(history, Options())) == turns
    assert REFUSED not in compare({"knowledge": "Honey.", "history": history}, DOORS).values()


@pytest.mark.parametrize(
    ("knowledge", "accepted"),
    [("Honey.", True), (["Honey."], True), ({"honey": "sweet"}, True), ([], True), (7, False), ([7], False)],
)
def test_what_is_accepted_is_stated(knowledge: Any, accepted: bool) -> None:
    """So that the doors do not agree in refusing everything."""
    assert {value != REFUSED for value in compare({"knowledge": knowledge}, OF_KNOWLEDGE).values()} == {accepted}
