"""The assertion, as a function, and in promptfoo itself where its program is on the path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from groundwire.adapters import checking
from groundwire.adapters.promptfoo import get_assert
from groundwire.engine import Engine, InvalidRequest
from groundwire.runtime.bundles.bundle import embedded
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, PROBABILITY
from tests.support.offline import ROOT

PROMPTFOO = shutil.which("promptfoo")


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    monkeypatch.setattr(checking, "default_engine", lambda: engine)


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize(
    ("text", "passed", "named"),
    [
        (CONSISTENT, True, {"groundwire": PROBABILITY[CONSISTENT]}),
        (INCONSISTENT, False, {"groundwire": PROBABILITY[INCONSISTENT]}),
        (GREETING, True, {}),
        ("", False, {}),
    ],
)
def test_a_result_has_the_probability_where_there_is_one(text: str, passed: bool, named: dict[str, Any]) -> None:
    result = get_assert(text, {"vars": {"knowledge": [KNOWLEDGE], "history": "Honey?"}})
    assert (result["pass"], result["namedScores"]) == (passed, named)
    assert result["score"] == named.get("groundwire", float(passed))


def test_a_failed_metric_does_not_pass(monkeypatch: pytest.MonkeyPatch, failing_engine: Engine) -> None:
    monkeypatch.setattr(checking, "default_engine", lambda: failing_engine)
    result = get_assert(CONSISTENT, {"vars": {"documents": KNOWLEDGE}, "config": {"knowledge": "documents"}})
    assert (result["pass"], result["score"]) == (False, 0.0)
    assert FAILURE in result["reason"]


@pytest.mark.usefixtures("default")
def test_a_test_without_knowledge_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match=r"no 'knowledge'; set config\.knowledge"):
        get_assert(CONSISTENT, {"vars": {"document": KNOWLEDGE}})


CONFIG = """
prompts: ["{{answer}}"]
providers: [echo]
defaultTest:
  vars:
    document: Bob Ross was the creator and host of The Joy of Painting.
  assert:
    - type: python
      value: file://consistent.py
      config: {knowledge: document}
tests:
  - vars: {answer: Bob Ross hosted The Joy of Painting.}
  - vars: {answer: Bob Ross hosted The Joy of Cooking.}
"""


@pytest.mark.skipif(PROMPTFOO is None, reason="promptfoo is a program of Node.js: npm install promptfoo")
@pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")
def test_promptfoo_runs_the_assertion(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    (tmp_path / "consistent.py").write_text("from groundwire.adapters.promptfoo import get_assert\n")
    environment = os.environ | {
        "PROMPTFOO_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(tmp_path / "state"),
    }
    command = [str(PROMPTFOO), "eval", "--no-cache", "--no-table", "--output", "results.json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (tmp_path / "results.json").exists(), done.stdout + done.stderr
    results = json.loads((tmp_path / "results.json").read_text())["results"]["results"]
    by_answer = {result["vars"]["answer"]: result["gradingResult"] for result in results}
    passed = [by_answer[answer]["pass"] for answer in sorted(by_answer, reverse=True)]
    assert passed == [True, False], by_answer
    assert all("groundwire" in result["namedScores"] for result in by_answer.values())
