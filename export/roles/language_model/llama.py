"""Llama, Mistral, Qwen2 and Qwen3: positions as turns of queries and keys, heads that share keys, RMS norms before the
blocks; Qwen3 has norms of each head's queries and keys too.
"""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn

from .decoder import CausalAttention, CausalDecoder, CausalLayer, linear

FIXED_TURNS = frozenset({"default", "linear", "llama3"})
"""Kinds of positions whose frequencies do not depend on the length of a text; the others run as a whole model."""


def has_fixed_turns(model: Any) -> bool:
    """Return whether the frequencies of a checkpoint's positions are constants, and every token reads all before it."""
    config = model.config
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
        kinds = ["full_attention" if window is None else "sliding_attention"]
    return model.model.rotary_emb.rope_type in FIXED_TURNS and set(kinds) == {"full_attention"}


def build_llama_decoder(model: Any) -> CausalDecoder:
    """Return the decoder of a checkpoint with fixed turns."""
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
    scale = float(block.head_dim) ** -0.5
    heads, key_heads = config.num_attention_heads, config.num_key_value_heads
    if hasattr(block, "q_norm"):
        query_norm = copy.deepcopy(block.q_norm)
        query_norm.weight.data *= scale
        norms = query_norm, block.k_norm
        return CausalAttention(block.q_proj, block.k_proj, block.v_proj, block.o_proj, heads, key_heads, norms)
    query = linear(block.q_proj.weight, block.q_proj.bias, scale)
    return CausalAttention(query, block.k_proj, block.v_proj, block.o_proj, heads, key_heads)


class _Embed(nn.Module):
    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.words = backbone.embed_tokens

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        embedded: Tensor = self.words(tokens)
        return embedded
