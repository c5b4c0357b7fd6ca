"""GPT-2: learned positions, norms before the blocks, weights stored the other way round (``Conv1D``)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .decoder import Attention, Decoder, Layer, linear


def decoder(model: Any) -> Decoder:
    """The decoder of a GPT-2 checkpoint."""
    trunk = model.transformer
    layers = [
        Layer(
            _attention(block.attn, index),
            nn.Sequential(_turned(block.mlp.c_fc), block.mlp.act, _turned(block.mlp.c_proj)),
            (block.ln_1, block.ln_2),
        )
        for index, block in enumerate(trunk.h)
    ]
    return Decoder(_Embed(trunk), layers, trunk.ln_f, slopes=None)


def _attention(block: Any, index: int) -> Attention:
    scale = float(block.head_dim) ** -0.5 if block.scale_attn_weights else 1.0
    if block.scale_attn_by_inverse_layer_idx:
        scale /= index + 1
    weights, biases = block.c_attn.weight.t().chunk(3), block.c_attn.bias.chunk(3)
    query, key, value = (
        linear(weight, bias, factor) for weight, bias, factor in zip(weights, biases, (scale, 1.0, 1.0), strict=True)
    )
    return Attention(query, key, value, _turned(block.c_proj), block.num_heads)


def _turned(layer: Any) -> nn.Linear:
    return linear(layer.weight.t(), layer.bias)


class _Embed(nn.Module):
    def __init__(self, trunk: Any) -> None:
        super().__init__()
        self.words, self.positions = trunk.wte, trunk.wpe

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        # Only padding can stand beyond the last position.
        place = positions.clamp(max=self.positions.num_embeddings - 1)
        embedded: Tensor = self.words(tokens) + self.positions(place)
        return embedded
