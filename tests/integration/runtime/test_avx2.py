"""int8 products on a processor with AVX2 and without VNNI, whose sums of two products saturate at 16 bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.avx2 import FOLDER, find_missing, prepare
from groundwire.runtime.ort.processor import int8_kernel
from tests.support.gates import measure_gates
from tests.support.products import EXACT, SATURATED, multiply, write_product

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(find_missing()), reason=f"this machine lacks {find_missing()}")]


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """One in which Python runs as on a processor with AVX2 alone."""
    return prepare(FOLDER)


def run(environment: dict[str, str], *arguments: str) -> str:
    """What Python prints in an environment."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_products_saturate_with_avx2_alone_and_here_need_not(environment: dict[str, str], tmp_path: Path) -> None:
    product = write_product(tmp_path / "product.onnx")
    assert int(run(environment, "-m", "tests.support.products", str(product))) == SATURATED
    name = "from groundwire.runtime.ort.processor import int8_kernel; print(int8_kernel())"
    assert run(environment, "-c", name).strip() == "avx2"
    if int8_kernel() not in ("avx2", "avx512bw"):
        assert multiply(product) == EXACT


@pytest.mark.parametrize("name", ["reader", "compact"])
def test_the_embedded_models_pass_their_gates_with_saturating_sums(name: str) -> None:
    here = measure_gates(name)
    assert here
    assert not any(here.values()), here
    saturating = json.loads(run(dict(os.environ), "-m", "bench", "avx2", "tests.support.gates", name))
    assert saturating.keys() == here.keys()
    assert not any(saturating.values()), saturating
