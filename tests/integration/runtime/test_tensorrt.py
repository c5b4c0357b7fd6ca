"""Engines: built, compared with the checkpoint, kept for one machine, loaded and run. TensorRT's module is a recorder,
which computes with ONNX Runtime's CPU provider; nothing here shows what TensorRT itself does."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from groundwire.cli.bundle import app
from groundwire.export import RoleOptions, export_bundle
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EncoderRole, Target
from groundwire.runtime.calls import Answer, Classify
from groundwire.runtime.compilation import compile_bundle
from groundwire.runtime.errors import BundleError, DeviceError, GroundwireError, ModelError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.graphs import load_graph, place_role
from groundwire.runtime.ort import device as device_module
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.parity.certify import certify
from groundwire.runtime.tensorrt import engine as engine_module
from groundwire.runtime.tensorrt import library
from groundwire.runtime.tensorrt.engine import TensorRTEngine
from groundwire.runtime.tensorrt.records import TIMINGS, Engines, list_shapes, read_engines
from tests.support import host_cuda, models, tensorrt_recorder
from tests.support.shared import make_once, shared_root
from tests.support.tensorrt_recorder import VERSION, Recorder

GPU = Device("tensorrt")
KEY = f"sm_90-tensorrt-{VERSION}"
KNOWLEDGE = "The Beatles were an English rock band, formed in Liverpool in 1960."


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a QA model and an NLI model with targets for TensorRT."""
    root = shared_root(tmp_path_factory)

    def export(folder: Path) -> None:
        sources = {"qa": models.extractive_qa(root / "trt-qa", "albert", seed=3),
                   "nli": models.classifier(root / "trt-nli", "roberta", seed=3)}  # fmt: skip
        roles = {role: RoleOptions(str(path), precision="fp16", target="tensorrt") for role, path in sources.items()}
        export_bundle(roles, folder)

    return make_once(root / "trt", export)


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A copy of the bundle."""
    return Path(shutil.copytree(exported, tmp_path / "trt"))


@pytest.fixture
def compiled(folder: Path, recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bundle with its engines, which are built once."""

    def build(path: Path) -> None:
        shutil.copytree(folder, path)
        compile_bundle(Bundle.open(path), GPU, created_with="test")

    made = make_once(shared_root(tmp_path_factory) / "trt-compiled", build)
    recorder.calls.clear()
    recorder.runs.clear()
    shutil.copytree(made / "engines", folder / "engines")
    return folder


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """A machine with TensorRT and a GPU whose memory is the host's."""
    monkeypatch.setattr(Device, "memory", "cpu")
    host_cuda.use_host_memory(monkeypatch)
    monkeypatch.setattr(engine_module, "Stream", host_cuda.HostStream)
    for module in (device_module, library):
        monkeypatch.setattr(module, "start_device", lambda device: None)
    monkeypatch.setattr(library, "compute_capability", lambda index: "90")
    monkeypatch.setattr(library, "name_gpu", lambda index: "NVIDIA H200")
    with tensorrt_recorder.installed() as installed:
        yield installed


def compile_here(folder: Path, **options: Any) -> dict[str, Any]:
    return compile_bundle(Bundle.open(folder), GPU, created_with="test", **options)


def target_of(folder: Path, role: str) -> Target:
    record = Bundle.open(folder).manifest.roles[role]
    assert isinstance(record, EncoderRole)
    target = record.find_target("tensorrt")
    assert target is not None
    return target


def engines_of(folder: Path) -> Engines:
    engines = read_engines(Bundle.open(folder), KEY)
    assert engines is not None
    return engines


def load(folder: Path, role: str) -> TensorRTEngine:
    return TensorRTEngine.load(Bundle.open(folder), target_of(folder, role), GPU)


def test_engines_are_built_strongly_typed_with_a_profile_for_each_width(folder: Path, recorder: Recorder) -> None:
    reports = compile_here(folder)
    profiles = len(target_of(folder, "qa").plan.profiles)  # type: ignore[union-attr]
    assert (
        recorder.calls
        == [
            "network 2",  # 1 << STRONGLY_TYPED
            "parse qa.tensorrt.onnx",
            "clear TF32",
            f"build {profiles} profiles",
            "network 2",
            "parse nli.tensorrt.onnx",
            "clear TF32",
            f"build {profiles} profiles",
        ]
        or recorder.calls[1] == "parse nli.tensorrt.onnx"
    )
    assert {role: report.failures for role, report in reports.items()} == {"qa": (), "nli": ()}
    assert all(report.batch_spread < 1e-4 for report in reports.values())
    assert sorted(path.name for path in (folder / "engines" / KEY).iterdir()) == [
        "engines.json",
        "nli.tensorrt.engine",
        "qa.tensorrt.engine",
        TIMINGS,
    ]
    engines = engines_of(folder)
    assert (engines.gpu, engines.tensorrt, engines.created_with) == ("NVIDIA H200", VERSION, "test")
    assert engines.engines["qa.tensorrt.onnx"].parity == reports["qa"].parity
    Bundle.open(folder).verify()


