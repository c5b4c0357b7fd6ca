"""Attention masks that can be traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import masking_utils


@contextmanager
def traceable_masks() -> Iterator[None]:
    """Let transformers 4 build its masks without vmap, which cannot be traced; transformers 5 does so by itself.

    An encoder's mask that only hides padding is built as transformers 4 does, [B, 1, 1, K] and without arithmetic on
    indices: ONNX Runtime leaves that to the CPU, and a graph with a part on the CPU is not captured on a GPU.
    """
    original = masking_utils.eager_mask
    is_newer = "use_vmap" in inspect.signature(original).parameters
    build = partial(_build_padding_mask, original) if is_newer else _build_eager_mask
    masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register("eager", build)
    try:
        yield
    finally:
        masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register("eager", original)


def _build_padding_mask(
    build: Callable[..., Tensor | None],
    *,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    **others: Any,
) -> Tensor | None:
    """Return the mask of ``build``, ``masking_utils.eager_mask``; for padding alone [B, 1, 1, K], which broadcasts."""
    plain = getattr(masking_utils, "bidirectional_mask_function", None)
    if mask_function is not plain or attention_mask is None or attention_mask.dim() != 2:
        return build(mask_function=mask_function, attention_mask=attention_mask, dtype=dtype, **others)
    return (1.0 - attention_mask[:, None, None, :].to(dtype)) * torch.finfo(dtype).min


def _build_eager_mask(
    batch_size: int,
    cache_position: Tensor,
    kv_length: int,
    kv_offset: int = 0,
    mask_function: Callable[..., Tensor] = masking_utils.causal_mask_function,
    attention_mask: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    **_: Any,
) -> Tensor:
    """Return the mask [B, 1, Q, K] of ``masking_utils.eager_mask``: 0 where tokens are read, else the minimum."""
    padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset, _slice=False)
    if padding is not None:
        padded = masking_utils.padding_mask_function(padding)
        mask_function = masking_utils.and_masks(mask_function, padded)
    rows = torch.arange(batch_size)[:, None, None, None]
    keys = torch.arange(kv_length)[None, None, None, :] + kv_offset
    read = mask_function(rows, torch.zeros(1, 1, 1, 1, dtype=torch.int64), cache_position[None, None, :, None], keys)
    read = read.expand(batch_size, -1, cache_position.shape[0], kv_length)
    return torch.where(read, torch.tensor(0.0, dtype=dtype), torch.finfo(dtype).min)
