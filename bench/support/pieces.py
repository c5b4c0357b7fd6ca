"""One graph at a time, int8 and float32, against PyTorch float32 on the same ids with the same number of threads."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import torch

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole, ExtractiveQARole, QuestionGeneratorRole
from groundwire.runtime.calls import BeamSearch
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.ort.session import Array, DeviceProfile, Session
from groundwire.runtime.texts.tokenization import Window

from . import models
from .common import Timing, check, interleaved
from .peer import Torch

QUESTION = BeamSearch(num_beams=5, num_return_sequences=5, min_new_tokens=20, max_new_tokens=20)
"""The decoding of Q² with its length fixed: 20 generated tokens, whatever the weights are."""
EXACT = 1e-3
"""Largest difference of a float32 graph from PyTorch, in standard deviations of PyTorch's numbers."""

Bundles: TypeAlias = dict[str, Bundle]
"""``fp32`` and ``int8``."""


class Piece(msgspec.Struct, frozen=True):
    """Size, time and error of one model."""

    role: str
    model: str
    input: str
    int8_mb: float
    fp32_mb: float
    int8: Timing
    fp32: Timing
    peer: Timing
    """PyTorch float32."""
    ratio: float
    """Median of the peer over int8's."""
    fp32_error: float
    """Largest difference from PyTorch, in standard deviations of PyTorch's numbers. Checked."""
    int8_error: float
    """The same for int8. Reported only: random weights amplify errors that trained ones absorb."""
    same_alone: float
    """Largest difference, in the same unit, between an int8 row alone and among the rest of its batch. Checked."""
    fp32_same_sequences: float | None = None
    """Share of generated sequences equal to PyTorch's (generator only). Checked."""
    int8_same_sequences: float | None = None


def encoder(
    role: str, folder: Path, bundles: Bundles, shape: tuple[int, int], profile: DeviceProfile, repeats: int
) -> Piece:
    """Time an extractive QA model or classifier on a full batch of random ids, no padding."""
    peer = Torch(role, folder)
    sessions: dict[str, Session] = {}
    for precision, bundle in bundles.items():
        record = bundle.manifest.roles[role]
        assert isinstance(record, ExtractiveQARole | ClassifierRole)
        sessions[precision] = Session.load(bundle.file(record.graph), profile)
    feeds = make_ids(shape, peer.model.config.vocab_size, sessions["int8"].inputs)
    tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}

    expected = _stacked([logits.numpy() for logits in peer.logits(tensors)])
    whole = {precision: _stacked(session.run(feeds)) for precision, session in sessions.items()}
    alone = _stacked(sessions["int8"].run({name: array[:1] for name, array in feeds.items()}))
    scale = float(expected.std())
    errors = {precision: float(np.abs(actual - expected).max()) / scale for precision, actual in whole.items()}
    moved = float(np.abs(whole["int8"][:, :1] - alone).max()) / scale
    check(errors["fp32"] <= EXACT, f"{role}: the float32 graph is {errors['fp32']:.2g} std from PyTorch")
    check(moved <= EXACT, f"{role}: an int8 row moves by {moved:.2g} std with the rest of its batch")

    timings = interleaved(
        {
            "int8": lambda: sessions["int8"].run(feeds),
            "fp32": lambda: sessions["fp32"].run(feeds),
            "peer": lambda: peer.logits(tensors),
        },
        repeats,
    )
    return _piece(role, f"{shape[0]} × {shape[1]} tokens", bundles, timings, errors, moved)


def generator(folder: Path, bundles: Bundles, sources: tuple[int, int], profile: DeviceProfile, repeats: int) -> Piece:
    """Time the question generator on random sources of one length, beam 5, 20 tokens, against ``generate``."""
    peer = Torch("qg", folder)
    engines: dict[str, QuestionGenerator] = {}
    for precision, bundle in bundles.items():
        record = bundle.manifest.roles["qg"]
        assert isinstance(record, QuestionGeneratorRole)
        engines[precision] = QuestionGenerator.load(bundle, record, profile)
    ids = make_ids(sources, peer.model.config.vocab_size, ("input_ids",))["input_ids"]
    windows = [Window(row, [0] * len(row), [0] * len(row), [(0, 0)] * len(row)) for row in ids.tolist()]
    tensor = torch.from_numpy(ids)

    sequences, scores = peer.search(tensor, QUESTION)
    expected = [row[1:] for row in sequences.tolist()], scores.numpy()
    generated = {precision: _flat(engine.generate(windows, QUESTION)) for precision, engine in engines.items()}
    alone = _flat(engines["int8"].generate(windows[:1], QUESTION))
    scale = float(expected[1].std())
    errors = {
        precision: float(np.abs(result[1] - expected[1]).max()) / scale for precision, result in generated.items()
    }
    same = {precision: _share(result[0], expected[0]) for precision, result in generated.items()}
    moved = float(np.abs(generated["int8"][1][: QUESTION.num_return_sequences] - alone[1]).max()) / scale
    check(same["fp32"] >= 0.9, f"qg: {same['fp32']:.0%} of the float32 graph's sequences are PyTorch's")
    check(moved <= EXACT, f"qg: an int8 score moves by {moved:.2g} std with the rest of its batch")

    timings = interleaved(
        {
            "int8": lambda: engines["int8"].generate(windows, QUESTION),
            "fp32": lambda: engines["fp32"].generate(windows, QUESTION),
            "peer": lambda: peer.search(tensor, QUESTION),
        },
        repeats,
    )
    shape = f"{sources[0]} sources of {sources[1]} tokens, beam 5, 20 tokens"
    piece = _piece("qg", shape, bundles, timings, errors, moved)
    return msgspec.structs.replace(piece, fp32_same_sequences=same["fp32"], int8_same_sequences=same["int8"])


def _piece(
    role: str, shape: str, bundles: Bundles, timings: dict[str, Timing], errors: dict[str, float], moved: float
) -> Piece:
    return Piece(
        role,
        models.NAMES[role],
        shape,
        models.graph_bytes(bundles["int8"], role) / 1e6,
        models.graph_bytes(bundles["fp32"], role) / 1e6,
        timings["int8"],
        timings["fp32"],
        timings["peer"],
        timings["peer"].p50_ms / timings["int8"].p50_ms,
        errors["fp32"],
        errors["int8"],
        moved,
    )


def make_ids(shape: tuple[int, int], vocabulary: int, inputs: tuple[str, ...]) -> dict[str, Array]:
    """Random ids [B, T] without padding, and the other ``inputs`` that go with them."""
    rng = np.random.default_rng(shape[0])
    feeds: dict[str, Array] = {"input_ids": rng.integers(10, vocabulary, shape)}
    if "attention_mask" in inputs:
        feeds["attention_mask"] = np.ones(shape, dtype=np.int64)
    if "token_type_ids" in inputs:
        feeds["token_type_ids"] = np.tile(np.arange(shape[1]) > shape[1] // 3, (shape[0], 1)).astype(np.int64)
    return feeds


def _stacked(outputs: list[Array]) -> Array:
    return np.stack(outputs)


def _flat(results: list[list[tuple[list[int], float]]]) -> tuple[list[list[int]], Array]:
    rows = [result for group in results for result in group]
    return [ids for ids, _ in rows], np.array([score for _, score in rows], dtype=np.float32)


def _share(actual: list[list[int]], expected: list[list[int]]) -> float:
    return sum(left == right for left, right in zip(actual, expected, strict=True)) / len(expected)
