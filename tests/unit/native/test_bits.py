"""The native module computes the same bits on every processor and with every compiler."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from groundwire.runtime import _native
from tests.reference import beam_search as reference
from tests.support.beam_search import drive

DIGESTS = {
    "plan_batches": "87da65fb5692b525c0bbb04bebf88a50dda3e3417c35e8a65c36164bc1920674",
    "argmax_spans": "d66ef2567b627680414e2544ccd9d2ad691d8a7b68ece84157464a6e5a7d5f80",
    "best_spans": "8c5331d39300e4515557671c9e9fc9dc84d8b9bf5c3b47f9e8405854d812deb1",
    "beam_search": "cbe94b51b7fa9387f493d6dc20b1bafd3b810b07c204e29a014773eb43e101f8",
}
"""SHA-256 of results, as computed on x86-64 and under emulation on Arm (``make test-arm64``)."""


def digest(results: list[Any]) -> str:
    parts = [part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode() for part in results]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_results_have_the_same_bits_everywhere() -> None:
    # Fractions of integers: what a library of mathematics rounds may differ.
    numbers = np.random.default_rng(8)
    results: dict[str, list[Any]] = {name: [] for name in DIGESTS}
    for count in (1, 5, 33):
        lengths = numbers.integers(1, 130, count)
        start, end = numbers.integers(-4096, 4096, (2, count, 130)).astype(np.float32) / np.float32(300)
        first = np.zeros(count, np.int64)
        results["plan_batches"] += _native.plan_batches(lengths, 512, 8)
        results["argmax_spans"] += _native.argmax_spans(start, end, lengths)
        results["best_spans"] += _native.best_spans(start, end, first, lengths - 1, 12, 5)
    tables = numbers.integers(-5000, -1, (64, 40)).astype(np.float32) / np.float32(700)

    def predict(owner: int, prefix: reference.Prefix) -> np.ndarray:
        return tables[(7 * owner + sum(prefix) + len(prefix)) % len(tables)]

    for penalty in (0.7, 1.0, 1.3, 2.5):
        search = _native.BeamSearch(3, 4, 3, 0, [1], 40, 18, 4, 2, penalty, False)
        for source in drive(search, predict, 3):
            results["beam_search"] += [(tokens, score.hex()) for tokens, score in source]
    assert {name: digest(parts) for name, parts in results.items()} == DIGESTS
