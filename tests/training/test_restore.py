"""A bundle's graphs as checkpoints again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertForQuestionAnswering, BertForSequenceClassification

from groundwire.export import RoleOptions, export_bundle
from groundwire.train.common import backbone, restore


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
        with pytest.raises(ValueError, match="give its extractive QA role or a classifier"):
            restore.restore_checkpoint(checkpoints / "bundle", name)
