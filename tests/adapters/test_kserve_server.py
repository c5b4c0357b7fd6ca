"""Metrics whose graphs run on KServe's own model server have the values that they have here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from groundwire.engine import Engine, LoadOptions, ServerUnavailable
from groundwire.runtime import Endpoint
from groundwire.runtime.bundles.bundle import Bundle, embedded
from groundwire.runtime.kserve.names import name_model
from groundwire.runtime.kserve.server import Server

ROOT = Path(__file__).resolve().parents[2]
ROWS = [("Bob Ross hosted The Joy of Cooking.", "Bob Ross was the creator and host of The Joy of Painting.")]
SECONDS = 240
"""For the server to start, on a machine that others use too."""

pytestmark = [
    pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle"),
    # It runs in a process of its own: the protobuf messages of kserve and tritonclient have one name.
    pytest.mark.skipif(find_spec("kserve") is None, reason="kserve is not installed"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    bundle = Bundle.open("compact")
    graphs = {graph for role in bundle.manifest.roles.values() for graph in role.graph_files}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.support.kserve_server", str(port)]
    command += [f"{name_model(bundle, graph)}={bundle.file(graph)}" for graph in graphs]
    log = tmp_path_factory.mktemp("kserve") / "log"  # a pipe would fill up, because nothing reads it
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=file, stderr=file
        )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + SECONDS
    try:
        while True:
            try:
                Server.open(Endpoint(url)).close()
                break
            except ServerUnavailable:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.2)
        yield url
    finally:
        process.kill()
        process.wait()


def test_every_metric_has_the_value_that_it_has_here(url: str) -> None:
    with Engine.load("compact", device="cpu", threads=1) as engine:
        (expected,) = engine.score_many(ROWS, metrics="all")
    with Engine.load("compact", options=LoadOptions(backend="kserve", url=url)) as engine:
        (score,) = engine.score_many(ROWS, metrics="all")
        assert "|device:kserve/kserve-" in engine.plan("all").signature
    assert expected.status == "scored"
    assert {name: result.value for name, result in score.metrics.items()} == {
        name: result.value for name, result in expected.metrics.items()
    }
    assert (score.verdict, score.unsupported) == (expected.verdict, expected.unsupported)
