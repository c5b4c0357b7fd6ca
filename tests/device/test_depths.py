"""Kernels of graphs for CUDA at the depths of published models, which are narrow here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from groundwire.export import ReaderSettings, RoleOptions, export_role
from groundwire.recipes.reader.bundle import HISTORY_MARK, make_checkpoint
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EncoderRole, QuestionGeneratorRole, ReaderRole
from groundwire.runtime.calls import BeamSearch, GenerateQuestions
from groundwire.runtime.capture.decoder import PAST_TOKENS
from groundwire.runtime.capture.question import CapturedQuestionDecoder
from groundwire.runtime.capture.shapes import BatchShape
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.graphs import load_encoder, place_role
from groundwire.runtime.models.kinds import kind_of
from groundwire.runtime.ort.session import DeviceProfile
from tests.support import cuda_double, models
from tests.support.readers import make_decided
from tests.support.shared import make_once, shared_root

DECODER_LAYERS = 12
"""T5-base has so many."""
STEP = 170
"""Kernels of a decode step of that depth, at most."""


ENCODER_LAYERS = 24
"""Those of RoBERTa-large and ALBERT-xlarge."""
ENCODERS = {"roberta": 227, "albert": 229, "bert": 227}
"""Kernels of a pass of that depth; the goal is 230."""
READER_LAYERS, READER = 8, 130
"""Layers of the embedded reader, and kernels of a pass of that depth; float32 products take 263."""
T5_ENCODER = 110
"""Kernels of a pass of an encoder of two layers, with keys and values for the decoder; the role's own graph has 125."""


@pytest.mark.parametrize("family", ENCODERS)
def test_an_encoder_of_24_layers(family: str, tmp_path: Path) -> None:
    role = "nli" if family == "roberta" else "qa"
    path = models.deep_encoder(tmp_path / role, family, ENCODER_LAYERS)
    bundle = export_role(
        role, RoleOptions(str(path), precision="fp16", target="cuda", allow_unverified=True), tmp_path / "b"
    )
    record = bundle.manifest.roles[role]
    assert isinstance(record, EncoderRole)
    target = record.find_target("cuda")
    assert target is not None
    assert target.precision == "fp16"
    assert 0 < count_kernels(bundle, target.graph, record.max_tokens) <= ENCODERS[family]


def count_kernels(bundle: Bundle, graph: str, max_tokens: int) -> int:
    """Kernels of a captured pass of an encoder."""
    encoder = load_encoder(bundle, graph, max_tokens, DeviceProfile.of("cuda", None))
    feeds = {name: np.ones((3, 32), np.int64) for name in encoder.inputs}
    with cuda_double.count() as counts:
        encoder.run(feeds)
    assert counts.total("capture").times == 1
    return counts.total("captured").times


def test_the_reader(tmp_path: Path) -> None:
    settings = ReaderSettings(make_checkpoint(make_decided(READER_LAYERS), "deep", 320), HISTORY_MARK)
    options = RoleOptions("deep", settings, precision="fp16", target="cuda", allow_unverified=True)
    bundle = export_role("reader", options, tmp_path / "b")
    role, _ = place_role("reader", bundle.manifest.roles["reader"], DeviceProfile.of("cuda", None))
    assert isinstance(role, ReaderRole)
    assert (role.graph, role.precision) == ("reader.cuda.onnx", "fp16")
    assert 0 < count_kernels(bundle, role.graph, role.max_tokens) <= READER


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    root = shared_root(tmp_path_factory)

    def export(folder: Path) -> None:
        checkpoint = models.t5_for_cuda(folder.with_name("t5-deep"), DECODER_LAYERS)
        export_role("qg", RoleOptions(str(checkpoint), precision="fp16", target="cuda"), folder)

    return Bundle.open(make_once(root / "deep-t5", export))


def test_the_encoder_of_t5(bundle: Bundle) -> None:
    role, _ = place_role("qg", bundle.manifest.roles["qg"], DeviceProfile.of("cuda", None))
    assert isinstance(role, QuestionGeneratorRole)
    assert 0 < count_kernels(bundle, role.encoder, role.max_tokens) <= T5_ENCODER


def open_decoder(bundle: Bundle) -> CapturedQuestionDecoder:
    profile = DeviceProfile.of("cuda", None)
    role, _ = place_role("qg", bundle.manifest.roles["qg"], profile)
    assert isinstance(role, QuestionGeneratorRole)
    decoder = CapturedQuestionDecoder.load(bundle, role, profile)
    assert decoder is not None
    assert decoder.fused
    return decoder


@pytest.mark.parametrize("past", [0, 1, 7, PAST_TOKENS - 2])
@pytest.mark.parametrize("sources", [1, 16])
def test_a_decode_step_of_t5_base(bundle: Bundle, sources: int, past: int) -> None:
    decoder = open_decoder(bundle)
    rows = decoder.pad(BeamSearch().num_beams)
    with cuda_double.count() as counts:
        decoder.graph.run(BatchShape(sources, 128, past, beams=rows, before=rows, candidates=decoder.count(1)))
    assert counts.total("capture").times == 1
    assert 0 < counts.total("captured").times <= STEP


def test_questions_of_a_fused_step_are_replays(bundle: Bundle) -> None:
    runtime = LocalRuntime.load(bundle.directory, device="cuda")
    assert runtime.identity.precision == "fp16"
    calls = kind_of(bundle.manifest.roles["qg"]).warm_calls("qg")
    runtime.run("qg", calls, 8)
    with cuda_double.count() as counts:
        outcomes = runtime.run("qg", calls, 8)
    assert not [outcome for outcome in outcomes if isinstance(outcome, GroundwireError)]
    steps = counts.syncs
    assert (counts.replays, counts.launches) == (steps + 1, 0), "the encoder's, and one for each step"
    assert counts.uploads.times == counts.downloads.times == 0, "copies that the host waits for"
    assert counts.total("copy", "HtoD", "pinned").times == 2 + steps
    assert counts.total("copy", "DtoH", "pinned").times == steps


def test_sequences_longer_than_what_is_captured_go_on(bundle: Bundle) -> None:
    runtime = LocalRuntime.load(bundle.directory, device="cuda")
    call = GenerateQuestions("2026", "It was 2026.", BeamSearch(max_new_tokens=PAST_TOKENS + 8, min_new_tokens=40))
    (outcome,) = runtime.run("qg", [call], 8)
    assert not isinstance(outcome, GroundwireError), outcome
