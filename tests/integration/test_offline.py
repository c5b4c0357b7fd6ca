"""No connection is opened and nothing is written to the home directory, by Python or by the libraries below it."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import httpx
import pytest

from deploy import tree
from groundwire.runtime.bundles.bundle import embedded
from tests.support import models, offline
from tests.support.offline import AVAILABLE, ROOT, run_offline
from tests.support.server import start_server

needs_filter = pytest.mark.skipif(not AVAILABLE, reason="the filter of system calls knows Linux on x86-64 and ARM64")
needs_bundle = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")

SCORE = """
from groundwire.engine import Engine
with Engine.load("compact", device="cpu", threads=1) as engine:
    engine.warmup()
    score = engine.score("Elvis was born in 1936.", "Elvis Presley was born in 1935.", metrics="all")
    assert score.status == "scored", score.message
"""
COMMAND = "from groundwire.cli import main; main()"
SOURCES = [
    path
    for folder in (
        "runtime",
        "engine",
        "apps",
        "interfaces",
        "export",
        "evaluate",
        "recipes",
        "bench",
        "deploy",
        "examples",
    )
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@needs_filter
def test_the_filter_ends_a_process_that_opens_a_socket(tmp_path: Path) -> None:
    assert run_offline(["-c", "import socket; socket.socket(socket.AF_INET)"], tmp_path).returncode == -signal.SIGSYS
    other = run_offline(["-c", "import socket; socket.socket(socket.AF_INET6)"], tmp_path)
    assert "Address family not supported" in other.stderr


@needs_filter
@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "import groundwire.runtime.ort.session, time; time.sleep(1)"],
        ["-c", "import groundwire.adapters, groundwire.evaluate, groundwire.runtime.local"],
        pytest.param(["-c", SCORE], marks=needs_bundle),
        ["-c", COMMAND, "doctor"],
        pytest.param(["-c", COMMAND, "score", str(ROOT / "examples" / "dialogues.jsonl")], marks=needs_bundle),
    ],
    ids=["import", "import all", "load and score", "doctor", "score command"],
)
def test_nothing_leaves_the_machine(tmp_path: Path, arguments: list[str]) -> None:
    done = run_offline(arguments, tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*")) == []


@needs_filter
@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.getaddrinfo('example.org', 80)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('127.0.0.1', 9))",
    ],
)
def test_the_filter_of_servers_ends_a_process_that_connects_or_asks_for_a_name(tmp_path: Path, code: str) -> None:
    assert run_offline(["--listen", "-c", f"import socket; {code}"], tmp_path).returncode == -signal.SIGSYS
    listening = "import socket; socket.create_server(('127.0.0.1', 0))"
    assert run_offline(["--listen", "-c", listening], tmp_path).returncode == 0


@needs_filter
@needs_bundle
def test_a_server_connects_to_nothing() -> None:
    with start_server(before=[offline.__file__, "--listen"]) as server:
        server.wait_until_ready()
        body = {"response": "Elvis was born in 1936.", "knowledge": ["Elvis Presley was born in 1935."]}
        answer = httpx.post(f"{server.url}/score", json=body, timeout=120, trust_env=False)
        assert answer.json()["status"] == "scored"
        assert server.stop() == 0


@needs_filter
def test_an_export_connects_to_nothing(tmp_path: Path) -> None:
    source = models.classifier(tmp_path / "nli", "roberta")
    command = ["export", "nli", "--source", str(source), "--precision", "fp32", "--out", str(tmp_path / "bundle")]
    done = run_offline(["-c", COMMAND, *command], tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bundle" / "nli.onnx").exists()


@needs_filter
def test_an_export_session_sends_nothing_either(tmp_path: Path) -> None:
    done = run_offline(["-c", "import groundwire.export.session"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*")) == []


def test_the_users_own_choice_is_kept(tmp_path: Path) -> None:
    code = "import os, groundwire; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    assert run_offline(["-c", code], tmp_path, ORT_DISABLE_TELEMETRY="0").stdout == "0\n"


def test_onnx_runtime_is_imported_inside_the_package_only() -> None:
    """Elsewhere it could be imported before ``groundwire/__init__.py`` has run."""
    inside = tree.list_packages().values()
    importing = [path for path in SOURCES if re.search(r"^\s*(import|from) onnxruntime", path.read_text(), re.M)]
    assert ROOT / "runtime" / "ort" / "session.py" in importing
    assert [path for path in importing if not any(map(path.is_relative_to, inside))] == []
