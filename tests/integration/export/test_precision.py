"""The gate, and what happens to a graph that fails it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest

from groundwire.export.options import Gate, RoleOptions
from groundwire.export.passes import fold_transposes, list_quantizable, quantize
from groundwire.export.precision import reduce_precision
from groundwire.export.roles import encoder, generation
from groundwire.export.roles.registry import KINDS
from groundwire.export.session import Arrays, CpuSession
from groundwire.export.verify.outcome import SessionOpener
from groundwire.export.verify.sensitivity import SWITCHES, add_switches, rank_by_sensitivity
from groundwire.runtime.bundles.manifest import Parity, Template
from groundwire.runtime.errors import ParityError
from tests.support.graphs import Loader, inputs


class FragileReference:
    """A reference that fails every graph in which one of ``fragile`` weights is not float."""

    def __init__(self, fragile: Sequence[str], broken: bool = False) -> None:
        self._fragile = fragile
        self._broken = broken
        self.compared = 0

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        self.compared += 1
        weights = {name for graph in graphs for name in graph.graph.initializers}
        bad = self._broken or any(name not in weights for name in self._fragile)
        return Parity(
            texts=64, max_logit_error=0.001, logit_std=1.0, decision_agreement=0.5 if bad else 1.0, span_agreement=1.0
        )

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        return np.concatenate(list(sessions[0]({**inputs(), **extra[0]}).values()))


@pytest.fixture(scope="module")
def graph(load: Loader) -> ir.Model:
    made = encoder.build_encoder_graph(load("extractive_qa", "bert").model, "question-answering")
    fold_transposes(made)
    return made


def ops(graph: ir.Model) -> set[str]:
    return {node.op_type for node in graph.graph}


def test_int8_that_passes_stays_int8(graph: ir.Model) -> None:
    verified = reduce_precision([graph], FragileReference([]), RoleOptions("x"))
    assert (verified.precision, verified.parity.kept_float, verified.parity.gate) == ("int8", (), "passed")
    assert "MatMulIntegerToFloat" in ops(verified.graphs[0])
    assert "MatMulIntegerToFloat" not in ops(graph), "the float graph is not changed"


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_mixed_keeps_the_sensitive_weights_and_few_others(graph: ir.Model, rank: int) -> None:
    order = [name for _, name in rank_by_sensitivity([graph], FragileReference([]))]
    reference = FragileReference([order[rank]])
    verified = reduce_precision([graph], reference, RoleOptions("x"))
    assert verified.precision == "mixed"
    assert verified.parity.gate == "passed"
    assert order[rank] in verified.parity.kept_float
    assert set(verified.parity.kept_float) <= set(order[: rank + 1])
    # Three large ones are tried in int8 again; the sensitive one may be among them and stays.
    assert len(verified.parity.kept_float) <= max(1, rank + 1 - 2), "large ones that came along are int8 again"
    weights = verified.graphs[0].graph.initializers
    assert {name for name in order if name in weights} == set(verified.parity.kept_float)
    assert reference.compared <= 12


def test_int8_that_cannot_be_mended_becomes_fp32(graph: ir.Model) -> None:
    verified = reduce_precision([graph], FragileReference(list_quantizable(graph)), RoleOptions("x"))
    assert (verified.precision, verified.parity.kept_float) == ("fp32", ())
    assert "MatMulIntegerToFloat" not in ops(verified.graphs[0])


def test_fp16_that_fails_becomes_fp32(graph: ir.Model) -> None:
    assert reduce_precision([graph], FragileReference([]), RoleOptions("x", precision="fp16")).precision == "fp16"
    strict = RoleOptions("x", precision="fp16", gate=Gate(max_error=1e-9))
    assert reduce_precision([graph], FragileReference([]), strict).precision == "fp32"


def test_a_wrong_conversion_is_not_saved(graph: ir.Model) -> None:
    with pytest.raises(ParityError, match=r"int8: decision agreement 0\.500.*fp32: decision.*--set allow_unverified"):
        reduce_precision([graph], FragileReference([], broken=True), RoleOptions("random/weights"))


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_waived_only_by_the_flag(graph: ir.Model, precision: str) -> None:
    options = RoleOptions("x", precision=precision, allow_unverified=True)  # type: ignore[arg-type]
    reference = FragileReference([], broken=True)
    verified = reduce_precision([graph], reference, options)
    assert (verified.precision, verified.parity.gate) == (precision, "waived")
    assert reference.compared == (2 if precision == "fp16" else 1), "nothing is tried but, for fp16, its ranges"
    assert reduce_precision([graph], FragileReference([]), options).parity.gate == "passed"


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


def test_sensitivity_is_the_effect_of_one_weight(graph: ir.Model) -> None:
    """A switched weight has the same effect as when it is the only int8 weight."""
    ranked = rank_by_sensitivity([graph], FragileReference([]))
    names = [name for _, name in ranked]
    assert sorted(names) == sorted(list_quantizable(graph))
    assert [effect for effect, _ in ranked] == sorted((effect for effect, _ in ranked), reverse=True)
    exact = CpuSession(graph)(inputs())
    for effect, name in (ranked[0], ranked[4], ranked[-1]):
        alone = graph.clone()
        quantize(alone, frozenset(names) - {name})
        outputs = CpuSession(alone)(inputs())
        error = np.concatenate([outputs[output] - exact[output] for output in exact])
        assert effect == pytest.approx(np.sqrt(np.square(error).mean()), rel=0.02)


def test_switches_leave_the_float_graph_as_it_was(graph: ir.Model) -> None:
    before = graph.graph.num_nodes()
    made, names = add_switches(graph)
    assert graph.graph.num_nodes() == before
    off = CpuSession(made)({**inputs(), SWITCHES: np.zeros(len(names), bool)})
    for name, values in CpuSession(graph)(inputs()).items():
        np.testing.assert_allclose(off[name], values, atol=1e-5)


def test_a_generator_can_be_mixed(load: Loader) -> None:
    """The effect of an encoder's weight is measured through the decoder."""
    loaded = load("question_generator", "t5")
    pair = generation.build_generation_graphs(generation.split_model(loaded.model))
    for part in pair:
        fold_transposes(part)
    template = Template("answer: {answer}  context: {context}")
    ranked = rank_by_sensitivity(pair, KINDS["question_generator"].reference(loaded, template))
    names = {name for _, name in ranked}
    assert names == set(list_quantizable(pair[0])) | set(list_quantizable(pair[1]))
    assert all(effect > 0 for effect, _ in ranked)


def test_the_least_of_several_heads_may_have_more_borderline_texts() -> None:
    parity = Parity(texts=64, max_logit_error=0.1, logit_std=1.0, decision_agreement=61 / 64, span_agreement=None)
    assert Gate.of("int8", heads=5).failures(parity) == []
    assert Gate.of("int8").failures(parity) == ["decision agreement 0.953 < 0.97"]
    assert Gate.of("fp32", heads=5) == Gate.exact()


@pytest.mark.parametrize(("logit_std", "says"), [(0.0, True), (0.019, True), (0.02, False), (2.0, False)])
def test_a_gate_without_anything_to_compare_says_so(logit_std: float, says: bool) -> None:
    parity = Parity(texts=64, max_logit_error=0.0, logit_std=logit_std, decision_agreement=1.0)
    assert Gate().failures(parity) == []
    assert parity.explanation.startswith("nothing to compare") is says
