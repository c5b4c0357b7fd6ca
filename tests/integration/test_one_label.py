"""One text has one label, one threshold and is as sure everywhere: Python, files, HTTP, streams, guards and reports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, get_args

import httpx
import pytest
from typer.testing import CliRunner

from groundwire.cli import app as command_line
from groundwire.engine import Engine, Options
from groundwire.evaluate.datasets.plain import make_examples
from groundwire.evaluate.scores.metric_values import decide_examples
from groundwire.guard import Guard, Policy
from groundwire.guard.policies import OUTCOMES
from groundwire.runtime.bundles.bundle import embedded
from groundwire.runtime.bundles.calibration import ProfileName
from groundwire.service.application import app
from groundwire.service.proxy import make_proxy
from groundwire.service.settings import ProxySettings, Settings
from tests.support.chat_server import ChatServer
from tests.support.service import NDJSON, Socket, connect

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")
Row: TypeAlias = dict[str, Any]
Labels: TypeAlias = list[tuple[str, bool, float]]
"""Label, whether it is sure, and threshold, by text."""

KITE = "The Kestrel 3 costs £79 and weighs 420 g. It is repaired free of charge for two years, but not after a fall."
BATH = [
    "Pool: Monday to Friday 7 am to 9 pm, at weekends 9 am to 6 pm. Children under 5 swim free of charge.",
    "The sauna is closed on Tuesdays. Towels are lent for £2; bring a £1 coin for the locker.",
]
ORDER = {"order": 4417, "status": "shipped", "items": [{"name": "kettle", "price": 34.5}], "carrier": "DPD"}
ROWS: list[Row] = [
    {"response": "It costs £79.", "knowledge": KITE, "history": ["What does the Kestrel 3 cost?"]},
    {"response": "The Kestrel 3 costs £97.", "knowledge": KITE},
    {"response": "It is repaired free of charge for two years, also after a fall.", "knowledge": KITE},
    {"response": "Thanks for asking! I love kites too.", "knowledge": KITE},
    {"response": "The pool opens at 7 am on Mondays. The sauna is open every day. Towels cost £2.", "knowledge": BATH},
    {
        "response": "At weekends the pool opens at 9 am. Children under 5 are free. Bring £1 for the locker.",
        "knowledge": BATH,
    },
    {"response": "Yes, you can borrow one.", "knowledge": BATH, "history": ["Do I need a towel?"]},
    {"response": "Your kettle was shipped with DPD.", "knowledge": ORDER},
    {"response": "Order 4417 costs £43.50.\n\n- kettle: **£34.50**\n- delivery: £9", "knowledge": [ORDER, *BATH]},
    {"response": "The museum was founded in 1890.", "knowledge": ""},
    {"response": "I could not find anything about that.", "knowledge": []},
    {"response": "Ja, das Becken öffnet um 7 Uhr.", "knowledge": BATH},
]
ANNOTATE = Policy(**dict.fromkeys(OUTCOMES, "flag"))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", "cpu", threads=1) as loaded:
        yield loaded


def read_verdict(verdict: Any) -> tuple[str, bool, float]:
    """What is compared of a verdict, a record or its JSON."""
    if not isinstance(verdict, dict):
        return verdict.label, verdict.sure, verdict.threshold
    return verdict["label"], verdict["sure"], verdict["threshold"]


def score(engine: Engine, profile: ProfileName, row: Row) -> Any:
    history = row.get("history", ())
    return engine.score(row["response"], row["knowledge"], history=history, options=Options(profile=profile)).verdict


def ask_many(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    scores = engine.score_many(ROWS, options=Options(profile=profile))
    return [read_verdict(score.verdict) for score in scores]


def ask_guard(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    labels = []
    for row in ROWS:
        options, history = Options(profile=profile), row.get("history", ())
        with Guard(engine).open(row["knowledge"], ANNOTATE, history=history, scoring=options) as stream:
            for character in row["response"]:
                stream.feed(character)
            labels.append(read_verdict(stream.finish().verdict))
    return labels


def ask_http(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    async def main() -> list[httpx.Response]:
        front = app(engine, Settings())
        await front.warm()
        async with connect(front) as client:
            return [await client.post("/score", json=row | {"options": {"profile": profile}}) for row in ROWS]

    return [read_verdict(answer.json()["verdict"]) for answer in asyncio.run(main())]


def ask_http_lines(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    async def main() -> httpx.Response:
        front = app(engine, Settings())
        await front.warm()
        async with connect(front) as client:
            content = "".join(json.dumps(row) + "\n" for row in ROWS)
            query = {"options": json.dumps({"profile": profile})}
            return await client.post("/score_many", content=content, params=query, headers=NDJSON)

    return [read_verdict(json.loads(line)["score"]["verdict"]) for line in asyncio.run(main()).text.splitlines()]


def list_lines(row: Row, profile: ProfileName) -> list[Any]:
    """What a client of /stream sends: the turn, the response, and its end."""
    policy = dict.fromkeys(OUTCOMES, "flag")
    turn = {name: value for name, value in row.items() if name != "response"}
    return [turn | {"policy": policy, "options": {"profile": profile}}, row["response"], {"delta": "", "finish": True}]


def ask_stream(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    async def main() -> list[httpx.Response]:
        front = app(engine, Settings())
        await front.warm()
        async with connect(front) as client:
            contents = ["".join(json.dumps(line) + "\n" for line in list_lines(row, profile)) for row in ROWS]
            return [await client.post("/stream", content=content, headers=NDJSON) for content in contents]

    finals = [answer.text.rstrip().rpartition("data: ")[2] for answer in asyncio.run(main())]
    return [read_verdict(json.loads(final)["score"]["verdict"]) for final in finals]


def ask_socket(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    async def main() -> list[Any]:
        front = app(engine, Settings())
        await front.warm()
        finals = []
        for row in ROWS:
            socket = Socket(front)
            assert (await socket.read())["type"] == "websocket.accept"
            for line in list_lines(row, profile):
                socket.write(json.dumps(line))
            while (event := await socket.read_event())["type"] != "final":
                pass
            finals.append(event)
            await socket.read()
            await socket.task
        return finals

    return [read_verdict(final["score"]["verdict"]) for final in asyncio.run(main())]


def ask_proxy(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    async def main() -> list[Any]:
        verdicts = []
        settings = ProxySettings(upstream="http://upstream/v1", policy="annotate", profile=profile)
        upstream = ChatServer("")
        front = make_proxy(engine, settings, httpx.ASGITransport(upstream.app))
        await front.warm()
        async with connect(front) as client:
            for row in ROWS:
                upstream.text = row["response"]
                messages = [{"role": "user", "content": turn} for turn in row.get("history", ())]
                body = {"model": "m", "messages": messages, "groundwire": {"knowledge": row["knowledge"]}}
                (choice,) = (await client.post("/v1/chat/completions", json=body)).json()["choices"]
                assert choice["groundwire"]["label"] == choice["groundwire"]["verdict"]["label"]
                verdicts.append(choice["groundwire"]["verdict"])
        return verdicts

    return list(map(read_verdict, asyncio.run(main())))


def ask_command(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    result = CliRunner().invoke(command_line, ["score", str(path), "--profile", profile, "--json"])
    assert result.exit_code in (0, 3), result.output
    return [read_verdict(json.loads(line)["score"]["verdict"]) for line in result.stdout.splitlines()]


def ask_evaluate(engine: Engine, profile: ProfileName, tmp_path: Path) -> Labels:
    """What the figures of a report are drawn from: stored results of metrics, scored with any profile."""
    examples = make_examples([row | {"label": 1} for row in ROWS])
    scores = list(engine.score_many(example.request for example in examples))
    assert engine.core.calibration is not None
    return list(map(read_verdict, decide_examples(examples, scores, engine.core.calibration, profile)))


@pytest.mark.parametrize("profile", get_args(ProfileName))
@pytest.mark.parametrize(
    "ask",
    [
        ask_many, ask_guard, ask_http, ask_http_lines, ask_stream, ask_socket, ask_proxy, ask_command, ask_evaluate,
    ],
)  # fmt: skip
def test_every_way_gives_the_label_of_score(
    engine: Engine, profile: ProfileName, ask: Callable[[Engine, ProfileName, Path], Labels], tmp_path: Path
) -> None:
    expected = [read_verdict(score(engine, profile, row)) for row in ROWS]
    assert ask(engine, profile, tmp_path) == expected


def test_the_texts_have_every_label_and_some_are_not_sure(engine: Engine) -> None:
    verdicts = [score(engine, profile, row) for profile in get_args(ProfileName) for row in ROWS]
    assert {verdict.label for verdict in verdicts} == {"consistent", "inconsistent", "unverifiable", "unknown"}
    assert {verdict.sure for verdict in verdicts if verdict.label != "unverifiable"} == {True, False}
    assert len({verdict.threshold for verdict in verdicts if verdict.label != "unknown"}) == 3
