"""Graphs for other devices, beside a role's own: what is exported, what is kept, what TensorRT would refuse."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from groundwire.cli import export as commands
from groundwire.export import ClassifierSettings, RoleOptions, export_bundle, export_role, pipeline
from groundwire.export.passes import add_quantization, to_half
from groundwire.export.passes.operators import OPERATORS, adapt_operators, find_unsupported
from groundwire.export.session import CpuSession
from groundwire.export.targets import make_plan
from groundwire.runtime import _native
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EncoderRole, Ranges, ShapePlan, Target
from groundwire.runtime.errors import BundleError, ExportError
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import Array, DeviceProfile, forward
from groundwire.runtime.parity.certify import certify
from groundwire.runtime.tensorrt.records import list_shapes
from groundwire.runtime.texts.tokenization import Window
from tests.support import models
from tests.support.commands import command, invoke_export
from tests.support.evaluation import CALIBRATION
from tests.support.graphs import inputs
from tests.support.shared import make_once, shared_root

CASES = [("qa", "albert"), ("qa", "bert"), ("qa", "roberta"), ("nli", "roberta"), ("nli", "deberta"),
         ("token_classifier", "bert")]  # fmt: skip
WRITE: dict[str, Callable[[Path, str], Path]] = {
    "qa": models.extractive_qa,
    "nli": models.classifier,
    "token_classifier": models.token_classifier,
    "detector.facts": models.classifier,
}
Export = Callable[[str, str], Bundle]
"""A bundle of one role with a target for TensorRT, by role and family."""


def target_of(bundle: Bundle, role: str, device: str = "tensorrt") -> Target:
    record = bundle.manifest.roles[role]
    assert isinstance(record, EncoderRole)
    target = record.find_target(device)
    assert target is not None
    return target


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    root = shared_root(tmp_path_factory) / "target-checkpoints"
    return lambda role, family: make_once(root / f"{role}-{family}", lambda path: WRITE[role](path, family))


@pytest.fixture(scope="session")
def export(checkpoint: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Export:
    root = shared_root(tmp_path_factory) / "targets"

    def get(role: str, family: str) -> Bundle:
        options = RoleOptions(str(checkpoint(role, family)), precision="fp16", target="tensorrt")
        return Bundle.open(make_once(root / f"{role}-{family}", lambda path: export_role(role, options, path)))

    return get


@pytest.mark.parametrize(("role", "family"), CASES)
def test_a_new_role_gets_its_own_graph_and_the_targets(export: Export, role: str, family: str) -> None:
    bundle = export(role, family)
    bundle.verify()
    record = bundle.manifest.roles[role]
    assert isinstance(record, EncoderRole)
    target = target_of(bundle, role)
    assert (record.graph, record.precision) == (f"{role}.onnx", "fp16")
    assert (target.graph, target.precision) == (f"{role}.tensorrt.onnx", "fp16")
    assert target.parity is not None
    assert target.parity.gate == "passed"
    assert isinstance(target.parity.ranges, Ranges)
    assert bundle.manifest.precisions_on("tensorrt") == {role: "fp16"}
    feeds = inputs(5, 16)
    runs = [CpuSession(ir.load(bundle.file(name))) for name in (record.graph, target.graph)]
    outputs = [list(run(feeds).values()) for run in runs]
    for left, right in zip(*outputs, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-3)
    weights = bundle.manifest.files["weights.bin"].bytes
    assert weights < 1.1 * sum(t.nbytes for t in _tensors(bundle, record.graph)), "both graphs share their weights"


def _tensors(bundle: Bundle, name: str) -> list[ir.TensorProtocol]:
    values = ir.load(bundle.file(name)).graph.initializers.values()
    return [value.const_value for value in values if value.const_value is not None]


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_a_role_keeps_its_own_graph_when_a_target_is_added(
    checkpoint: Callable[[str, str], Path], tmp_path: Path, precision: str
) -> None:
    """CPU results stay byte for byte; so do the calibration and what the warm-up calls gave."""
    source = str(checkpoint("nli", "roberta"))
    options = RoleOptions(source, precision=precision, allow_unverified=True)  # type: ignore[arg-type]
    folder = tmp_path / "b"
    export_bundle({"nli": options, "qa": RoleOptions(str(checkpoint("qa", "albert")), precision="fp32")}, folder)
    before = Bundle.open(folder).calibrate(CALIBRATION)
    old = CpuSession(ir.load(before.file("nli.onnx")))(inputs())
    for target in ("tensorrt", "cuda"):
        export_role("nli", RoleOptions(source, precision="fp16", target=target), folder)  # type: ignore[arg-type]
    after = Bundle.open(folder)
    after.verify()
    for name, values in CpuSession(ir.load(after.file("nli.onnx")))(inputs()).items():
        np.testing.assert_array_equal(values, old[name])
    assert after.manifest.calibration == CALIBRATION
    assert after.manifest.canaries == before.manifest.canaries
    assert after.manifest.precisions == before.manifest.precisions
    assert {name: after.manifest.precisions_on(name)["nli"] for name in ("cpu", "cuda", "tensorrt")} == {
        "cpu": "int8" if precision == "int8" else "fp32",
        "cuda": "fp16",
        "tensorrt": "fp16",
    }
    assert target_of(after, "nli", "cuda").plan is None
    with pytest.raises(ExportError, match=r"'nli' of .* has the target cuda already; pass --force"):
        export_role("nli", RoleOptions(source, precision="fp16", target="cuda"), folder)
    export_role("nli", RoleOptions(source, precision="fp32", target="cuda"), folder, force=True)
    assert target_of(Bundle.open(folder), "nli", "cuda").precision == "fp32"


def test_roles_of_one_graph_keep_it_and_get_targets_of_their_own(
    checkpoint: Callable[[str, str], Path], tmp_path: Path
) -> None:
    source = str(checkpoint("nli", "bert"))
    facts = ClassifierSettings(supported=("entailment",))
    roles = {
        "nli": RoleOptions(source, precision="fp32"),
        "detector.facts": RoleOptions(source, facts, precision="fp32"),
    }
    export_bundle(roles, tmp_path / "b")
    export_role("nli", dataclasses.replace(roles["nli"], precision="fp16", target="tensorrt"), tmp_path / "b")
    bundle = Bundle.open(tmp_path / "b")
    bundle.verify()
    graphs = {name: role.graph_files for name, role in bundle.manifest.roles.items()}
    assert len(set(graphs.values())) == 1
    assert target_of(bundle, "nli").graph == "nli.tensorrt.onnx"
    reports = certify(bundle, Device("cpu"))
    assert all(report is not None and not report.failures for report in reports.values())


def test_a_target_of_another_checkpoint_is_refused(checkpoint: Callable[[str, str], Path], tmp_path: Path) -> None:
    export_role("nli", RoleOptions(str(checkpoint("nli", "roberta")), precision="fp32"), tmp_path / "b")
    other = models.classifier(tmp_path / "other", "roberta", seed=9)
    with pytest.raises(ExportError, match=r"'nli' of .* is of another checkpoint: its logits .* differ.*--force"):
        export_role("nli", RoleOptions(str(other), precision="fp16", target="tensorrt"), tmp_path / "b")


@pytest.mark.parametrize(
    ("role", "options", "message"),
    [
        (
            "qg",
            {"target": "tensorrt", "precision": "fp16"},
            "'qg' has no target tensorrt; those of extractive_qa, classifier",
        ),
        (
            "nli",
            {"target": "cuda", "precision": "fp8"},
            "precision='fp8' is not for the target cuda of 'nli'; choose fp32, fp16",
        ),
        ("nli", {"precision": "fp8"}, "precision='fp8' needs a target that computes with it: --target tensorrt"),
    ],
)
def test_what_has_no_target_is_refused(tmp_path: Path, role: str, options: Any, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        export_role(role, RoleOptions("missing", **options), tmp_path / "b")


def test_the_command_adds_a_target(checkpoint: Callable[[str, str], Path], tmp_path: Path) -> None:
    out, source = str(tmp_path / "b"), str(checkpoint("nli", "roberta"))
    command("nli", "--source", source, "--precision", "fp32", "--out", out)
    printed = command("nli", "--source", source, "--precision", "fp16", "--target", "tensorrt", "--out", out)
    assert "fp16 for tensorrt (passed: 100.0% of decisions equal" in printed
    assert "0 values kept in float, the largest other" in printed
    done = invoke_export("nli", "--source", source, "--precision", "fp8", "--target", "cuda", "--out", out)
    assert "precision='fp8' is not for the target cuda of 'nli'" in str(done.exception)


def test_a_target_alone_takes_what_it_computes_with(checkpoint: Callable[[str, str], Path], tmp_path: Path) -> None:
    out, source = tmp_path / "bundle", str(checkpoint("nli", "bert"))
    command("nli", "--source", source, "--out", str(out), "--target", "cuda")
    bundle = Bundle.open(out)
    assert target_of(bundle, "nli", "cuda").precision == "fp16"
    assert bundle.manifest.precisions == {"nli": "fp16"}


def test_of_a_preset_encoders_get_the_target_and_others_what_the_bundle_lacks(
    checkpoint: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, RoleOptions]] = []

    def capture(roles: dict[str, RoleOptions], out: Path, **_: Any) -> None:
        asked.append(roles)
        raise ExportError("captured")

    monkeypatch.setattr(commands, "check_hub", lambda options: None)
    monkeypatch.setattr(pipeline, "export_bundle", capture)
    arguments = ("paper-q2", "--target", "tensorrt", "--precision", "fp8", "--out", str(tmp_path / "b"))
    invoke_export(*arguments)
    chosen = {role: (options.precision, options.target) for role, options in asked[0].items()}
    assert chosen == {
        "qg": ("fp16", None),
        "qa": ("fp8", "tensorrt"),
        "nli": ("fp8", "tensorrt"),
        "spans": ("fp16", None),
    }
    monkeypatch.undo()
    export_role("nli", RoleOptions(str(checkpoint("nli", "roberta")), precision="fp32"), tmp_path / "b")
    manifest = tmp_path / "b" / "bundle.json"
    content = msgspec.json.decode(manifest.read_bytes())
    content["roles"]["spans"] = {"kind": "spans", "source": "x", "path": "spans"}
    manifest.write_bytes(msgspec.json.encode(content))
    monkeypatch.setattr(commands, "check_hub", lambda options: None)
    monkeypatch.setattr(pipeline, "export_bundle", capture)
    invoke_export(*arguments)
    assert set(asked[1]) == {"qg", "qa", "nli"}, "the bundle has spans"


# What TensorRT takes


@pytest.mark.parametrize(("role", "family"), CASES)
def test_every_operator_is_one_that_tensorrt_has(export: Export, role: str, family: str) -> None:
    bundle = export(role, family)
    graph = ir.load(bundle.file(target_of(bundle, role).graph))
    assert find_unsupported(graph) == []
    assert {node.domain for node in graph.graph} == {""}


def test_positions_are_counted_in_float(export: Export) -> None:
    """RoBERTa's graph adds up whole numbers along an axis, which TensorRT does for floats alone."""
    bundle = export("nli", "roberta")
    graph = ir.load(bundle.file("nli.onnx"))
    assert any("CumSum" in finding and "does not take" in finding for finding in find_unsupported(graph))
    made = graph.clone()
    adapt_operators(made)
    assert find_unsupported(made) == []
    feeds = inputs(6, 48)
    for name, values in CpuSession(graph)(feeds).items():
        np.testing.assert_array_equal(CpuSession(made)(feeds)[name], values)


