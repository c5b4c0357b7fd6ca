"""Operators of ONNX Runtime that do several things at once, for the graphs of fused steps.

Each is a function whose ``symbolic`` writes the operator into the graph. It is traced and never run for its result, so
``forward`` gives the shapes alone. All have kernels for CUDA and, in float32, for the CPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.onnx.symbolic_helper import _optional_input_placeholder_tensor as left_out

FUSED_HEAD_DIMS = (32, 64, 128)
"""The sizes of a head that CUDA's kernel of self-attention takes; the CPU's takes any."""
_INT32 = 6
"""As ONNX numbers types."""
_ALL = (1 << 31) - 1
"""More than the elements of any table."""


class CacheInputs(NamedTuple):
    """What self-attention reads of the past besides its keys and values."""

    length: Tensor
    """int32 [1], the number of past positions; in host memory"""
    beams: Tensor
    """int32 [1], of each source; in host memory"""
    indirection: Tensor
    """int32 [A, K, M], by beam and position the beam that the keys and values are of"""


def attend_beams(
    joint: Tensor,
    bias: Tensor | None,
    positions: Tensor | None,
    past: tuple[Tensor, Tensor],
    cache: CacheInputs,
    heads: int,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend from each beam to its past and itself: queries, keys and values [A·K, 1, 3·H·D] → [A·K, 1, H·D], and the
    buffers ``past`` [A·K, H, M, D] with the new position; ``positions`` [1, H, 1, P+1] is added to the scores."""
    output: tuple[Tensor, Tensor, Tensor] = _BeamAttention.apply(  # type: ignore[no-untyped-call]
        joint, bias, positions, *past, *cache, heads, scale
    )
    return output


def attend_source(query: Tensor, source: tuple[Tensor, Tensor], mask: Tensor, heads: int, scale: float) -> Tensor:
    """Attend from all beams [A, K, H·D] of a source to its keys and values [A, H, T, D]; ``mask`` [A, 1, K, T]."""
    output: Tensor = _SourceAttention.apply(query, *source, mask, heads, scale)  # type: ignore[no-untyped-call]
    return output


def add_and_norm(
    x: Tensor, change: Tensor, weight: Tensor, beta: Tensor | None, bias: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor]:
    """The norm of ``x + change + bias``, and that sum; the root mean square's norm where there is no ``beta``."""
    output: tuple[Tensor, Tensor] = _SkipNorm.apply(x, change, weight, beta, bias, epsilon)  # type: ignore[no-untyped-call]
    return output


def join_beams(x: Tensor, width: int) -> Tensor:
    """[A, K, d] as [A·K, 1, d]."""
    return x.reshape(-1, 1, width)


def split_beams(x: Tensor, tokens: Tensor, width: int) -> Tensor:
    """[A·K, 1, d] as [A, K, d], which is the shape of ``tokens``."""
    output: Tensor = _SplitBeams.apply(x, tokens, width)  # type: ignore[no-untyped-call]
    return output


def count_beams(tokens: Tensor) -> Tensor:
    """The beams K of ``tokens`` [A, K] as int32 [1]: a number of the shape, which a GPU's host knows."""
    output: Tensor = _CountBeams.apply(tokens)  # type: ignore[no-untyped-call]
    return output


def take_back(table: Tensor, length: Tensor, step: int = _ALL) -> Tensor:
    """Along the last axis of a table its elements at ``length``, ``length - step``, … down to the first.

    The length is in host memory, where a slice reads it: any arithmetic with it would be done on the device.
    """
    output: Tensor = _Take.apply(table, length, step)  # type: ignore[no-untyped-call]
    return output


def expand_mask(mask: Tensor, tokens: Tensor) -> Tensor:
    """``mask`` [A, 1, 1, T] for each of the beams of ``tokens`` [A, K]: [A, 1, K, T]."""
    output: Tensor = _Expand.apply(mask, tokens)  # type: ignore[no-untyped-call]
    return output


def _describe(value: Any, like: Any, rank: int) -> Any:
    """Give a value the type of another one and a rank: the tracer does not know these operators."""
    value.setType(like.type().with_sizes([None] * rank))
    return value


