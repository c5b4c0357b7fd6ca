"""Engines beside CUDA: device memory, copies, and which graph runs where. TensorRT's module is a recorder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from groundwire.export import RoleOptions, export_bundle
from groundwire.runtime import compilation
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EncoderRole, Parity
from groundwire.runtime.calls import Answer, GenerateQuestions
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.device import Device, name_gpu
from groundwire.runtime.parity.certify import Certified
from groundwire.runtime.tensorrt.build import build_engine
from groundwire.runtime.tensorrt.engine import TensorRTEngine
from tests.support import cuda_double, models, tensorrt_recorder
from tests.support.tensorrt_recorder import Recorder

PASSED = Certified(Parity(64, 0.0, 1.0, 1.0), 0.0, ())


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A QA model with a target for TensorRT, and a question generator, which has none."""
    root = tmp_path_factory.mktemp("trt")
    qa, qg = models.extractive_qa(root / "qa", "bert"), models.encoder_decoder(root / "qg", "t5")
    roles = {
        "qa": RoleOptions(str(qa), precision="fp16", target="tensorrt"),
        "qg": RoleOptions(str(qg), precision="fp16"),
    }
    export_bundle(roles, root / "bundle")
    return root / "bundle"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with tensorrt_recorder.installed() as installed:
        yield installed


def test_a_batch_goes_up_and_its_logits_come_down(
    placed: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What comes from the double's memory is zeros, so no engine would pass.
    monkeypatch.setattr(compilation, "certify_graph", lambda *arguments: PASSED)
    opened = Bundle.open(placed)
    assert compilation.compile_bundle(opened, Device("tensorrt"), created_with="test") == {"qa": PASSED}
    assert name_gpu(0) == "double"
    runtime = LocalRuntime.load(placed, device="tensorrt")
    assert runtime.identity.kernel == f"onnxruntime-1.31.1+6af1a932e/sm_90/tensorrt-{tensorrt_recorder.VERSION}"
    calls = [Answer(f"when {i}?", ("Groundwire was warmed up in 2026.",)) for i in range(9)]
    recorder.runs.clear()
    live = cuda_double.live_bytes()
    for _ in range(3):
        with cuda_double.count() as counts:
            runtime.run("qa", calls, 8)
        assert counts.launches == 0, "the engine's kernels are TensorRT's"
        assert (counts.uploads.times, counts.downloads.times) == (0, 0), "no copy is waited for"
        assert [counts.total("copy", kind).times for kind in ("HtoD", "DtoH")] == [1, 1], "all inputs, all outputs"
        assert counts.syncs == 1
    assert cuda_double.live_bytes() == live, "a batch keeps no memory"
    assert recorder.runs == [(0, (9, 32))] * 3
    (stream,) = recorder.streams
    assert stream != 0, "the default stream costs more synchronization"
    with cuda_double.count() as counts:
        runtime.run("qg", [GenerateQuestions("2026", "Groundwire was warmed up in 2026.")], 8)
    assert counts.launches > 0, "a generator runs on CUDA beside it"


def test_an_engine_reads_what_was_copied_to_the_device(placed: Path, recorder: Recorder) -> None:
    """The addresses are those of the device's memory, and hold until the run has ended."""
    opened = Bundle.open(placed)
    role = opened.manifest.roles["qa"]
    assert isinstance(role, EncoderRole)
    target = role.find_target("tensorrt")
    assert target is not None
    assert target.plan is not None
    path = placed.parent / "qa.engine"
    path.write_bytes(build_engine(recorder, opened.file(target.graph), target.plan).engine)
    engine = TensorRTEngine.open(recorder, path, target, Device("tensorrt"))
    feeds = {name: np.full((2, 32), 5 if name == "input_ids" else 1, np.int64) for name in engine.inputs}
    start, end = engine.run(feeds)
    assert start.shape == end.shape == (2, 32)
    assert recorder.read == feeds["input_ids"].tolist()
