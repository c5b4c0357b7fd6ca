"""Any causal model as transformers runs it: prefix and text together, without cached keys and values."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from groundwire.runtime.errors import ExportError

from ...trace import quiet


class WholeModel(nn.Module):
    """The transformers model up to its final states, the input of its head."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def forward(self, input_ids: Tensor, attention_mask: Tensor, rows: Tensor) -> Tensor:
        """Return final states [N, d] at ``rows`` of the flattened [B, T]."""
        hidden, _ = self.states(input_ids, attention_mask)
        return hidden.reshape(-1, hidden.shape[-1])[rows]

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return final states [B, T, d], and the logits that the model computes from them."""
        positions = {}
        if self.takes_positions:
            positions["position_ids"] = (attention_mask.cumsum(1) - 1).clamp(min=0)
        seen: list[Tensor] = []
        hook = self.model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            output = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False, **positions)
        finally:
            hook.remove()
        return seen[-1], output.logits


@torch.no_grad()
def wrap_model(model: Any) -> WholeModel:
    """Wrap a causal model; ExportError for a model that is not causal, or that changes its logits after the head."""
    name = f"{type(model).__name__} ({model.config.model_type!r})"
    wrapped = WholeModel(model).eval()
    ids = torch.arange(8).unsqueeze(0) % model.config.vocab_size
    other = torch.cat((ids[:, :-1], ids[:, :1]), dim=1)
    with quiet():
        hidden, logits = wrapped.states(ids, torch.ones_like(ids))
        changed, _ = wrapped.states(other, torch.ones_like(ids))
    if not torch.allclose(hidden[:, :-1], changed[:, :-1], atol=1e-5):
        raise ExportError(
            f"{name} is not causal: a token changes the states before it. Give a causal language model, such as "
            "bigscience/bloom-560m or gpt2."
        )
    if not torch.allclose(model.get_output_embeddings()(hidden), logits.to(hidden.dtype), atol=1e-4, rtol=1e-4):
        raise ExportError(
            f"{name} changes its logits after the head (a cap or a scale), which the exported head does not do. "
            "Give a model whose logits are the output of its head."
        )
    return wrapped
