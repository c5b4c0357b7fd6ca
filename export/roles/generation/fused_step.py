"""The decoding step for CUDA: the same modules as ``Step``, with operators of ONNX Runtime that do several things.

A layer is one product for queries, keys and values, one operator for each attention, and one for each residual and its
norm. Past keys and values are in buffers of a fixed number of positions, which a run extends by one in place. A beam
that continues another one reads that one's positions where they are (``cache_indirection``): no state is copied.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from .fused_operators import (
    CacheInputs,
    add_and_norm,
    attend_beams,
    attend_source,
    count_beams,
    expand_mask,
    join_beams,
    split_beams,
    take_back,
)
from .step import NormedHead, RelativeBias, Step, StepAttention, StepLayer

POSITIONS = 4096
"""Tokens of the longest sequence; a model with a table of positions may have fewer."""
CLOSED = -1e32
"""Added to the score of a padded token. A table with so large a number is known as a mask, which fits any type."""


class _JointAttention(nn.Module):
    """Self-attention up to its last product, with one product for queries, keys and values."""

    def __init__(self, attention: StepAttention) -> None:
        super().__init__()
        parts = [cast(nn.Linear, part) for part in (attention.query, attention.key, attention.value)]
        self.joint = _constant(torch.cat([part.weight for part in parts]).t())
        biases: list[Tensor] = [part.bias for part in parts if part.bias is not None]
        self.bias = _constant(torch.cat(biases)) if biases else None
        self.heads, self.scale = attention.heads, attention.scale
        self.width, joint = self.joint.shape
        self.heads_width = joint // 3

    def forward(
        self, x: Tensor, positions: Tensor | None, past: tuple[Tensor, Tensor], cache: CacheInputs
    ) -> tuple[Tensor, Tensor, Tensor]:
        """[A·K, 1, d] → [A·K, 1, H·D], and keys and values [A·K, H, M, D]."""
        return attend_beams(x @ self.joint, self.bias, positions, past, cache, self.heads, self.scale)


class _Residual(nn.Module):
    """A product that is added to the residual, and the norm of the sum."""

    def __init__(self, product: nn.Module, norm: nn.Module, scale: float, *, norm_first: bool) -> None:
        """``scale`` multiplies what the norm gives."""
        super().__init__()
        self.before = product[:-1] if isinstance(product, nn.Sequential) else nn.Identity()
        self.product = product[-1] if isinstance(product, nn.Sequential) else product
        self.bias = self.product.bias if isinstance(self.product, nn.Linear) else None
        weight = cast(Tensor, norm.weight)
        self.weight = weight if scale == 1.0 else _constant(weight * scale)
        self.beta: Tensor | None = getattr(norm, "bias", None)
        self.epsilon = float(cast(Any, norm).eps if hasattr(norm, "eps") else cast(Any, norm).variance_epsilon)
        self.norm_first = norm_first

    def forward(self, x: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor]:
        """The new residual and what the next block reads, [A, K, d] both."""
        mixed = self.before(mixed)
        biased = self.bias is not None  # the operator adds it
        change = nn.functional.linear(mixed, cast(Tensor, self.product.weight)) if biased else self.product(mixed)
        normed, total = add_and_norm(x, change, self.weight, self.beta, self.bias, self.epsilon)
        return (total if self.norm_first else normed), normed


class _FusedLayer(nn.Module):
    """A ``StepLayer``; the norm before its first block belongs to the layer before."""

    def __init__(self, layer: StepLayer, next_norm: nn.Module, scale: float) -> None:
        super().__init__()
        norms = [layer.own_norm, layer.cross_norm, layer.feed_forward_norm]
        if layer.norm_first:
            norms = [*norms[1:], next_norm]
        products = (layer.own.output, layer.cross.output, layer.feed_forward)
        self.own = _JointAttention(layer.own)
        self.query, self.heads, self.scale = layer.cross.query, layer.cross.heads, layer.cross.scale
        self.residuals = nn.ModuleList(
            _Residual(product, norm, scale if norm is next_norm else 1.0, norm_first=layer.norm_first)
            for product, norm in zip(products, norms, strict=True)
        )

    def forward(
        self,
        x: Tensor,
        normed: Tensor,
        tokens: Tensor,
        past: tuple[Tensor, Tensor],
        positions: Tensor | None,
        cache: CacheInputs,
        source: tuple[Tensor, Tensor],
        mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the residual, what the next layer reads, and the buffers of keys and values."""
        mixed, key, value = self.own(join_beams(normed, self.own.width), positions, past, cache)
        x, normed = self.residuals[0](x, split_beams(mixed, tokens, self.own.heads_width))
        mixed = attend_source(self.query(normed), source, mask, self.heads, self.scale)
        x, normed = self.residuals[1](x, mixed)
        x, normed = self.residuals[2](x, normed)
        return x, normed, key, value


class FusedStep(nn.Module):
    """``Step`` of an encoder-decoder for CUDA."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        layers = cast(list[StepLayer], step.blocks())
        self.embed, self.head = step.embed, step.head
        self.first_norm = layers[0].own_norm if layers[0].norm_first else nn.Identity()
        following = [layer.own_norm for layer in layers[1:]]
        scale = 1.0
        if isinstance(step.head, NormedHead):
            # What follows the last residual is the head's norm, whose weight takes the scale of the head.
            following.append(step.head.norm)
            self.head, scale = step.head.head, step.head.scale
        else:
            following.append(nn.Identity())
        self.layers = nn.ModuleList(
            _FusedLayer(layer, norm, scale if index == len(layers) - 1 else 1.0)
            for index, (layer, norm) in enumerate(zip(layers, following, strict=True))
        )
        self.table = (
            None if step.bias is None else _constant(cast(RelativeBias, step.bias)(POSITIONS - 1)[None].flip(-1))
        )
        self.positions = _constant(torch.arange(POSITIONS))
        self.mask = _constant(torch.tensor([[CLOSED], [0.0]]))

    def forward(
        self,
        tokens: Tensor,
        cache_indirection: Tensor,
        cross_mask: Tensor,
        past_sequence_length: Tensor,
        *states: Tensor,
    ) -> tuple[Tensor, ...]:
        """Return logits [A, K, V], then every layer's keys and values [A·K, H, M, D], with one position more.

        ``states`` are, layer by layer, past keys, past values [A·K, H, M, D], cross keys, cross values [A, H, T, D].
        The first ``past_sequence_length`` positions are read, for each beam where ``cache_indirection`` says.
        """
        cache = CacheInputs(past_sequence_length, count_beams(tokens), cache_indirection)
        mask = nn.functional.embedding(cross_mask, self.mask).squeeze(-1)[:, None, None, :]
        mask = expand_mask(mask, tokens)
        positions = None
        if self.table is not None:
            positions = take_back(self.table, past_sequence_length, 1)
        x = self.embed(tokens, take_back(self.positions, past_sequence_length))
        normed = self.first_norm(x)
        grown: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            past_key, past_value, cross_key, cross_value = states[4 * index : 4 * index + 4]
            x, normed, key, value = layer(
                x, normed, tokens, (past_key, past_value), positions, cache, (cross_key, cross_value), mask
            )
            grown += (key, value)
        return self.head(normed), *grown


def _constant(value: Tensor) -> nn.Parameter:
    return nn.Parameter(value.detach().contiguous(), requires_grad=False)
