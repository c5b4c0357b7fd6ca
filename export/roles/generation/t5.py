"""T5 and mT5: RMS norm before each block, unscaled attention with a learned relative bias."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .step import NormedHead, RelativeBias, Step, StepAttention, StepLayer


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
        NormedHead(decoder.final_layer_norm, model.lm_head, config.d_model**-0.5 if scaled else 1.0),
        bias=RelativeBias(_bucket_distances(decoder.block[0].layer[0].SelfAttention)),
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


def _bucket_distances(attention: Any) -> Tensor:
    last = int(attention.relative_attention_max_distance)
    buckets = attention._relative_position_bucket(
        -torch.arange(last + 1),
        bidirectional=False,
        num_buckets=attention.relative_attention_num_buckets,
        max_distance=last,
    )
    by_distance: Tensor = attention.relative_attention_bias.weight.detach()[buckets]
    return by_distance
