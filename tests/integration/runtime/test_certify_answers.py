"""The parity reports of a question generator and of a reader at a GPU's shapes and addresses notice what may go wrong:
four planted faults each, on the CPU provider."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from groundwire.cli.bundle import app
from groundwire.export import Gate, ReaderSettings, RoleOptions, answers, export_role
from groundwire.recipes.reader.bundle import HISTORY_MARK, make_checkpoint
from groundwire.runtime.bundles.bundle import RECORDED, Bundle, sha256
from groundwire.runtime.bundles.manifest import FileEntry, ReaderRole
from groundwire.runtime.capture.decoder import CapturedSteps
from groundwire.runtime.capture.encoder import CapturedEncoder
from groundwire.runtime.capture.graph import CapturedGraph
from groundwire.runtime.capture.shapes import BatchShape
from groundwire.runtime.errors import BundleError
from groundwire.runtime.models import graphs, language_model, question_generator, response_generator
from groundwire.runtime.models.graphs import place_role
from groundwire.runtime.ort.device import Device
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.parity.certify import (
    Certified,
    certify,
    certify_answers,
    certify_graph,
    cycle_sizes,
    record_answers,
)
from groundwire.runtime.parity.recorded import read_answers, write_answers
from tests.support import models
from tests.support.host_cuda import use_host_memory
from tests.support.readers import make_decided
from tests.support.shared import make_once, shared_root

EXAMPLES = 6
FAMILIES = {"lm": "gpt2", "embedder": "mpnet", "generator": "gpt2", "critic": "bert"}
WRITERS = {"embedder": models.embedder, "critic": models.token_classifier}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A tiny question generator with a fused target in fp16, and other models that keep answers."""
    root = shared_root(tmp_path_factory)
    checkpoint = make_once(root / "t5-for-cuda", models.t5_for_cuda)

    def export(folder: Path) -> None:
        export_role("qg", RoleOptions(str(checkpoint), precision="fp32"), folder)
        export_role("qg", RoleOptions(str(checkpoint), precision="fp16", target="cuda"), folder)
        for role, family in FAMILIES.items():
            write = WRITERS.get(role, models.language_model)
            source = make_once(root / f"answers-{role}", lambda path, write=write, family=family: write(path, family))
            export_role(role, RoleOptions(str(source), precision="fp32"), folder)
        reader = ReaderSettings(make_checkpoint(make_decided(), "tiny", 64), HISTORY_MARK)
        gate = Gate(decision_agreement=0.95)
        export_role("reader", RoleOptions("tiny", reader, precision="fp16", gate=gate, target="cuda"), folder)
        forget_reference(folder, "critic")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(answers, "EXAMPLES", answers.EXAMPLES[:EXAMPLES])
            opened = Bundle.open(folder)
            recorded = record_answers(opened, answers.list_calls(opened.manifest.roles))
        opened.record(opened.manifest.canaries or {}, write_answers(recorded))

    return Bundle.open(make_once(root / "answers-bundle", export))


def forget_reference(folder: Path, role: str) -> None:
    """Drop the logits of a role's checkpoint, as in a bundle from before they were kept."""
    raw = msgspec.json.decode((folder / "bundle.json").read_bytes())
    name = raw["roles"][role].pop("reference")
    del raw["files"][name]
    (folder / name).unlink()
    (folder / "bundle.json").write_bytes(msgspec.json.encode(raw))


@pytest.fixture(autouse=True)
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the models run as on a GPU, in the host's memory."""
    use_host_memory(monkeypatch)
    for module in (graphs, language_model, question_generator, response_generator):
        monkeypatch.setattr(module, "captures_graphs", lambda profile: not profile.float_weights)


def certify_role(bundle: Bundle, role: str = "qg") -> Certified:
    """The report of the graphs that CUDA runs, on the CPU provider."""
    placed, _ = place_role(role, bundle.manifest.roles[role], DeviceProfile.of("cuda", None))
    profile = DeviceProfile.of("cpu", 1)
    if isinstance(placed, ReaderRole):
        return certify_graph(bundle, placed, graphs.load_graph(bundle, placed, profile), profile)
    return certify_answers(bundle, role, placed, read_answers(bundle)[role], profile)


@pytest.mark.parametrize("role", ["qg", "reader", *FAMILIES])
def test_a_right_model_is_certified(bundle: Bundle, role: str) -> None:
    report = certify_role(bundle, role)
    assert report.failures == ()
    assert report.captured_spread == 0, "the same kernels at the same addresses"
    assert report.parity.texts >= EXAMPLES
    assert report.parity.logit_std > 0


