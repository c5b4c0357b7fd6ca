"""The program schemathesis against a running server: right and wrong requests by the OpenAPI document."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.adapters import load
from tests.support.fake_server import start_fake_server
from tests.support.offline import ROOT

load("schemathesis")
CASES = os.environ.get("GROUNDWIRE_EXAMPLES", "5")
"""Random requests for each operation, beside those that cover its schema."""
CONFIGURATION = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "503", "504"]
"""
"""A passed deadline and a stopped server have answers of their own."""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_every_answer_is_one_that_the_document_describes(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION, encoding="utf-8")
    with start_fake_server("--metrics", "nli") as server:
        server.wait_until_ready()
        command = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "--config-file",
            str(tmp_path / "schemathesis.toml"),
            "run",
        ]
        command += [f"{server.url}/openapi.json", "--checks", CHECKS, "--max-examples", CASES, "--mode", "all"]
        done = subprocess.run(
            [*command, "--generation-deterministic", "--no-color"],
            cwd=tmp_path,
            env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.support.openapi_bodies", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert server.stop() == 0
        answered = sum(line["event"] == "request" and line["status"] == 200 for line in server.lines)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) generated", done.stdout)[1]) > 500, done.stdout[-2000:]  # type: ignore[index]
    assert answered > 200  # the others are refused, with what is wrong
