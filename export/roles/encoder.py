"""Encoder-only checkpoints (extractive QA, classifiers, token classifiers, embedders) as one ONNX graph, by optimum."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Literal

import onnx
import onnx_ir as ir

from groundwire.runtime.errors import ExportError

from ..trace import OPSET, quiet, tidy, with_single_activations, without_scripted_branch

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
    [B, T]; outputs are float32. ExportError when optimum does not know the architecture.
    """
    with quiet():
        from optimum.exporters.onnx.convert import export_pytorch
        from optimum.exporters.tasks import TasksManager

        try:
            configure = TasksManager.get_exporter_config_constructor(
                "onnx", model, task=task, library_name="transformers"
            )
        except (KeyError, ValueError) as error:
            raise ExportError(
                f"optimum cannot export {type(model).__name__} ({model.config.model_type!r}) for {task}: {error}"
            ) from error
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
