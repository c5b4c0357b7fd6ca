"""What this processor does to int8 products."""

from __future__ import annotations

import pytest

from groundwire.runtime.ort.processor import int8_kernel

exact_products = pytest.mark.skipif(
    int8_kernel() in ("avx2", "avx512bw"),
    reason="Without VNNI two products of bytes are added in 16 bits, which random weights often saturate.",
)
"""Tests of how near int8 graphs of random weights are: they need a processor whose products are exact."""
