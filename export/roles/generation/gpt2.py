"""GPT-2 as two halves: the pass over a prompt, and the step that goes on from it.

The keys and values of the prompt take the inputs of an encoder's cross-attention, so that each step reads them once for
all beams, and all code above the graphs treats both kinds of model alike.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from ..language_model import gpt2
from ..language_model.decoder import MASKED, CausalLayer
from .step import JointLayer, Step, StepAttention


def build_gpt2_step(model: Any) -> Step:
    """Return the decoding step of a GPT-2 checkpoint."""
    decoder = gpt2.build_gpt2_decoder(model)
    layers = []
    for layer in cast(list[CausalLayer], list(decoder.layers)):
        causal = layer.attention
        # The scale is part of the query's projection.
        attention = StepAttention(causal.query, causal.key, causal.value, causal.output, causal.heads, scale=1.0)
        layers.append(JointLayer(attention, layer.feed_forward, (layer.attention_norm, layer.feed_forward_norm)))
    return Step(
        decoder.embed,
        layers,
        nn.Sequential(decoder.norm, model.lm_head),
        bias=None,
        vocabulary=model.config.vocab_size,
        head_dim=decoder.head_dim,
        continues_source=True,
    )


class PromptPass(nn.Module):
    """The pass over a prompt but its last token, up to every layer's keys and values."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.embed = step.embed
        self.layers = nn.ModuleList(step.blocks())

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Return, layer by layer, keys and values [B, H, T, D] of the right-padded prompts ``input_ids`` [B, T]."""
        width = input_ids.shape[1]
        positions = torch.arange(width)
        x = self.embed(input_ids, positions)
        later = (positions.unsqueeze(0) > positions.unsqueeze(1)).to(torch.float32)
        padding = 1.0 - attention_mask.to(torch.float32)[:, None, None, :]
        bias = torch.maximum(later[None, None], padding) * MASKED
        states: list[Tensor] = []
        layers = cast(list[JointLayer], list(self.layers))
        for index, layer in enumerate(layers):
            normed = layer.own_norm(x)
            key, value = layer.own.states(normed)
            states += (key, value)
            if index < len(layers) - 1:  # nothing reads the output of the last layer
                x = x + layer.own.attend_source(normed, key, value, bias)
                x = x + layer.feed_forward(layer.feed_forward_norm(x))
        return tuple(states)