def test_the_runtime_answers_with_engines_and_builds_none(compiled: Path, recorder: Recorder) -> None:
    recorder.calls.clear()
    recorder.runs.clear()
    runtime = LocalRuntime.load(compiled, device="tensorrt")
    calls = [Answer(f"who was number {i}?", (KNOWLEDGE,)) for i in range(20)]
    answers = runtime.run("qa", calls, 8)
    (label,) = runtime.run("nli", [Classify("nli", (KNOWLEDGE,), "The Beatles were Irish.")], 8)
    assert recorder.calls == []
    assert not any(isinstance(outcome, GroundwireError) for outcome in (*answers, label))
    assert len(recorder.runs) == 2, "twenty windows of one width are one batch"
    cpu = LocalRuntime.load(compiled, device="cpu")
    for answer, expected in zip(answers, cpu.run("qa", calls, 8), strict=True):
        assert answer.text == expected.text  # type: ignore[union-attr]
        assert answer.score == pytest.approx(expected.score, abs=1e-3)  # type: ignore[union-attr]
    identity = runtime.identity
    assert (identity.device, identity.precision) == ("tensorrt", "fp16")
    assert identity.kernel.endswith(f"tensorrt-{VERSION}")


def test_texts_are_padded_to_widths_of_the_plan(compiled: Path, recorder: Recorder) -> None:
    plan = target_of(compiled, "nli").plan
    assert plan is not None
    engine = load(compiled, "nli")
    recorder.runs.clear()
    for profile, width in enumerate(plan.widths):
        for rows in (1, plan.profiles[profile].max_rows if profile == 0 else 3):
            feeds = {name: np.ones((rows, width), np.int64) for name in engine.inputs}
            (logits,) = engine.run(feeds)
            assert logits.shape == (rows, 3)
            assert recorder.runs[-1] == (profile, (rows, width))
    too_many = {name: np.ones((plan.profiles[0].max_rows + 1, plan.widths[0]), np.int64) for name in engine.inputs}
    between = {name: np.ones((1, plan.widths[0] + 8), np.int64) for name in engine.inputs}
    for feeds in (too_many, between):
        with pytest.raises(ModelError, match=r"nli\.tensorrt\.onnx has no profile for the shape"):
            engine.run(feeds)


def test_a_failed_run_says_what_tensorrt_said(compiled: Path, recorder: Recorder) -> None:
    engine = load(compiled, "nli")
    feeds = {name: np.ones((1, 32), np.int64) for name in engine.inputs}
    recorder.refuse.add("execute")
    with pytest.raises(ModelError, match=r"nli\.tensorrt\.onnx cannot run on tensorrt: Error Code 1: Cuda Runtime"):
        engine.run(feeds)
    recorder.refuse.clear()
    assert engine.run(feeds)[0].shape == (1, 3), "the next batch runs"


def test_an_engine_that_disagrees_with_its_checkpoint_is_not_kept(folder: Path, recorder: Recorder) -> None:
    recorder.noise = 50.0
    reports = compile_here(folder)
    assert all(any("logit error" in failure for failure in report.failures) for report in reports.values())
    assert sorted(path.name for path in (folder / "engines" / KEY).iterdir()) == ["engines.json", TIMINGS]
    assert engines_of(folder).engines == {}
    with pytest.raises(DeviceError, match="has no engine"):
        load(folder, "nli")


def test_engines_that_fit_are_not_built_again(compiled: Path, recorder: Recorder) -> None:
    recorder.calls.clear()
    assert compile_here(compiled) == {"qa": None, "nli": None}
    assert recorder.calls == []
    assert all(report is not None for report in compile_here(compiled, force=True).values())


def test_what_a_build_has_measured_is_not_measured_again(folder: Path, recorder: Recorder) -> None:
    compile_here(folder)
    first, second = recorder.measured
    assert first > second, "the second role's kinds of layers are mostly those of the first"
    timings = folder / "engines" / KEY / TIMINGS
    kept = timings.read_bytes()
    (folder / "engines" / KEY / "engines.json").unlink()
    compile_here(folder)
    assert recorder.measured[2:] == [0, 0]
    for other in (b"damaged", kept.replace(VERSION.encode(), b"10.15.0")):  # TensorRT refuses both
        timings.write_bytes(other)
        (folder / "engines" / KEY / "engines.json").unlink()
        compile_here(folder)
        assert recorder.measured[-2:] == [first, second]
        assert timings.read_bytes() == kept
    compile_here(folder, force=True)
    assert recorder.measured[-2:] == [first, second], "with force all is measured"


