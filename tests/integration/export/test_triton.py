"""``groundwire export triton``: a model repository whose configurations Triton's own protobuf reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundwire.export.triton import MAX_ROWS, write_config, write_repository
from groundwire.runtime.bundles.bundle import Bundle, embedded
from groundwire.runtime.errors import ExportError
from groundwire.runtime.kserve.names import name_model
from groundwire.runtime.kserve.specs import read_graph_spec
from groundwire.runtime.ort.session import DeviceProfile, Session
from tests.support.commands import command, invoke_export
from tests.support.tensorrt_targets import add_targets
from tests.support.usage import usage_error

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")


@pytest.fixture(scope="module")
def compact() -> Bundle:
    return Bundle.open("compact")


@pytest.fixture
def with_targets(compact: Bundle) -> Bundle:
    return add_targets(compact)


def test_the_repository_has_every_graph_under_the_name_that_engines_ask_for(compact: Bundle, tmp_path: Path) -> None:
    graphs = {graph for role in compact.manifest.roles.values() for graph in role.graph_files}
    models = write_repository(compact, tmp_path / "repository", instances=2)
    assert {model.graph for model in models} == graphs
    assert {path.name for path in (tmp_path / "repository").iterdir()} == {name_model(compact, g) for g in graphs}
    for model in models:
        copied = tmp_path / "repository" / model.name / "1" / "model.onnx"
        assert copied.read_bytes() == compact.file(model.graph).read_bytes()
        assert read_graph_spec(copied) == model.spec
    Session.load(copied, DeviceProfile.of("cpu", 1))


def test_graphs_with_a_state_are_not_joined(compact: Bundle, tmp_path: Path) -> None:
    sizes = {model.graph: model.max_batch_size for model in write_repository(compact, tmp_path)}
    assert sizes["qg.decoder.onnx"] == sizes["lm.onnx"] == 0
    assert sizes["detector.consistency.onnx"] == sizes["qg.encoder.onnx"] == MAX_ROWS


def test_no_request_is_larger_than_a_batch() -> None:
    from groundwire.runtime.kserve.server import Server

    server = Server.__new__(Server)
    assert DeviceProfile.of_server(server).max_rows <= MAX_ROWS


def test_tensorrt_runs_the_encoders(with_targets: Bundle, tmp_path: Path) -> None:
    models = {model.graph: model for model in write_repository(with_targets, tmp_path, "tensorrt")}
    assert models["detector.consistency.onnx"].device == "tensorrt"
    assert models["qg.decoder.onnx"].device == "cpu"  # its graph is int8, for the CPU
    assert "trt_profile_max_shapes" in write_config(models["detector.consistency.onnx"])
    assert "execution_accelerators" not in write_config(models["qg.decoder.onnx"])
    cuda = {model.graph: write_config(model) for model in write_repository(with_targets, tmp_path / "cuda", "cuda")}
    assert "KIND_GPU" in cuda["detector.consistency.onnx"]
    assert "tensorrt" not in cuda["detector.consistency.onnx"]


def test_command(compact: Bundle, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    output = command("triton", "compact", "--out", str(repository))
    assert f"{name_model(compact, 'detector.consistency.onnx')} cpu, batches of up to {MAX_ROWS}" in output
    assert f"tritonserver --model-repository {repository}" in output
    with pytest.raises(ExportError, match="is there already; pass --force"):
        command("triton", "compact", "--out", str(repository))
    command("triton", "compact", "--out", str(repository), "--force")
    with pytest.raises(ExportError, match="has no target for TensorRT"):
        command("triton", "compact", "--out", str(tmp_path / "b"), "--target", "tensorrt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["triton", "--out", "b"], "triton needs a bundle"),
        (["qa", "compact", "--source", "x", "--out", "b"], "only triton takes a bundle"),
    ],
)
def test_command_refusals(arguments: list[str], message: str) -> None:
    assert message in usage_error(invoke_export(*arguments))
