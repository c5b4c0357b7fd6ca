"""The gate, and what happens to a graph that fails it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
import pytest

from groundwire.export import encoder
from groundwire.export.options import Gate, RoleOptions
from groundwire.export.passes import fold_transposes, quantizable
from groundwire.export.precision import lower
from groundwire.export.session import Arrays
from groundwire.export.tokens import Batch
from groundwire.export.verify.sensitivity import by_sensitivity
from groundwire.runtime.bundle import Parity
from groundwire.runtime.errors import ParityError

from .conftest import Loader
from .test_encoder import inputs


class Judge:
    """A reference that fails every graph in which one of ``fragile`` weights is not float."""

    def __init__(self, fragile: Sequence[str], broken: bool = False) -> None:
        self.batches: list[Batch] = [inputs()]
        self._fragile = fragile
        self._broken = broken
        self.compared = 0

    def compare(self, graphs: Sequence[ir.Model]) -> Parity:
        self.compared += 1
        weights = {name for graph in graphs for name in graph.graph.initializers}
        bad = self._broken or any(name not in weights for name in self._fragile)
        return Parity(
            texts=64, max_logit_error=0.001, logit_std=1.0, decision_agreement=0.5 if bad else 1.0, span_agreement=1.0
        )

    def feeds(self, graphs: Sequence[ir.Model]) -> list[list[Arrays]]:
        return [[self.batches[0]] for _ in graphs]


@pytest.fixture(scope="module")
def graph(load: Loader) -> ir.Model:
    made = encoder.graph(load("reader", "bert").model, "question-answering")
    fold_transposes(made)
    return made


def ops(graph: ir.Model) -> set[str]:
    return {node.op_type for node in graph.graph}


def test_int8_that_passes_stays_int8(graph: ir.Model) -> None:
    done = lower([graph], Judge([]), RoleOptions("x"))
    assert (done.precision, done.parity.kept_float, done.parity.gate) == ("int8", (), "passed")
    assert "MatMulIntegerToFloat" in ops(done.graphs[0])
    assert "MatMulIntegerToFloat" not in ops(graph), "the float graph is not changed"


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_mixed_keeps_the_sensitive_weights_and_few_others(graph: ir.Model, rank: int) -> None:
    judge = Judge([])
    order = [name for _, name in by_sensitivity(graph, judge.feeds([graph])[0])]
    judge = Judge([order[rank]])
    done = lower([graph], judge, RoleOptions("x"))
    assert done.precision == "mixed"
    assert done.parity.kept_float == tuple(order[: rank + 1])
    assert done.parity.gate == "passed"
    weights = done.graphs[0].graph.initializers
    assert all(name in weights for name in order[: rank + 1])
    assert all(name not in weights for name in order[rank + 1 :])
    assert judge.compared <= 8


def test_int8_that_cannot_be_mended_becomes_fp32(graph: ir.Model) -> None:
    done = lower([graph], Judge(quantizable(graph)), RoleOptions("x"))
    assert (done.precision, done.parity.kept_float) == ("fp32", ())
    assert "MatMulIntegerToFloat" not in ops(done.graphs[0])


def test_fp16_that_fails_becomes_fp32(graph: ir.Model) -> None:
    assert lower([graph], Judge([]), RoleOptions("x", precision="fp16")).precision == "fp16"
    strict = RoleOptions("x", precision="fp16", gate=Gate(max_error=1e-9))
    assert lower([graph], Judge([]), strict).precision == "fp32"


def test_a_wrong_conversion_is_not_saved(graph: ir.Model) -> None:
    with pytest.raises(ParityError, match=r"int8: decision agreement 0\.500.*fp32: decision.*--allow-unverified"):
        lower([graph], Judge([], broken=True), RoleOptions("random/weights"))


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_waived_only_by_the_flag(graph: ir.Model, precision: str) -> None:
    options = RoleOptions("x", precision=precision, allow_unverified=True)  # type: ignore[arg-type]
    judge = Judge([], broken=True)
    done = lower([graph], judge, options)
    assert (done.precision, done.parity.gate) == (precision, "waived")
    assert judge.compared == 1, "nothing else is tried"
    assert lower([graph], Judge([]), options).parity.gate == "passed"


@pytest.mark.parametrize(
    ("parity", "failures"),
    [
        ({}, []),
        ({"decision_agreement": 0.96}, ["decision agreement 0.960 < 0.97"]),
        ({"span_agreement": 0.9}, ["span agreement 0.900 < 0.95"]),
        ({"span_agreement": None}, []),
        ({"max_logit_error": 1.6}, ["logit error 1.6 > 1.5 (0.75 std)"]),
        ({"max_logit_error": float("nan")}, ["logit error nan > 1.5 (0.75 std)"]),
    ],
)
def test_gate(parity: dict[str, float], failures: list[str]) -> None:
    fields = {"max_logit_error": 0.1, "decision_agreement": 1.0, "span_agreement": 1.0} | parity
    assert Gate().failures(Parity(texts=64, logit_std=2.0, **fields)) == failures  # type: ignore[arg-type]


def test_sensitivity_finds_the_weight_with_outliers(load: Loader, graph: ir.Model) -> None:
    spoilt = graph.clone()
    name = "bert.encoder.layer.1.output.dense.weight"
    weight = spoilt.graph.initializers[name]
    assert weight.const_value is not None
    values = weight.const_value.numpy().copy()
    values[0] *= 300
    weight.const_value = ir.tensor(values, name=name)
    ranked = by_sensitivity(spoilt, [inputs()])
    assert sorted(name for _, name in ranked) == sorted(quantizable(graph))
    before = {name: error for error, name in by_sensitivity(graph, [inputs()])}
    after = {name: error for error, name in ranked}
    assert after[name] > before[name]
    assert np.isfinite(list(after.values())).all()