def test_an_engine_that_failed_after_one_that_fits_takes_its_place(compiled: Path, recorder: Recorder) -> None:
    """A machine whose kernels changed must not keep on using what it no longer builds."""
    recorder.noise = 50.0
    compile_here(compiled, force=True)
    with pytest.raises(DeviceError, match="has no engine"):
        load(compiled, "qa")


def _other_gpu(compiled: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    monkeypatch.setattr(library, "name_gpu", lambda index: "NVIDIA H100 PCIe")


def _other_capability(compiled: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    monkeypatch.setattr(library, "compute_capability", lambda index: "89")


def _other_version(compiled: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    recorder.__version__ = "10.17.0"


def _other_weights(compiled: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    _edit(compiled / "bundle.json", lambda m: m["files"]["weights.bin"].update(sha256="0" * 64))


def _other_plan(compiled: Path, monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    _edit(compiled / "bundle.json", lambda m: m["roles"]["nli"]["targets"]["tensorrt"]["plan"].update(max_rows=64))


def _edit(path: Path, change: Callable[[Any], object]) -> None:
    content = msgspec.json.decode(path.read_bytes())
    change(content)
    path.write_bytes(msgspec.json.encode(content))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_other_gpu, r"was built on another GPU \(NVIDIA H200; this is NVIDIA H100 PCIe\)"),
        (_other_capability, rf"has no engine for sm_89-tensorrt-{VERSION} \(only for {KEY}\)"),
        (_other_version, rf"has no engine for sm_90-tensorrt-10\.17\.0 \(only for {KEY}\)"),
        (_other_weights, "was built of another graph, or other weights"),
        (_other_plan, "was built of another graph, or other weights"),
    ],
)
def test_an_engine_for_something_else_is_refused_with_the_command(
    compiled: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, change: Callable[..., None], reason: str
) -> None:
    change(compiled, monkeypatch, recorder)
    message = rf"nli\.tensorrt\.onnx {reason}, and the runtime builds none.*groundwire bundle compile .*device='cuda'"
    with pytest.raises(DeviceError, match=message):
        load(compiled, "nli")


@pytest.mark.parametrize("plan", [None, {"widths": [32], "max_tokens": 9, "max_rows": 9, "usual_rows": 1}])
def test_a_target_without_shapes_for_its_texts_is_refused(compiled: Path, recorder: Recorder, plan: Any) -> None:
    _edit(compiled / "bundle.json", lambda m: m["roles"]["nli"]["targets"]["tensorrt"].update(plan=plan))
    with pytest.raises(BundleError, match=r"nli\.tensorrt\.onnx .* has no shapes for texts of 96 tokens"):
        LocalRuntime.load(compiled, device="tensorrt")


def test_a_waived_target_is_kept_whatever_it_gives(folder: Path, recorder: Recorder) -> None:
    """Benchmarks on random weights compare nothing."""
    for role in ("qa", "nli"):
        _edit(
            folder / "bundle.json",
            lambda m, role=role: m["roles"][role]["targets"]["tensorrt"]["parity"].update(gate="waived"),  # type: ignore[misc]
        )
    recorder.noise = 50.0
    assert all(report.failures == () for report in compile_here(folder).values())
    assert set(engines_of(folder).engines) == {"qa.tensorrt.onnx", "nli.tensorrt.onnx"}


def test_without_engines_loading_names_the_command(folder: Path, recorder: Recorder) -> None:
    with pytest.raises(DeviceError, match=rf"has no engine for {KEY}, and .* groundwire bundle compile .*trt "):
        LocalRuntime.load(folder, device="tensorrt")


@pytest.mark.parametrize("damage", ["missing", "changed", "record", "path"])
def test_damaged_engines_are_refused(compiled: Path, recorder: Recorder, damage: str) -> None:
    path = compiled / "engines" / KEY / "nli.tensorrt.engine"
    records = path.with_name("engines.json")
    match damage:
        case "missing":
            path.unlink()
        case "changed":
            path.write_bytes(path.read_bytes()[:-1] + b"x")
        case "record":
            records.write_text("{")
        case "path":
            _edit(records, lambda m: m["engines"]["nli.tensorrt.onnx"].update(file="../../x.engine"))
    expected = DeviceError if damage == "path" else BundleError
    with pytest.raises(expected, match="groundwire bundle compile"):
        load(compiled, "nli")


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        ("parse", r"TensorRT cannot read .*qa\.tensorrt\.onnx: In node 0 \(importNode\): UNSUPPORTED_NODE"),
        ("profile", r"TensorRT refuses the shapes \(1, 32\) to \(512, 32\) of .*qa\.tensorrt\.onnx"),
        ("build", r"TensorRT built no engine of .*qa\.tensorrt\.onnx: No implementation for node Softmax"),
        ("deserialize", r"TensorRT refuses .*qa\.tensorrt\.part: The engine plan file is not compatible"),
        ("context", "The engine of qa.tensorrt.onnx got no execution context"),
    ],
)
def test_what_tensorrt_refuses_is_said(folder: Path, recorder: Recorder, refused: str, message: str) -> None:
    recorder.refuse.add(refused)
    with pytest.raises(DeviceError, match=message.replace("qa", "(qa|nli)")):
        compile_here(folder)
    assert not list(folder.glob("engines/*/*.engine"))


