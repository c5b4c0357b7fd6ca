"""The three graphs of an entity retriever, with the signatures of docs/reference/graphs.md."""

from __future__ import annotations

import onnx_ir as ir
import torch
from torch import Tensor, nn

from ...trace import trace
from .model import EntityRetriever

# All example sizes differ and none is 1, so that the tracer takes none for a constant or a broadcast.
_ROWS, _WIDTH, _MENTIONS = 2, 5, 3


class _Encoder(nn.Module):
    def __init__(self, model: EntityRetriever) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        return self.model.states(input_ids, attention_mask, token_type_ids)


class _Query(nn.Module):
    def __init__(self, model: EntityRetriever) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, slots: Tensor, pairs: Tensor, last: Tensor) -> Tensor:
        return self.model.query(input_ids, slots, pairs, last)


class _Memory(nn.Module):
    def __init__(self, model: EntityRetriever) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model.remember(input_ids, attention_mask)


def modules(model: EntityRetriever) -> tuple[nn.Module, nn.Module, nn.Module]:
    """Return the modules to trace: encoder, query and memory, in evaluation mode."""
    return _Encoder(model).eval(), _Query(model).eval(), _Memory(model).eval()


def build_retriever_graphs(model: EntityRetriever) -> tuple[ir.Model, ir.Model, ir.Model]:
    """Return the float32 graphs of the encoder, the query and the memory."""
    ids = torch.ones(_ROWS, _WIDTH, dtype=torch.int64)
    text = {0: "rows", 1: "tokens"}
    names = ("input_ids", "attention_mask", "token_type_ids")
    encoder, query, memory = modules(model)
    return (
        trace(encoder, [(name, ids, text) for name in names], [("hidden", text)]),
        trace(
            query,
            [
                ("input_ids", ids, text),
                ("slots", torch.tensor([[0, 1, 2, 0, 3]] * _ROWS), text),
                ("pairs", torch.zeros(_ROWS, _MENTIONS, 2 * model.width), {0: "rows", 1: "mentions"}),
                ("last", torch.tensor([4, 3]), {0: "rows"}),
            ],
            [("query", {0: "rows"})],
        ),
        trace(memory, [("input_ids", ids, text), ("attention_mask", ids, text)], [("memory", {0: "rows"})]),
    )
