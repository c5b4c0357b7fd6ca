"""Restores a checkpoint from a bundle's int8 graph, so that training can continue from a bundle.

Checkpoints are large and are not kept; bundles are. An int8 weight differs from the float
weight it was made of by at most half a quantization step of its column, which a few training steps make up for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch
from transformers import BertConfig, BertForQuestionAnswering, BertForSequenceClassification, BertModel, PreTrainedModel

from groundwire.runtime.bundle import Bundle
from groundwire.runtime.manifest import ClassifierRole, ExtractiveQARole

from . import backbone


def restore_checkpoint(bundle: Path, role: str) -> PreTrainedModel:
    """The PyTorch model of an extractive QA or classifier role that was trained from the backbone.

    Word embeddings are the backbone's, which no recipe changes. ValueError for another kind of role, or for a graph
    that lacks a weight of the model.
    """
    opened = Bundle.open(bundle)
    record = opened.manifest.roles.get(role)
    config = BertConfig.from_pretrained(backbone.PATH)
    model: PreTrainedModel
    match record:
        case ExtractiveQARole():
            model = BertForQuestionAnswering(config)
        case ClassifierRole():
            config.id2label = dict(enumerate(record.labels))
            config.label2id = {label: index for index, label in enumerate(record.labels)}
            model = BertForSequenceClassification(config)
        case _:
            raise ValueError(
                f"{bundle} has no {role!r} that can be trained further; give its extractive QA role or a classifier."
            )
    float_weights = read_weights(ir.load(opened.file(record.graph)))
    word_embeddings = "bert.embeddings.word_embeddings.weight"
    float_weights[word_embeddings] = (
        BertModel.from_pretrained(backbone.PATH).get_input_embeddings().weight.detach().numpy().copy()
    )
    state = model.state_dict()
    missing = [name for name in state if name not in float_weights and not name.endswith("_ids")]
    if missing:
        raise ValueError(f"The graph of {role!r} lacks {', '.join(missing[:3])}; it was exported from another model.")
    model.load_state_dict(
        {name: torch.from_numpy(float_weights[name]) if name in float_weights else state[name] for name in state}
    )
    return model.eval()


def write_restored_checkpoint(bundle: Path, role: str, out: Path) -> None:
    """Write the restored model and the backbone's tokenizer as a checkpoint in ``out``."""
    restore_checkpoint(bundle, role).save_pretrained(out)
    backbone.load_tokenizer().save_pretrained(out)


def read_weights(model: ir.Model) -> dict[str, npt.NDArray[np.float32]]:
    """The float weights of a graph by the names of its checkpoint, in PyTorch's orientation: [outputs, inputs]."""
    values = {str(name): value for name, value in model.graph.initializers.items() if value.const_value is not None}
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for name, value in values.items():
        assert value.const_value is not None
        array = value.const_value.numpy()
        if array.ndim == 2 and _is_stored_inputs_first(value):
            array = array.T
        if name.endswith(".int8"):
            name = name.removesuffix(".int8")
            scale = values[f"{name}.scale"].const_value
            assert scale is not None
            array = array.astype(np.float32) * scale.numpy()[:, None]
        if array.dtype == np.float32:
            weights[name] = np.array(array)
    return weights


def _is_stored_inputs_first(value: ir.Value) -> bool:
    """Whether a matrix product reads the matrix as stored, [inputs, outputs], and not transposed or row by row."""
    node, _ = next(iter(value.uses()))
    return node.op_type in ("MatMul", "MatMulIntegerToFloat") or (
        node.op_type == "Gemm" and node.attributes.get_int("transB", 0) == 0
    )
