"""A BERT decoder, as in ``EncoderDecoderModel``: layer norm after each block, token types, a transformed head."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .step import Step, StepAttention, StepLayer


def build_bert_step(model: Any) -> Step:
    """Return the decoding step of an ``EncoderDecoderModel`` whose decoder is a ``BertLMHeadModel``."""
    decoder, config = model.decoder, model.config.decoder
    layers = [
        StepLayer(
            _attention(layer.attention),
            _attention(layer.crossattention),
            nn.Sequential(layer.intermediate.dense, layer.intermediate.intermediate_act_fn, layer.output.dense),
            (layer.attention.output.LayerNorm, layer.crossattention.output.LayerNorm, layer.output.LayerNorm),
            norm_first=False,
        )
        for layer in decoder.bert.encoder.layer
    ]
    return Step(
        _Embed(decoder.bert.embeddings),
        layers,
        decoder.cls.predictions,
        bias=None,
        vocabulary=config.vocab_size,
        head_dim=config.hidden_size // config.num_attention_heads,
    )


def _attention(block: Any) -> StepAttention:
    attention = block.self
    scale = float(attention.attention_head_size) ** -0.5
    return StepAttention(
        attention.query, attention.key, attention.value, block.output.dense, attention.num_attention_heads, scale
    )


class _Embed(nn.Module):
    def __init__(self, embeddings: Any) -> None:
        super().__init__()
        self.words, self.positions = embeddings.word_embeddings, embeddings.position_embeddings
        self.types, self.norm = embeddings.token_type_embeddings, embeddings.LayerNorm

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        offset = self.positions(position) + self.types.weight[0]
        embedded: Tensor = self.norm(self.words(tokens) + offset)
        return embedded
