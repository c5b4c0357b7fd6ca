"""Training on a GPU: the backbone's states with fused attention, and steps for parameters in half precision."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import MPNetModel

from .model import Reader

HIDDEN = -30_000.0
"""Added to the scores of padding; bf16 has it."""


class FusedStates:
    """Reads the backbone's states; its relative positions, dropout and gradients of the embeddings are left out."""

    def __init__(self, backbone: MPNetModel) -> None:
        self._embeddings: Any = backbone.embeddings
        self._encoder: Any = backbone.encoder
        self._heads: int = backbone.config.num_attention_heads
        self._biases: dict[int, torch.Tensor] = {}

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        """What the backbone returns for MPNet's word ids and their mask [B, T]: ``last_hidden_state`` [B, T, D]."""
        states = self._embeddings(input_ids=input_ids)
        rows, width, size = states.shape
        if width not in self._biases:
            # Fused kernels have no gradient for the bias.
            self._biases[width] = self._encoder.compute_position_bias(states[:1]).detach()
        hidden = (1 - attention_mask[:, None, None, :]).to(states.dtype) * HIDDEN
        mask = (self._biases[width] + hidden).contiguous()

        def split(values: torch.Tensor) -> torch.Tensor:
            return values.view(rows, width, self._heads, size // self._heads).transpose(1, 2)

        for layer in self._encoder.layer:
            attention = layer.attention.attn
            query, key, value = (split(project(states)) for project in (attention.q, attention.k, attention.v))
            seen = scaled_dot_product_attention(query, key, value, attn_mask=mask)
            mixed = attention.o(seen.transpose(1, 2).reshape(rows, width, size))
            states = layer.attention.LayerNorm(mixed + states)
            states = layer.output.LayerNorm(layer.output.dense(layer.intermediate(states)) + states)
        return SimpleNamespace(last_hidden_state=states)


def fuse_attention(reader: Reader) -> None:
    """Make ``reader`` read with fused attention; its weights stay as they are."""
    backbone: Any = reader.backbone
    backbone.forward = FusedStates(reader.backbone)


class HalfOptimizer:
    """AdamW over float32 copies of a model's bf16 parameters."""

    def __init__(self, model: torch.nn.Module, trained: Callable[[str], bool], lr: float, weight_decay: float) -> None:
        """Move ``model`` to bf16; parameters whose names are not ``trained`` are frozen."""
        self._model = model
        self._full = {name: value.detach().clone() for name, value in model.named_parameters()}
        model.to(torch.bfloat16)
        for name, value in model.named_parameters():
            value.requires_grad = trained(name)
        self._halves: list[torch.Tensor] = [value for value in model.parameters() if value.requires_grad]
        self._copies = [self._full[name] for name, value in model.named_parameters() if value.requires_grad]
        for copy in self._copies:
            copy.grad = torch.zeros_like(copy)
        fused = self._copies[0].is_cuda
        self._averages: list[torch.Tensor] = []
        self._peak = lr
        self._adam = torch.optim.AdamW(
            self._copies, lr=lr, betas=(0.9, 0.98), weight_decay=weight_decay, fused=fused or None
        )

    def step(self, share: float, clip: float) -> torch.Tensor:
        """Take a step at ``share`` of the peak rate, with gradients of norm ``clip`` at most: the norm before."""
        gradients = [copy.grad for copy in self._copies if copy.grad is not None]
        halves = [torch.zeros_like(half) if half.grad is None else half.grad for half in self._halves]
        torch._foreach_copy_(gradients, halves)
        norm = torch.nn.utils.clip_grad_norm_(self._copies, clip)
        for group in self._adam.param_groups:
            group["lr"] = self._peak * share
        self._adam.step()
        with torch.no_grad():
            torch._foreach_copy_(self._halves, self._copies)
        for half in self._halves:
            half.grad = None
        return norm

    def add_to_average(self, share: float) -> None:
        """Move the average of the parameters towards them by ``share``; the first call begins it with them."""
        if not self._averages:
            self._averages = [copy.detach().clone() for copy in self._copies]
        torch._foreach_lerp_(self._averages, [copy.detach() for copy in self._copies], share)

    def average_dict(self) -> dict[str, torch.Tensor]:
        """The averages of the trained parameters in float32, on the CPU; the parameters where none was begun."""
        names = [name for name, value in self._model.named_parameters() if value.requires_grad]
        return {
            name: value.detach().float().cpu()
            for name, value in zip(names, self._averages or self._copies, strict=True)
        }

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The model's parameters in float32, on the CPU."""
        return {name: value.detach().float().cpu() for name, value in self._full.items()}
