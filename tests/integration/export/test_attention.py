"""The attention of encoders as one operator, and their embeddings and masks in a few."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification

from groundwire.export import ReaderSettings, RoleOptions, export_bundle
from groundwire.export.passes import fold_transposes
from groundwire.export.passes.attention import fuse_attention
from groundwire.export.passes.head import initializer
from groundwire.export.passes.inputs import fuse_inputs
from groundwire.export.roles import question_generator, reader
from groundwire.export.roles.encoder import build_encoder_graph
from groundwire.export.session import CpuSession
from groundwire.recipes.reader.bundle import HISTORY_MARK, make_checkpoint
from groundwire.runtime.bundles.manifest import EncoderRole
from tests.support import models
from tests.support.readers import make_decided

FAMILIES = {"bert": models.extractive_qa, "albert": models.extractive_qa, "roberta": models.classifier}


def build_graph(folder: Path, family: str, attention: str = "sdpa") -> ir.Model:
    path = FAMILIES[family](folder / family, family)
    if FAMILIES[family] is models.extractive_qa:
        model = AutoModelForQuestionAnswering.from_pretrained(path, attn_implementation=attention).eval()
        return build_encoder_graph(model, "question-answering")
    model = AutoModelForSequenceClassification.from_pretrained(path, attn_implementation=attention).eval()
    return build_encoder_graph(model, "text-classification")


def count(model: ir.Model, operator: str) -> int:
    return sum(node.op_type == operator for node in model.graph)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fused_encoder_gives_the_same_logits(family: str, tmp_path: Path) -> None:
    graph = build_graph(tmp_path, family)
    layers = count(graph, "Softmax")
    fused = graph.clone()
    assert fuse_attention(fused) == layers > 0
    assert (count(fused, "Softmax"), count(fused, "Attention")) == (0, layers)
    assert len(fused.graph) < 0.7 * len(graph.graph)
    rng = np.random.default_rng(0)
    feeds = {"input_ids": rng.integers(5, 30, (3, 9)), "attention_mask": np.ones((3, 9), np.int64)}
    feeds["attention_mask"][1, 5:] = 0
    feeds["token_type_ids"] = np.zeros((3, 9), np.int64)
    feeds = {value.name: feeds[value.name] for value in graph.graph.inputs}
    expected, computed = (list(CpuSession(model)(feeds).values()) for model in (graph, fused))
    for left, right in zip(expected, computed, strict=True):
        left, right = (array[:, :5] if array.ndim == 2 and array.shape[1] == 9 else array for array in (left, right))
        assert np.abs(left - right).max() < 1e-4 < left.std()


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_that_a_new_shape_leaves_open(family: str, tmp_path: Path) -> None:
    """transformers 5 splits states to [B, T, -1, D]."""
    graph = build_graph(tmp_path, family)
    fused = graph.clone()
    layers = fuse_attention(fused)
    wanted = next(node for node in fused.graph if node.op_type == "Attention")
    heads, width = wanted.attributes["num_heads"].as_int(), wanted.inputs[1].const_value.shape[1] // 3
    shape = initializer(graph.graph, "shape.open", np.array([0, 0, -1, width // heads]))
    for node in graph.graph:
        moved = next(iter(node.outputs[0].uses()), None) if node.op_type == "Reshape" else None
        if moved is not None and moved.node.op_type == "Transpose":
            node.replace_input_with(1, shape)
    assert fuse_attention(graph) == layers
    counts = {node.attributes["num_heads"].as_int() for node in graph.graph if node.op_type == "Attention"}
    assert counts == {heads}


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("family", FAMILIES)
def test_fused_inputs_give_the_same_logits(family: str, attention: str, tmp_path: Path) -> None:
    """Padded tokens, token types and the longest text; what is padded is not compared, because nothing reads it.

    Both implementations of attention are traced, whose masks are computed differently.
    """
    graph = build_graph(tmp_path, family, attention)
    fuse_attention(graph)
    fused = graph.clone()
    assert fuse_inputs(fused) == 2
    assert not {node.op_type for node in fused.graph} & {"CumSum", "Not", "Sub", "Cast"}
    assert count(fused, "SkipLayerNormalization") == 1
    rng = np.random.default_rng(0)
    width = models.MAX_TOKENS
    lengths = np.array([width, 5, 1, 40])
    mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
    ids = np.where(mask == 1, rng.integers(5, 200, mask.shape), 1)
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": (np.arange(width) > 3) * mask}
    feeds = {str(value.name): feeds[str(value.name)] for value in graph.graph.inputs}
    expected, computed = (list(CpuSession(model)(feeds).values()) for model in (graph, fused))
    for left, right in zip(expected, computed, strict=True):
        if left.shape[1:] == mask.shape[1:]:
            left, right = left[mask == 1], right[mask == 1]
        assert np.abs(left - right).max() < 1e-4 < left.std()


def build_reader() -> ir.Model:
    checkpoint = make_checkpoint(make_decided(), "tiny", 48)
    options = RoleOptions("tiny", ReaderSettings(checkpoint, HISTORY_MARK))
    return reader.KIND.convert("reader", checkpoint, options).graphs["reader.onnx"]


def build_t5_encoder(folder: Path) -> ir.Model:
    options = RoleOptions(str(models.t5_for_cuda(folder / "t5")))
    return question_generator.KIND.convert("qg", question_generator.KIND.load(options), options).graphs[
        "qg.encoder.onnx"
    ]


@pytest.mark.parametrize(("family", "inputs"), [("reader", 2), ("t5", 0)])
def test_a_bias_of_relative_positions_is_added_by_the_operator(family: str, inputs: int, tmp_path: Path) -> None:
    graph = build_reader() if family == "reader" else build_t5_encoder(tmp_path)
    fold_transposes(graph)
    fused, layers = graph.clone(), count(graph, "Softmax")
    assert (fuse_attention(fused), fuse_inputs(fused)) == (layers, inputs)
    biases = {node.inputs[5] for node in fused.graph if node.op_type == "Attention"}
    assert len(biases) == 1, "the layers share the sum of positions and mask"
    rng = np.random.default_rng(0)
    mask = np.ones((3, 40), np.int64)
    mask[1, 5:] = 0
    ids = np.where(mask == 1, rng.integers(105, 560, mask.shape), 0)
    numbers = np.where(np.arange(40) < 20, 0, rng.integers(1, 4, mask.shape))
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numbers}
    feeds = {str(value.name): values[str(value.name)] for value in graph.graph.inputs}
    expected, computed = (CpuSession(model)(feeds) for model in (graph, fused))
    for name, left in expected.items():
        right = computed[name]
        if left.shape[1:2] == mask.shape[1:]:
            left, right = left[mask == 1], right[mask == 1]
        elif left.ndim == 4:  # keys and values: [B, H, T, D]
            left, right = (array.transpose(0, 2, 1, 3)[mask == 1] for array in (left, right))
        assert np.abs(left - right).max() < 1e-4 < left.std()


def test_shared_layers_share_the_joined_weights(tmp_path: Path) -> None:
    graph = build_graph(tmp_path, "albert")
    layers = fuse_attention(graph)
    weights = {node.inputs[1] for node in graph.graph if node.op_type == "Attention"}
    assert layers > len(weights) == 1


def test_other_attentions_are_left_alone(tmp_path: Path) -> None:
    path = models.classifier(tmp_path / "deberta", "deberta")
    model = AutoModelForSequenceClassification.from_pretrained(path).eval()
    graph = build_encoder_graph(model, "text-classification")
    nodes = [node.op_type for node in graph.graph]
    assert fuse_attention(graph) == fuse_inputs(graph) == 0
    assert [node.op_type for node in graph.graph] == nodes


def test_a_target_for_cuda_is_fused_and_passes_the_gate(tmp_path: Path) -> None:
    path = str(models.classifier(tmp_path / "nli", "roberta"))
    out = tmp_path / "bundle"
    export_bundle({"nli": RoleOptions(path, precision="fp32")}, out)
    bundle = export_bundle({"nli": RoleOptions(path, precision="fp16", target="cuda")}, out)
    role = bundle.manifest.roles["nli"]
    assert isinstance(role, EncoderRole)
    target = role.find_target("cuda")
    assert target is not None
    assert target.precision == "fp16"
    assert target.parity is not None
    assert target.parity.gate == "passed"
    assert count(ir.load(bundle.file(target.graph)), "Attention") == 2
    assert count(ir.load(bundle.file(role.graph)), "Attention") == 0
    fused = [node.op_type for node in ir.load(bundle.file(target.graph)).graph]
    assert "CumSum" not in fused
    assert fused.count("SkipLayerNormalization") == 1, "ONNX Runtime fuses the others"
