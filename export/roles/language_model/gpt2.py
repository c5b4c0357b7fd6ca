"""GPT-2: learned positions, norms before the blocks, weights stored transposed (``Conv1D``)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .decoder import CausalAttention, CausalDecoder, CausalLayer, linear


def build_gpt2_decoder(model: Any) -> CausalDecoder:
    """Return the decoder of a GPT-2 checkpoint."""
    backbone = model.transformer
    layers = [
        CausalLayer(
            _attention(block.attn, index),
            nn.Sequential(_transpose_linear(block.mlp.c_fc), block.mlp.act, _transpose_linear(block.mlp.c_proj)),
            (block.ln_1, block.ln_2),
        )
        for index, block in enumerate(backbone.h)
    ]
    return CausalDecoder(_Embed(backbone), layers, backbone.ln_f)


def _attention(block: Any, index: int) -> CausalAttention:
    scale = float(block.head_dim) ** -0.5 if block.scale_attn_weights else 1.0
    if block.scale_attn_by_inverse_layer_idx:
        scale /= index + 1
    weights, biases = block.c_attn.weight.t().chunk(3), block.c_attn.bias.chunk(3)
    query, key, value = (
        linear(weight, bias, factor) for weight, bias, factor in zip(weights, biases, (scale, 1.0, 1.0), strict=True)
    )
    return CausalAttention(query, key, value, _transpose_linear(block.c_proj), block.num_heads)


def _transpose_linear(layer: Any) -> nn.Linear:
    return linear(layer.weight.t(), layer.bias)


class _Embed(nn.Module):
    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.words, self.positions = backbone.wte, backbone.wpe

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        # Only padding can be beyond the last position.
        indices = positions.clamp(max=self.positions.num_embeddings - 1)
        embedded: Tensor = self.words(tokens) + self.positions(indices)
        return embedded
