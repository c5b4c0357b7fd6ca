"""int8 products on a processor with AVX2 and without VNNI, whose sums of two products saturate at 16 bits.

Such a processor is emulated, which takes a hundred times as long: ``make test-avx2``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundwire.runtime.ort.processor import int8_kernel
from tests.support.emulator import can_emulate_avx2, run_on_avx2
from tests.support.gates import measure_gates
from tests.support.products import EXACT, SATURATED, multiply, write_product

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not can_emulate_avx2(), reason="needs qemu-x86_64-static: make test-avx2"),
]


def test_the_emulated_processor_saturates_and_this_one_need_not(tmp_path: Path) -> None:
    product = write_product(tmp_path / "product.onnx")
    assert int(run_on_avx2(["-m", "tests.support.products", str(product)])) == SATURATED
    name = "from groundwire.runtime.ort.processor import int8_kernel; print(int8_kernel())"
    assert run_on_avx2(["-c", name]).strip() == "avx2"
    if int8_kernel() not in ("avx2", "avx512bw"):
        assert multiply(product) == EXACT


@pytest.mark.parametrize("name", ["reader", "compact"])
def test_the_embedded_models_pass_their_gates_with_saturating_sums(name: str) -> None:
    here = measure_gates(name)
    assert here
    assert not any(here.values()), here
    emulated = json.loads(run_on_avx2(["-m", "tests.support.gates", name]))
    assert emulated.keys() == here.keys()
    assert not any(emulated.values()), emulated