class _BeamAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        joint: Tensor,
        bias: Tensor | None,
        positions: Tensor | None,
        past_key: Tensor,
        past_value: Tensor,
        length: Tensor,
        beams: Tensor,
        indirection: Tensor,
        heads: int,
        scale: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, _, _ = joint.chunk(3, -1)
        return query.clone(), past_key.clone(), past_value.clone()

    @staticmethod
    def symbolic(
        graph: Any,
        joint: Any,
        bias: Any,
        positions: Any,
        past_key: Any,
        past_value: Any,
        length: Any,
        beams: Any,
        indirection: Any,
        heads: int,
        scale: float,
    ) -> Any:
        none = left_out(graph)  # type: ignore[no-untyped-call]
        outputs: tuple[Any, ...] = graph.op(
            "com.microsoft::DecoderMaskedMultiHeadAttention",
            *graph.op("Split", joint, axis_i=-1, num_outputs_i=3, outputs=3),
            none,
            none if positions is None else positions,
            past_key,
            past_value,
            length,
            beams,
            indirection,
            none if bias is None else bias,
            num_heads_i=heads,
            scale_f=scale,
            past_present_share_buffer_i=1,
            outputs=3,
        )
        for value, rank in zip(outputs, (3, 4, 4), strict=True):
            _describe(value, past_key, rank)
        return outputs


class _SourceAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, heads: int, scale: float) -> Tensor:
        return query.clone()

    @staticmethod
    def symbolic(graph: Any, query: Any, key: Any, value: Any, mask: Any, heads: int, scale: float) -> Any:
        none = left_out(graph)  # type: ignore[no-untyped-call]
        inputs = query, key, value, none, none, mask
        return _describe(
            graph.op("com.microsoft::MultiHeadAttention", *inputs, num_heads_i=heads, scale_f=scale), key, 3
        )


class _SkipNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        change: Tensor,
        weight: Tensor,
        beta: Tensor | None,
        bias: Tensor | None,
        epsilon: float,
    ) -> tuple[Tensor, Tensor]:
        return x + change, x.clone()

    @staticmethod
    def symbolic(graph: Any, x: Any, change: Any, weight: Any, beta: Any, bias: Any, epsilon: float) -> Any:
        simplified = beta is None
        inputs = [x, change, weight, *(() if simplified else (beta,)), *(() if bias is None else (bias,))]
        name = f"com.microsoft::Skip{'Simplified' if simplified else ''}LayerNormalization"
        normed, _, _, total = (
            _describe(value, weight, 3) for value in graph.op(name, *inputs, epsilon_f=epsilon, outputs=4)
        )
        return normed, total


class _SplitBeams(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, tokens: Tensor, width: int) -> Tensor:
        return x.reshape(*tokens.shape, width)

    @staticmethod
    def symbolic(graph: Any, x: Any, tokens: Any, width: int) -> Any:
        last = graph.op("Constant", value_t=torch.tensor([width]))
        return graph.op("Reshape", x, graph.op("Concat", graph.op("Shape", tokens), last, axis_i=0))


class _CountBeams(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor) -> Tensor:
        return torch.tensor([tokens.shape[1]], dtype=torch.int32)

    @staticmethod
    def symbolic(graph: Any, tokens: Any) -> Any:
        return graph.op("Cast", graph.op("Shape", tokens, start_i=1, end_i=2), to_i=_INT32)


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, length: Tensor, step: int) -> Tensor:
        return table[..., torch.arange(int(length), -1, -step)]

    @staticmethod
    def symbolic(graph: Any, table: Any, length: Any, step: int) -> Any:
        end, axis, steps = (
            graph.op("Constant", value_t=torch.tensor([number], dtype=torch.int32)) for number in (-_ALL, -1, -step)
        )
        return graph.op("Slice", table, length, end, axis, steps)


class _Expand(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mask: Tensor, tokens: Tensor) -> Tensor:
        return mask.expand(-1, 1, tokens.shape[1], -1)

    @staticmethod
    def symbolic(graph: Any, mask: Any, tokens: Any) -> Any:
        single = graph.op("Constant", value_t=torch.tensor([1]))
        beams = graph.op("Shape", tokens, start_i=1, end_i=2)
        return graph.op("Expand", mask, graph.op("Concat", single, single, beams, single, axis_i=0))
