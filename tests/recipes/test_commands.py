"""The recipes as commands: what a user types ends in a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import spacy
from transformers import AutoTokenizer, BertForSequenceClassification, GPT2LMHeadModel

from groundwire.recipes.compact.lm import POSITIONS
from groundwire.recipes.compact.multitask_model import HEADS, TOKEN_HEAD
from tests.support.training_commands import run
from tests.support.training_sets import DIALOGUES, write_jsonl


def test_detector(tiny_backbone: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": name} for name in ("Ohio", "Naples")])
    nlp.to_disk(tmp_path / "spans")
    dialogues = write_jsonl(
        tmp_path / "dialogues.jsonl", [{**row, "dialogue": str(i)} for i, row in enumerate(DIALOGUES * 3)]
    )
    common = (
        "detector",
        "--base",
        tiny_backbone,
        "--dialogues",
        dialogues,
        "--spans",
        tmp_path / "spans",
        "--epochs",
        1,
    )
    run(*common, "--out", tmp_path / "out", "--seed", 5)
    assert BertForSequenceClassification.from_pretrained(tmp_path / "out").config.num_labels == 2
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["seed"], report["conv_fever"]["swap_knowledge"]) == (5, 6)


@pytest.mark.slow
def test_multitask_nli_and_lm(sets: Path, small: Path, tmp_path: Path) -> None:
    run("multitask-nli", "--data", sets, "--out", tmp_path / "multitask_nli", "--steps", 1)
    assert {path.name for path in (tmp_path / "multitask_nli").iterdir() if path.is_dir()} == {*HEADS, TOKEN_HEAD}
    start = tmp_path / "multitask_nli" / "nli"
    run("multitask-nli", "--data", sets, "--out", tmp_path / "again", "--steps", 1, "--start", start)
    report = tmp_path / "report.json"
    run("measure-multitask-nli", "--source", start.parent, "--data", sets, "--count", 20, "--out", report)
    assert json.loads(report.read_text())["untrained"] == []
    run("lm", "--data", sets, "--out", tmp_path / "lm", "--steps", 1)
    assert GPT2LMHeadModel.from_pretrained(tmp_path / "lm").config.n_layer == 4
    # The exporter takes the window from here.
    assert AutoTokenizer.from_pretrained(tmp_path / "lm").model_max_length == POSITIONS
