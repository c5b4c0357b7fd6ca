"""T5 and mT5: RMS norm before each block, unscaled attention with a learned relative bias."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .step import Step, StepAttention, StepLayer


def build_t5_step(model: Any) -> Step:
    """Return the decoding step of a T5 or mT5 checkpoint: v1.0 (ReLU, tied head) and v1.1 (gated, separate head)."""
    decoder, config = model.decoder, model.config
    layers = [
        StepLayer(
            _attention(block.layer[0].SelfAttention),
            _attention(block.layer[1].EncDecAttention),
            block.layer[2].DenseReluDense,
            tuple(part.layer_norm for part in block.layer),
            norm_first=True,
        )
        for block in decoder.block
    ]
    # transformers 5 ties the head in every configuration of T5 and says apart whether it scales.
    scaled = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
    return Step(
        _Embed(decoder.embed_tokens),
        layers,
        _Head(decoder.final_layer_norm, model.lm_head, config.d_model**-0.5 if scaled else 1.0),
        bias=_RelativeBias(decoder.block[0].layer[0].SelfAttention),
        vocabulary=config.vocab_size,
        head_dim=config.d_kv,
    )


def _attention(block: Any) -> StepAttention:
    return StepAttention(block.q, block.k, block.v, block.o, block.n_heads, scale=1.0)


class _Embed(nn.Module):
    def __init__(self, table: nn.Module) -> None:
        super().__init__()
        self.table = table

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        embedded: Tensor = self.table(tokens)
        return embedded


class _Head(nn.Module):
    """Final norm and head; ``scale`` is what T5 v1.0 multiplies by because its head is tied to the embeddings."""

    def __init__(self, norm: Any, head: nn.Module, scale: float) -> None:
        super().__init__()
        self.norm, self.head = norm, head
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        logits: Tensor = self.head(x if self.scale == 1.0 else x * self.scale)
        return logits


class _RelativeBias(nn.Module):
    """The bias of the newest position towards every earlier one, read from a table by distance.

    The checkpoint buckets distances by logarithm; buckets of all distances up to the last that differ are computed
    once, here, so the graph holds a look-up only.
    """

    def __init__(self, attention: Any) -> None:
        super().__init__()
        last = int(attention.relative_attention_max_distance)
        buckets = attention._relative_position_bucket(
            -torch.arange(last + 1),
            bidirectional=False,
            num_buckets=attention.relative_attention_num_buckets,
            max_distance=last,
        )
        self.by_distance = nn.Parameter(attention.relative_attention_bias.weight.detach()[buckets], requires_grad=False)
        self.last = last

    def forward(self, past: int) -> Tensor:
        distance = torch.arange(past + 1).flip(0).clamp(max=self.last)
        return self.by_distance[distance].t().unsqueeze(1)
