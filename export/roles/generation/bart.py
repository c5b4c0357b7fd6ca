"""BART: layer norm after each block, learned positions that start at row 2, and a bias on the logits."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .step import Step, StepAttention, StepLayer

_OFFSET = 2  # BART's position table keeps two rows for a padding scheme it no longer uses


def build_bart_step(model: Any) -> Step:
    """Return the decoding step of a BART checkpoint."""
    decoder, config = model.model.decoder, model.config
    layers = [
        StepLayer(
            _attention(layer.self_attn),
            _attention(layer.encoder_attn),
            nn.Sequential(layer.fc1, layer.activation_fn, layer.fc2),
            (layer.self_attn_layer_norm, layer.encoder_attn_layer_norm, layer.final_layer_norm),
            norm_first=False,
        )
        for layer in decoder.layers
    ]
    return Step(
        _Embed(decoder),
        layers,
        _Head(model.lm_head, model.final_logits_bias),
        bias=None,
        vocabulary=config.vocab_size,
        head_dim=config.d_model // config.decoder_attention_heads,
    )


def _attention(block: Any) -> StepAttention:
    return StepAttention(
        block.q_proj, block.k_proj, block.v_proj, block.out_proj, block.num_heads, float(block.scaling)
    )


class _Embed(nn.Module):
    def __init__(self, decoder: Any) -> None:
        super().__init__()
        # The table multiplies by sqrt(d_model) itself where the checkpoint's scale_embedding says so.
        self.table, self.positions, self.norm = (
            decoder.embed_tokens,
            decoder.embed_positions,
            decoder.layernorm_embedding,
        )

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        embedded_positions = nn.functional.embedding(position + _OFFSET, self.positions.weight)
        embedded: Tensor = self.norm(self.table(tokens) + embedded_positions)
        return embedded


class _Head(nn.Module):
    def __init__(self, head: nn.Module, bias: Tensor) -> None:
        super().__init__()
        self.head = head
        self.bias = nn.Parameter(bias.detach()[0], requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(x) + self.bias
        return logits
