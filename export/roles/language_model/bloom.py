"""BLOOM: ALiBi instead of positions, a norm after the embeddings, query, key and value interleaved head by head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from .decoder import CausalAttention, CausalDecoder, CausalLayer, linear


def build_bloom_decoder(model: Any) -> CausalDecoder:
    """Return the decoder of a BLOOM checkpoint."""
    backbone, config = model.transformer, model.config
    layers = [
        CausalLayer(
            _attention(block.self_attention),
            # BLOOM spells out GELU with tanh; the operator is what the int8 pass knows the lower bound of.
            nn.Sequential(block.mlp.dense_h_to_4h, nn.GELU(approximate="tanh"), block.mlp.dense_4h_to_h),
            (block.input_layernorm, block.post_attention_layernorm),
            residual_after_norm=bool(config.apply_residual_connection_post_layernorm),
        )
        for block in backbone.h
    ]
    # The second of two positions adds each head's slope once.
    slopes = build_alibi_tensor(torch.ones(1, 2), config.n_head, torch.float32)[:, 0, 1]
    return CausalDecoder(_Embed(backbone), layers, backbone.ln_f, slopes=slopes)


def _attention(block: Any) -> CausalAttention:
    fused = block.query_key_value
    weights = fused.weight.reshape(block.num_heads, 3, block.head_dim, block.hidden_size).unbind(1)
    biases = fused.bias.reshape(block.num_heads, 3, block.head_dim).unbind(1)
    query, key, value = (
        linear(weight.reshape(-1, block.hidden_size), bias.reshape(-1), factor)
        for weight, bias, factor in zip(weights, biases, (block.inv_norm_factor, 1.0, 1.0), strict=True)
    )
    return CausalAttention(query, key, value, block.dense, block.num_heads)


class _Embed(nn.Module):
    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.words, self.norm = backbone.word_embeddings, backbone.word_embeddings_layernorm

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        embedded: Tensor = self.norm(self.words(tokens))
        return embedded
