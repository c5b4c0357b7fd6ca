"""float16 graphs that would overflow on a GPU, seen on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from groundwire.export.options import RoleOptions
from groundwire.export.passes import fold_transposes, round_to_half, to_half
from groundwire.export.precision import reduce_precision
from groundwire.export.roles import encoder, generation
from groundwire.export.roles.registry import KINDS
from groundwire.export.session import Arrays, CpuSession
from groundwire.export.verify.outcome import SessionOpener
from groundwire.export.verify.ranges import HALF_LIMIT, measure_magnitudes
from groundwire.runtime.bundles.manifest import Parity, Ranges, Template
from tests.support.graphs import Loader, inputs

PAIR = Template("{premise}", "{hypothesis}")
QUESTION = Template("answer: {answer}  context: {context}")


class Runs:
    """A reference that runs one graph on ``feeds`` and compares its first output with ``expected``."""

    def __init__(self, feeds: Arrays, expected: npt.NDArray[Any] | None = None) -> None:
        self._feeds = feeds
        self._expected = expected

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        (graph,) = graphs
        output = next(iter(open_session(graph)(self._feeds).values()))
        error = 0.0 if self._expected is None else float(np.abs(output - self._expected).max())
        return Parity(
            texts=1, max_logit_error=error, logit_std=1.0, decision_agreement=1.0 if np.isfinite(error) else 0.0
        )

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        raise NotImplementedError


def two_products(first: float, second: float) -> ir.Model:
    """y = (x @ first·I) @ second·I of x, float [rows, 4]; the first product is ``hidden``."""
    nodes = [
        helper.make_node("MatMul", ["x", "up"], ["hidden"]),
        helper.make_node("Transpose", ["hidden"], ["moved"], perm=[1, 0]),
        helper.make_node("Transpose", ["moved"], ["back"], perm=[1, 0]),
        helper.make_node("MatMul", ["back", "down"], ["y"]),
    ]
    weights = {"up": first * np.eye(4, dtype=np.float32), "down": second * np.eye(4, dtype=np.float32)}
    shape = (onnx.TensorProto.FLOAT, ["rows", 4])
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", *shape)],
        [helper.make_tensor_value_info("y", *shape)],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


FEEDS = {"x": np.array([[1000.0, 1, -2, 3], [5, 6, 7, 8]], np.float32)}


def test_the_cpu_does_not_see_an_overflow_and_a_rounding_graph_does() -> None:
    """Why ranges are measured: 102,400 is infinite in float16."""
    graph = two_products(102.4, 1e-3)
    to_half(graph)
    np.testing.assert_allclose(CpuSession(graph)(FEEDS)["y"][0, 0], 102.4, rtol=1e-2)
    assert np.isinf(CpuSession(round_to_half(graph))(FEEDS)["y"][0, 0])


def test_what_does_not_fit_float16_stays_float32() -> None:
    graph = two_products(102.4, 1e-3)
    expected = CpuSession(graph)(FEEDS)["y"]
    verified = reduce_precision([graph], Runs(FEEDS, expected), RoleOptions("x", precision="fp16"))
    ranges = verified.parity.ranges
    assert isinstance(ranges, Ranges)
    assert (verified.precision, verified.parity.gate, ranges.limit) == ("fp16", "passed", HALF_LIMIT)
    assert ranges.kept_float == pytest.approx(dict.fromkeys(("back", "hidden", "moved"), 102400))
    assert ranges.largest == pytest.approx(102.4)
    rounded = CpuSession(round_to_half(verified.graphs[0]))(FEEDS)["y"]
    np.testing.assert_allclose(rounded, expected, rtol=1e-2)


def test_what_fits_with_room_becomes_float16() -> None:
    graph = two_products(8.0, 1e-3)
    verified = reduce_precision([graph], Runs(FEEDS), RoleOptions("x", precision="fp16"))
    assert verified.parity.ranges == Ranges(HALF_LIMIT, pytest.approx(8000), {})
    assert {node.op_type: node.outputs[0].dtype for node in verified.graphs[0].graph}[
        "Transpose"
    ] == ir.DataType.FLOAT16


def test_a_float16_graph_that_overflows_all_the_same_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parity report sees what the ranges would miss, an operation that adds up inside say."""
    monkeypatch.setattr("groundwire.export.precision.measure_magnitudes", lambda graphs, reference: [{}])
    graph = two_products(102.4, 1e-3)
    expected = CpuSession(graph)(FEEDS)["y"]
    assert reduce_precision([graph], Runs(FEEDS, expected), RoleOptions("x", precision="fp16")).precision == "fp32"


