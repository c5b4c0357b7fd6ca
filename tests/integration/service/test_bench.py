"""The benchmarks of the service run at a tiny size, and check their answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import serving, soak_http
from bench.support.common import WrongAnswer
from groundwire.engine import Engine
from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")


def test_serving(tmp_path: Path) -> None:
    serving.main(tiny=True, threads=1, out=tmp_path / "serving.json")
    results = json.loads((tmp_path / "serving.json").read_text(encoding="utf-8"))["results"]
    assert [level["callers"] for level in results["callers"]] == [1, 4]
    assert all(level["service"]["p50_ms"] > 0 for level in results["callers"])
    assert sum(results["overload"]["statuses"].values()) == results["overload"]["sent"] == 20


def test_serving_refuses_to_time_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving.Connection, "ask", lambda *_: (200, {"status": "scored", "value": 2.0}))
    with Engine.load("compact", threads=1) as engine, pytest.raises(WrongAnswer, match="differs from the engine's"):
        serving.check_answers(engine, 0, ("overlap",))


def test_soak_http(tmp_path: Path) -> None:
    soak_http.main(tiny=True, out=tmp_path / "soak.json")
    results = json.loads((tmp_path / "soak.json").read_text(encoding="utf-8"))["results"]
    assert sum(results["fates"].values()) == results["requests"] == 640
    assert results["fates"]["200"] > 250
    assert len(results["points"]) == 4
