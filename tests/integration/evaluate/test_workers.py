"""Scoring in several processes: the same scores in the same order, and a dead process is reported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from groundwire.evaluate.scores.scoring import ScoringSettings, score_sets
from groundwire.evaluate.scores.workers import CHUNK
from groundwire.runtime.errors import BundleError, ModelError
from tests.support.evaluation import Fake, make_example

NAMES = ("Elvis", "Bob", "Ada")
EXAMPLES = [make_example(f"{NAMES[index % 3]} {index}", index % 2) for index in range(3 * CHUNK + 5)]


class Dying(Fake):
    """Settings whose engines end with their process."""

    def load(self) -> NoReturn:
        os._exit(1)


def test_processes_give_what_one_engine_gives(tmp_path: Path) -> None:
    alone = score_sets({"set": EXAMPLES, "few": EXAMPLES[:3]}, tmp_path / "one", Fake(metrics=("q2",)))
    progress: list[tuple[str, int, int]] = []
    shared = score_sets(
        {"set": EXAMPLES, "few": EXAMPLES[:3]},
        tmp_path / "two",
        Fake(metrics=("q2",), workers=2),
        lambda *w: progress.append(w),
    )
    for name, scores in alone.sets.items():
        assert [score.metrics for score in shared.sets[name]] == [score.metrics for score in scores]
    assert shared.made_with == alone.made_with
    assert progress == [("set", done, len(EXAMPLES)) for done in range(1, len(EXAMPLES) + 1)]


def test_a_process_that_ends_is_reported_and_what_was_scored_is_kept(tmp_path: Path) -> None:
    score_sets({"set": EXAMPLES[:4]}, tmp_path, Fake(metrics=("q2",)))
    with pytest.raises(ModelError, match="--workers 1"):
        score_sets({"set": EXAMPLES}, tmp_path, Dying(metrics=("q2",), workers=2))
    assert len((tmp_path / "scores" / "set.jsonl").read_text().splitlines()) == 4


def test_a_bundle_that_is_not_there_is_reported_before_a_process_starts(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        ScoringSettings(bundle=tmp_path / "nothing", workers=2).scorer()
