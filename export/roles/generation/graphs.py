"""The two ONNX graphs of a generating model, with the signatures of docs/reference/graphs.md."""

from __future__ import annotations

import onnx_ir as ir
import torch

from ...passes.head import MICROSOFT
from ...trace import trace
from .contrast import add_contrast
from .family import Halves
from .fused_step import FusedStep
from .step import Step


def build_generation_graphs(halves: Halves, *, contrast: bool = False) -> tuple[ir.Model, ir.Model]:
    """Return encoder and decoder step, float32; with ``contrast`` the step scores tokens by PMI-Decode's rule."""
    add_outputs = add_contrast if contrast else _add_candidates
    return _trace_encoder(halves), add_outputs(_trace_decoder(halves.step), halves.step.vocabulary)


def build_fused_step(step: Step) -> ir.Model:
    """Return the decoder step for CUDA, float32 (``FusedStep``)."""
    return _add_candidates(_describe_outputs(_trace_fused(step)), step.vocabulary)


def _trace_encoder(halves: Halves) -> ir.Model:
    batch, width = {0: "batch", 1: "tokens"}, (2, 5)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if halves.token_types else [])]
    states = {0: "batch", 2: "tokens"}
    return trace(
        halves.source,
        [(name, torch.ones(width, dtype=torch.int64), batch) for name in names],
        [(f"cross.{part}.{index}", states) for index in range(len(halves.step.layers)) for part in ("key", "value")],
    )


def _trace_decoder(step: Step) -> ir.Model:
    # All example sizes differ and none is 1, so that the tracer takes none for a constant or a broadcast.
    sources, beams, before, past, width = 2, 3, 4, 6, 5
    ids = {0: "sources", 1: "beams"}
    inputs = [
        ("tokens", torch.ones(sources, beams, dtype=torch.int64), ids),
        ("parents", torch.ones(sources, beams, dtype=torch.int64), ids),
        ("cross_mask", torch.ones(sources, width, dtype=torch.int64), {0: "sources", 1: "width"}),
    ]
    outputs = [("logits", ids)]
    for index in range(len(step.layers)):
        for part in ("key", "value"):
            states = torch.zeros(sources, before, step.heads, past, step.head_dim)
            inputs.append((f"past.{part}.{index}", states, {0: "sources", 1: "before", 3: "past"}))
            outputs.append((f"present.{part}.{index}", {0: "sources", 1: "beams", 3: "present"}))
        for part in ("key", "value"):
            cross = torch.zeros(sources, step.heads, width, step.head_dim)
            inputs.append((f"cross.{part}.{index}", cross, {0: "sources", 2: "width"}))
    return trace(step, inputs, outputs)


def _trace_fused(step: Step) -> ir.Model:
    sources, beams, positions, width = 2, 3, 7, 5
    ids, rows = {0: "sources", 1: "beams"}, {0: "rows", 2: "positions"}
    inputs = [
        ("tokens", torch.ones(sources, beams, dtype=torch.int64), ids),
        ("cache_indirection", torch.ones(sources, beams, positions, dtype=torch.int32), {**ids, 2: "positions"}),
        ("cross_mask", torch.ones(sources, width, dtype=torch.int64), {0: "sources", 1: "width"}),
        ("past_sequence_length", torch.tensor([6], dtype=torch.int32), {}),
    ]
    outputs = [("logits", ids)]
    for index in range(len(step.layers)):
        for part in ("key", "value"):
            states = torch.zeros(sources * beams, step.heads, positions, step.head_dim)
            inputs.append((f"past.{part}.{index}", states, rows))
            outputs.append((f"present.{part}.{index}", rows))
        for part in ("key", "value"):
            cross = torch.zeros(sources, step.heads, width, step.head_dim)
            inputs.append((f"cross.{part}.{index}", cross, {0: "sources", 2: "width"}))
    return trace(FusedStep(step).eval(), inputs, outputs)


def _describe_outputs(model: ir.Model) -> ir.Model:
    """Give the results of ONNX Runtime's operators their type, and leave out results of norms that nothing reads."""
    for node in model.graph:
        if node.domain == MICROSOFT:
            for value in node.outputs:
                value.type = ir.TensorType(ir.DataType.FLOAT)
                if not value.uses() and not value.is_graph_output():
                    value.name, value.type = "", None
    inputs = {value.name: value for value in model.graph.inputs}
    for value in model.graph.outputs:
        if value.name and value.name.startswith("present."):
            value.shape = inputs[value.name.replace("present", "past")].shape
    return model


def _add_candidates(model: ir.Model, vocabulary: int) -> ir.Model:
    """Replace the logits by the ``count`` best log-probabilities of every beam and their tokens."""
    graph = model.graph
    logits = graph.outputs[0]
    count = ir.Value(name="count", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([1]))
    graph.inputs.append(count)
    probabilities = ir.node("LogSoftmax", [logits], {"axis": -1})
    best = ir.node("TopK", [probabilities.outputs[0], count], {"axis": -1, "largest": 1, "sorted": 1}, num_outputs=2)
    graph.extend([probabilities, best])
    for value, name, dtype in zip(
        best.outputs, ("scores", "candidates"), (ir.DataType.FLOAT, ir.DataType.INT64), strict=True
    ):
        value.name, value.type = name, ir.TensorType(dtype)
        value.shape = ir.Shape(["sources", "beams", "candidates"])
    logits.shape = ir.Shape(["sources", "beams", vocabulary])
    graph.outputs[0:1] = list(best.outputs)
    return model
