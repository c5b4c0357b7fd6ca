"""Detectors and token classifiers: their labels, templates and separators, against transformers' own pipelines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    RobertaForSequenceClassification,
    RobertaModel,
    pipeline,
)

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import DetectorExplanation
from groundwire.export import (
    PRESETS,
    ClassifierSettings,
    JudgeSettings,
    RoleOptions,
    TokenClassifierSettings,
    export_role,
    labels,
    preset,
)
from groundwire.export.roles.registry import find_kind
from groundwire.runtime.bundles.manifest import ClassifierRole, TokenClassifierRole, fields_of
from groundwire.runtime.errors import ExportError
from tests.support import models

Folder = Callable[[str, str], Path]
SENTENCES = list(models.sentences())
VITAMINC = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (VITAMINC, ("SUPPORTS",)),
        (("CORRECT", "INCORRECT"), ("CORRECT",)),
        (("entailment", "neutral", "contradiction"), ("entailment",)),
        (("faithful", "hallucinated"), ("faithful",)),
        (("unsupported", "supported"), ("supported",)),
        (("inconsistent", "consistent"), ("consistent",)),
    ],
)
def test_supported_labels_by_their_usual_names(given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert labels.find_supported_labels("detector.x", given, None) == expected


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        (("yes", "no"), None, "names do not show"),
        (("yes", "no"), ("maybe",), "maybe"),
        (("yes", "no"), ("yes", "no"), "names do not show"),
        (("supported", "correct"), None, "names do not show"),
    ],
)
def test_labels_are_never_guessed(names: tuple[str, ...], given: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        labels.find_supported_labels("detector.x", names, given)


@pytest.mark.parametrize("family", ["albert", "bert", "roberta", "deberta"])
def test_a_detector_says_what_the_pipeline_says(tmp_path: Path, family: str) -> None:
    source = models.classifier(tmp_path / "checkpoint", family, labels=VITAMINC, seed=2)
    bundle = export_role("detector.v", RoleOptions(str(source), precision="fp32"), tmp_path / "bundle")
    reference = pipeline("text-classification", model=str(source), top_k=None, device="cpu")
    decisions = set()
    with Engine.load(bundle.directory, device="cpu", threads=1) as engine:
        for knowledge, response in zip(SENTENCES, SENTENCES[3:] + SENTENCES[:3], strict=True):
            score = engine.score(response, knowledge, metrics=["detector.v"])
            expected = {
                prediction["label"]: prediction["score"]
                for prediction in reference({"text": knowledge, "text_pair": response})
            }
            explanation = score.metrics["detector.v"].explanation
            assert isinstance(explanation, DetectorExplanation)
            (unit,) = explanation.scored
            assert unit.probabilities == pytest.approx(expected, abs=1e-5)
            assert score.value == pytest.approx(expected["SUPPORTS"], abs=1e-5)
            assert explanation.decision == (
                "consistent" if max(expected, key=lambda name: expected[name]) == "SUPPORTS" else "inconsistent"
            )
            decisions.add(explanation.decision)
    assert decisions == {"consistent", "inconsistent"}


@torch.no_grad()
def test_one_separator_is_the_text_joined_by_the_end_token(tmp_path: Path) -> None:
    source = models.classifier(tmp_path / "checkpoint", "roberta", labels=("unsupported", "supported"))
    options = RoleOptions(str(source), ClassifierSettings(one_separator=True, unit="sentence"), precision="fp32")
    bundle = export_role("detector.m", options, tmp_path / "bundle")
    role = bundle.manifest.roles["detector.m"]
    assert isinstance(role, ClassifierRole)
    assert (role.unit, role.supported) == ("sentence", ("supported",))
    model = AutoModelForSequenceClassification.from_pretrained(source).eval()
    tokenizer = AutoTokenizer.from_pretrained(source)
    with Engine.load(bundle.directory, device="cpu", threads=1) as engine:
        for document, claim in zip(SENTENCES[:12], SENTENCES[4:16], strict=True):
            inputs = tokenizer(tokenizer.eos_token.join((document, claim)), return_tensors="pt")
            expected = model(**inputs).logits[0].double().softmax(-1)[1].item()
            score = engine.score(claim, document, metrics=["detector.m"])
            assert score.value == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", list(models.TOKEN_CLASSIFIERS))
def test_token_classifiers_export(tmp_path: Path, family: str, precision: str) -> None:
    source = models.token_classifier(tmp_path / "checkpoint", family)
    options = RoleOptions(str(source), precision=precision)  # type: ignore[arg-type]
    role = export_role("token_classifier", options, tmp_path / "bundle").manifest.roles["token_classifier"]
    assert isinstance(role, TokenClassifierRole)
    assert (role.labels, role.supported) == (models.FLAGS, "supported")
    assert role.parity is not None
    assert role.parity.gate == "passed"
    assert role.parity.decision_agreement >= 0.97
    assert np.isfinite(role.parity.max_logit_error)


PARTS = ("paper-q2", "paper-pmi", "paper-detectors")


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"paper-q2", "paper-q2-small", "paper-pmi", "paper-all"}))
def test_presets_name_roles_that_exist(name: str) -> None:
    roles = preset(name)
    assert roles
    for role, options in roles.items():
        assert find_kind(role).name in ("classifier", "judge", "token_classifier")
        kind = options.kind
        assert kind is None or isinstance(kind, ClassifierSettings | TokenClassifierSettings | JudgeSettings)
        if kind is not None and kind.labels and role != "nli":
            assert labels.find_supported_labels(role, kind.labels, kind.supported)
        if isinstance(kind, JudgeSettings):
            text = kind.template.first if kind.template else "".join(text for _, text in kind.messages)
            assert sorted(fields_of(text)) == ["hypothesis", "premise"]


def test_one_preset_has_the_models_of_all_papers() -> None:
    everything = preset("paper-all")
    for name in PARTS:
        assert {role: everything[role] for role in preset(name)} == preset(name)
    assert set(everything) - {role for name in PARTS for role in preset(name)} == {"embedder"}


ONE_LOGIT = ("bert", "roberta", "albert", "deberta", "modernbert", "qwen3")


@pytest.mark.parametrize("family", ONE_LOGIT)
@torch.no_grad()
def test_one_logit_is_a_sigmoid(tmp_path: Path, family: str) -> None:
    source = models.classifier(tmp_path / "checkpoint", family, labels=("LABEL_0",), seed=2)
    settings = ClassifierSettings(supported=("relevant",))
    bundle = export_role("detector.rerank", RoleOptions(str(source), settings, precision="fp32"), tmp_path / "bundle")
    role = bundle.manifest.roles["detector.rerank"]
    assert isinstance(role, ClassifierRole)
    assert (role.labels, role.supported) == (("not relevant", "relevant"), ("relevant",))
    model = AutoModelForSequenceClassification.from_pretrained(source, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(source)
    values = []
    with Engine.load(bundle.directory, device="cpu", threads=1) as engine:
        for document, claim in zip(SENTENCES[:12], SENTENCES[4:16], strict=True):
            (logit,) = model(**tokenizer(document, claim, return_tensors="pt")).logits[0]
            values.append(engine.score(claim, document, metrics=["detector.rerank"]).value)
            assert values[-1] == pytest.approx(logit.double().sigmoid().item(), abs=1e-5)
    assert np.std(values) > 1e-3


@pytest.mark.parametrize(
    ("name", "chosen", "supported", "expected"),
    [
        ("relevant", None, None, ("not relevant", "relevant")),
        ("LABEL_0", ("relevant",), None, ("not relevant", "relevant")),
        ("LABEL_0", ("hallucinated", "consistent"), ("consistent",), ("hallucinated", "consistent")),
        ("LABEL_0", None, ("relevant",), ("not relevant", "relevant")),
    ],
)
def test_one_logit_is_named(
    name: str, chosen: tuple[str, ...] | None, supported: tuple[str, ...] | None, expected: tuple[str, str]
) -> None:
    assert labels.name_one_logit("detector.x", name, chosen, supported) == expected


@pytest.mark.parametrize(("chosen", "message"), [(None, "low and of a high one"), (("a", "b", "c"), "one logit")])
def test_the_meaning_of_one_logit_is_never_guessed(chosen: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        labels.name_one_logit("detector.x", "LABEL_0", chosen, None)


@pytest.mark.parametrize("labels_of", [VITAMINC, ("LABEL_0",)])
@pytest.mark.parametrize("family", ["t5", "bart"])
@torch.no_grad()
def test_an_encoder_decoder_classifies_pairs(tmp_path: Path, family: str, labels_of: tuple[str, ...]) -> None:
    source = models.classifier(tmp_path / "checkpoint", family, labels=labels_of, seed=2)
    settings = ClassifierSettings(supported=("SUPPORTS",))
    bundle = export_role("detector.v", RoleOptions(str(source), settings, precision="fp32"), tmp_path / "bundle")
    model = AutoModelForSequenceClassification.from_pretrained(source, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(source)
    values = []
    with Engine.load(bundle.directory, device="cpu", threads=1) as engine:
        for document, claim in zip(SENTENCES[:12], SENTENCES[4:16], strict=True):
            logits = model(**tokenizer(document, claim, return_tensors="pt")).logits[0].double()
            expected = logits.sigmoid() if len(labels_of) == 1 else logits.softmax(-1)
            values.append(engine.score(claim, document, metrics=["detector.v"]).value)
            assert values[-1] == pytest.approx(expected[0].item(), abs=1e-5)
    assert np.std(values) > 1e-3


@pytest.mark.parametrize(
    ("names", "head"),
    [(("aligned", "other", "another"), "tri_layer"), (("not aligned", "aligned"), "bin_layer")],
)
@torch.no_grad()
def test_alignscore_is_read_with_the_head_of_its_labels(tmp_path: Path, names: tuple[str, ...], head: str) -> None:
    folder = models.classifier(tmp_path / "roberta", "roberta", labels=names, seed=2)
    encoder = RobertaModel.from_pretrained(folder).eval()
    classifier = RobertaForSequenceClassification.from_pretrained(folder).classifier
    encoder.pooler.dense.load_state_dict(classifier.dense.state_dict())
    layers = {name: torch.nn.Linear(models.HIDDEN, size) for name, size in (("bin_layer", 2), ("tri_layer", 3))}
    weights = {f"base_model.{name}": value for name, value in encoder.state_dict().items()}
    for name, layer in layers.items():
        weights |= {f"{name}.{part}": value for part, value in layer.state_dict().items()}
    weights["mlm_head.bias"] = torch.zeros(3)
    file = tmp_path / "AlignScore-base.ckpt"
    torch.save({"state_dict": weights, "hyper_parameters": {"model": str(folder)}}, file)
    settings = ClassifierSettings(names, ("aligned",), unit="sentence", aggregation="mean")
    bundle = export_role("detector.align", RoleOptions(str(file), settings, precision="fp32"), tmp_path / "bundle")
    role = bundle.manifest.roles["detector.align"]
    assert isinstance(role, ClassifierRole)
    assert (role.unit, role.aggregation, role.source) == ("sentence", "mean", "AlignScore-base.ckpt")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    values = []
    with Engine.load(bundle.directory, device="cpu", threads=1) as engine:
        for document, claim in zip(SENTENCES[:12], SENTENCES[4:16], strict=True):
            pooled = encoder(**tokenizer(document, claim, return_tensors="pt")).pooler_output
            expected = layers[head](pooled)[0].double().softmax(-1)[names.index("aligned")]
            values.append(engine.score(claim, document, metrics=["detector.align"]).metrics["detector.align"])
            assert values[-1].explanation.scored[0].supported == pytest.approx(expected.item(), abs=1e-5)  # type: ignore[union-attr]


def test_alignscore_asks_for_its_labels(tmp_path: Path) -> None:
    file = tmp_path / "AlignScore-base.ckpt"
    torch.save({"state_dict": {}}, file)
    for settings, message in (
        (ClassifierSettings(), "Name them"),
        (ClassifierSettings(("aligned", "other", "another"), ("aligned",)), "names no model"),
    ):
        with pytest.raises(ExportError, match=message):
            export_role("detector.align", RoleOptions(str(file), settings), tmp_path / "bundle")
