"""Scores that are kept: nothing is scored twice, nothing of other settings is mixed in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from groundwire.engine import LoadOptions, Options
from groundwire.engine.schema.options import Q2Options
from groundwire.evaluate.datasets.examples import Example, sample_examples
from groundwire.evaluate.scores.scoring import ScoringSettings, Stored, request_key, score_sets
from groundwire.runtime.errors import BundleError, InvalidRequest
from tests.support.evaluation import CALIBRATION, Fake, NoModels, make_example

EXAMPLES = [make_example("Elvis", 1), make_example("Bob", 0), make_example("Elvis", 0), make_example("Ada", 1)]
"""The third asks the same as the first."""
Q2 = Fake(metrics=("q2",))


def lines(directory: Path, name: str = "set") -> list[Stored]:
    raw = (directory / "scores" / f"{name}.jsonl").read_bytes()
    return [msgspec.json.decode(line, type=Stored) for line in raw.splitlines()]


def test_equal_requests_are_scored_once_and_in_the_order_of_the_examples(tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    scored = score_sets({"set": EXAMPLES}, tmp_path, Q2, lambda *what: progress.append(what))
    assert progress == [("set", 1, 3), ("set", 2, 3), ("set", 3, 3)]
    assert [entry.key for entry in lines(tmp_path)] == [request_key(EXAMPLES[index]) for index in (0, 1, 3)]
    assert [score.value for score in scored.sets["set"]] == [1.0, 0.0, 1.0, 0.0]
    assert scored.sets["set"][0] is scored.sets["set"][2]
    assert scored.made_with == scored.sets["set"][0].signature == scored.signature


def test_what_two_sets_share_is_scored_once(tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    sets = {"small": EXAMPLES[:2], "large": EXAMPLES}
    scored = score_sets(sets, tmp_path, Q2, lambda *what: progress.append(what))
    assert progress == [("small", 1, 2), ("small", 2, 2), ("large", 3, 3)]
    assert [score.value for score in scored.sets["large"]] == [1.0, 0.0, 1.0, 0.0]
    assert {entry.key for entry in lines(tmp_path, "large")} == {request_key(score) for score in EXAMPLES}
    alone = score_sets({"large": EXAMPLES}, tmp_path, NoModels())
    assert alone.sets["large"] == scored.sets["large"]


def test_what_is_there_needs_no_engine(tmp_path: Path) -> None:
    first = score_sets({"set": EXAMPLES}, tmp_path, Q2)
    for settings in (NoModels(), NoModels(metrics=("q2",)), NoModels(options=Options())):
        assert score_sets({"set": EXAMPLES[::-1]}, tmp_path, settings).sets["set"] == first.sets["set"][::-1]
    assert len(lines(tmp_path)) == 3


def test_stored_scores_need_not_even_the_bundle(tmp_path: Path) -> None:
    score_sets({"set": EXAMPLES}, tmp_path, Q2)
    score_sets({"set": EXAMPLES}, tmp_path, ScoringSettings())
    with pytest.raises(BundleError):
        score_sets({"set": EXAMPLES}, tmp_path, ScoringSettings(bundle=tmp_path))


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    whole = score_sets({"set": EXAMPLES}, tmp_path, Q2)
    path = tmp_path / "scores" / "set.jsonl"
    first, second, _ = path.read_text().splitlines(keepends=True)
    path.write_text(first + second[:50])
    progress: list[int] = []
    scored = score_sets({"set": EXAMPLES}, tmp_path, Q2, lambda name, done, total: progress.append(done))
    assert progress == [2, 3]
    assert [s.metrics for s in scored.sets["set"]] == [s.metrics for s in whole.sets["set"]]
    assert len(lines(tmp_path)) == 3


@pytest.mark.parametrize(("level", "status"), [("score", "deadline"), ("score", "cancelled"), ("metric", "failed")])
def test_what_did_not_score_is_scored_again(tmp_path: Path, level: str, status: str) -> None:
    whole = score_sets({"set": EXAMPLES}, tmp_path, Q2)
    path = tmp_path / "scores" / "set.jsonl"
    rows = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    stopped = rows[1]["score"] if level == "score" else rows[1]["score"]["metrics"]["q2"]
    stopped |= {"status": status, "value": None}
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    progress: list[int] = []
    again = score_sets({"set": EXAMPLES}, tmp_path, Q2, lambda name, done, total: progress.append(done))
    assert progress == [3]
    assert [score.metrics for score in again.sets["set"]] == [score.metrics for score in whole.sets["set"]]
    assert len(lines(tmp_path)) == 4
    assert score_sets({"set": EXAMPLES}, tmp_path, NoModels()).sets == again.sets  # the later line counts


@pytest.mark.parametrize(
    "settings",
    [
        NoModels(metrics=("nli",)),
        NoModels(metrics=("q2", "nli")),
        NoModels(options=Options(q2=Q2Options(questions="all"))),
    ],
)
def test_scores_of_other_settings_are_refused_and_kept(tmp_path: Path, settings: ScoringSettings) -> None:
    score_sets({"set": EXAMPLES}, tmp_path, Q2)
    before = (tmp_path / "scores" / "set.jsonl").read_bytes()
    with pytest.raises(InvalidRequest, match="made with other settings") as refused:
        score_sets({"set": [*EXAMPLES, make_example("New", 1)]}, tmp_path, settings)
    for progress in ("metrics:q2|", "Choose another --out"):
        assert progress in str(refused.value)
    assert (tmp_path / "scores" / "set.jsonl").read_bytes() == before


def test_sets_of_different_settings_are_not_mixed(tmp_path: Path) -> None:
    score_sets({"one": EXAMPLES}, tmp_path, Q2)
    score_sets({"two": EXAMPLES}, tmp_path, Fake(metrics=("nli",)))
    with pytest.raises(InvalidRequest, match="made with other settings"):
        score_sets({"one": EXAMPLES, "two": EXAMPLES}, tmp_path, NoModels())


def test_examples_that_cannot_be_scored_have_their_status(tmp_path: Path) -> None:
    scored = score_sets({"set": [Example("a", "", ("k",)), make_example("Elvis")]}, tmp_path, Q2).sets["set"]
    assert [score.status for score in scored] == ["invalid", "scored"]
    assert score_sets({"set": [Example("a", "", ("k",))]}, tmp_path, NoModels()).sets["set"] == scored[:1]


def test_no_examples(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="empty holds no examples"):
        score_sets({"empty": [], "set": EXAMPLES}, tmp_path, Q2)


def test_another_calibration_needs_no_scores(tmp_path: Path) -> None:
    score_sets({"set": EXAMPLES}, tmp_path, Q2)
    CALIBRATION.save(tmp_path / "mine.json")
    scored = score_sets({"set": EXAMPLES}, tmp_path, NoModels(calibration=tmp_path / "mine.json"))
    assert scored.calibration == CALIBRATION
    assert scored.signature == f"{scored.made_with}|calibration:{CALIBRATION.digest()}"
    # The run remembers it, until an opened bundle says otherwise.
    assert score_sets({"set": EXAMPLES}, tmp_path, NoModels()).calibration == CALIBRATION
    assert score_sets({"set": EXAMPLES}, tmp_path, NoModels(metrics=("q2",))).calibration is None
    assert score_sets({"set": EXAMPLES}, tmp_path, NoModels()).calibration is None


def test_scores_made_under_a_calibration_are_the_same_scores(tmp_path: Path) -> None:
    class Calibrated(Fake):
        def load(self):  # type: ignore[no-untyped-def]
            from groundwire.engine import Engine
            from tests.support.fakes import world

            return Engine(world(), LoadOptions(calibration=CALIBRATION))

    CALIBRATION.save(tmp_path / "mine.json")
    scored = score_sets({"set": EXAMPLES}, tmp_path, Calibrated(calibration=tmp_path / "mine.json"))
    assert "calibration:" in scored.sets["set"][0].signature
    assert "metrics:q2" in scored.made_with  # the calibration's own choice
    assert score_sets({"set": EXAMPLES}, tmp_path, NoModels(metrics=("q2",))).made_with == scored.made_with


def test_a_key_is_of_the_texts_alone() -> None:
    assert request_key(make_example("a", 1)) == request_key(make_example("a", 0, context="x", source="y"))
    changed = [
        Example("i", "r", ("k",)),
        Example("i", "s", ("k",)),
        Example("i", "r", ("k", "k")),
        Example("i", "r", ("k",), ("h",)),
    ]
    assert len({request_key(example) for example in changed}) == 4


def test_a_sample_has_whole_contexts_in_order() -> None:
    examples = [make_example(f"{i}", context=f"{i // 2}" if i < 8 else "") for i in range(12)]
    sample = sample_examples(examples, 7, seed=1)
    assert sample == [example for example in examples if example in sample]
    assert 6 <= len(sample) <= 7
    for context in range(4):
        assert sum(example.context == str(context) for example in sample) in (0, 2)
    assert sample == sample_examples(examples, 7, seed=1)
    assert {example.id for seed in range(20) for example in sample_examples(examples, 7, seed)} == {
        example.id for example in examples
    }
    assert sample_examples(examples, 0, 1) == sample_examples(examples, 12, 1) == examples
