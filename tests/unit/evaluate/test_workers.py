"""Scoring in several processes: the same scores in the same order, and a dead process is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from groundwire.evaluate.scores.scoring import Settings, score_sets
from groundwire.evaluate.scores.workers import CHUNK
from groundwire.runtime.errors import BundleError, ModelError
from tests.support.evaluation import Fake, row

NAMES = ("Elvis", "Bob", "Ada")
ROWS = [row(f"{NAMES[place % 3]} {place}", place % 2) for place in range(3 * CHUNK + 5)]


class Dying(Fake):
    """Settings whose engines end with their process."""

    def load(self) -> NoReturn:
        os._exit(1)


def test_processes_give_what_one_engine_gives(tmp_path: Path) -> None:
    alone = score_sets({"set": ROWS, "few": ROWS[:3]}, tmp_path / "one", Fake(metrics=("q2",)))
    told: list[tuple[str, int, int]] = []
    shared = score_sets(
        {"set": ROWS, "few": ROWS[:3]}, tmp_path / "two", Fake(metrics=("q2",), workers=2), lambda *w: told.append(w)
    )
    for name, scores in alone.sets.items():
        assert [one.metrics for one in shared.sets[name]] == [one.metrics for one in scores]
    assert shared.made_with == alone.made_with
    assert told == [("set", done, len(ROWS)) for done in range(1, len(ROWS) + 1)]


def test_a_process_that_ends_is_told_and_what_was_scored_is_kept(tmp_path: Path) -> None:
    score_sets({"set": ROWS[:4]}, tmp_path, Fake(metrics=("q2",)))
    with pytest.raises(ModelError, match="--workers 1"):
        score_sets({"set": ROWS}, tmp_path, Dying(metrics=("q2",), workers=2))
    assert len((tmp_path / "scores" / "set.jsonl").read_text().splitlines()) == 4


def test_a_bundle_that_is_not_there_is_told_before_a_process_starts(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        Settings(bundle=tmp_path / "nothing", workers=2).scorer()
