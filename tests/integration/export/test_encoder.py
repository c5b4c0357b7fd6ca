"""Extractive QA models and classifiers of every family, in every precision, against transformers."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest
import torch
from transformers import DistilBertConfig, DistilBertForQuestionAnswering

from groundwire.export.passes import fold_transposes, quantize, to_half
from groundwire.export.roles import encoder
from groundwire.export.session import CpuSession
from groundwire.runtime.errors import ExportError
from tests.support.graphs import Loader, inputs
from tests.support.processor import exact_products

Array = npt.NDArray[Any]
KINDS: tuple[str, ...] = ("extractive_qa", "classifier")
CASES = [(kind, family) for kind in KINDS for family in ("albert", "bert", "roberta")]
TASKS: dict[str, encoder.Task] = {"extractive_qa": "question-answering", "classifier": "text-classification"}
needs_optimum = pytest.mark.skipif(
    importlib.util.find_spec("optimum") is None, reason="optimum is not for this version of transformers"
)
_GRAPHS: dict[tuple[str, str], ir.Model] = {}


def graph_of(load: Loader, kind: str, family: str) -> ir.Model:
    if (kind, family) not in _GRAPHS:
        graph = encoder.build_encoder_graph(load(kind, family).model, TASKS[kind])
        fold_transposes(graph)
        _GRAPHS[kind, family] = graph
    return _GRAPHS[kind, family].clone()


def expected(model: Any, session: CpuSession, batch: dict[str, Array]) -> list[Array]:
    with torch.inference_mode():
        output = model(**{name: torch.from_numpy(batch[name]) for name in session.inputs})
    logits = (output.start_logits, output.end_logits) if hasattr(output, "start_logits") else (output.logits,)
    return [values.numpy() for values in logits]


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_fp32_equals_the_checkpoint(load: Loader, kind: str, family: str) -> None:
    session = CpuSession(graph_of(load, kind, family))
    assert tuple(session.outputs) == encoder.OUTPUTS[TASKS[kind]]
    for rows, width in ((4, 13), (1, 5), (2, 1)):
        batch = inputs(max(rows, 2), width)
        for actual, want in zip(
            session(batch).values(), expected(load(kind, family).model, session, batch), strict=True
        ):
            assert actual.dtype == np.float32
            real = batch["attention_mask"] == 1 if kind == "extractive_qa" else slice(None)
            np.testing.assert_allclose(actual[real], want[real], atol=1e-4)


@exact_products
@pytest.mark.parametrize(("kind", "family"), CASES)
def test_int8_is_near_and_ignores_batch_mates(load: Loader, kind: str, family: str) -> None:
    graph = graph_of(load, kind, family)
    quantize(graph)
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in graph.graph) >= 12
    session = CpuSession(graph)
    batch = inputs(9)
    together = session(batch)
    for rows in (slice(0, 1), slice(1, 2), slice(3, 8), slice(8, 9)):
        alone = session({name: values[rows] for name, values in batch.items()})
        for name, values in alone.items():
            assert np.array_equal(values, together[name][rows])
    # A loud batch-mate would set the scale of a per-tensor quantizer.
    loud = {name: values.copy() for name, values in batch.items()}
    loud["input_ids"][5:] = 199
    for name, values in session(loud).items():
        assert np.array_equal(values[:5], together[name][:5])
    for actual, want in zip(together.values(), expected(load(kind, family).model, session, batch), strict=True):
        assert np.sqrt(np.square(actual - want).mean()) < 0.12 * want.std()


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_half_is_near(load: Loader, kind: str, family: str) -> None:
    graph = graph_of(load, kind, family)
    to_half(graph)
    weights = [value.const_value for value in graph.graph.initializers.values() if value.const_value is not None]
    assert {weight.dtype for weight in weights if weight.size > 500} == {ir.DataType.FLOAT16}
    session = CpuSession(graph)
    batch = inputs()
    for actual, want in zip(session(batch).values(), expected(load(kind, family).model, session, batch), strict=True):
        assert actual.dtype == np.float32
        assert np.isfinite(actual).all()
        real = batch["attention_mask"] == 1 if kind == "extractive_qa" else slice(None)
        np.testing.assert_allclose(actual[real], want[real], atol=0.02 * max(1.0, want.std()))


def distilbert() -> DistilBertForQuestionAnswering:
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=300, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=32)
    return DistilBertForQuestionAnswering(config).eval()


def check(graph: ir.Model, model: Any) -> None:
    """Compare a float graph with its model."""
    session = CpuSession(graph)
    for rows, width in ((4, 13), (3, 7), (2, 1)):
        batch = inputs(rows, width)
        for actual, want in zip(session(batch).values(), expected(model, session, batch), strict=True):
            real = batch["attention_mask"] == 1 if actual.ndim == 2 and actual.shape[1] == width else slice(None)
            np.testing.assert_allclose(actual[real], want[real], atol=1e-4)


@needs_optimum
def test_optimum_exports_what_it_knows() -> None:
    graph = encoder.export_by_optimum(distilbert(), "question-answering")
    assert graph is not None
    check(graph, distilbert())


def test_an_architecture_optimum_does_not_know_is_traced() -> None:
    model = distilbert()
    model.config.model_type = "unknown-type"
    assert encoder.export_by_optimum(model, "question-answering") is None
    check(encoder.build_encoder_graph(model, "question-answering"), model)


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_a_traced_graph_equals_the_checkpoint(load: Loader, kind: str, family: str) -> None:
    """What is used without optimum, and with transformers 5."""
    model = load(kind, family).model
    graph = encoder.trace_encoder(model, TASKS[kind])
    takes_types = family in ("albert", "bert")
    assert [value.name for value in graph.graph.inputs] == ["input_ids", "attention_mask"] + takes_types * [
        "token_type_ids"
    ]
    check(graph, model)


@needs_optimum
@pytest.mark.parametrize(("kind", "family"), CASES)
def test_both_ways_quantize_to_the_same_values(load: Loader, kind: str, family: str) -> None:
    model = load(kind, family).model
    sessions = []
    for graph in (encoder.export_by_optimum(model, TASKS[kind]), encoder.trace_encoder(model, TASKS[kind])):
        assert graph is not None
        fold_transposes(graph)
        quantize(graph)
        sessions.append(CpuSession(graph))
    traced, exported = (session(inputs()) for session in sessions)
    for name, values in traced.items():
        np.testing.assert_allclose(values, exported[name], atol=1e-5)


def test_a_model_with_other_outputs_is_refused() -> None:
    with pytest.raises(ExportError, match=r"DistilBertForQuestionAnswering has no output .*text-classification needs"):
        encoder.trace_encoder(distilbert(), "text-classification")
