"""The shared backbone with three heads: its loss, its checkpoints, its export."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from transformers import BertForSequenceClassification

from groundwire.export import Gate, RoleOptions, export_bundle
from groundwire.runtime.manifest import Template
from groundwire.train.common import backbone
from groundwire.train.common.loop import Schedule, collate
from groundwire.train.compact import multitask_nli, nli
from groundwire.train.compact.multitask_nli import (
    HEADS,
    MultitaskExamples,
    MultitaskNLI,
    build_multitask_nli,
    multitask_loss,
)

SCHEDULE = Schedule(steps=3, batch=6, seed=2, autocast="off")


@pytest.fixture(scope="module")
def trained(sets: Path, tiny_backbone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint after three steps from the tiny backbone."""
    out = tmp_path_factory.mktemp("multitask_nli")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "PATH", tiny_backbone)
        multitask_nli.train_multitask_nli(sets, out, SCHEDULE, measured=40)
    return out


def batch_of(sets: Path, rows: int) -> dict[str, torch.Tensor]:
    examples = MultitaskExamples.read(sets)
    return collate([examples.make(index, random.Random(index)) for index in range(rows)], multitask_nli.FILL)


def test_each_example_is_classified_by_its_own_head(sets: Path, small: Path) -> None:
    torch.manual_seed(0)
    model = build_multitask_nli().eval()
    batch = batch_of(sets, 24)
    assert set(batch["head"].tolist()) == {0, 1, 2}
    each = []
    for row in range(24):
        example = {name: batch[name][row : row + 1] for name in batch}
        name = list(HEADS)[int(example["head"])]
        logits = model(**{key: example[key] for key in backbone.INPUTS})[name]
        each.append(torch.nn.functional.cross_entropy(logits, example["labels"]))
    torch.testing.assert_close(multitask_loss(model, batch), torch.stack(each).mean())


def test_heads_that_are_absent_from_a_batch_cost_nothing(sets: Path, small: Path) -> None:
    torch.manual_seed(0)
    model = build_multitask_nli()
    batch = batch_of(sets, 24)
    of_one_head = {name: value[batch["head"] == 1] for name, value in batch.items()}
    multitask_loss(model, of_one_head).backward()
    assert float(model.heads["consistency"].weight.grad.abs().sum()) > 0
    assert float(model.heads["nli"].weight.grad.abs().sum()) == 0


def test_the_checkpoints_share_their_backbone(trained: Path, tiny_backbone: Path) -> None:
    models = {name: BertForSequenceClassification.from_pretrained(trained / name) for name in HEADS}
    first = models["nli"].bert.state_dict()
    start = build_in(tiny_backbone).bert.state_dict()
    for model in models.values():
        for name, value in model.bert.state_dict().items():
            assert torch.equal(value, first[name]), name
    # Every part was trained but the word embeddings.
    same = {name for name in first if torch.equal(first[name], start[name])}
    assert same == {"embeddings.word_embeddings.weight"}
    for name, labels in HEADS.items():
        assert tuple(models[name].config.id2label[i] for i in range(len(labels))) == labels
        assert models[name].classifier.weight.shape == (len(labels), 64)


def test_a_checkpoint_gives_the_logits_of_the_multitask_model(small: Path) -> None:
    torch.manual_seed(0)
    model = build_multitask_nli().eval()
    encoded = backbone.load_tokenizer()("Elvis was born in 1935.", "He was born in Tupelo.", return_tensors="pt")
    inputs = {name: encoded[name] for name in backbone.INPUTS}
    said = model(**inputs)
    for name in HEADS:
        torch.testing.assert_close(model.classifier(name)(**inputs).logits, said[name])


def test_the_report_measures_every_head(trained: Path) -> None:
    report = json.loads((trained / "report.json").read_text())
    assert (report["steps"], report["seed"]) == (3, 2)
    assert [report[name]["examples"] for name in HEADS] == [40, 40, 40]
    assert 0 <= report["consistency"]["roc_auc"] <= 1
    assert "consistent" in report["consistency"]["by_kind"]


def test_a_run_on_the_same_seed_is_the_same(sets: Path, small: Path, trained: Path, tmp_path: Path) -> None:
    multitask_nli.train_multitask_nli(sets, tmp_path, SCHEDULE, measured=40)
    for name in HEADS:
        weights = Path(name) / "model.safetensors"
        assert (tmp_path / weights).read_bytes() == (trained / weights).read_bytes()


def test_what_nli_has_learnt_can_be_the_start(sets: Path, small: Path, tmp_path: Path) -> None:
    nli.train_nli(sets, tmp_path / "nli", Schedule(steps=2, batch=2, autocast="off"))
    former = BertForSequenceClassification.from_pretrained(tmp_path / "nli").eval()
    encoded = backbone.load_tokenizer()("It is hot.", "It is cold.", return_tensors="pt")
    inputs = {name: encoded[name] for name in backbone.INPUTS}
    torch.testing.assert_close(build_multitask_nli(tmp_path / "nli").eval()(**inputs)["nli"], former(**inputs).logits)


def test_a_start_with_other_labels_is_refused(small: Path, trained: Path) -> None:
    with pytest.raises(ValueError, match=r"has the labels \('consistent', 'inconsistent'\)"):
        build_multitask_nli(trained / "consistency")


@pytest.mark.slow
def test_a_bundle_holds_the_backbone_once(trained: Path, tmp_path: Path) -> None:
    heads = {"nli": "nli", "detector.consistency": "consistency", "detector.verifiability": "verifiability"}
    options = {
        role: RoleOptions(
            str(trained / head),
            precision="int8",
            template=Template("{hypothesis}") if head == "verifiability" else None,
            gate=Gate(decision_agreement=0, max_error=10),
        )
        for role, head in heads.items()
    }
    single = export_bundle({"nli": options["nli"]}, tmp_path / "one")
    multitask = export_bundle(options, tmp_path / "three")
    sizes = [bundle.manifest.files["weights.bin"].bytes for bundle in (single, multitask)]
    assert sizes[0] == sizes[1]


def build_in(tiny_backbone: Path) -> MultitaskNLI:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "PATH", tiny_backbone)
        return build_multitask_nli()
