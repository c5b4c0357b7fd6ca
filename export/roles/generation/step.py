"""One decoding step of an encoder-decoder, the same for every family: the hottest graph of the engine.

A family (t5.py, bart.py, bert.py, causal.py) only maps a checkpoint's modules to the parts below. Three things differ
from the checkpoints' own decoders, all to save memory traffic, which dominates the cost of a step:

- beams are query positions: the cross-attention keys of a source are read once for all its beams;
- a beam is one position, so self-attention needs no transposition: ``[B, K, H·D]`` is ``[B, K, H, 1, D]``;
- the cached keys are reordered by ``parents`` here, so only token ids travel between two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from ..language_model.decoder import MASKED, CausalAttention, rotate


class _Reorder(torch.autograd.Function):
    """Return ``past[b, parents[b, k]]`` for all b, k: [B, J, ...] by [B, K] → [B, K, ...].

    One GatherND copies whole rows and, unlike a reshape, accepts a past of no positions.
    """

    @staticmethod
    def forward(ctx: Any, past: Tensor, parents: Tensor) -> Tensor:
        return past[torch.arange(past.shape[0]).unsqueeze(1), parents]

    @staticmethod
    def symbolic(graph: Any, past: Any, parents: Any) -> Any:
        last = graph.op("Constant", value_t=torch.tensor([-1]))
        return graph.op("GatherND", past, graph.op("Unsqueeze", parents, last), batch_dims_i=1)


class _Split(torch.autograd.Function):
    """Return ``x.reshape(x.shape[0], x.shape[1], *rest)``, with a constant shape in the graph.

    Traced as it is, each reshape would compute its sizes with half a dozen tiny nodes at every step.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rest: tuple[int, ...]) -> Tensor:
        return x.reshape(*x.shape[:2], *rest)

    @staticmethod
    def symbolic(graph: Any, x: Any, rest: tuple[int, ...]) -> Any:
        return graph.op("Reshape", x, graph.op("Constant", value_t=torch.tensor((0, 0, *rest))))


def _reorder(past: Tensor, parents: Tensor) -> Tensor:
    ordered: Tensor = _Reorder.apply(past, parents)  # type: ignore[no-untyped-call]
    return ordered


def _split(x: Tensor, rest: tuple[int, ...]) -> Tensor:
    parts: Tensor = _Split.apply(x, rest)  # type: ignore[no-untyped-call]
    return parts


