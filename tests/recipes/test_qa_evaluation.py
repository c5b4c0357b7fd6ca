"""Measures of extractive QA and the choice of the null threshold, on spans whose measures are known by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from transformers import BertForQuestionAnswering

from groundwire.export import RoleOptions, export_bundle
from groundwire.recipes.common import backbone
from groundwire.recipes.common.calls import run_calls
from groundwire.recipes.common.corpus import Question
from groundwire.recipes.compact import qa, qa_evaluation
from groundwire.recipes.compact.qa_evaluation import BestSpan, choose_threshold, measure_spans
from groundwire.runtime.calls import Answer, Answered
from groundwire.runtime.local import LocalRuntime
from tests.support.training_commands import run
from tests.support.training_sets import PARAGRAPHS, UNANSWERABLE, write_gzipped

QUESTIONS = [
    Question("?", ("red house", "house"), 0, 0, 0),
    Question("?", ("blue boat",), 0, 0, 0),
    Question("?", (), 0, -1, 0),
    Question("?", (), 0, -1, 0),
]
SPANS = [BestSpan("the house", 3.0), BestSpan("boat", 1.0), BestSpan("x", 0.5), BestSpan("y", 2.0)]


@pytest.mark.parametrize(
    ("threshold", "exact", "f1", "f1_answerable", "no_answer_accuracy"),
    [
        (0.0, 25.0, 41.67, 83.33, 0.0),
        (0.5, 50.0, 66.67, 83.33, 50.0),
        (1.5, 50.0, 50.0, 50.0, 50.0),
        (2.0, 75.0, 75.0, 50.0, 100.0),
        (3.0, 50.0, 50.0, 0.0, 100.0),
    ],
)
def test_measures(threshold: float, exact: float, f1: float, f1_answerable: float, no_answer_accuracy: float) -> None:
    measured = measure_spans(QUESTIONS, SPANS, threshold)
    assert (measured.exact, measured.f1) == (exact, f1)
    assert (measured.f1_answerable, measured.no_answer_accuracy) == (f1_answerable, no_answer_accuracy)


def test_the_chosen_threshold_is_the_best_one_nearest_0() -> None:
    assert choose_threshold(QUESTIONS, SPANS) == 2.0
    assert choose_threshold(QUESTIONS, SPANS, lambda measured: measured.f1_answerable) == 0.0
    assert math.isnan(measure_spans(QUESTIONS[:2], SPANS[:2], 0.0).no_answer_accuracy)


@pytest.fixture
def checkpoint(small: Path, tmp_path: Path) -> Path:
    BertForQuestionAnswering.from_pretrained(small).save_pretrained(tmp_path / "qa")
    backbone.load_tokenizer().save_pretrained(tmp_path / "qa")
    return tmp_path / "qa"


@pytest.mark.parametrize("exported", [False, True])
def test_spans_are_those_of_the_runtime(checkpoint: Path, tmp_path: Path, exported: bool) -> None:
    bundle = tmp_path / "bundle"
    roles = {"qa": RoleOptions(str(checkpoint), precision="fp32", max_tokens=256, allow_unverified=True)}
    export_bundle(roles, bundle)
    # Passages of one window and of several.
    pairs = [("Where was Elvis born?", text) for texts in PARAGRAPHS.values() for text in (*texts, " ".join(texts * 4))]
    calls = [Answer(question, (passage,), "joint") for question, passage in pairs]
    answers = run_calls(LocalRuntime.load(bundle), "qa", calls, Answered, 64)
    graph, encoder = qa_evaluation.load_extractive_qa(bundle if exported else checkpoint)
    spans = qa_evaluation.find_best_spans(graph, encoder, pairs)
    assert [span.score for span in spans] == pytest.approx([answer.score for answer in answers], abs=1e-3)
    assert [span.text if span.score > 0 else "" for span in spans] == [answer.text for answer in answers]


def test_a_bundle_without_extractive_qa_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    export_bundle(
        {"embedder": RoleOptions(str(backbone.PATH), precision="fp32", allow_unverified=True)}, tmp_path / "b"
    )
    with pytest.raises(ValueError, match="has no extractive QA"):
        qa_evaluation.load_extractive_qa(tmp_path / "b")


def test_the_command_reports_every_set(
    sets: Path, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    (data / "more").mkdir(parents=True)
    (data / qa.ANSWERABLE).symlink_to(sets / qa.ANSWERABLE)
    write_gzipped(data / qa.UNANSWERABLE, UNANSWERABLE)
    (data / "squad2_dev.jsonl.gz").symlink_to(sets / "squad1_dev.jsonl.gz")
    monkeypatch.setattr(qa_evaluation, "is_held_out", lambda title: title == "Amazon_River")
    run("measure-qa", "--source", checkpoint, "--data", data, "--out", tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    counts = {name: report[name]["at_chosen"]["questions"] for name in ("held_out", "held_out_short", "squad2_dev")}
    assert counts == {"held_out": 7, "held_out_short": 7, "squad2_dev": 10}
    assert report["squad2_dev"]["best"]["f1"] >= report["squad2_dev"]["at_0"]["f1"]
