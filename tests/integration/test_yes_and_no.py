"""How often a right yes or no is called consistent, and a wrong one (bench/quality/bare_answers.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundwire.engine import Engine, Request
from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")
FILE = Path(__file__).parents[2] / "bench" / "quality" / "bare_answers.jsonl"
LEAST_RIGHT, MOST_WRONG = 60, 7
"""Of 80 right and 80 wrong answers; a label at the threshold may turn on another processor."""


def test_a_right_yes_or_no_is_called_consistent_and_a_wrong_one_is_not() -> None:
    pairs = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    requests = [
        Request(pair[side], tuple(pair["knowledge"]), tuple(pair["history"]))
        for side in ("right", "wrong")
        for pair in pairs
    ]
    with Engine.load("compact", device="cpu", threads=1) as engine:
        labels = [score.verdict.label for score in engine.score_many(requests)]
    right, wrong = labels[: len(pairs)], labels[len(pairs) :]
    assert right.count("consistent") >= LEAST_RIGHT
    assert wrong.count("consistent") + wrong.count("unverifiable") <= MOST_WRONG
