"""The one graph of a language model, with the signature of docs/reference/graphs.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn

from groundwire.runtime.errors import ExportError

from ...passes.head import attach
from ...trace import trace
from . import bloom, gpt2, llama
from .decoder import CausalDecoder
from .whole import wrap_model


@dataclass(frozen=True)
class ScoringGraph:
    """A float32 graph that scores texts, and the sizes of the keys and values it takes and gives."""

    graph: ir.Model
    layers: int = 0
    """0 when the graph reads prefix and text together."""
    heads: int = 0
    head_dim: int = 0


def build_scoring_graph(model: Any, *, streamed: bool) -> ScoringGraph:
    """Return the graph of a transformers causal language model in evaluation mode.

    ``streamed`` gives it the head for CPUs, which reads the vocabulary block by block (passes/head.py). ExportError for
    a model that is not causal, or whose head cannot be identified.
    """
    head = model.get_output_embeddings()
    if head is None or getattr(head, "weight", None) is None or head.weight.ndim != 2:
        raise ExportError(
            f"{type(model).__name__} has no output embeddings to take the probabilities of tokens from; "
            "give a causal language model, such as bigscience/bloom-560m or gpt2."
        )
    decoder = build_decoder(model)
    if decoder is None:
        module = wrap_model(model)
        graph = trace(module, _full_text_inputs(), [("hidden", {0: "scored"})])
        return ScoringGraph(_attach_head(graph, module, head, streamed))
    graph = trace(decoder, _decoder_inputs(decoder), _decoder_outputs(decoder))
    return ScoringGraph(
        _attach_head(graph, decoder, head, streamed), len(decoder.layers), decoder.heads, decoder.head_dim
    )


def build_decoder(model: Any) -> CausalDecoder | None:
    """Return the decoder of a causal model whose family is known; None for another."""
    match model.config.model_type:
        case "gpt2" if not model.config.add_cross_attention:
            return gpt2.build_gpt2_decoder(model).eval()
        case "bloom":
            return bloom.build_bloom_decoder(model).eval()
        case "llama" | "mistral" | "qwen2" | "qwen3" if llama.has_fixed_turns(model):
            return llama.build_llama_decoder(model).eval()
        case _:
            return None


def _attach_head(graph: ir.Model, module: nn.Module, head: Any, streamed: bool) -> ir.Model:
    bias = getattr(head, "bias", None)
    # A tied head's weight is in the graph already, under the name of the embedding that reads it.
    names = (name for name, parameter in module.named_parameters(remove_duplicate=False) if parameter is head.weight)
    tied = next((name for name in names if name in graph.graph.initializers), None)
    attach(graph, tied or head.weight.detach().numpy(), None if bias is None else bias.detach().numpy(), streamed)
    return graph


# All example sizes differ and none is 1, so that the tracer takes none for a constant or a broadcast.
_SOURCES, _TEXTS, _WIDTH, _PAST, _SCORED = 2, 3, 5, 7, 4


def _decoder_inputs(decoder: CausalDecoder) -> list[tuple[str, Tensor, dict[int, str]]]:
    inputs = [
        ("tokens", torch.ones(_SOURCES, _TEXTS, _WIDTH, dtype=torch.int64), {0: "sources", 1: "texts", 2: "width"}),
        ("past_mask", torch.ones(_SOURCES, _PAST, dtype=torch.int64), {0: "sources", 1: "past"}),
        ("rows", torch.arange(_SCORED), {0: "scored"}),
    ]
    for index in range(len(decoder.layers)):
        for part in ("key", "value"):
            past = torch.zeros(_SOURCES, decoder.heads, _PAST, decoder.head_dim)
            inputs.append((f"past.{part}.{index}", past, {0: "sources", 2: "past"}))
    return inputs


def _decoder_outputs(decoder: CausalDecoder) -> list[tuple[str, dict[int, str]]]:
    present = {0: "sources", 2: "present"}
    names = [f"present.{part}.{index}" for index in range(len(decoder.layers)) for part in ("key", "value")]
    return [("hidden", {0: "scored"}), *((name, present) for name in names)]


def _full_text_inputs() -> list[tuple[str, Tensor, dict[int, str]]]:
    batch = {0: "batch", 1: "width"}
    return [
        ("input_ids", torch.arange(1, 1 + _SOURCES * _WIDTH).reshape(_SOURCES, _WIDTH), batch),
        ("attention_mask", torch.ones(_SOURCES, _WIDTH, dtype=torch.int64), batch),
        ("rows", torch.arange(_SCORED), {0: "scored"}),
    ]
