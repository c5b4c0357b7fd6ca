"""Causal models as two halves: the pass over a prompt, and the step that goes on from it.

The keys and values of the prompt take the inputs of an encoder's cross-attention, so that each step reads them once for
all beams, and all code above the graphs treats both kinds of model alike.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from ..language_model.decoder import MASKED, CausalDecoder, CausalLayer, list_turns
from .step import JointAttention, JointLayer, Step


def build_causal_step(decoder: CausalDecoder, model: Any) -> Step:
    """Return the decoding step of a causal model, whose ``decoder`` has no slopes."""
    layers = [
        JointLayer(JointAttention(layer.attention), layer.feed_forward, (layer.attention_norm, layer.feed_forward_norm))
        for layer in cast(list[CausalLayer], list(decoder.layers))
    ]
    return Step(
        decoder.embed,
        layers,
        nn.Sequential(decoder.norm, model.lm_head),
        bias=None if decoder.frequencies is None else Turns(decoder.frequencies),
        vocabulary=model.config.vocab_size,
        head_dim=decoder.head_dim,
        continues_source=True,
    )


class Turns(nn.Module):
    """Cosines and sines of the angles by which positions turn queries and keys."""

    def __init__(self, frequencies: Tensor) -> None:
        super().__init__()
        self.frequencies = nn.Parameter(frequencies, requires_grad=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Return [2, B, T, 1, 1, D] of positions [B, T]."""
        return torch.stack(list_turns(positions, self.frequencies)).permute(0, 1, 4, 2, 3, 5)


class PromptPass(nn.Module):
    """The pass over a prompt but its last token, up to every layer's keys and values."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.embed, self.turns = step.embed, step.bias
        self.layers = nn.ModuleList(step.blocks())

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Return, layer by layer, keys and values [B, H, T, D] of the right-padded prompts ``input_ids`` [B, T]."""
        width = input_ids.shape[1]
        positions = torch.arange(width)
        x = self.embed(input_ids, positions)
        turns = None if self.turns is None else self.turns(positions.unsqueeze(0))
        later = (positions.unsqueeze(0) > positions.unsqueeze(1)).to(torch.float32)
        padding = 1.0 - attention_mask.to(torch.float32)[:, None, None, :]
        bias = torch.maximum(later[None, None], padding) * MASKED
        states: list[Tensor] = []
        layers = cast(list[JointLayer], list(self.layers))
        for index, layer in enumerate(layers):
            normed = layer.own_norm(x)
            key, value = layer.own.read_prompt(normed, turns)
            states += (key, value)
            if index < len(layers) - 1:  # nothing reads the output of the last layer
                x = x + layer.own.attend_prompt(normed, key, value, bias, turns)
                x = x + layer.feed_forward(layer.feed_forward_norm(x))
        return tuple(states)