def change_weights(bundle: Bundle, folder: Path, file: str, change: Callable[[Any], Any], *names: str) -> Bundle:
    """A copy of the bundle with other weights: those whose name has all of ``names``, the first of them."""
    copied = Path(shutil.copytree(bundle.directory, folder / "bundle"))
    graph = onnx.load(copied / file)
    tensor = next(
        tensor
        for tensor in graph.graph.initializer
        if len(tensor.dims) == 2 and all(name in tensor.name for name in names)
    )
    array = onnx.numpy_helper.to_array(tensor)
    tensor.CopyFrom(onnx.numpy_helper.from_array(change(array).astype(array.dtype), tensor.name))
    onnx.save(graph, copied / file)
    raw = msgspec.json.decode((copied / "bundle.json").read_bytes())
    raw["files"][file] = msgspec.to_builtins(FileEntry((copied / file).stat().st_size, sha256(copied / file)))
    (copied / "bundle.json").write_bytes(msgspec.json.encode(raw))
    return Bundle.open(copied)


def test_a_flipped_sign_in_one_layer_is_noticed(bundle: Bundle, tmp_path: Path) -> None:
    changed = change_weights(bundle, tmp_path, "qg.decoder.cuda.onnx", lambda array: -array, "layers.0")
    assert any("decision agreement" in failure for failure in certify_role(changed).failures)


def test_a_flipped_sign_in_one_layer_of_a_reader_is_noticed(bundle: Bundle, tmp_path: Path) -> None:
    changed = change_weights(bundle, tmp_path, "reader.cuda.onnx", lambda array: -array, "layer.0", "intermediate")
    assert certify_role(changed, "reader").failures


@pytest.mark.parametrize(
    ("role", "file", "names"),
    [("qg", "qg.encoder.cuda.onnx", ("wo",)), ("reader", "reader.cuda.onnx", ("layer.1", "intermediate"))],
)
def test_an_overflow_of_float16_is_noticed(
    bundle: Bundle, tmp_path: Path, role: str, file: str, names: tuple[str, ...]
) -> None:
    with np.errstate(over="ignore"):
        changed = change_weights(bundle, tmp_path, file, lambda array: array * 1e6, *names)
    assert certify_role(changed, role).failures


def test_a_capture_size_that_computes_otherwise_is_noticed(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch of the texts has the largest size: the sizes are compared with each other."""
    run = CapturedEncoder.run

    def disturb(encoder: CapturedEncoder, feeds: Any) -> Any:
        outputs = run(encoder, feeds)
        rows, width = feeds["input_ids"].shape
        return [output + np.float32(rows == encoder.sizes[width][-1]) for output in outputs]

    monkeypatch.setattr(CapturedEncoder, "run", disturb)
    failures = certify_role(bundle, "reader").failures
    assert [failure.split(" ")[:2] for failure in failures] == [["batch", "spread"]]


def test_an_exchanged_parent_of_a_beam_is_noticed(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    steer = CapturedSteps._steer

    def exchange(steps: CapturedSteps, parents: Any) -> Any:
        order = [1, 0, *range(2, parents.shape[1])] if parents.shape[1] > 1 else [0]
        return steer(steps, parents[:, order])

    monkeypatch.setattr(CapturedSteps, "_steer", exchange)
    assert certify_role(bundle).failures


@pytest.mark.parametrize("role", ["qg", "reader", *FAMILIES])
def test_a_replay_that_reads_an_old_address_is_noticed(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    """What was captured replays somewhere else, so the outputs of the run before stay where they are read."""
    run = CapturedGraph.run

    def replay(graph: CapturedGraph, shape: BatchShape) -> None:
        if not (graph.replays and shape in graph.captured):
            run(graph, shape)

    monkeypatch.setattr(CapturedGraph, "run", replay)
    assert certify_role(bundle, role).failures


def test_the_command_fails_with_a_wrong_model(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # runs as on a CPU
    done = CliRunner().invoke(app, ["certify", str(bundle.directory)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert done.output.count("passes") == 2 + len(FAMILIES)
    changed = change_weights(bundle, tmp_path, "qg.decoder.onnx", lambda array: -array, "layers.0")
    done = CliRunner().invoke(app, ["certify", str(changed.directory)], env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert "qg on cpu fails: decision agreement" in done.output


def test_answers_that_were_changed_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(bundle.directory, tmp_path / "bundle"))
    assert (copied / RECORDED).stat().st_size < 1 << 20
    Bundle.open(copied).verify()
    (copied / RECORDED).write_bytes((copied / RECORDED).read_bytes() + b"\0")
    with pytest.raises(BundleError, match="was changed after it was recorded"):
        certify(Bundle.open(copied), Device("cpu"))


def test_an_export_keeps_the_answers_of_the_other_roles(bundle: Bundle, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(bundle.directory, tmp_path / "bundle"))
    source = bundle.directory.parent / "answers-lm"
    changed = export_role("lm", RoleOptions(str(source), precision="fp32"), copied, force=True)
    assert read_answers(changed).keys() == read_answers(bundle).keys() - {"lm"}


def test_batches_have_every_capture_size_full_and_padded() -> None:
    assert list(cycle_sizes(20)) == [1, 2, 2, 3, 4, 5, 3]
