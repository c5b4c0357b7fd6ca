"""Right answers stay as they are: a sample of those that bench/quality/corrections.py corrects."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from groundwire.engine import Engine
from groundwire.repair import Corrector
from groundwire.runtime.bundles.bundle import embedded

SETS = Path(__file__).resolve().parents[2] / "bench" / "quality"
ROWS = [json.loads(line) for line in (SETS / "repairs" / "right_answers.jsonl").read_text("utf-8").splitlines()]
PAIRS = [json.loads(line) for line in (SETS / "roles" / "roles.jsonl").read_text("utf-8").splitlines()]


def test_the_sets_are_whole() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 200
    assert Counter(row["kind"] for row in ROWS)["code"] == 40
    assert Counter(pair["expected"] for pair in PAIRS) == {"consistent": 100, "inconsistent": 100}
    assert all(text in pair["response"] for pair in PAIRS for text in pair["unsupported"])


@pytest.mark.skipif("compact" not in embedded(), reason="this checkout lacks the bundle 'compact'")
def test_no_right_answer_of_a_sample_is_changed() -> None:
    with Engine.load("compact", "cpu") as engine:
        corrector = Corrector(engine)
        for row in ROWS[::20]:
            correction = corrector.correct(row["response"], row["knowledge"], history=row["history"])
            assert correction.response == row["response"], row["id"]
