"""BLOOM: ALiBi instead of positions, a norm behind the embeddings, query, key and value interleaved head by head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from .decoder import Attention, Decoder, Layer, linear


def decoder(model: Any) -> Decoder:
    """The decoder of a BLOOM checkpoint."""
    trunk, config = model.transformer, model.config
    layers = [
        Layer(
            _attention(block.self_attention),
            # BLOOM spells out GELU with tanh; the operator is what the int8 pass knows the lower bound of.
            nn.Sequential(block.mlp.dense_h_to_4h, nn.GELU(approximate="tanh"), block.mlp.dense_4h_to_h),
            (block.input_layernorm, block.post_attention_layernorm),
            residual_behind_norm=bool(config.apply_residual_connection_post_layernorm),
        )
        for block in trunk.h
    ]
    # The second of two positions adds each head's slope once.
    slopes = build_alibi_tensor(torch.ones(1, 2), config.n_head, torch.float32)[:, 0, 1]
    return Decoder(_Embed(trunk), layers, trunk.ln_f, slopes)


def _attention(block: Any) -> Attention:
    fused = block.query_key_value
    weights = fused.weight.reshape(block.num_heads, 3, block.head_dim, block.hidden_size).unbind(1)
    biases = fused.bias.reshape(block.num_heads, 3, block.head_dim).unbind(1)
    query, key, value = (
        linear(weight.reshape(-1, block.hidden_size), bias.reshape(-1), factor)
        for weight, bias, factor in zip(weights, biases, (block.inv_norm_factor, 1.0, 1.0), strict=True)
    )
    return Attention(query, key, value, block.dense, block.num_heads)


class _Embed(nn.Module):
    def __init__(self, trunk: Any) -> None:
        super().__init__()
        self.words, self.norm = trunk.word_embeddings, trunk.word_embeddings_layernorm

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        embedded: Tensor = self.norm(self.words(tokens))
        return embedded
