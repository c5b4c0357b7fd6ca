"""Llama: positions as turns of queries and keys, heads that share keys, RMS norms before the blocks."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .decoder import CausalAttention, CausalDecoder, CausalLayer, linear

FIXED_TURNS = frozenset({"default", "linear", "llama3"})
"""Kinds of positions whose frequencies do not depend on the length of a text; the others run as a whole model."""


def has_fixed_turns(model: Any) -> bool:
    """Return whether the frequencies of a Llama checkpoint's positions are constants."""
    return model.model.rotary_emb.rope_type in FIXED_TURNS


def build_llama_decoder(model: Any) -> CausalDecoder:
    """Return the decoder of a Llama checkpoint with fixed turns."""
    backbone = model.model
    layers = [
        CausalLayer(
            _attention(block.self_attn, model.config),
            block.mlp,
            (block.input_layernorm, block.post_attention_layernorm),
        )
        for block in backbone.layers
    ]
    return CausalDecoder(_Embed(backbone), layers, backbone.norm, frequencies=backbone.rotary_emb.inv_freq.clone())


def _attention(block: Any, config: Any) -> CausalAttention:
    query = linear(block.q_proj.weight, block.q_proj.bias, float(block.head_dim) ** -0.5)
    heads = config.num_attention_heads
    return CausalAttention(query, block.k_proj, block.v_proj, block.o_proj, heads, config.num_key_value_heads)


class _Embed(nn.Module):
    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.words = backbone.embed_tokens

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        embedded: Tensor = self.words(tokens)
        return embedded