@pytest.mark.parametrize("number", [float(np.finfo(np.float32).min), -30000.0, -1e9])
def test_masks_do_not_count(number: float) -> None:
    nodes = [
        helper.make_node("Mul", ["closed", "least"], ["mask"]),
        helper.make_node("Add", ["x", "mask"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"]),
    ]
    shape = (onnx.TensorProto.FLOAT, ["rows", 4])
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, *shape) for name in ("x", "closed")],
        [helper.make_tensor_value_info("y", *shape)],
        [onnx.numpy_helper.from_array(np.array(number, np.float32), "least")],
    )
    made = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    feeds = {"x": FEEDS["x"] / 10, "closed": np.array([[0, 0, 0, 1], [0, 0, 1, 1]], np.float32)}
    (peaks,) = measure_magnitudes([made], Runs(feeds))
    assert {name: round(peaks[name], 3) for name in ("mask", "scores", "least")} == {
        "mask": 0,
        "scores": 100,
        "least": 0,
    }
    assert 0 < peaks["y"] <= 1


@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_an_encoder_with_a_large_layer(load: Loader, family: str) -> None:
    """Activations that float16 cannot hold, in a real architecture: found, kept, and named."""
    checkpoint = load("extractive_qa", family)
    graph = encoder.build_encoder_graph(checkpoint.model, "question-answering")
    fold_transposes(graph)
    reference = KINDS["extractive_qa"].reference(checkpoint, Template("{question}", "{passage}"))
    plain = reduce_precision([graph], reference, RoleOptions("x", precision="fp16"))
    assert (plain.precision, plain.parity.gate) == ("fp16", "passed")
    assert isinstance(plain.parity.ranges, Ranges)
    assert plain.parity.ranges.kept_float == {}
    assert 0 < plain.parity.ranges.largest < HALF_LIMIT

    products = [node for node in graph.graph if node.op_type in ("MatMul", "Gemm") and _weight(node) is not None]
    gelu = next(node for node in graph.graph if node.op_type == "Gelu")
    before, after = (next(p for p in products if _reads(p, gelu, direction)) for direction in (-1, 1))
    for product, factor in ((before, 1e5), (after, 1e-5)):
        _scale(product, factor)
    loud = reduce_precision([graph], Loud(reference, graph), RoleOptions("x", precision="fp16"))
    assert isinstance(loud.parity.ranges, Ranges)
    assert loud.precision == "fp16"
    assert gelu.outputs[0].name in loud.parity.ranges.kept_float
    outputs = CpuSession(round_to_half(loud.graphs[0]))(inputs())
    for name, values in CpuSession(graph)(inputs()).items():
        assert np.isfinite(outputs[name]).all()
        np.testing.assert_allclose(outputs[name], values, atol=0.05 * max(1.0, values.std()))


class Loud:
    """Another reference's texts, whose logits are those of ``graph``."""

    def __init__(self, reference: Any, graph: ir.Model) -> None:
        self._reference = reference
        self._graph = graph

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        right = self._reference.compare([self._graph])
        parity = self._reference.compare(graphs, open_session)
        return msgspec.structs.replace(
            parity, max_logit_error=abs(parity.max_logit_error - right.max_logit_error), decision_agreement=1.0,
            span_agreement=1.0,
        )  # fmt: skip

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        raise NotImplementedError


def _weight(node: ir.Node) -> ir.Value | None:
    value = node.inputs[1]
    return value if value is not None and value.is_initializer() else None


def _reads(product: ir.Node, gelu: ir.Node, direction: int) -> bool:
    """Whether ``product`` is the last before the activation, or the first after it."""
    if direction > 0:
        return gelu.outputs[0] in product.inputs
    added = gelu.inputs[0]
    producer = added.producer() if added is not None else None
    return producer is product or (producer is not None and product.outputs[0] in producer.inputs)


