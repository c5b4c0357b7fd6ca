"""The paper's detector: its files, its two stages, its preset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertForSequenceClassification

from groundwire.recipes.conv_fever import detector
from groundwire.recipes.conv_fever.corpus import CorpusRecord
from groundwire.recipes.conv_fever.detector import LABELS, DetectorPreset, read_fever
from groundwire.recipes.conv_fever.dialogues import read_labelled_dialogues
from tests.support.training_sets import DIALOGUES, write_jsonl

FEVER = [
    {"claim": "Elvis was born in 1935.", "evidence": "Elvis Presley was born in Tupelo in 1935.", "label": "SUPPORTS"},
    {"claim": "Elvis was a boxer.", "evidence": ["Elvis sang.", "He was no boxer."], "label": "REFUTES"},
    {"claim": "Elvis had a cat.", "evidence": "Elvis sang.", "label": "NOT ENOUGH INFO"},
    {"claim": "Elvis is gone.", "evidence": [], "label": "SUPPORTS"},
]


def entities(text: str) -> list[tuple[str, str]]:
    return [(name, "GPE") for name in ("Ohio", "Naples") if name in text]


def test_the_preset_is_the_papers() -> None:
    preset = DetectorPreset()
    assert (preset.lr, preset.batch, preset.epochs) == (2e-5, 16, 4)
    schedule = preset.schedule(67_076)
    assert (schedule.steps, schedule.batch, schedule.warmup, schedule.weight_decay) == (16_768, 16, 0.0, 0.0)


def test_fever_gives_supported_and_refuted_claims(tmp_path: Path) -> None:
    assert read_fever(write_jsonl(tmp_path / "fever.jsonl", FEVER)) == [
        ("Elvis Presley was born in Tupelo in 1935.", "Elvis was born in 1935.", "consistent"),
        ("Elvis sang. He was no boxer.", "Elvis was a boxer.", "inconsistent"),
    ]


def test_dialogues_give_records_and_inconsistent_pairs(tmp_path: Path) -> None:
    records, pairs = read_labelled_dialogues(write_jsonl(tmp_path / "dialogues.jsonl", DIALOGUES))
    assert records == [
        CorpusRecord(("Hi.",), "The guitar is an instrument in Ohio.", "It is in Ohio.", "a"),
        CorpusRecord(("Food?",), "Pizza is from Naples. It was sold.", "From Naples!"),
        CorpusRecord((), "Huskies pull sleds.", "They were bred."),
    ]
    assert pairs == [
        ("Huskies pull sleds.", "They can swim.", "inconsistent"),
        ("The ship sank.", "It swam.", "inconsistent"),
    ]


def test_another_label_is_refused_with_its_row(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [*DIALOGUES, {"knowledge": "a", "response": "b", "label": "maybe"}])
    with pytest.raises(ValueError, match=r"d\.jsonl, row 6: label 'maybe'; give 1 or 'consistent'"):
        read_labelled_dialogues(path)


def test_both_stages_train_one_model(tiny_backbone: Path, tmp_path: Path) -> None:
    fever = write_jsonl(tmp_path / "fever.jsonl", FEVER)
    dialogues = write_jsonl(tmp_path / "dialogues.jsonl", DIALOGUES)
    preset = DetectorPreset(lr=1e-2, batch=2, epochs=1, max_tokens=64)
    torch.manual_seed(0)
    detector.train_detector(str(tiny_backbone), dialogues, tmp_path / "out", entities, fever, preset)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["fever"] == {"consistent": 1, "inconsistent": 1}
    assert report["conv_fever"] == {
        "consistent": 3,
        "pair_response": 3,
        "pair_knowledge": 3,
        "negate_response": 2,
        "negate_knowledge": 2,
        "swap_knowledge": 2,
    }
    logs = [(tmp_path / "out" / folder / "log.jsonl").read_text() for folder in ("fever", ".")]
    # Two claims; fifteen examples of the corpus and two inconsistent rows.
    assert [json.loads(log.splitlines()[-1])["step"] for log in logs] == [1, 8]
    model = BertForSequenceClassification.from_pretrained(tmp_path / "out")
    assert tuple(model.config.id2label.values()) == LABELS
    after_fever = torch.load(tmp_path / "out" / "fever" / "checkpoint.pt", weights_only=True)["model"]
    assert not torch.equal(after_fever["classifier.weight"], model.classifier.weight)
    encoded = AutoTokenizer.from_pretrained(tmp_path / "out")("The ship sank.", "It sank.", return_tensors="pt")
    assert model(**encoded).logits.shape == (1, 2)
    # Called again, both stages are complete, and the model is the same.
    detector.train_detector(str(tiny_backbone), dialogues, tmp_path / "out", entities, fever, preset)
    again = BertForSequenceClassification.from_pretrained(tmp_path / "out")
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))


def test_kinds_that_the_input_does_not_show_can_be_left_out(tiny_backbone: Path, tmp_path: Path) -> None:
    dialogues = write_jsonl(tmp_path / "dialogues.jsonl", DIALOGUES)
    preset = DetectorPreset(batch=2, epochs=1, max_tokens=64)
    detector.train_detector(
        str(tiny_backbone), dialogues, tmp_path, entities, None, preset, ("consistent", "pair_response")
    )
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["conv_fever"] == {"consistent": 3, "pair_response": 3}
    assert "fever" not in report
