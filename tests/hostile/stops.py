"""Stops of a server under load: every connection that was made is answered.

python -m tests.hostile.stops                  100 stops of a server with fake models
python -m tests.hostile.stops --stops 10 --bundle compact      with the embedded models
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Annotated, NamedTuple

import httpx
import typer

from tests.support.fake_server import start_fake_server
from tests.support.server import SECONDS, Server, start_server

CLIENTS = 16
LOAD_S = 0.5
"""Seconds under load before the stop."""


class Stop(NamedTuple):
    """What clients saw of a stop."""

    answers: int
    broken: list[str]
    """Errors of connections that had been made."""
    code: int
    """The exit code of the server."""


def stop_under_load(starting: AbstractContextManager[Server]) -> Stop:
    """Start a server, ask it from 16 clients, half of them with a new connection for each request, and stop it."""
    broken = list[str]()
    with starting as server, ThreadPoolExecutor(CLIENTS) as pool:
        server.wait_until_ready()
        asked = [pool.submit(ask_until_refused, server.url, number % 2 == 0, broken) for number in range(CLIENTS)]
        time.sleep(LOAD_S)
        code = server.stop()
        return Stop(sum(answers.result(SECONDS) for answers in asked), broken, code)


def ask_until_refused(url: str, keep_alive: bool, broken: list[str]) -> int:
    """Ask a server until it takes no more connections; the number of answers."""
    url_parts, answers = httpx.URL(url), 0
    body = json.dumps({"response": "Honey is blue.", "knowledge": "Honey keeps for years. It is golden."})
    headers = {"Content-Type": "application/json"} | ({} if keep_alive else {"Connection": "close"})
    while True:
        client = http.client.HTTPConnection(url_parts.host, url_parts.port or 80, timeout=SECONDS)
        with contextlib.closing(client):
            try:
                client.connect()
            except ConnectionRefusedError:
                return answers
            try:
                is_open = True
                while is_open:
                    client.request("POST", "/score", body, headers)
                    answer = client.getresponse()
                    is_open = keep_alive and not answer.will_close
                    assert answer.read()
                    answers += 1
            except (OSError, http.client.HTTPException) as error:
                broken.append(repr(error))


def main(
    stops: Annotated[int, typer.Option(help="How many.", min=1)] = 100,
    bundle: Annotated[str, typer.Option(help="The models; default: fake models.")] = "",
) -> None:
    """Stop a server under load, again and again; the exit code is 1 if a connection broke."""
    answers, broken = 0, list[str]()
    for number in range(1, stops + 1):
        options = ("--metrics", "overlap")
        stop = stop_under_load(start_server(*options, "--bundle", bundle) if bundle else start_fake_server(*options))
        answers += stop.answers
        broken += stop.broken + ([] if stop.code == 0 else [f"exit code {stop.code}"])
        print(f"{number} stops, {answers} answers, {len(broken)} broken {stop.broken}", flush=True)
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    typer.run(main)