def _scale(product: ir.Node, factor: float) -> None:
    """Multiply the constants of a product and of the addition after it."""
    weight = _weight(product)
    assert weight is not None
    assert weight.const_value is not None
    scaled = ir.Value(name=f"{weight.name}.{factor}")
    scaled.const_value = ir.tensor((weight.const_value.numpy() * factor).astype(np.float32), name=scaled.name)
    scaled.dtype, scaled.shape = ir.DataType.FLOAT, weight.shape
    assert product.graph is not None
    product.graph.register_initializer(scaled)  # type: ignore[union-attr]
    product.replace_input_with(1, scaled)


@pytest.mark.parametrize(("kind", "family"), [("question_generator", "t5"), ("question_generator", "bart")])
def test_generators_are_measured_along_their_paths(load: Loader, kind: str, family: str) -> None:
    loaded = load(kind, family)
    pair = generation.build_generation_graphs(generation.split_model(loaded.model))
    for graph in pair:
        fold_transposes(graph)
    peaks = measure_magnitudes(pair, KINDS[kind].reference(loaded, QUESTION))
    for graph, of_graph in zip(pair, peaks, strict=True):
        floats = {str(value.name) for node in graph.graph for value in node.outputs if value.dtype == ir.DataType.FLOAT}
        assert floats, "shapes are inferred"
        assert all(0 <= of_graph[name] < HALF_LIMIT for name in floats)
    assert any(peaks[1][name] > 0 for name in peaks[1] if name.startswith("present."))


@pytest.mark.parametrize("family", ["t5", "t5-gated", "bart", "bert"])
def test_a_generator_is_compared_rounded(load: Loader, family: str) -> None:
    """Its states are float16 inputs and outputs, of which some are read inside the graph too."""
    loaded = load("question_generator", family)
    pair = generation.build_generation_graphs(generation.split_model(loaded.model))
    for graph in pair:
        fold_transposes(graph)
    template = Template("{answer}", "{context}") if family == "bert" else QUESTION
    reference = KINDS["question_generator"].reference(loaded, template)
    verified = reduce_precision(
        pair, reference, RoleOptions("x", precision="fp16"), keep_in_half=[loaded.float_modules] * 2
    )
    assert (verified.precision, verified.parity.gate) == ("fp16", "passed")
    for graph in verified.graphs:
        rounded = round_to_half(graph)
        for before, after in ((graph.graph.inputs, rounded.graph.inputs), (graph.graph.outputs, rounded.graph.outputs)):
            assert [(value.name, value.dtype) for value in after] == [(value.name, value.dtype) for value in before]
        onnx.checker.check_model(ir.to_proto(rounded), full_check=True)


def test_states_that_do_not_fit_make_a_generator_float32(load: Loader) -> None:
    loaded = load("question_generator", "t5")
    pair = generation.build_generation_graphs(generation.split_model(loaded.model))
    for graph in pair:
        fold_transposes(graph)
    name = next(name for name in pair[0].graph.initializers if "EncDecAttention.v" in name or "cross" in name)
    weight = pair[0].graph.initializers[name]
    assert weight.const_value is not None
    weight.const_value = ir.tensor((weight.const_value.numpy() * 1e6).astype(np.float32), name=name)
    options = RoleOptions("x", precision="fp16", allow_unverified=True)
    assert reduce_precision(pair, KINDS["question_generator"].reference(loaded, QUESTION), options).precision == "fp32"


@pytest.mark.parametrize("family", ["gpt2", "bloom", "opt"])
def test_a_language_model_is_compared_rounded(folder: Callable[[str, str], Path], family: str) -> None:
    kind = KINDS["language_model"]
    options = RoleOptions(str(folder("language_model", family)), precision="fp16")
    loaded = kind.load(options)  # type: ignore[union-attr]
    conversion = kind.convert("lm", loaded, options)  # type: ignore[union-attr]
    reference = kind.reference(loaded, conversion.template)  # type: ignore[union-attr]
    verified = reduce_precision(tuple(conversion.graphs.values()), reference, options)
    assert (verified.precision, verified.parity.gate) == ("fp16", "passed")
    assert isinstance(verified.parity.ranges, Ranges)