class StepAttention(nn.Module):
    """The four projections of an attention block; ``scale`` multiplies the products of queries and keys."""

    def __init__(
        self, query: nn.Module, key: nn.Module, value: nn.Module, output: nn.Module, heads: int, scale: float
    ) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = query, key, value, output
        self.heads = heads
        self.scale = scale

    def attend_self(
        self, x: Tensor, past: tuple[Tensor, Tensor], parents: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from each beam to its past and itself → output [B, K, d], grown keys and values [B, K, H, P+1, D]."""
        shape = (self.heads, 1, -1)
        key = self._append_states(past[0], parents, _split(self.key(x), shape))
        value = self._append_states(past[1], parents, _split(self.value(x), shape))
        mixed = self._mix(_split(self.query(x), shape), key, value, bias)
        return self.output(_split(mixed, (-1,))), key, value

    def attend_source(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Attend from all beams of a source to its keys and values [B, H, T, D] → [B, K, d]."""
        query = _split(self.query(x), (self.heads, -1)).transpose(1, 2)
        mixed = self._mix(query, key, value, mask)
        output: Tensor = self.output(_split(mixed.transpose(1, 2), (-1,)))
        return output

    def states(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values [B, H, T, D] of an encoded source [B, T, d]."""
        shape = (self.heads, -1)
        key, value = _split(self.key(source), shape), _split(self.value(source), shape)
        return key.transpose(1, 2), value.transpose(1, 2)

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        scores = query @ key.transpose(-1, -2)
        if self.scale != 1.0:
            scores = scores * self.scale
        if bias is not None:
            scores = scores + bias
        return scores.softmax(-1) @ value

    @staticmethod
    def _append_states(past: Tensor, parents: Tensor, new: Tensor) -> Tensor:
        ordered = _reorder(past, parents)
        return torch.cat((ordered, new), dim=3)


class JointAttention(StepAttention):
    """The attention of a causal model, over its prompt and its own tokens at once.

    ``turns`` [2, B, T, 1, 1, D] are cosines and sines of positions, or None. Neighbouring heads may share keys: H heads
    are K key heads with a group of H/K queries each.
    """

    def __init__(self, causal: CausalAttention) -> None:
        # The scale is part of the query's projection or norm.
        super().__init__(causal.query, causal.key, causal.value, causal.output, causal.key_heads, scale=1.0)
        self.query_norm, self.key_norm = causal.query_norm, causal.key_norm
        self.group = causal.heads // causal.key_heads

    def attend_jointly(
        self,
        x: Tensor,
        past: tuple[Tensor, Tensor],
        parents: Tensor,
        memory: tuple[Tensor, Tensor],
        mask: Tensor,
        turns: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As ``attend_self``, with one softmax that also covers the keys and values [B, K, T, D] of the source.

        They are read once for all beams of the source here too.
        """
        key = self._append_states(past[0], parents, self._read_keys(x, turns))
        value = self._append_states(past[1], parents, _split(self.value(x), (self.heads, 1, -1)))
        query = self._read_queries(x, turns)
        before = self._gather(query) @ memory[0].transpose(-1, -2) + mask
        within = query @ key.transpose(-1, -2)
        scores = torch.cat((self._scatter(before, x), within), dim=-1)
        before, within = torch.split(scores.softmax(-1), [memory[0].shape[2], key.shape[3]], dim=-1)
        mixed = within @ value + self._scatter(self._gather(before) @ memory[1], x)
        return self.output(_split(mixed, (-1,))), key, value

    def read_prompt(self, x: Tensor, turns: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the keys and values [B, K, T, D] of a prompt [B, T, d]."""
        key = self._read_keys(x, turns).squeeze(3).transpose(1, 2)
        return key, _split(self.value(x), (self.heads, -1)).transpose(1, 2)

    def attend_prompt(self, x: Tensor, key: Tensor, value: Tensor, bias: Tensor, turns: Tensor | None) -> Tensor:
        """Attend from a prompt [B, T, d] to its own keys and values, with ``bias`` [B, 1, T, T] → [B, T, d]."""
        bias = bias if self.group == 1 else bias.repeat_interleave(self.group, dim=2)
        mixed = self._mix(self._gather(self._read_queries(x, turns)), key, value, bias)
        output: Tensor = self.output(_split(self._scatter(mixed, x), (-1,)))
        return output

    def _read_keys(self, x: Tensor, turns: Tensor | None) -> Tensor:
        key: Tensor = self.key_norm(_split(self.key(x), (self.heads, 1, -1)))
        return key if turns is None else rotate(key, *turns)

    def _read_queries(self, x: Tensor, turns: Tensor | None) -> Tensor:
        """Return [B, T, K, H/K, D]."""
        query: Tensor = self.query_norm(_split(self.query(x), (self.heads, self.group, -1)))
        return query if turns is None else rotate(query, *turns)

    def _gather(self, x: Tensor) -> Tensor:
        """Put the rows of a group after each other: [B, T, K, G, D] to [B, K, T·G, D]."""
        if self.group == 1:
            return x.squeeze(3).transpose(1, 2)
        return x.transpose(1, 2).reshape(x.shape[0], self.heads, -1, x.shape[4])

    def _scatter(self, x: Tensor, of: Tensor) -> Tensor:
        """Undo ``_gather`` for the T positions of ``of`` [B, T, d]."""
        if self.group == 1:
            return x.transpose(1, 2).unsqueeze(3)
        return x.reshape(x.shape[0], self.heads, of.shape[1], self.group, -1).transpose(1, 2)


class NormedHead(nn.Module):
    """The last norm and the head; T5 v1.0 multiplies by ``scale`` because its head is tied to the embeddings."""

    def __init__(self, norm: nn.Module, head: nn.Module, scale: float) -> None:
        super().__init__()
        self.norm, self.head = norm, head
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        """[B, K, d] → logits [B, K, V]."""
        x = self.norm(x)
        logits: Tensor = self.head(x if self.scale == 1.0 else x * self.scale)
        return logits


class RelativeBias(nn.Module):
    """The bias of the newest position towards every earlier one, read from a table by distance.

    The checkpoint buckets distances by logarithm; buckets of all distances up to the last that differ are computed
    once, so the graph holds a look-up only.
    """

    def __init__(self, by_distance: Tensor) -> None:
        """``by_distance`` [last + 1, H]; larger distances have the last one's."""
        super().__init__()
        self.by_distance = nn.Parameter(by_distance, requires_grad=False)
        self.last = len(by_distance) - 1

    def forward(self, past: int) -> Tensor:
        """[H, 1, past + 1]"""
        distance = torch.arange(past + 1).flip(0).clamp(max=self.last)
        return self.by_distance[distance].t().unsqueeze(1)


class StepLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward, each with a residual and a norm before or after it."""

    def __init__(
        self,
        own_attention: StepAttention,
        cross_attention: StepAttention,
        feed_forward: nn.Module,
        norms: tuple[nn.Module, nn.Module, nn.Module],
        *,
        norm_first: bool,
    ) -> None:
        super().__init__()
        self.own, self.cross, self.feed_forward = own_attention, cross_attention, feed_forward
        self.own_norm, self.cross_norm, self.feed_forward_norm = norms
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        past: tuple[Tensor, Tensor],
        parents: Tensor,
        bias: Tensor | None,
        source: tuple[Tensor, Tensor],
        mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the layer's output [B, K, d] and its grown keys and values."""
        if self.norm_first:
            change, key, value = self.own.attend_self(self.own_norm(x), past, parents, bias)
            x = x + change
            x = x + self.cross.attend_source(self.cross_norm(x), *source, mask)
            return x + self.feed_forward(self.feed_forward_norm(x)), key, value
        change, key, value = self.own.attend_self(x, past, parents, bias)
        x = self.own_norm(x + change)
        x = self.cross_norm(x + self.cross.attend_source(x, *source, mask))
        return self.feed_forward_norm(x + self.feed_forward(x)), key, value


class JointLayer(nn.Module):
    """A layer of a causal model: attention over the source and its own past at once, and feed-forward."""

    def __init__(
        self, own_attention: JointAttention, feed_forward: nn.Module, norms: tuple[nn.Module, nn.Module]
    ) -> None:
        super().__init__()
        self.own, self.feed_forward = own_attention, feed_forward
        self.own_norm, self.feed_forward_norm = norms

    def forward(
        self,
        x: Tensor,
        past: tuple[Tensor, Tensor],
        parents: Tensor,
        bias: Tensor | None,
        source: tuple[Tensor, Tensor],
        mask: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As ``StepLayer``; ``bias`` are the turns of the new tokens."""
        change, key, value = self.own.attend_jointly(self.own_norm(x), past, parents, source, mask, bias)
        x = x + change
        return x + self.feed_forward(self.feed_forward_norm(x)), key, value


class Step(nn.Module):
    """A decoder as a function of one new token per beam.

    ``embed`` maps (tokens [B, K], position [1]) to [B, K, d], or position [B, 1] with ``continues_source``; ``bias``
    maps the number of past positions to the position bias of self-attention [H, 1, P+1], with ``continues_source`` the
    position to turns [2, B, 1, 1, 1, D], or is None; ``head`` maps [B, K, d] to logits [B, K, V].
    """

    def __init__(
        self,
        embed: nn.Module,
        layers: Sequence[StepLayer | JointLayer],
        head: nn.Module,
        *,
        bias: nn.Module | None,
        vocabulary: int,
        head_dim: int,
        continues_source: bool = False,
    ) -> None:
        super().__init__()
        self.embed, self.head, self.bias = embed, head, bias
        self.layers = nn.ModuleList(layers)
        self.vocabulary = vocabulary
        self.head_dim = head_dim
        self.heads = layers[0].own.heads
        self.continues_source = continues_source
        """Whether positions go on from the source's, as in a causal model, whose source is its prompt."""

    def blocks(self) -> list[StepLayer | JointLayer]:
        """Return the layers, in order."""
        return cast(list[StepLayer | JointLayer], list(self.layers))

    def forward(self, tokens: Tensor, parents: Tensor, cross_mask: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """Return logits [B, K, V], then every layer's keys and values [B, K, H, P+1, D].

        ``states`` are, layer by layer, past keys, past values [B, J, H, P, D], cross keys, cross values [B, H, T, D].
        """
        past = states[0].shape[3]
        mask = (1.0 - cross_mask.to(torch.float32)[:, None, None, :]) * MASKED
        position = torch.arange(past, past + 1)
        if self.continues_source:
            position = position + cross_mask.sum(1, keepdim=True)
        bias = None if self.bias is None else self.bias(position if self.continues_source else past)
        x = self.embed(tokens, position)
        grown: list[Tensor] = []
        for index, layer in enumerate(self.blocks()):
            past_key, past_value, cross_key, cross_value = states[4 * index : 4 * index + 4]
            x, key, value = layer(x, (past_key, past_value), parents, bias, (cross_key, cross_value), mask)
            grown += (key, value)
        return self.head(x), *grown


class SourceEncoder(nn.Module):
    """The encoder, up to the cross-attention keys and values of every decoder layer."""

    def __init__(self, encoder: nn.Module, step: Step, bridge: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.bridge = bridge
        self.crosses = nn.ModuleList(cast(StepLayer, layer).cross for layer in step.blocks())

    def forward(self, input_ids: Tensor, attention_mask: Tensor, *token_type_ids: Tensor) -> tuple[Tensor, ...]:
        """Return, layer by layer, keys and values [B, H, T, D] of the sources ``input_ids`` [B, T]."""
        kinds = {"token_type_ids": token_type_ids[0]} if token_type_ids else {}
        source = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **kinds)[0]
        if self.bridge is not None:
            source = self.bridge(source)
        return tuple(state for cross in self.crosses for state in cast(StepAttention, cross).states(source))