def test_profiles_that_are_not_the_plans_are_refused(compiled: Path, recorder: Recorder) -> None:
    target = target_of(compiled, "nli")
    other = msgspec.structs.replace(target, plan=msgspec.structs.replace(target.plan, max_rows=7))  # type: ignore[type-var]
    with pytest.raises(DeviceError, match="has other shape profiles than the plan"):
        TensorRTEngine.open(recorder, compiled / "engines" / KEY / "nli.tensorrt.engine", other, GPU)


def test_an_encoder_without_a_target_is_refused_with_the_command(tiny_bundle: Path, recorder: Recorder) -> None:
    with pytest.raises(DeviceError, match=r"The role 'nli' has no target .*groundwire export nli .*--target tensorrt"):
        LocalRuntime.load(tiny_bundle, device="tensorrt")
    with pytest.raises(BundleError, match=r"has no target for TensorRT.*groundwire export ROLE"):
        compile_here(tiny_bundle)


def test_other_kinds_run_on_cuda_beside_tensorrt(tiny_bundle: Path, folder: Path) -> None:
    profile = DeviceProfile.of(GPU, 1)
    for name, role in Bundle.open(tiny_bundle).manifest.roles.items():
        if not isinstance(role, EncoderRole):
            assert place_role(name, role, profile)[1].device == Device("cuda")
    for name, role in Bundle.open(folder).manifest.roles.items():
        placed, of_role = place_role(name, role, profile)
        assert isinstance(placed, EncoderRole)
        assert (placed.graph, of_role.device) == (f"{name}.tensorrt.onnx", GPU)
        assert place_role(name, role, DeviceProfile.of("cpu", 1))[0] is role


def test_certify_runs_engines(compiled: Path, recorder: Recorder) -> None:
    reports = certify(Bundle.open(compiled), GPU)
    assert all(report is not None and report.failures == () for report in reports.values())
    record = Bundle.open(compiled).manifest.roles["nli"]
    placed, profile = place_role("nli", record, DeviceProfile.of(GPU, 1))
    assert isinstance(load_graph(Bundle.open(compiled), placed, profile), TensorRTEngine)  # type: ignore[arg-type]


def test_the_command_compiles_and_reports(folder: Path, recorder: Recorder) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["compile", str(folder)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "nli on tensorrt passes (100.0% of decisions" in done.stdout
    assert "building the engine of qa, which takes minutes" in done.stderr
    assert "qa there already" in runner.invoke(app, ["compile", str(folder)]).stdout
    recorder.noise = 50.0
    again = runner.invoke(app, ["compile", str(folder), "--force"], env={"COLUMNS": "200"})
    assert again.exit_code == 1
    assert "nli on tensorrt fails: " in again.stdout
    with pytest.raises(DeviceError, match="device='cuda' needs no engines; compile takes device='tensorrt'"):
        runner.invoke(app, ["compile", str(folder), "--device", "cuda"], catch_exceptions=False)


def test_without_tensorrt_the_install_command_is_named(
    folder: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.__version__ = "11.0.0"
    with pytest.raises(
        DeviceError, match=r"TensorRT 11\.0\.0 is installed; .* needs TensorRT 10.*groundwire\[tensorrt"
    ):
        compile_here(folder)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(
        DeviceError, match=r"device='tensorrt' needs the Python package tensorrt: .*groundwire\[tensorrt"
    ):
        compile_here(folder)


def test_the_second_gpu_is_chosen_by_the_environment(folder: Path, recorder: Recorder) -> None:
    with pytest.raises(DeviceError, match="Set CUDA_VISIBLE_DEVICES=1 and use device='tensorrt'"):
        compile_bundle(Bundle.open(folder), Device("tensorrt", 1), created_with="test")


def test_every_profile_of_an_engine_is_least_usual_and_most(folder: Path) -> None:
    plan = target_of(folder, "qa").plan
    assert plan is not None
    for shapes, width in zip(list_shapes(plan), plan.widths, strict=True):
        (least, usual, most) = shapes
        assert {least[1], usual[1], most[1]} == {width}
        assert 1 == least[0] <= usual[0] <= most[0]
        assert most[0] * width <= max(width, plan.max_tokens)
