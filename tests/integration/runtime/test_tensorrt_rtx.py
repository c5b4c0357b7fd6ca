"""Engines of TensorRT-RTX, built for real: it needs no GPU. Nothing here runs one, which needs a GPU."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from typer.testing import CliRunner

from groundwire.cli.bundle import app
from groundwire.export import EmbedderSettings, Gate, ReaderSettings, RoleOptions, export_bundle, export_role
from groundwire.recipes.reader.bundle import HISTORY_MARK, make_checkpoint
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import PassRole, ShapePlan, Target
from groundwire.runtime.compilation import compile_portable
from groundwire.runtime.errors import BundleError, DeviceError, ExportError, InvalidRequest
from groundwire.runtime.kserve.endpoint import Endpoint
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.graphs import place_role
from groundwire.runtime.ort import device as device_module
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.tensorrt import library
from groundwire.runtime.tensorrt.build import build_engine
from groundwire.runtime.tensorrt.engine import TensorRTEngine
from groundwire.runtime.tensorrt.library import list_capabilities
from groundwire.runtime.tensorrt.records import choose_rtx_folder, name_rtx_folder, read_engines
from tests.support import models
from tests.support.readers import make_decided
from tests.support.shared import make_once, shared_root

rtx = pytest.importorskip("tensorrt_rtx_bindings")
VERSION = rtx.__version__
PORTABLE = f"rtx-{VERSION}-portable"
GPU = Device("tensorrt-rtx")
PLAN = ShapePlan((16, 32), 1024, 32, 4)
ROLES = ("nli", "qa", "detector.facts", "token_classifier", "embedder", "reader")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of every kind of role that has a target for TensorRT-RTX, at two precisions."""
    root = shared_root(tmp_path_factory)

    def export(folder: Path) -> None:
        sources = {
            "nli": (models.classifier(root / "rtx-nli", "roberta"), "fp8", None),
            "qa": (models.extractive_qa(root / "rtx-qa", "albert"), "fp16", None),
            "detector.facts": (models.classifier(root / "rtx-facts", "bert"), "int8", None),
            "token_classifier": (models.token_classifier(root / "rtx-tokens", "bert"), "fp16", None),
            "embedder": (models.embedder(root / "rtx-embedder", "roberta"), "fp32", EmbedderSettings(layer=1)),
        }
        roles: dict[str, Any] = {
            role: RoleOptions(
                str(path), kind, precision=precision, target="tensorrt-rtx", max_tokens=48, allow_unverified=True
            )  # type: ignore[arg-type]
            for role, (path, precision, kind) in sources.items()
        }
        checkpoint = make_checkpoint(make_decided(), "tiny", 48)
        roles["reader"] = RoleOptions(
            "tiny",
            ReaderSettings(checkpoint, HISTORY_MARK),
            precision="fp16",
            target="tensorrt-rtx",
            gate=Gate(decision_agreement=0.9),
        )
        export_bundle(roles, folder)

    return make_once(root / "rtx", export)


def test_the_table_of_capabilities_is_the_librarys() -> None:
    assert list_capabilities(rtx) == list(library.CAPABILITIES["tensorrt-rtx"])


