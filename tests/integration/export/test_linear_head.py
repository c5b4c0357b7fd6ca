"""A linear function of what a classifier's head reads is added to its logits; nothing else of the graph changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from groundwire.export.linear_head import add_to_head, expose_features
from groundwire.export.options import ClassifierSettings, RoleOptions
from groundwire.export.pipeline import export_bundle
from groundwire.runtime.bundles.manifest import ClassifierRole
from groundwire.runtime.errors import ExportError
from tests.support.models import classifier, embedder
from tests.support.shared import shared_root
from tests.support.zoo import Zoo

IDS = np.array([[2, 7, 9, 3, 11, 12, 3], [2, 8, 3, 10, 3, 0, 0]])
MASK = (IDS > 0).astype(np.int64)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    return Zoo(shared_root(tmp_path_factory) / "zoo")


def run(graph: Path) -> dict[str, Any]:
    session = ort.InferenceSession(str(graph))
    feeds = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": np.zeros_like(IDS)}
    names = [value.name for value in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}
    return dict(
        zip(names, session.run(None, {name: feed for name, feed in feeds.items() if name in wanted}), strict=True)
    )


def change(graph: Path, output: str | None, seed: int) -> dict[str, Any]:
    """Add random matrices to the head; the logits that the graph should then return, and its other outputs."""
    copy = graph.with_name("features.onnx")
    features = expose_features(graph, output, copy)
    before = run(copy)
    copy.unlink()
    name = output or "logits"
    rng = np.random.default_rng(seed)
    labels = before[name].shape[1]
    weights = {f: rng.normal(size=(before[f].shape[1], labels)).astype(np.float32) for f in features}
    bias = rng.normal(size=labels).astype(np.float32)
    add_to_head(graph, output, weights, bias)
    expected = before[name] + sum(before[f] @ weight for f, weight in weights.items()) + bias
    return {other: value for other, value in before.items() if other not in features} | {name: expected}


@pytest.mark.parametrize(("family", "count"), [("bert", 2), ("roberta", 2), ("albert", 2), ("deberta", 2)])
def test_the_logits_change_by_a_linear_function_of_the_features(
    zoo: Zoo, tmp_path: Path, family: str, count: int
) -> None:
    bundle = zoo.bundle("nli", family)
    graph = tmp_path / "copy" / "nli.onnx"
    shutil.copytree(bundle.directory, graph.parent)
    features = expose_features(graph, None, graph.with_name("features.onnx"))
    assert len(features) == count
    values = run(graph.with_name("features.onnx"))
    assert all(values[name].ndim == 2 and len(values[name]) == len(IDS) for name in features)
    for seed in (1, 2):  # an adapted head can be adapted again
        expected = change(graph, None, seed)
        np.testing.assert_allclose(run(graph)["logits"], expected["logits"], atol=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_other_heads_of_a_graph_stay_as_they_are(tmp_path: Path, precision: Any) -> None:
    roles = {}
    for name, labels in {"nli": ("entailment", "neutral", "contradiction"), "detector.a": ("yes", "no")}.items():
        classifier(tmp_path / name, "bert", labels=labels)
        roles[name] = RoleOptions(
            str(tmp_path / name),
            ClassifierSettings(supported=("yes",) if name != "nli" else None),
            precision=precision,
            allow_unverified=True,
        )
    from transformers import AutoModelForSequenceClassification

    first, second = (AutoModelForSequenceClassification.from_pretrained(tmp_path / name) for name in roles)
    second.bert.load_state_dict(first.bert.state_dict())
    second.save_pretrained(tmp_path / "detector.a")
    bundle = export_bundle(roles, tmp_path / "bundle")
    record = bundle.manifest.roles["detector.a"]
    assert isinstance(record, ClassifierRole)
    graph = bundle.file(record.graph)
    nodes = len(ir.load(graph).graph)
    expected = change(graph, record.output, 3)
    changed = run(graph)
    assert set(changed) == {"nli", "detector.a"}
    np.testing.assert_allclose(changed["detector.a"], expected["detector.a"], atol=1e-4)
    np.testing.assert_array_equal(changed["nli"], expected["nli"])
    assert len(ir.load(graph).graph) == nodes + 3


def test_a_graph_without_a_linear_head_is_refused(tmp_path: Path) -> None:
    embedder(tmp_path / "model", "bert")
    options = RoleOptions(str(tmp_path / "model"), precision="fp32")
    bundle = export_bundle({"embedder": options}, tmp_path / "bundle")
    graph = bundle.directory / "embedder.onnx"
    with pytest.raises(ExportError, match="not those of a linear layer"):
        expose_features(graph, None, graph.with_name("features.onnx"))
    with pytest.raises(ExportError, match="has the outputs hidden, not other"):
        expose_features(graph, "other", graph.with_name("features.onnx"))
