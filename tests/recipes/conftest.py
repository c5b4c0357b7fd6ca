"""Training sets in miniature, in the formats of the real ones, and a tiny backbone in place of MiniLM."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

import torch
from transformers import BertConfig, BertModel

from groundwire.recipes.common import backbone
from groundwire.recipes.compact import lm, multitask_measure
from tests.support.models import word_pieces
from tests.support.training_sets import CONLLU, INFERENCE, PARAGRAPHS, QUESTIONS, TURNS, write_gzipped


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of training sets."""
    root = tmp_path_factory.mktemp("sets")
    squad = [
        {
            "title": title,
            "paragraph": number,
            "context": text,
            "qas": [
                {"question": question, "answers": [answer], "answerable": True}
                for question, answer in QUESTIONS[title, number]
            ],
        }
        for title, texts in PARAGRAPHS.items()
        for number, text in enumerate(texts)
    ]
    pairs = [{"source": "x", "premise": p, "hypothesis": h, "label": label} for p, h, label in INFERENCE]
    for split in ("train", "dev"):
        write_gzipped(root / f"squad1_{split}.jsonl.gz", squad)
        write_gzipped(root / f"nli_{split}.jsonl.gz", pairs)
    held_out = {"id": "t_2", "split": "test_freq", "turns": ["The held out dialogue was recorded in 1999.", "Yes!"]}
    write_gzipped(root / "topical_chat.jsonl.gz", [{"id": "t_1", "split": "valid_freq", "turns": TURNS}, held_out])
    write_gzipped(
        root / "query_wellformedness_train.jsonl.gz", [{"question": "How many leagues in a mile ?", "rating": 0.6}]
    )
    for name in ("ud_ewt_train", "gum"):
        with gzip.open(root / f"{name}.conllu.gz", "wt", encoding="utf-8") as file:
            file.write(CONLLU)
    return root


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of MiniLM's kind with random weights: 4 layers of width 64, a vocabulary of some hundred word pieces."""
    folder = tmp_path_factory.mktemp("backbone")
    tokens = word_pieces()
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        # Large enough for a bundle to store these weights outside its graphs.
        intermediate_size=1536,
        max_position_embeddings=256,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
        for parameter in model.parameters():
            # Norms and biases too, so that one that is left out or swapped is seen.
            parameter.data += 0.05 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


@pytest.fixture
def small(tiny_backbone: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Recipes start from the tiny backbone instead of MiniLM."""
    monkeypatch.setattr(backbone, "PATH", tiny_backbone)
    return tiny_backbone


@pytest.fixture(scope="session", autouse=True)
def few_samples() -> Iterator[None]:
    """Recipes count tokens in 200 responses instead of 6000, and measure each head on 40 examples at most."""
    measure = multitask_measure.measure_heads

    def measure_few(model: Any, examples: Any, count: int, **options: Any) -> dict[str, Any]:
        return measure(model, examples, min(count, 40), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lm, "count_response_tokens", partial(lm.count_response_tokens, count=200))
        patch.setattr(multitask_measure, "measure_heads", measure_few)
        yield
