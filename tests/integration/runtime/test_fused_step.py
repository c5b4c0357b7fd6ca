"""Questions of a fused step are those of the other step, on the CPU provider in float32, at any shape and a GPU's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from groundwire.export import RoleOptions, export_role
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole
from groundwire.runtime.calls import BeamSampling, BeamSearch, Decoding, GenerateQuestions, Greedy, Sampling
from groundwire.runtime.capture import decoder as captured_decoder
from groundwire.runtime.capture.question import CapturedQuestionDecoder
from groundwire.runtime.decoding import fused_step
from groundwire.runtime.decoding.beam_cache import BeamCache, StepRecord, pad_beams
from groundwire.runtime.models.graphs import place_role
from groundwire.runtime.models.question_generator import PlainDecoder, QuestionGenerator
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.texts.tokenization import TextEncoder
from tests.support import models
from tests.support.host_cuda import use_host_memory
from tests.support.shared import make_once, shared_root

CONTEXT = "Groundwire was warmed up in 2026 and wrote questions about painters, mountains and small cabins. "
PROFILE = DeviceProfile.of("cpu", 1)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    root = shared_root(tmp_path_factory)
    checkpoint = make_once(root / "t5-for-cuda", models.t5_for_cuda)

    def export(folder: Path) -> None:
        export_role("qg", RoleOptions(str(checkpoint), precision="fp32"), folder)
        export_role("qg", RoleOptions(str(checkpoint), precision="fp32", target="cuda"), folder)

    return Bundle.open(make_once(root / "fused-bundle", export))


def own_role(bundle: Bundle) -> QuestionGeneratorRole:
    role = bundle.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    return role


def fused_role(bundle: Bundle) -> QuestionGeneratorRole:
    role = own_role(bundle)
    target = role.find_target("cuda")
    assert target is not None
    return msgspec.structs.replace(role, encoder=target.encoder, decoder=target.decoder)


def open_generator(
    bundle: Bundle, role: QuestionGeneratorRole, decoder: PlainDecoder | CapturedQuestionDecoder | None
) -> QuestionGenerator:
    assert decoder is not None
    return QuestionGenerator(role, decoder, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens))


@pytest.mark.parametrize("captured", [False, True], ids=["any", "captured"])
@pytest.mark.parametrize(
    "decoding",
    [
        BeamSearch(max_new_tokens=18),
        BeamSearch(num_beams=3, num_return_sequences=3, max_new_tokens=40, min_new_tokens=36),
        BeamSearch(num_beams=9, num_return_sequences=2, max_new_tokens=11),
        Greedy(max_new_tokens=40, min_new_tokens=40),
        Sampling(num_return_sequences=6, max_new_tokens=30),
        BeamSampling(num_beams=4, num_return_sequences=2, max_new_tokens=14),
    ],
    ids=lambda decoding: f"{type(decoding).__name__}-{decoding.max_new_tokens}",
)
def test_questions_are_those_of_the_other_step(
    bundle: Bundle, decoding: Decoding, captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources end one after another, and sequences outgrow the buffers that they begin with."""
    use_host_memory(monkeypatch)
    monkeypatch.setattr(captured_decoder, "PAST_TOKENS", 12)
    monkeypatch.setattr(fused_step, "FIRST_POSITIONS", 7)
    calls = [GenerateQuestions(f"{index}2026"[-4:], CONTEXT[7 * index :], decoding) for index in range(7)]
    plain, fused = own_role(bundle), fused_role(bundle)
    expected = open_generator(bundle, plain, PlainDecoder.load(bundle, plain, PROFILE)).run(calls, 8)
    decoder = (CapturedQuestionDecoder if captured else PlainDecoder).load(bundle, fused, PROFILE)
    generator = open_generator(bundle, fused, decoder)
    for _ in range(2):
        for left, right in zip(expected, generator.run(calls, 8), strict=True):
            assert isinstance(left, tuple)
            assert isinstance(right, tuple)
            assert [question.text for question in left] == [question.text for question in right]
            scores = [[question.score for question in questions] for questions in (left, right)]
            assert np.allclose(*scores, atol=1e-4)
    assert len({question.text for questions in expected for question in questions}) > 1  # type: ignore[union-attr]
    if isinstance(decoder, CapturedQuestionDecoder):
        assert decoder.fused
        assert (decoder.graph.uncaptured > 0) == (decoding.max_new_tokens > 12)


def test_a_device_runs_the_graphs_of_its_target(bundle: Bundle) -> None:
    role, fused = own_role(bundle), fused_role(bundle)
    graphs = {}
    for kind in ("cpu", "cuda", "tensorrt"):
        placed, profile = place_role("qg", role, DeviceProfile.of(Device(kind), 1))  # type: ignore[arg-type]
        assert isinstance(placed, QuestionGeneratorRole)
        graphs[kind] = placed.graph_files, profile.device.kind
    assert graphs == {
        "cpu": (role.graph_files, "cpu"),
        "cuda": (fused.graph_files, "cuda"),
        "tensorrt": (fused.graph_files, "cuda"),
    }


@pytest.mark.parametrize(("beams", "rows"), [(1, 1), (4, 4), (5, 8), (8, 8), (9, 16), (64, 64)])
def test_beams_are_padded_to_what_one_kernel_takes(beams: int, rows: int) -> None:
    assert pad_beams(beams) == rows


def test_the_table_says_whose_positions_a_beam_reads() -> None:
    """Against the sequences themselves: each beam has its own copy, and takes that of its parent."""
    rng = np.random.default_rng(0)
    cache, written = BeamCache(2, 4, 6), np.zeros((2, 4, 6), np.int64)
    sequences = np.zeros((2, 4, 0), np.int64)
    for step in range(6):
        parents, tokens = rng.integers(0, 4 if step else 1, (2, 4)), rng.integers(0, 99, (2, 4))
        cache.start_step(parents)
        sequences = np.take_along_axis(sequences, parents[:, :, None], axis=1) if step else sequences
        read = np.take_along_axis(written, cache.table, axis=1)[..., :step]
        assert np.array_equal(read, sequences)
        written[:, :, step] = tokens
        cache.end_step()
        sequences = np.concatenate((sequences, tokens[:, :, None]), axis=2)


def test_a_record_gives_the_steps_of_the_sources_that_are_open() -> None:
    record = StepRecord(4)
    record.add(np.arange(4)[:, None], np.zeros((4, 1)))
    record.keep(np.array([0, 2, 3]))
    record.add(np.arange(10, 13)[:, None], np.zeros((3, 1)))
    record.keep(np.array([1, 2]))
    assert [tokens.ravel().tolist() for tokens, _ in record] == [[2, 3], [11, 12]]
