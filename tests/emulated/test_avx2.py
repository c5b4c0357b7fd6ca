"""int8 products on a processor with AVX2 and without VNNI, whose sums of two products saturate at 16 bits.

Such a processor is emulated, which takes a hundred times as long: ``make test-avx2``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ReferenceRole
from groundwire.runtime.models.graphs import load_graph
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.processor import int8_kernel
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.parity.certify import ReferenceTexts
from tests.support.emulator import can_emulate_avx2, run_on_avx2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not can_emulate_avx2(), reason="needs qemu-x86_64-static: make test-avx2"),
]
DEPTH = 64
EXACT, SATURATED = 255 * 127 * DEPTH, 32767 * DEPTH // 2


def multiply() -> int:
    """A sum of products of the largest numbers of uint8 and int8."""
    weights = helper.make_tensor("w", TensorProto.INT8, (DEPTH, 16), np.full((DEPTH, 16), 127, np.int8).tobytes(), True)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [None, DEPTH])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString())
    return int(session.run(None, {"x": np.full((2, DEPTH), 255, np.uint8)})[0][0, 0])


def measure_gate(name: str) -> dict[str, tuple[str, ...]]:
    """What the roles of a bundle fail of their gates, by role."""
    bundle, profile, failures = Bundle.open(name), DeviceProfile.of(Device("cpu"), 1), {}
    for role, record in bundle.manifest.roles.items():
        if isinstance(record, ReferenceRole) and isinstance(record.reference, str):
            texts = ReferenceTexts.open(bundle, record, load_graph(bundle, record, profile), profile)
            parity = texts.compare(texts.run(texts.reference.windows))
            print(f"{name}: {role} agrees in {parity.decision_agreement:.4f}", file=sys.stderr)
            failures[role] = texts.list_failures(parity)
    return failures


def ask(what: str, *arguments: str) -> str:
    return run_on_avx2([__file__, what, *arguments])


def test_the_emulated_processor_saturates_and_this_one_need_not() -> None:
    assert int(ask("multiply")) == SATURATED
    if int8_kernel() not in ("avx2", "avx512bw"):
        assert multiply() == EXACT


@pytest.mark.parametrize("name", ["reader", "compact"])
def test_the_embedded_models_pass_their_gates_with_saturating_sums(name: str) -> None:
    here = measure_gate(name)
    assert here
    assert not any(here.values()), here
    emulated = json.loads(ask("measure_gate", name))
    assert emulated.keys() == here.keys()
    assert not any(emulated.values()), emulated


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    function, *rest = sys.argv[1:]
    print(json.dumps({"multiply": multiply, "measure_gate": measure_gate}[function](*rest)))
