"""The wheel for Arm, on processors that are emulated: ``make test-arm64`` builds it first."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from tests.support.agreement import Outcomes, compare, read_rows, score_rows
from tests.support.arm64 import AGREEMENT, DOT_PRODUCT, MATRIX, PLAIN, Processor, is_prepared, run_on_arm64
from tests.support.products import EXACT, write_product

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not is_prepared(), reason="needs an emulator and a wheel: make test-arm64"),
]
PROCESSORS = pytest.mark.parametrize("processor", [PLAIN, DOT_PRODUCT, MATRIX], ids=lambda processor: processor.name)


@PROCESSORS
def test_the_processor_is_named_and_its_int8_products_are_exact(processor: Processor, tmp_path: Path) -> None:
    product = write_product(tmp_path / "product.onnx")
    assert int(run_on_arm64(["-m", "tests.support.products", str(product)], processor)) == EXACT
    name = "from groundwire.runtime.ort.processor import int8_kernel; print(int8_kernel())"
    assert run_on_arm64(["-c", name], processor).strip() == processor.int8_kernel


def test_labels_and_marks_are_those_of_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    run_on_arm64(["-m", "tests.support.agreement", "score", "--emulated", "--out", str(path)])
    there = msgspec.json.decode(path.read_bytes(), type=Outcomes)
    agreement = compare(score_rows(read_rows()), there)
    assert not agreement.differences
    assert there.int8_kernel == DOT_PRODUCT.int8_kernel
    AGREEMENT.write_bytes(msgspec.json.format(msgspec.json.encode(agreement)) + b"\n")


@pytest.mark.parametrize("name", ["reader", "compact"])
def test_the_embedded_models_pass_their_gates(name: str) -> None:
    failures = json.loads(run_on_arm64(["-m", "tests.support.gates", name]))
    assert failures
    assert not any(failures.values()), failures


def test_the_native_module_passes_its_tests() -> None:
    printed = run_on_arm64(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=3600", "tests/unit/native"])
    assert " passed" in printed.splitlines()[-1]
