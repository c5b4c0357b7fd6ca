"""The showcase: its pairs have the form that its script reads, and the script counts what is right."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from groundwire.engine import Engine
from groundwire.runtime.fake import FakeRuntime

ROOT = Path(__file__).resolve().parents[3]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("showcase", ROOT / "bench" / "quality" / "showcase.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["showcase"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


showcase = load_script()
PAIRS = showcase.read_pairs()


def test_there_are_sixty_different_pairs() -> None:
    assert Counter(pair.expected for pair in PAIRS) == {"consistent": 28, "inconsistent": 22, "unverifiable": 10}
    assert len({pair.id for pair in PAIRS}) == len({(pair.response, str(pair.knowledge)) for pair in PAIRS}) == 60
    assert len({pair.kind for pair in PAIRS}) == 20


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_a_pair_names_its_unsupported_words_if_it_is_inconsistent(pair: Any) -> None:
    assert pair.response.strip() == pair.response
    assert all([pair.knowledge] if isinstance(pair.knowledge, str) else pair.knowledge)
    assert bool(pair.unsupported) == (pair.expected == "inconsistent")
    assert all(text in pair.response for text in pair.unsupported)


def test_both_examples_of_the_paper_that_are_hardest_are_there() -> None:
    responses = [pair.response for pair in PAIRS]
    for line in (ROOT / "examples" / "dialogues.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["id"] in ("coffee", "french-cuisine"):
            assert record["response"] in responses


def test_the_script_counts_verdicts_and_words() -> None:
    pairs = [pair for pair in PAIRS if pair.id in ("date-tower", "greeting", "name-penicillin")]
    with Engine(FakeRuntime({})) as engine:
        outcomes = showcase.score_pairs(pairs, engine, ["values"])
    assert [outcome.right for outcome in outcomes] == [False, False, False], "without a calibration nothing is decided"
    assert [outcome.words_right for outcome in outcomes] == [True, True, False], "January is marked beside 1877"
    lines = list(showcase.describe(outcomes))
    assert "| date | 1 | 0 | 1 of 1 |" in lines
    assert "| **all** | 3 | 0 | 2 of 2 |" in lines
    assert "name-penicillin: inconsistent, got unknown, Louis Pasteur marked" in lines