def graph_of(node: onnx.NodeProto, kind: int = onnx.TensorProto.FLOAT, **constants: Any) -> ir.Model:
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    source = helper.make_tensor_value_info("x", kind, ["rows", 4])
    more = [helper.make_tensor_value_info(name, 7, [1]) for name in node.input if name not in ("x", *constants)]
    result = helper.make_tensor_value_info("y", kind, None)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(helper.make_graph([node], "g", [source, *more], [result], weights), opset_imports=opsets)
    return ir.from_proto(made)


@pytest.mark.parametrize(
    ("node", "kind", "constants", "finding"),
    [
        (helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft"), 1, {}, "com.microsoft.Gelu .* no operator"),
        (helper.make_node("Sqrt", ["x"], ["y"]), onnx.TensorProto.DOUBLE, {}, "Sqrt .* does not take DOUBLE"),
        (helper.make_node("NonZero", ["x"], ["y"]), 1, {}, "NonZero .* no operator"),
        (
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]),
            1,
            {"s": np.float32(1), "z": np.uint8(128)},
            "QuantizeLinear .* (does not take UINT8|zero point of 0)",
        ),
        (helper.make_node("ReduceMax", ["x", "axes"], ["y"]), 1, {}, "ReduceMax .* needs constant axes"),
    ],
)
def test_what_tensorrt_lacks_is_named(node: onnx.NodeProto, kind: int, constants: Any, finding: str) -> None:
    graph = graph_of(node, kind, **constants)
    findings = find_unsupported(graph)
    assert findings
    assert re.search(finding, findings[0])


