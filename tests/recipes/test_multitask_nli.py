"""The shared backbone with four heads: its loss, its checkpoints, its export."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from transformers import BertForSequenceClassification, BertForTokenClassification

from groundwire.evaluate.twins.edits import EditedSpan
from groundwire.export import ClassifierSettings, Gate, RoleOptions, export_bundle
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Schedule, collate
from groundwire.recipes.compact import multitask_measure, multitask_nli, nli
from groundwire.recipes.compact.multitask_examples import FILL, MultitaskExample, MultitaskExamples
from groundwire.recipes.compact.multitask_model import (
    HEADS,
    IGNORED,
    NOT_ENTAILMENT,
    TOKEN_HEAD,
    TOKEN_LABELS,
    TOKEN_WEIGHTS,
    WEIGHTS,
    MultitaskNLI,
    average_models,
    build_multitask_nli,
    list_untrained_heads,
    load_multitask_nli,
    multitask_loss,
)
from groundwire.recipes.compact.public_pairs import SETS, LabelledPair, PublicPairs
from groundwire.runtime.bundles.manifest import Template, TokenClassifierRole
from tests.support.training_sets import write_gzipped, write_jsonl

SCHEDULE = Schedule(steps=3, batch=6, seed=2, autocast="off")


@pytest.fixture(scope="module")
def trained(sets: Path, tiny_backbone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint after three steps from the tiny backbone."""
    out = tmp_path_factory.mktemp("multitask_nli")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "PATH", tiny_backbone)
        multitask_nli.train_multitask_nli(sets, out, SCHEDULE, measured=40)
    return out


def batch_of(sets: Path, groups: int) -> dict[str, torch.Tensor]:
    examples = MultitaskExamples.read(sets)
    return collate([row for index in range(groups) for row in examples.make(index, random.Random(index))], FILL)


def test_each_row_is_classified_by_the_heads_it_has_labels_for(sets: Path, small: Path) -> None:
    """The loss of a batch from the logits of each row alone."""
    torch.manual_seed(0)
    model = build_multitask_nli().eval()
    batch = batch_of(sets, 24)
    total, tokens, weights = 0.0, 0.0, 0.0
    for row in range(48):
        with torch.inference_mode():
            logits = model(**{name: batch[name][row : row + 1] for name in backbone.INPUTS})
        for name in HEADS:
            label = int(batch[name][row])
            probabilities = logits[name][0].softmax(-1)
            if label != IGNORED:
                chosen = 1 - probabilities[0] if name == "nli" and label == NOT_ENTAILMENT else probabilities[label]
                total -= WEIGHTS[name] * float(chosen.log()) / 48
        for at, label in enumerate(batch[TOKEN_HEAD][row].tolist()):
            if label != IGNORED:
                log_probs = logits[TOKEN_HEAD][0, at].log_softmax(-1)
                tokens -= TOKEN_WEIGHTS[label] * float(log_probs[label])
                weights += TOKEN_WEIGHTS[label]
    expected = total + WEIGHTS[TOKEN_HEAD] * tokens / weights
    assert float(multitask_loss(model, batch).detach()) == pytest.approx(expected, rel=1e-4)


def test_heads_that_are_absent_from_a_batch_cost_nothing(sets: Path, small: Path) -> None:
    torch.manual_seed(0)
    model = build_multitask_nli()
    examples = MultitaskExamples.read(sets)
    batch = collate([row for i in range(4) for row in examples.draw("verifiability", random.Random(i))], FILL)
    loss = multitask_loss(model, batch)
    loss.backward()
    assert torch.isfinite(loss)
    gradients = {name: float(head.weight.grad.abs().sum()) for name, head in model.heads.items()}
    assert gradients.pop("verifiability") > 0
    assert set(gradients.values()) == {0.0}


def test_every_label_of_every_head_occurs(sets: Path, small: Path) -> None:
    batch = batch_of(sets, 400)
    for name, labels in HEADS.items():
        extra = {NOT_ENTAILMENT} if name == "nli" else set()
        assert set(batch[name].tolist()) == {IGNORED, *range(len(labels)), *extra}, name
    assert set(batch[TOKEN_HEAD].flatten().tolist()) == {IGNORED, *range(len(TOKEN_LABELS))}


