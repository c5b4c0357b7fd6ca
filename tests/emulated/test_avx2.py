"""int8 products on a processor with AVX2 and without VNNI, whose sums of two products saturate at 16 bits.

Such a processor is emulated, which takes a hundred times as long: ``make test-avx2``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ReferenceRole
from groundwire.runtime.models.graphs import load_graph
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.processor import int8_kernel
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.parity.certify import ReferenceTexts
from tests.support.emulator import can_emulate_avx2, run_on_avx2
from tests.support.products import EXACT, SATURATED, multiply, write_product

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not can_emulate_avx2(), reason="needs qemu-x86_64-static: make test-avx2"),
]


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


def test_the_emulated_processor_saturates_and_this_one_need_not(tmp_path: Path) -> None:
    product = write_product(tmp_path / "product.onnx")
    assert int(run_on_avx2(["-m", "tests.support.products", str(product)])) == SATURATED
    if int8_kernel() not in ("avx2", "avx512bw"):
        assert multiply(product) == EXACT


@pytest.mark.parametrize("name", ["reader", "compact"])
def test_the_embedded_models_pass_their_gates_with_saturating_sums(name: str) -> None:
    here = measure_gate(name)
    assert here
    assert not any(here.values()), here
    emulated = json.loads(run_on_avx2(["-m", "tests.emulated.test_avx2", name]))
    assert emulated.keys() == here.keys()
    assert not any(emulated.values()), emulated


if __name__ == "__main__":
    print(json.dumps(measure_gate(sys.argv[1])))
