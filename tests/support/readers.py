"""Readers of a few thousand weights."""

from __future__ import annotations

import random
from typing import Any

import torch
from transformers import MPNetConfig, MPNetModel

from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Row
from groundwire.recipes.reader.model import Reader
from groundwire.recipes.reader.rows import encode_answer
from groundwire.recipes.reader.worlds_source import draw_world_pair, load_worlds


def make_group(index: int, rng: random.Random) -> list[Row]:
    """Two answers about a world, one of them wrong."""
    tokens = backbone.load_tokenizer()
    answers = draw_world_pair(load_worlds("train"), 60, rng)
    return [row for answer in answers if (row := encode_answer(tokens, answer, 128, cut=True)) is not None]


def make_tiny(layers: int = 2, vocabulary: int = 30527) -> Reader:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
    config = MPNetConfig(vocab_size=vocabulary, num_hidden_layers=layers, hidden_dropout_prob=0.0, **sizes)
    config.attention_probs_dropout_prob = 0.0
    return Reader(MPNetModel(config, add_pooling_layer=False))


def make_decided(layers: int = 2) -> Reader:
    """A reader whose heads have large weights, so that its labels differ from text to text."""
    reader = make_tiny(layers)
    with torch.no_grad():
        for name, parameter in reader.named_parameters():
            if parameter.dim() > 1 and "embeddings" not in name:
                parameter *= 8.0
    return reader.eval()