@pytest.fixture(scope="session")
def built(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with its portable engines."""

    def build(path: Path) -> None:
        shutil.copytree(exported, path)
        compile_portable(Bundle.open(path), created_with="test")

    return make_once(shared_root(tmp_path_factory) / "rtx-built", build)


@pytest.fixture
def compiled(built: Path, tmp_path: Path) -> Path:
    """A copy of the bundle with its engines."""
    return Path(shutil.copytree(built, tmp_path / "b"))


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A machine whose driver names a compute capability, and whose GPU is not started."""
    gpu = {"capability": "89"}
    for module in (device_module, library):
        monkeypatch.setattr(module, "start_device", lambda device: None)
    monkeypatch.setattr(library, "compute_capability", lambda index: gpu["capability"])
    return gpu


def target_of(folder: Path, role: str) -> Target:
    record = Bundle.open(folder).manifest.roles[role]
    assert isinstance(record, PassRole)
    target = record.find_target("tensorrt-rtx")
    assert target is not None
    return target


def test_every_kind_of_encoder_is_built_with_a_profile_for_each_width(compiled: Path) -> None:
    engines = read_engines(Bundle.open(compiled), PORTABLE)
    assert engines is not None
    assert (engines.gpu, engines.tensorrt) == ("", VERSION)
    assert set(engines.engines) == {f"{role}.tensorrt-rtx.onnx" for role in ROLES}
    for role in ROLES:
        target = target_of(compiled, role)
        record = engines.engines[target.graph]
        assert record.parity is record.batch_spread is None, "nothing was run"
        weights = sum(t.nbytes for t in _read_weights(compiled / target.graph))
        engine = (compiled / "engines" / PORTABLE / record.file).read_bytes()
        assert weights < len(engine), "an engine holds its weights"
        assert target.plan is not None
    precisions = {role: target_of(compiled, role).precision for role in ROLES}
    assert precisions == dict(zip(ROLES, ("fp8", "fp16", "int8", "fp16", "fp32", "fp16"), strict=True))


def _read_weights(graph: Path) -> list[Any]:
    return [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(graph).graph.initializer]


def test_an_engine_has_as_many_profiles_as_its_plan(exported: Path) -> None:
    """What a profile adds is code, so it is seen in the size."""
    graph = Bundle.open(exported).file(target_of(exported, "qa").graph)
    one, two = (
        len(build_engine(rtx, graph, ShapePlan(widths, 1024, 32, 4), None).engine) for widths in ((16,), (16, 32))
    )
    assert two > one


def test_engines_that_are_there_are_not_built_again(compiled: Path) -> None:
    seen: list[str] = []
    assert compile_portable(Bundle.open(compiled), created_with="test", watch=seen.append) == dict.fromkeys(ROLES)
    assert seen == []


def test_the_command_builds_for_named_capabilities(exported: Path, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    export_role(
        "nli",
        RoleOptions(
            str(models.classifier(tmp_path / "nli", "roberta")), precision="fp16", target="tensorrt-rtx", max_tokens=32
        ),
        folder,
    )
    arguments = ["compile", str(folder), "--device", "tensorrt-rtx", "--capability", "8.9", "--capability", "8.6"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "nli built, " in done.stdout
    assert "not run here" in done.stdout
    assert "nli there already" in CliRunner().invoke(app, arguments).stdout
    assert (folder / "engines" / f"rtx-{VERSION}-sm_86-sm_89" / "nli.tensorrt-rtx.engine").is_file()
    Bundle.open(folder).verify()
    for text in ("9.0", "89"):
        with pytest.raises(DeviceError, match=rf"builds for compute capability 7\.5, .*, not {text}\. .*device='cuda'"):
            compile_portable(Bundle.open(folder), [text], created_with="test")
    with pytest.raises(DeviceError, match="--capability is for device='tensorrt-rtx'"):
        CliRunner().invoke(app, ["compile", str(folder), "--capability", "8.9"], catch_exceptions=False)


def test_h100_is_none_of_its_capabilities() -> None:
    assert (9, 0) not in list_capabilities(rtx)
    assert {(7, 5), (8, 9), (12, 0)} <= set(list_capabilities(rtx))


@pytest.fixture(scope="session")
def generators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a question generator and a language model with targets for TensorRT-RTX."""
    root = shared_root(tmp_path_factory)

    def export(folder: Path) -> None:
        sources = {
            "qg": models.encoder_decoder(root / "rtx-qg", "t5"),
            "lm": models.language_model(root / "rtx-lm", "gpt2"),
        }
        roles = {
            role: RoleOptions(str(path), precision="fp16", target="tensorrt-rtx", max_tokens=48, allow_unverified=True)
            for role, path in sources.items()
        }
        export_bundle(roles, folder)

    return make_once(root / "rtx-generators", export)


def test_encoder_step_and_language_model_are_built(generators: Path, tmp_path: Path) -> None:
    """Their shapes have names: searches have no past at first, and the number of candidates is an input."""
    folder = shutil.copytree(generators, tmp_path / "b")
    bundle = Bundle.open(folder)
    bundle.verify()
    sizes = compile_portable(bundle, created_with="test")
    assert set(sizes) == {"qg.encoder", "qg.decoder", "lm"}
    assert all(size is not None and size > 1 << 16 for size in sizes.values())
    assert set(compile_portable(bundle, created_with="test").values()) == {None}
    profile = DeviceProfile.of(GPU, 1)
    for name, role in bundle.manifest.roles.items():
        placed, of_role = place_role(name, role, profile)
        assert (placed.graph_files, of_role.device) == (role.graph_files, Device("cuda")), "no device runs them yet"
    assert bundle.manifest.precisions_on("tensorrt-rtx") == bundle.manifest.precisions_on("cuda")


def test_roles_without_logits_are_compared_by_their_own_graphs(tmp_path: Path) -> None:
    sources = {
        "embedder": models.embedder(tmp_path / "embedder", "roberta"),
        "lm": models.language_model(tmp_path / "lm", "gpt2"),
    }
    folder = tmp_path / "b"
    export_bundle({role: RoleOptions(str(path), precision="fp32") for role, path in sources.items()}, folder)
    before = {role: Bundle.open(folder).manifest.roles[role] for role in sources}
    for role, path in sources.items():
        export_role(role, RoleOptions(str(path), precision="fp32", target="tensorrt-rtx"), folder)
        with pytest.raises(ExportError, match=f"'{role}' of .* has the target tensorrt-rtx already"):
            export_role(role, RoleOptions(str(path), precision="fp32", target="tensorrt-rtx"), folder)
    bundle = Bundle.open(folder)
    bundle.verify()
    for role, old in before.items():
        assert bundle.manifest.roles[role].graph_files == old.graph_files
        assert bundle.manifest.roles[role].target_files == (f"{role}.tensorrt-rtx.onnx",)
    other = models.language_model(tmp_path / "other", "gpt2", seed=9)
    options = RoleOptions(str(other), precision="fp32", target="tensorrt-rtx")
    with pytest.raises(ExportError, match=r"'lm' of .* is of another checkpoint"):
        export_role("lm", options, folder, force=True)


@pytest.mark.parametrize("precision", ["int8", "fp8"])
@pytest.mark.parametrize("role", ["qg", "lm"])
def test_generators_have_no_quantized_target(tmp_path: Path, role: str, precision: Any) -> None:
    with pytest.raises(
        ExportError, match=f"precision='{precision}' is not for the target tensorrt-rtx of '{role}'; choose"
    ):
        export_role(role, RoleOptions("missing", precision=precision, target="tensorrt-rtx"), tmp_path / "b")


# Which engine a GPU loads


def test_an_engine_that_was_built_for_a_capability_by_name_comes_before_the_portable_one(compiled: Path) -> None:
    bundle, graph = Bundle.open(compiled), "nli.tensorrt-rtx.onnx"
    named = compiled / "engines" / name_rtx_folder(VERSION, [(8, 6), (8, 9)])
    shutil.copytree(compiled / "engines" / PORTABLE, named)
    assert choose_rtx_folder(bundle, graph, VERSION, (8, 9)) == named.name
    assert choose_rtx_folder(bundle, graph, VERSION, (12, 0)) == PORTABLE
    assert choose_rtx_folder(bundle, "other.onnx", VERSION, (8, 9)) == f"rtx-{VERSION}-sm_89"
    assert choose_rtx_folder(bundle, graph, VERSION, (7, 5)) == f"rtx-{VERSION}-sm_75", "portable is from 8.0 on"


@pytest.mark.parametrize(
    ("capability", "folder", "reason"),
    [
        ("89", "rtx-1.6.0.1-portable", rf"has no engine for rtx-{VERSION}-sm_89 \(only for rtx-1\.6\.0\.1-portable\)"),
        ("89", f"rtx-{VERSION}-sm_86", rf"has no engine for rtx-{VERSION}-sm_89 \(only for rtx-{VERSION}-sm_86\)"),
        ("75", PORTABLE, rf"has no engine for rtx-{VERSION}-sm_75 \(only for {PORTABLE}\)"),
    ],
)
def test_an_engine_for_another_capability_or_version_is_refused_with_the_command(
    compiled: Path, card: dict[str, str], capability: str, folder: str, reason: str
) -> None:
    card["capability"] = capability
    (compiled / "engines" / PORTABLE).rename(compiled / "engines" / folder)
    message = (
        rf"nli\.tensorrt-rtx\.onnx {reason}.*groundwire bundle compile .* --device tensorrt-rtx; or use device='cuda'"
    )
    with pytest.raises(DeviceError, match=message):
        TensorRTEngine.load(Bundle.open(compiled), target_of(compiled, "nli"), GPU)


@pytest.mark.parametrize(("capability", "said"), [("90", r"this one has 9\.0"), ("", "none that the driver names")])
def test_a_gpu_without_engines_of_its_own_is_refused(
    compiled: Path, card: dict[str, str], capability: str, said: str
) -> None:
    card["capability"] = capability
    with pytest.raises(DeviceError, match=rf"TensorRT-RTX {VERSION} runs on GPUs of .*{said}\. Use device='cuda'"):
        LocalRuntime.load(compiled, device="tensorrt-rtx")


def test_a_damaged_engine_is_refused(compiled: Path, card: dict[str, str]) -> None:
    (compiled / "engines" / PORTABLE / "nli.tensorrt-rtx.engine").write_bytes(b"x")
    with pytest.raises(BundleError, match=r"missing or damaged\. Build it again: .* --device tensorrt-rtx"):
        TensorRTEngine.load(Bundle.open(compiled), target_of(compiled, "nli"), GPU)


def test_a_machine_without_a_driver_says_what_the_library_says(compiled: Path, card: dict[str, str]) -> None:
    with pytest.raises(DeviceError, match=r"TensorRT-RTX refuses .*nli\.tensorrt-rtx\.engine: "):
        TensorRTEngine.load(Bundle.open(compiled), target_of(compiled, "nli"), GPU)


def test_roles_run_their_targets_and_others_cuda(compiled: Path, tiny_bundle: Path) -> None:
    profile = DeviceProfile.of(GPU, 1)
    for name, role in Bundle.open(compiled).manifest.roles.items():
        placed, of_role = place_role(name, role, profile)
        assert isinstance(placed, PassRole)
        assert (placed.graph, of_role.device) == (f"{name}.tensorrt-rtx.onnx", GPU)
    roles = Bundle.open(tiny_bundle).manifest.roles
    assert place_role("qg", roles["qg"], profile)[1].device == Device("cuda")
    with pytest.raises(DeviceError, match=r"'nli' has no target for TensorRT-RTX\. .*--target tensorrt-rtx"):
        place_role("nli", roles["nli"], profile)
    with pytest.raises(BundleError, match=r"has no target for TensorRT-RTX\. .*--target tensorrt-rtx"):
        compile_portable(Bundle.open(tiny_bundle), created_with="test")


def test_no_model_server_runs_it(compiled: Path) -> None:
    with pytest.raises(InvalidRequest, match="no model server runs TensorRT-RTX"):
        LocalRuntime.load_with_server(compiled, Endpoint("http://127.0.0.1:9"), device="tensorrt-rtx")


# What it refuses


def graph_of(path: Path, nodes: list[onnx.NodeProto], kind: int, weights: dict[str, Any] | None = None) -> Path:
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    source = helper.make_tensor_value_info("x", kind, ["rows", "width"])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [source], [result], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def node(*arguments: Any, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(*arguments, **attributes)


TABLE = np.ones((9, 4), np.int8)


@pytest.mark.parametrize(
    ("nodes", "kind", "weights", "said"),
    [
        (
            [node("Gather", ["t", "x"], ["g"]), node("Cast", ["g"], ["y"], to=1)],
            onnx.TensorProto.INT64,
            {"t": TABLE},
            "Quantized constant",
        ),
        (
            [node("BitwiseXor", ["x", "c"], ["b"]), node("Cast", ["b"], ["y"], to=1)],
            onnx.TensorProto.INT32,
            {"c": np.array([128], np.int32)},
            "BitwiseXor",
        ),
        ([node("Mod", ["x", "c"], ["y"])], onnx.TensorProto.FLOAT, {"c": np.array([2], np.float32)}, "fmod"),
        ([node("Head", ["x"], ["y"], domain="groundwire")], onnx.TensorProto.FLOAT, {}, "Head"),
    ],
)
def test_what_it_cannot_read_is_refused_with_its_reason(
    tmp_path: Path, nodes: list[onnx.NodeProto], kind: int, weights: dict[str, Any], said: str
) -> None:
    graph = graph_of(tmp_path / "g.onnx", nodes, kind, weights)
    with pytest.raises(DeviceError, match=rf"TensorRT-RTX .*g\.onnx: .*{said}.*Use device='cuda'"):
        build_engine(rtx, graph, PLAN, None)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Cast", ["x"], ["d"], to=11), node("Cast", ["d"], ["y"], to=1)],
        [node("Cast", ["x"], ["i"], to=7), node("CumSum", ["i", "axis"], ["s"]), node("Cast", ["s"], ["y"], to=1)],
    ],
)
def test_it_reads_what_readers_and_roberta_have(tmp_path: Path, nodes: list[onnx.NodeProto]) -> None:
    graph = graph_of(tmp_path / "g.onnx", nodes, onnx.TensorProto.FLOAT, {"axis": np.array(1, np.int64)})
    assert build_engine(rtx, graph, PLAN, None).timings == b""
