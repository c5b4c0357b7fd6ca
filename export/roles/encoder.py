"""Encoder-only checkpoints (extractive QA, classifiers, token classifiers, embedders) as one ONNX graph.

optimum exports the architectures that it knows, where it is installed (the extra ``optimum``, with transformers 4).
All others are traced as they are; the parity check decides whether the graph is right.
"""

from __future__ import annotations

import importlib.util
import inspect
import tempfile
from pathlib import Path
from typing import Any, Literal

import onnx
import onnx_ir as ir
import torch
from torch import Tensor, nn

from groundwire.runtime.errors import ExportError

from ..trace import OPSET, quiet, tidy, trace, with_single_activations, without_scripted_branch

Task = Literal["question-answering", "text-classification", "token-classification", "feature-extraction"]
OUTPUTS: dict[Task, tuple[str, ...]] = {
    "question-answering": ("start_logits", "end_logits"),
    "text-classification": ("logits",),
    "token-classification": ("logits",),
    "feature-extraction": ("last_hidden_state",),
}


def build_encoder_graph(model: Any, task: Task) -> ir.Model:
    """Return the float32 graph of a transformers model in evaluation mode.

    Inputs are ``input_ids``, ``attention_mask`` and, where the architecture has them, ``token_type_ids``, all int64
    [B, T]; outputs are float32. ExportError when the model has other outputs than ``task`` needs.
    """
    return export_by_optimum(model, task) or trace_encoder(model, task)


def export_by_optimum(model: Any, task: Task) -> ir.Model | None:
    """Return the graph as optimum exports it; None without optimum, and for an architecture that it does not know."""
    if importlib.util.find_spec("optimum") is None:
        return None
    with quiet():
        try:
            from optimum.exporters.onnx.convert import export_pytorch
            from optimum.exporters.tasks import TasksManager

            configure = TasksManager.get_exporter_config_constructor(
                "onnx", model, task=task, library_name="transformers"
            )
        except (ImportError, KeyError, ValueError):  # ImportError: optimum is not for this version of transformers
            return None
        config = configure(model.config)
        with (
            tempfile.TemporaryDirectory(prefix="groundwire-") as folder,
            with_single_activations(model),
            without_scripted_branch(model),
        ):
            path = Path(folder, "model.onnx")
            _, outputs = export_pytorch(model, config, OPSET, path, do_constant_folding=False)
            exported = onnx.load(path)
    if tuple(outputs) != OUTPUTS[task]:
        raise ExportError(f"{type(model).__name__} gives the outputs {outputs}; {task} needs {OUTPUTS[task]}.")
    return tidy(ir.from_proto(exported))


class _Encoder(nn.Module):
    """A transformers model with its inputs by position and its outputs as a tuple."""

    def __init__(self, model: Any, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs
        self.outputs = outputs

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of ``self.outputs`` for the tensors of ``self.inputs``, [B, T]."""
        output = self.model(**dict(zip(self.inputs, tensors, strict=True)))
        return tuple(output[name] for name in self.outputs)


def trace_encoder(model: Any, task: Task) -> ir.Model:
    """Return the graph as torch traces it; ExportError when the model has other outputs than ``task`` needs."""
    names = ["input_ids", "attention_mask"]
    has_types = getattr(model.config, "type_vocab_size", 0) > 1
    if has_types and "token_type_ids" in inspect.signature(model.forward).parameters:
        names.append("token_type_ids")
    # Padding, so that no model leaves its mask out of the graph.
    mask = torch.ones(2, 5, dtype=torch.int64)
    mask[1, 4] = 0
    examples = {"input_ids": torch.arange(2, 12).reshape(2, 5), "attention_mask": mask}
    examples["token_type_ids"] = torch.zeros_like(mask)
    batch = {0: "batch_size", 1: "sequence_length"}
    axes = {0: "batch_size"} if task == "text-classification" else batch
    encoder = _Encoder(model, tuple(names), OUTPUTS[task]).eval()
    try:
        return trace(
            encoder,
            [(name, examples[name], batch) for name in names],
            [(name, axes) for name in OUTPUTS[task]],
        )
    except KeyError as error:
        raise ExportError(f"{type(model).__name__} has no output {error}; {task} needs {OUTPUTS[task]}.") from error
