"""A bundle's graphs as checkpoints again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertForQuestionAnswering, BertForSequenceClassification, BertModel, GPT2LMHeadModel

from groundwire.export import QuestionGeneratorSettings, RoleOptions, export_bundle
from groundwire.recipes.common import backbone, restore
from groundwire.recipes.common.loop import Schedule
from groundwire.recipes.compact.lm import build_language_model
from groundwire.recipes.compact.qg import build_question_generator, choose_layers, train_question_generator
from groundwire.runtime.bundles.manifest import Template
from tests.support.training_commands import run


@pytest.fixture
def checkpoints(small: Path, tmp_path: Path) -> Path:
    for name, kind, more in (
        ("qa", BertForQuestionAnswering, {}),
        ("nli", BertForSequenceClassification, {"num_labels": 3}),
    ):
        torch.manual_seed(1)
        model = kind.from_pretrained(small, **more)
        if name == "nli":
            model.config.id2label = {0: "entailment", 1: "neutral", 2: "contradiction"}
        model.save_pretrained(tmp_path / name)
        backbone.load_tokenizer().save_pretrained(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_weights_come_back(checkpoints: Path, precision: str) -> None:
    roles = {
        name: RoleOptions(str(checkpoints / name), precision=precision, allow_unverified=True)  # type: ignore[arg-type]
        for name in ("qa", "nli")
    }
    export_bundle(roles, checkpoints / "bundle")
    for name, kind in (("qa", BertForQuestionAnswering), ("nli", BertForSequenceClassification)):
        original = kind.from_pretrained(checkpoints / name).state_dict()
        restore.write_restored_checkpoint(checkpoints / "bundle", name, checkpoints / "again" / name)
        restored = kind.from_pretrained(checkpoints / "again" / name).state_dict()
        assert restored.keys() == original.keys()
        for key, tensor in original.items():
            peak = tensor.abs().amax(dim=-1, keepdim=True) if tensor.ndim == 2 else torch.zeros(1)
            # int8 is at most half a step of its row away.
            bound = 1e-7 if precision == "fp32" else peak / 127 * 0.51 + 1e-7
            assert bool(((restored[key] - tensor).abs() <= bound).all()), key
        moved = [key for key in original if not np.array_equal(original[key], restored[key])]
        assert bool(moved) == (precision == "int8")
        assert not any("word_embeddings" in key for key in moved)


def test_only_readers_and_classifiers(checkpoints: Path) -> None:
    export_bundle(
        {"embedder": RoleOptions(str(backbone.PATH), precision="fp32", allow_unverified=True)}, checkpoints / "bundle"
    )
    for name in ("embedder", "nli"):
        with pytest.raises(ValueError, match="give its extractive QA role, a classifier"):
            restore.restore_checkpoint(checkpoints / "bundle", name)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_question_generator_comes_back(small: Path, tmp_path: Path, precision: str) -> None:
    torch.manual_seed(1)
    original = build_question_generator(2)
    with torch.no_grad():
        # Equal weights, as before any training, would be stored once.
        for parameter in original.parameters():
            parameter += 0.02 * torch.randn_like(parameter)
        original.get_input_embeddings().weight.copy_(BertModel.from_pretrained(small).embeddings.word_embeddings.weight)
        original.decoder.tie_weights()
        original.decoder.get_input_embeddings().weight.copy_(original.get_input_embeddings().weight)
    original.save_pretrained(tmp_path / "qg")
    backbone.load_tokenizer().save_pretrained(tmp_path / "qg")
    options = RoleOptions(
        str(tmp_path / "qg"),
        QuestionGeneratorSettings(Template("{answer}", "{context}")),
        precision=precision,  # type: ignore[arg-type]
        allow_unverified=True,
    )
    export_bundle({"qg": options}, tmp_path / "bundle")
    run("restore", "--bundle", tmp_path / "bundle", "--role", "qg", "--out", tmp_path / "again")
    restored = build_question_generator(2, tmp_path / "again").state_dict()
    assert restored.keys() == original.state_dict().keys()
    for key, tensor in original.state_dict().items():
        peak = tensor.abs().amax(dim=-1, keepdim=True) if tensor.ndim == 2 else torch.zeros(1)
        # Biases of int8 graphs may have the means of the activations folded in.
        bound = 1e-7 if precision == "fp32" else peak / 127 * 0.51 + 1e-7
        assert bool(((restored[key] - tensor).abs() <= bound).all()), key


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_language_model_comes_back(tmp_path: Path, precision: str) -> None:
    tokens = backbone.load_tokenizer()
    torch.manual_seed(1)
    original = build_language_model(torch.ones(len(tokens)), layers=2, positions=128)
    with torch.no_grad():
        for name, parameter in original.named_parameters():
            if "wte" not in name:
                parameter += 0.02 * torch.randn_like(parameter)
    original.save_pretrained(tmp_path / "lm")
    tokens.save_pretrained(tmp_path / "lm")
    options = RoleOptions(str(tmp_path / "lm"), precision=precision, allow_unverified=True)  # type: ignore[arg-type]
    export_bundle({"lm": options}, tmp_path / "bundle")
    run("restore", "--bundle", tmp_path / "bundle", "--role", "lm", "--out", tmp_path / "again")
    restored = GPT2LMHeadModel.from_pretrained(tmp_path / "again")
    assert restored.config.n_positions == 512
    assert restored.state_dict().keys() == original.state_dict().keys()
    for key, tensor in original.state_dict().items():
        # The matrices have their inputs first, the positions their rows.
        by = -1 if "wpe" in key else 0
        peak = tensor.abs().amax(dim=by, keepdim=True) if tensor.ndim == 2 else tensor.abs().max()
        bound = 1e-6 if precision == "fp32" else peak / 127 * 0.51 + 1e-6
        assert bool(((restored.state_dict()[key] - tensor).abs() <= bound).all()), key


def test_a_smaller_decoder_starts_from_a_larger_one(sets: Path, small: Path, tmp_path: Path) -> None:
    schedule = Schedule(steps=1, batch=4)
    train_question_generator(sets, tmp_path / "three", schedule)
    train_question_generator(sets, tmp_path / "two", schedule, layers=2, start=tmp_path / "three")
    assert len(build_question_generator(2, tmp_path / "two").decoder.bert.encoder.layer) == 2
    larger, smaller = (build_question_generator(n, tmp_path / "three").decoder.bert.encoder.layer for n in (3, 2))
    assert torch.equal(larger[2].intermediate.dense.weight, smaller[1].intermediate.dense.weight)
    with pytest.raises(ValueError, match=r"4 layers cannot start from 3; give 1 to 3\."):
        choose_layers(4, 3)