def test_tokens_in_a_span_have_its_reason_and_only_the_response_has_labels(sets: Path) -> None:
    examples = MultitaskExamples.read(sets)
    span = EditedSpan(19, 23, "date")
    row = examples.encode(MultitaskExample("It was 1935.", "He was born, say, 1936 again.", "x", {}, (span,)))
    assert row is not None
    words = examples._tokens.convert_ids_to_tokens(row["input_ids"])
    labelled = {word: label for word, label in zip(words, row[TOKEN_HEAD], strict=True) if label != IGNORED}
    assert labelled.pop("1936") == TOKEN_LABELS.index("date")
    assert set(labelled.values()) == {0}
    first_end = words.index("[SEP]")
    assert set(row[TOKEN_HEAD][: first_end + 1]) == {IGNORED}
    assert row["nli"] == row["consistency"] == [IGNORED]
    assert examples.encode(MultitaskExample("a " * 400, "b", "x", {}, ()), 64, cut=False) is None


def test_two_rows_of_a_public_set_have_one_premise_and_two_labels() -> None:
    pairs = [LabelledPair("p", "yes", "entailment"), LabelledPair("p", "no", "contradiction")]
    pairs += [LabelledPair(f"q{number}", "maybe", "entailment") for number in range(20)]
    public = PublicPairs({"fever": pairs})
    drawn = [public.draw(random.Random(seed))[1] for seed in range(200)]
    assert all(first.label != second.label for first, second in drawn)
    assert sum(first.premise == second.premise for first, second in drawn) > 120
    with pytest.raises(ValueError, match="There are no public pairs"):
        PublicPairs({})


def test_public_sets_are_read_as_the_table_says(tmp_path: Path) -> None:
    rows = {
        "conflictqa": [
            {"knowledge": "k", "response": "r", "label": 1},
            {"knowledge": "k", "response": "s", "label": 0},
        ],
        "wikisplit": [{"premise": "k", "hypothesis": h, "label": h} for h in ("entailment", "neutral")],
        "halueval": [
            {"knowledge": "It began in 1948.", "history": ["When did it begin?"], "response": "1948", "label": 1},
            {"knowledge": "k", "history": ["q?"], "response": "no", "label": 0},
        ],
        "curriculum": [{"premise": "k", "hypothesis": "h", "label": "not_entailment"}],
    }
    (tmp_path / "more").mkdir()
    for name, lines in rows.items():
        write_gzipped(tmp_path / SETS[name].file, lines)
    public = PublicPairs.read(tmp_path)
    drawn = {(name, pair) for seed in range(300) for name, two in [public.draw(random.Random(seed))] for pair in two}
    assert drawn == {
        ("conflictqa", LabelledPair("k", "r", "entailment")),
        ("conflictqa", LabelledPair("k", "s", "contradiction")),
        ("wikisplit", LabelledPair("k", "entailment", "entailment")),
        ("halueval", LabelledPair("It began in 1948.", "it began in 1948.", "entailment")),
        ("curriculum", LabelledPair("k", "h", "not_entailment")),
    }
    assert not any("claimbuster" in public_set.file for public_set in SETS.values())


def test_the_checkpoints_share_their_backbone(trained: Path, tiny_backbone: Path) -> None:
    models = {name: BertForSequenceClassification.from_pretrained(trained / name) for name in HEADS}
    models[TOKEN_HEAD] = BertForTokenClassification.from_pretrained(trained / TOKEN_HEAD)
    first = models["nli"].bert.state_dict()
    start = build_in(tiny_backbone).bert.state_dict()
    for model in models.values():
        for name, value in model.bert.state_dict().items():
            assert torch.equal(value, first[name]), name
    # Every part was trained but the word embeddings.
    same = {name for name in first if torch.equal(first[name], start[name])}
    assert same == {"embeddings.word_embeddings.weight"}
    for name, labels in {**HEADS, TOKEN_HEAD: TOKEN_LABELS}.items():
        assert tuple(models[name].config.id2label[i] for i in range(len(labels))) == labels
        assert models[name].classifier.weight.shape == (len(labels), 64)


def test_a_checkpoint_gives_the_logits_of_the_multitask_model(small: Path) -> None:
    torch.manual_seed(0)
    model = build_multitask_nli().eval()
    encoded = backbone.load_tokenizer()("Elvis was born in 1935.", "He was born in Tupelo.", return_tensors="pt")
    inputs = {name: encoded[name] for name in backbone.INPUTS}
    said = model(**inputs)
    for name in (*HEADS, TOKEN_HEAD):
        torch.testing.assert_close(model.classifier(name)(**inputs).logits, said[name])


