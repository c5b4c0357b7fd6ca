"""Comparing a bundle with its checkpoints on this machine, from the logits that it keeps."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
import torch
from typer.testing import CliRunner

from groundwire.cli.bundle import app, certify_roles
from groundwire.runtime.bundles.bundle import Bundle, sha256
from groundwire.runtime.bundles.manifest import EncoderRole, FileEntry
from groundwire.runtime.errors import BundleError, DeviceError
from groundwire.runtime.ort.device import Device
from groundwire.runtime.parity import certify as certify_module
from groundwire.runtime.parity.certify import certify
from groundwire.runtime.parity.reference import ReferenceLogits
from tests.support.zoo import Zoo

CPU = Device("cpu")
ROLES = [("qa", "albert"), ("qa", "bert"), ("nli", "roberta"), ("token_classifier", "bert")]


def reference_of(bundle: Bundle, role: str) -> ReferenceLogits:
    record = bundle.manifest.roles[role]
    assert isinstance(record, EncoderRole)
    assert isinstance(record.reference, str)
    return ReferenceLogits.read(bundle.file(record.reference))


def copy_of(bundle: Bundle, folder: Path) -> Path:
    return Path(shutil.copytree(bundle.directory, folder / "bundle"))


def relist(folder: Path, name: str) -> None:
    """Let the manifest list a file as it is now."""
    raw = msgspec.json.decode((folder / "bundle.json").read_bytes())
    path = folder / name
    raw["files"][name] = msgspec.to_builtins(FileEntry(path.stat().st_size, sha256(path)))
    (folder / "bundle.json").write_bytes(msgspec.json.encode(raw))


@pytest.mark.parametrize(("role", "family"), ROLES)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_bundle_agrees_with_its_checkpoint_here(zoo: Zoo, role: str, family: str, precision: str) -> None:
    bundle = zoo.bundle(role, family, precision)
    report = certify(bundle, CPU)[role]
    record = bundle.manifest.roles[role]
    assert isinstance(record, EncoderRole)
    assert report is not None
    assert record.parity is not None
    assert report.failures == ()
    assert report.parity.texts == 64
    assert report.parity.logit_std == pytest.approx(record.parity.logit_std, rel=1e-5)
    assert report.parity.decision_agreement >= 0.98
    assert report.batch_spread == 0, "a score does not depend on its batch on the CPU"


@pytest.mark.parametrize(("role", "family"), ROLES)
def test_the_stored_logits_are_the_checkpoints(zoo: Zoo, role: str, family: str) -> None:
    model, _ = zoo.torch(role, family)
    reference = reference_of(zoo.bundle(role, family), role)
    assert len(reference.windows) == 64
    for window, expected in list(zip(reference.windows, reference.outputs, strict=True))[::9]:
        inputs = {"input_ids": window.ids, "attention_mask": [1] * len(window.ids)}
        if getattr(model.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = window.type_ids
        with torch.inference_mode():
            output = model(**{name: torch.tensor([values]) for name, values in inputs.items()})
        logits = (output.start_logits, output.end_logits) if role == "qa" else (output.logits,)
        for actual, want in zip(logits, expected, strict=True):
            np.testing.assert_allclose(actual[0].numpy(), want, atol=1e-4)


def test_weights_that_changed_are_noticed(zoo: Zoo, tmp_path: Path) -> None:
    folder = copy_of(zoo.bundle("qa", "albert"), tmp_path)
    graph = onnx.load(folder / "qa.onnx")
    tensors = {tensor.name: tensor for tensor in graph.graph.initializer}
    bias = next(tensor for name, tensor in tensors.items() if "qa_outputs.bias" in name)
    array = onnx.numpy_helper.to_array(bias)
    bias.CopyFrom(onnx.numpy_helper.from_array(array + np.array([3, 0], np.float32), bias.name))
    onnx.save(graph, folder / "qa.onnx")
    relist(folder, "qa.onnx")
    report = certify(Bundle.open(folder), CPU)["qa"]
    assert report is not None
    assert report.parity.max_logit_error == pytest.approx(3, abs=1e-3)
    assert any("logit error" in failure for failure in report.failures)
    done = CliRunner().invoke(app, ["certify", str(folder)], env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert "qa on cpu fails: " in done.output


def test_the_command_needs_no_torch(tiny_bundle: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = sys.modules['onnx_ir'] = None\n"
        "from groundwire.cli import main; sys.argv[1:] = ['bundle', 'certify', sys.argv[1]]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny_bundle)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "qa on cpu passes (100.0% of decisions, 100.0% of spans" in done.stdout
    assert "batch spread 0" in done.stdout
    assert "nli on cpu passes" in done.stdout
    assert "qg nothing to compare with" in done.stdout


def test_each_role_is_printed_as_soon_as_it_is_compared(
    tiny_bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare, printed = certify_module.certify_graph, []

    def certify_graph(*arguments: Any) -> certify_module.Certified:
        printed.append(tuple(capsys.readouterr()))
        return compare(*arguments)

    monkeypatch.setattr(certify_module, "certify_graph", certify_graph)
    certify_roles(str(tiny_bundle), "cpu")
    (_, first), (out, second) = printed
    assert (first, second) == ("comparing nli\n", "comparing qa\n")
    assert out.startswith("nli on cpu passes (")
    assert out.count("\n") == 1
    last = capsys.readouterr()
    assert [line.split(" (")[0] for line in last.out.splitlines()] == [
        "qa on cpu passes",
        "qg nothing to compare with; groundwire bundle record",
    ]
    assert last.err == ""


def test_a_bundle_without_reference_logits_is_compared_with_its_recorded_answers() -> None:
    done = CliRunner().invoke(app, ["certify", "nph"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert "critic on cpu passes (" in done.output
    assert "retriever on cpu passes (" in done.output


def test_a_device_must_be_named(tiny_bundle: Path) -> None:
    with pytest.raises(DeviceError, match="'auto' is no device to certify; name one: cpu, cuda, tensorrt, tensorrt-"):
        CliRunner().invoke(app, ["certify", str(tiny_bundle), "--device", "auto"], catch_exceptions=False)


@pytest.mark.parametrize("damage", ["empty", "text", "short", "without outputs", "pickled"])
def test_damaged_reference_logits_are_refused(zoo: Zoo, tmp_path: Path, damage: str) -> None:
    folder = copy_of(zoo.bundle("nli", "roberta"), tmp_path)
    path = folder / "nli.reference.npz"
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    file = io.BytesIO()
    if damage == "short":
        np.savez(file, **{**arrays, "input_ids": arrays["input_ids"][:5]})
    elif damage == "without outputs":
        np.savez(file, **{name: array for name, array in arrays.items() if not name.startswith("output")})
    elif damage == "pickled":
        np.savez(file, **{**arrays, "lengths": np.array([{}], dtype=object)})
    path.write_bytes({"empty": b"", "text": b"no archive"}.get(damage, file.getvalue()))
    relist(folder, path.name)
    with pytest.raises(BundleError, match=r"nli\.reference\.npz is damaged: .*export the bundle again"):
        certify(Bundle.open(folder), CPU)