def test_a_graph_that_tensorrt_lacks_operators_for_is_not_saved(
    checkpoint: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(OPERATORS, "Softmax")
    options = RoleOptions(str(checkpoint("nli", "roberta")), precision="fp16", target="tensorrt")
    with pytest.raises(ExportError, match=r"TensorRT cannot run the graph of 'nli': ai\.onnx\.Softmax .*--target cuda"):
        export_role("nli", options, tmp_path / "b")
    assert not (tmp_path / "b").exists()


# Shapes


@pytest.mark.parametrize(("role", "family"), CASES)
def test_shapes_are_inferred_at_every_corner_of_every_profile(export: Export, role: str, family: str) -> None:
    """Strictly, with data propagation: TensorRT resolves every shape when it builds an engine."""
    bundle = export(role, family)
    target = target_of(bundle, role)
    assert target.plan is not None
    proto = onnx.load(bundle.file(target.graph))
    window = bundle.manifest.roles[role].max_tokens  # type: ignore[union-attr]
    corners = {shape for shapes in list_shapes(target.plan) for shape in shapes}
    assert {width for _, width in corners} == set(target.plan.widths)
    for rows, width in corners:
        fixed = onnx.ModelProto()
        fixed.CopyFrom(proto)
        for value in fixed.graph.input:
            for dimension, size in zip(value.type.tensor_type.shape.dim, (rows, width), strict=True):
                dimension.dim_value = size
        inferred = onnx.shape_inference.infer_shapes(fixed, check_type=True, strict_mode=True, data_prop=True)
        shapes = {
            value.name: [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
            for value in (*inferred.graph.value_info, *inferred.graph.output)
        }
        ranks = [value for value in inferred.graph.value_info if not value.type.tensor_type.HasField("shape")]
        assert ranks == []
        for value in inferred.graph.output:
            assert shapes[value.name][0] in (rows, 0), "the batch, or a symbol of the exporter's"
        wide = [name for name, shape in shapes.items() if width in shape]
        assert wide, "some value has the width"
    assert window <= target.plan.widths[-1]


@given(st.integers(8, 8192))
def test_a_plan_holds_the_whole_window(max_tokens: int) -> None:
    plan = make_plan(max_tokens)
    assert plan.widths[-1] == _native.bucket_width(max_tokens)
    assert all(_native.bucket_width(width) == width for width in plan.widths), "batches have no other widths"
    assert all(profile.max_rows >= profile.usual_rows >= 1 for profile in plan.profiles)


class Shapes:
    """A graph that notes the shapes that it is run with."""

    inputs = ("input_ids", "attention_mask")
    outputs = ("logits",)
    input_types = dict.fromkeys(inputs, "tensor(int64)")

    def __init__(self, plan: ShapePlan) -> None:
        self.plan = plan
        self.seen: list[tuple[int, ...]] = []

    def run(self, feeds: Any) -> list[Array]:
        self.seen.append(feeds["input_ids"].shape)
        return [np.zeros((len(feeds["input_ids"]), 2), np.float32)]


@given(
    st.integers(8, 1024),
    st.integers(1, 4096),
    st.integers(1, 600),
    st.lists(st.floats(0, 1), min_size=1, max_size=200),
    st.sampled_from(["cpu", "cuda", "tensorrt"]),
)
def test_every_shape_that_is_run_is_in_a_profile(
    max_tokens: int, batch_tokens: int, rows: int, shares: list[float], device: Any
) -> None:
    plan = msgspec.structs.replace(make_plan(max_tokens), max_tokens=batch_tokens, max_rows=rows)
    lengths = [1 + round(share * (max_tokens - 1)) for share in shares]
    windows = [Window([5] * n, [0] * n, [None] * n, [(0, 0)] * n) for n in lengths]
    graph = Shapes(plan)
    covered = [row for batch, _, _ in forward(graph, windows, 0, DeviceProfile.of(device, 1)) for row in batch]
    assert sorted(covered) == list(range(len(windows)))
    for count, width in graph.seen:
        (profile,) = [profile for profile in plan.profiles if profile.width == width]
        assert 1 <= count <= profile.max_rows


def test_a_plan_of_widths_that_do_not_ascend_is_refused(export: Export, tmp_path: Path) -> None:
    folder = shutil.copytree(export("qa", "albert").directory, tmp_path / "b")
    path = Path(folder, "bundle.json")
    manifest = msgspec.json.decode(path.read_bytes())
    manifest["roles"]["qa"]["targets"]["tensorrt"]["plan"]["widths"] = [64, 32]
    path.write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(BundleError, match="do not ascend"):
        Bundle.open(folder)


# Quantized targets


@pytest.mark.parametrize("precision", ["int8", "fp8"])
@pytest.mark.parametrize("family", ["albert", "bert", "roberta"])
def test_quantized_targets_are_pairs_around_products(
    checkpoint: Callable[[str, str], Path], tmp_path: Path, family: str, precision: str
) -> None:
    source = str(checkpoint("qa", family))
    options = RoleOptions(source, precision=precision, target="tensorrt", allow_unverified=True)  # type: ignore[arg-type]
    bundle = export_role("qa", options, tmp_path / "b")
    bundle.verify()
    target = target_of(bundle, "qa")
    assert target.precision == precision
    graph = ir.load(bundle.file(target.graph))
    onnx.checker.check_model(str(bundle.file(target.graph)))
    assert find_unsupported(graph) == []
    kind = ir.DataType.INT8 if precision == "int8" else ir.DataType.FLOAT8E4M3FN
    products = [node for node in graph.graph if node.op_type == "MatMul" and _is_quantized(node)]
    assert len(products) >= 12
    for node in products:
        states, weight = (value.producer() for value in node.inputs if value is not None)
        assert states is not None
        assert weight is not None
        before = states.inputs[0].producer()  # type: ignore[union-attr]
        assert before is not None
        assert before.op_type == "QuantizeLinear"
        assert states.inputs[1] is before.inputs[1], "one scale for both"
        stored, scales = weight.inputs[0], weight.inputs[1]
        assert stored is not None
        assert scales is not None
        assert stored.dtype == kind
        assert scales.shape is not None
        assert node.outputs[0].shape is None or scales.shape[0] == stored.shape[weight.attributes.get_int("axis", 1)]  # type: ignore[index]
        assert scales.dtype == ir.DataType.FLOAT16


@pytest.mark.parametrize(("kind", "dtype", "largest"), [("int8", np.int8, 127), ("fp8", ml_dtypes.float8_e4m3fn, 448)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_pairs_compute_what_numpy_computes(kind: Any, dtype: Any, largest: int, transposed: bool, half: bool) -> None:
    """One scale for the activations, one for each output of the weights, and round to even."""
    rng = np.random.default_rng(0)
    states, weight = rng.normal(size=(6, 16)).astype(np.float32), rng.normal(size=(16, 24)).astype(np.float32)
    weight[:, 3] = 0
    stored = weight.T.copy() if transposed else weight
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=int(transposed))
    source, result = (helper.make_tensor_value_info(name, 1, ["rows", size]) for name, size in (("x", 16), ("y", 24)))
    weights = [onnx.numpy_helper.from_array(stored, "w")]
    made = helper.make_graph([node], "g", [source], [result], weights)
    graph = ir.from_proto(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    peak = float(np.abs(states).max())
    add_quantization(graph, kind, {"x": peak, "y": 100.0}, 8188)
    if half:
        to_half(graph)

    def quantize(values: Array, scale: Array) -> Array:
        steps = np.clip(values / scale, -largest, largest)
        rounded: Array = (np.rint(steps) if kind == "int8" else steps).astype(dtype).astype(np.float32) * scale
        return rounded

    scale = np.float32(np.float16(peak / largest))
    scales = np.where(np.arange(24) == 3, 1, np.abs(weight).max(axis=0) / largest).astype(np.float16).astype(np.float32)
    expected = quantize(states, scale) @ quantize(weight, scales)
    (actual,) = CpuSession(graph)({"x": states}).values()
    error = np.abs(actual - expected).max()
    assert error < (0.1 if half else 1e-4), "an input rounded to float16 may be another step"
    assert np.abs(expected - states @ weight).max() < 0.5, "quantized, and near"


@pytest.mark.parametrize(("magnitudes", "limit"), [({}, 8188), ({"x": 9000.0}, 8188), ({"x": 1.0, "y": 9000.0}, 8188)])
def test_products_without_a_scale_or_beyond_float16_are_left(magnitudes: dict[str, float], limit: float) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = graph_of(node, w=np.ones((4, 8), np.float32))
    add_quantization(graph, "int8", magnitudes, limit)
    assert [each.op_type for each in graph.graph] == ["MatMul"]


def _is_quantized(node: ir.Node) -> bool:
    weight = node.inputs[1]
    producer = weight.producer() if weight is not None else None
    return producer is not None and producer.op_type == "DequantizeLinear"


def test_a_quantized_target_that_fails_its_gate_becomes_fp16(
    checkpoint: Callable[[str, str], Path], tmp_path: Path
) -> None:
    options = RoleOptions(str(checkpoint("qa", "albert")), precision="fp8", target="tensorrt")
    bundle = export_role("qa", options, tmp_path / "b")
    target = target_of(bundle, "qa")
    assert (target.precision, target.parity and target.parity.gate) == ("fp16", "passed")