def test_an_average_is_between_its_models(small: Path) -> None:
    first, second = build_multitask_nli(), build_multitask_nli()
    torch.nn.init.ones_(second.heads["nli"].weight)
    average = average_models(first, second, 0.25).state_dict()["heads.nli.weight"]
    torch.testing.assert_close(average, 0.75 * first.heads["nli"].weight + 0.25)
    with pytest.raises(ValueError, match=r"share is 1\.5"):
        average_models(first, second, 1.5)


def test_the_report_measures_every_head(trained: Path) -> None:
    report = json.loads((trained / "report.json").read_text())
    assert (report["steps"], report["seed"]) == (3, 2)
    assert [report[name]["examples"] for name in HEADS] == [40, 40, 40]
    assert report["minimal"]["pairs"] == 40
    assert 0 <= report["minimal"]["token_f1"] <= 1
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


def test_a_run_can_start_from_the_heads_of_another(small: Path, trained: Path, tmp_path: Path) -> None:
    model = build_multitask_nli(trained)
    for name in (*HEADS, TOKEN_HEAD):
        assert torch.equal(model.heads[name].weight, model.classifier(name).classifier.weight)
    state = torch.load(trained / "checkpoint.pt", weights_only=True)["model"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
        assert torch.equal(load_multitask_nli(trained).state_dict()[name], state[name]), name
    (tmp_path / "heads").mkdir()
    for name in ("nli", "consistency"):
        (tmp_path / "heads" / name).symlink_to(trained / name)
    assert list_untrained_heads(tmp_path / "heads") == ["verifiability", TOKEN_HEAD]
    assert list_untrained_heads(trained) == []


def test_heads_of_two_runs_are_refused(small: Path, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "nli").symlink_to(trained / "nli")
    MultitaskNLI(build_multitask_nli().bert, HEADS).classifier("consistency").save_pretrained(tmp_path / "consistency")
    with pytest.raises(ValueError, match="has another backbone than"):
        build_multitask_nli(tmp_path)
    with pytest.raises(ValueError, match="holds no checkpoint"):
        build_multitask_nli(tmp_path / "consistency" / "none")


def test_development_rows_with_the_knowledge_of_the_test_set_are_left_out(
    sets: Path, small: Path, tmp_path: Path
) -> None:
    rows = [{"knowledge": k, "response": "It is hot.", "label": n % 2} for n, k in enumerate(["One  town.", "b", "c"])]
    for name in multitask_measure.DEVELOPMENT:
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
    write_jsonl(tmp_path / "begin_wow_test.jsonl", [{"knowledge": "one town."}])
    report = multitask_measure.measure_development_sets(
        build_multitask_nli(), MultitaskExamples.read(sets, "dev"), tmp_path
    )
    assert {name: figures["rows"] for name, figures in report.items()} == {"fever_symmetric_dev": 3, "begin_wow_dev": 2}


@pytest.mark.slow
def test_a_bundle_holds_the_backbone_once(trained: Path, tmp_path: Path) -> None:
    heads = {"nli": "nli", "detector.consistency": "consistency", "detector.verifiability": "verifiability"}
    heads["token_classifier"] = TOKEN_HEAD
    options = {
        role: RoleOptions(
            str(trained / head),
            ClassifierSettings(template=Template("{hypothesis}")) if head == "verifiability" else None,
            precision="int8",
            gate=Gate(decision_agreement=0, max_error=10),
        )
        for role, head in heads.items()
    }
    single = export_bundle({"nli": options["nli"]}, tmp_path / "one")
    multitask = export_bundle(options, tmp_path / "four")
    sizes = [bundle.manifest.files["weights.bin"].bytes for bundle in (single, multitask)]
    # The matrix of the token head is large enough to be stored beside the backbone.
    assert sizes[1] - sizes[0] == len(TOKEN_LABELS) * 64 * 4
    role = multitask.manifest.roles["token_classifier"]
    assert isinstance(role, TokenClassifierRole)
    assert (role.labels, role.supported) == (TOKEN_LABELS, "supported")


def build_in(tiny_backbone: Path) -> MultitaskNLI:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "PATH", tiny_backbone)
        return build_multitask_nli()


def test_the_tokenizer_gives_token_types_whatever_transformers_defaults_to(small: Path) -> None:
    tokens = backbone.load_tokenizer()
    assert tuple(tokens.model_input_names) == backbone.INPUTS
    assert set(tokens("It is hot.", "It is cold.")["token_type_ids"]) == {0, 1}
