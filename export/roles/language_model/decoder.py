"""A causal decoder over prefixes that it has read already and the texts after them, the same for every family.

A family (gpt2.py, bloom.py, llama.py) only maps a checkpoint's modules to the parts below. Three differences from the
checkpoints' own code save memory traffic:

- all texts after a prefix are queries of one product with the prefix's keys, which are never copied per text;
- attention over a text's own tokens is a second product, and one softmax covers both sets of scores;
- the final states are taken at the scored positions only, so the head never computes the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

MASKED = -30000.0
"""Added to the score of a masked position: exp() of it is 0 whatever the other scores are, and float16 holds it."""


class CausalAttention(nn.Module):
    """The four projections of an attention block; the scale of the scores is part of ``query``.

    ``key_heads`` K is smaller than ``heads`` H where neighbouring heads share keys and values. ``norms`` are of the
    queries and keys of each head; the scale is then part of the first.
    """

    def __init__(
        self,
        query: nn.Linear,
        key: nn.Linear,
        value: nn.Linear,
        output: nn.Linear,
        heads: int,
        key_heads: int | None = None,
        norms: tuple[nn.Module, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = query, key, value, output
        self.query_norm, self.key_norm = norms or (nn.Identity(), nn.Identity())
        self.heads, self.key_heads = heads, key_heads or heads

    def forward(
        self,
        x: Tensor,
        past_key: Tensor,
        past_value: Tensor,
        bias: Tensor,
        texts: int,
        rotation: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from texts [S, C·T, d] to the past [S, K, P, D] of their prefix and to themselves.

        ``bias`` [S, H or 1, 1, T, P + T] is added to the scores; ``texts`` is C; ``rotation`` are the cosine and the
        sine [S, 1, 1, T, D] that turn queries and keys. Returns the output [S, C·T, d] and the texts' own keys and
        values [S, K, C·T, D].
        """
        sources, tokens, _ = x.shape
        past, width = past_key.shape[2], tokens // texts
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        query, key = self.query_norm(query), self.key_norm(key)
        by_text = (sources, self.heads, texts, width, -1)
        if rotation is not None:
            query, key = (_rotate_texts(part, texts, rotation) for part in (query, key))
        before = (self._gather(query) @ past_key.transpose(-1, -2)).reshape(by_text)
        within = query.reshape(by_text) @ self._spread(key).reshape(by_text).transpose(-1, -2)
        weights = (torch.cat((before, within), dim=-1) + bias).softmax(-1)
        before, within = torch.split(weights, [past, width], dim=-1)
        mixed = self._gather(before.reshape(sources, self.heads, tokens, -1)) @ past_value
        inner = within @ self._spread(value).reshape(by_text)
        mixed = mixed.reshape(sources, self.heads, tokens, -1) + inner.reshape(sources, self.heads, tokens, -1)
        return self.output(mixed.transpose(1, 2).reshape(sources, tokens, -1)), key, value

    @property
    def head_dim(self) -> int:
        """The size D of a head."""
        return self.query.out_features // self.heads

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], -1, self.head_dim).transpose(1, 2)

    def _gather(self, x: Tensor) -> Tensor:
        """Put the rows of the heads that share keys after each other: [S, H, N, D] to [S, K, H/K·N, D]."""
        return x if self.key_heads == self.heads else x.reshape(x.shape[0], self.key_heads, -1, x.shape[3])

    def _spread(self, x: Tensor) -> Tensor:
        """Repeat keys or values for the heads that share them: [S, K, N, D] to [S, H, N, D]."""
        return x if self.key_heads == self.heads else x.repeat_interleave(self.heads // self.key_heads, dim=1)


def _rotate_texts(x: Tensor, texts: int, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn [S, H, C·T, D] by the angles of the positions in each text."""
    return rotate(x.reshape(x.shape[0], x.shape[1], texts, -1, x.shape[3]), *rotation).reshape(x.shape)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn each pair of elements, half of the last axis apart, by its position's angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class CausalLayer(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual."""

    def __init__(
        self,
        attention: CausalAttention,
        feed_forward: nn.Module,
        norms: tuple[nn.Module, nn.Module],
        *,
        residual_after_norm: bool = False,
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_norm, self.feed_forward_norm = norms
        self.residual_after_norm = residual_after_norm

    def forward(
        self,
        x: Tensor,
        past_key: Tensor,
        past_value: Tensor,
        bias: Tensor,
        texts: int,
        rotation: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As ``CausalAttention``: the layer's output [S, C·T, d], its keys and its values."""
        normed = self.attention_norm(x)
        change, key, value = self.attention(normed, past_key, past_value, bias, texts, rotation)
        x = (normed if self.residual_after_norm else x) + change
        normed = self.feed_forward_norm(x)
        return (normed if self.residual_after_norm else x) + self.feed_forward(normed), key, value


class CausalDecoder(nn.Module):
    """A causal model without its head.

    ``embed`` maps (tokens [S, C, T], positions [S, 1, T]) to [S, C, T, d]. Where it does not embed the positions,
    ``slopes`` [H] are added as ALiBi has it, or ``frequencies`` [D/2] turn queries and keys by their positions.
    """

    def __init__(
        self,
        embed: nn.Module,
        layers: Sequence[CausalLayer],
        norm: nn.Module,
        *,
        slopes: Tensor | None = None,
        frequencies: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.embed, self.norm = embed, norm
        self.layers = nn.ModuleList(layers)
        self.heads, self.head_dim = layers[0].attention.key_heads, layers[0].attention.head_dim
        self.slopes = None if slopes is None else nn.Parameter(slopes, requires_grad=False)
        self.frequencies = None if frequencies is None else nn.Parameter(frequencies, requires_grad=False)

    def forward(self, tokens: Tensor, past_mask: Tensor, rows: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        """Return final states [N, d] at ``rows`` of the flattened [S, C, T], then every layer's new keys and values.

        ``past`` are, layer by layer, keys and values [S, K, P, D], real where ``past_mask`` [S, P] is 1: a prefix fills
        its row from the left. A text follows its prefix directly, so its first position is their number and not P.
        """
        sources, texts, width = tokens.shape
        read = past_mask.sum(1, keepdim=True)
        positions = read + torch.arange(width)
        bias = self._bias(past_mask, positions)
        rotation = None if self.frequencies is None else list_turns(positions, self.frequencies)
        x = self.embed(tokens, positions.unsqueeze(1)).reshape(sources, texts * width, -1)
        grown: list[Tensor] = []
        for index, layer in enumerate(cast(list[CausalLayer], list(self.layers))):
            x, key, value = layer(x, past[2 * index], past[2 * index + 1], bias, texts, rotation)
            grown += (key, value)
        return self.norm(x.reshape(sources * texts * width, -1)[rows]), *grown

    def _bias(self, past_mask: Tensor, positions: Tensor) -> Tensor:
        """Return what is added to the scores: [S, H or 1, 1, T, P + T], the causal mask and ALiBi in one.

        Padding after a text needs no mask: no earlier token attends to it. ALiBi counts from the query, as a
        difference, where the checkpoints count from the start; the softmax is the same and float16 keeps near positions
        apart.
        """
        sources, past = past_mask.shape
        width = positions.shape[1]
        index = torch.arange(width)
        causal = (index.unsqueeze(0) <= index.unsqueeze(1)).to(torch.int64)
        seen = torch.cat(
            (past_mask.unsqueeze(1).expand(sources, width, past), causal.unsqueeze(0).expand(sources, width, width)),
            dim=-1,
        )
        bias = (1.0 - seen.to(torch.float32)).unsqueeze(1) * MASKED
        if self.slopes is not None:
            keys = torch.cat((torch.arange(past).unsqueeze(0).expand(sources, past), positions), dim=-1)
            distance = keys.unsqueeze(1) - positions.unsqueeze(2)
            bias = bias + self.slopes.reshape(1, -1, 1, 1) * distance.to(torch.float32).unsqueeze(1)
        return bias.unsqueeze(2)


def list_turns(positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine and sine [S, 1, 1, T, D] of the angles at positions [S, T], the same for both halves of a head."""
    half = positions.unsqueeze(-1).to(torch.float32) * frequencies
    angles = torch.cat((half, half), dim=-1).unsqueeze(1).unsqueeze(1)
    return angles.cos(), angles.sin()


def linear(weight: Tensor, bias: Tensor | None, scale: float = 1.0) -> nn.Linear:
    """Return a projection with weight [out, in], both parts times ``scale``."""
    projection = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    projection.weight = nn.Parameter((weight.detach() * scale).contiguous(), requires_grad=False)
    if bias is not None:
        projection.bias = nn.Parameter((bias.detach() * scale).contiguous(), requires_grad=False)
    return projection
