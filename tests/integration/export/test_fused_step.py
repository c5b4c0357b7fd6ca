"""The decoder step for CUDA: on the CPU provider in float32 it gives what the other step gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from groundwire.export import QuestionGeneratorSettings, RoleOptions, export_role
from groundwire.export.checkpoint import Checkpoint
from groundwire.export.passes import fold_transposes
from groundwire.export.roles.generation import build_fused_step, split_model
from groundwire.export.verify.generation import start_id
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole
from groundwire.runtime.errors import ExportError
from tests.support import models
from tests.support.graphs import FusedStepper, Loader, Stepper, batch_of, graphs
from tests.support.shared import make_once, shared_root

FAMILIES = sorted(models.ENCODER_DECODERS)


def build_fused(loaded: Checkpoint, family: str) -> tuple[ir.Model, ir.Model]:
    encoder, _ = graphs(loaded, family)
    step = build_fused_step(split_model(loaded.model).step)
    fold_transposes(step)
    return encoder, step


@pytest.mark.parametrize("beams", [1, 3, 8])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_gives_the_candidates_of_the_other_graph(load: Loader, family: str, beams: int) -> None:
    """Beams continue each other crosswise, so every position is read from another row than the step's own."""
    loaded = load("question_generator", family)
    batch, start, steps = batch_of(loaded), start_id(loaded.model), 20
    plain = Stepper(graphs(loaded, family), batch, start)
    fused = FusedStepper(build_fused(loaded, family), batch, start, beams, steps + 3)
    rng = np.random.default_rng(beams)
    shape = len(batch["input_ids"]), beams
    differences = []
    for past in range(steps):
        expected, computed = plain.step(6), fused.step(6)
        before = expected["scores"].shape[1]
        scores, candidates = (computed[name][:, :before] for name in ("scores", "candidates"))
        differences.append(np.abs(scores - expected["scores"]).max())
        assert np.array_equal(candidates[..., 0], expected["candidates"][..., 0]), past
        parents = rng.integers(0, before, shape)
        chosen = rng.integers(0, 6, shape)
        tokens = np.take_along_axis(
            np.take_along_axis(expected["candidates"], parents[:, :, None], 1), chosen[:, :, None], 2
        )[..., 0]
        plain.choose(parents, tokens)
        fused.choose(parents, tokens)
    assert max(differences) < 1e-4 < expected["scores"].std()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_once(shared_root(tmp_path_factory) / "t5-for-cuda", models.t5_for_cuda))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_target_for_cuda_passes_the_gate_and_leaves_the_role_as_it_is(
    checkpoint: str, tmp_path: Path, precision: str
) -> None:
    before = export_role("qg", RoleOptions(checkpoint, precision="fp32"), tmp_path / "b")
    contents = list_contents(before)
    options = RoleOptions(checkpoint, precision=precision, target="cuda")  # type: ignore[arg-type]
    bundle = export_role("qg", options, tmp_path / "b")
    bundle.verify()
    role = bundle.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    target = role.find_target("cuda")
    assert target is not None
    assert target.precision == precision
    assert target.parity is not None
    assert target.parity.gate == "passed"
    assert role.find_target("tensorrt") == target, "TensorRT runs encoders only"
    assert role.find_target("cpu") is None
    step = ir.load(bundle.file(target.decoder))
    operators = [node.op_type for node in step.graph]
    assert operators.count("DecoderMaskedMultiHeadAttention") == operators.count("MultiHeadAttention") == role.layers
    assert operators.count("SkipSimplifiedLayerNormalization") == 3 * role.layers
    weights = [node.inputs[1] for node in step.graph if node.op_type == "MatMul"]
    types = {weight.dtype for weight in weights if weight is not None and weight.is_initializer()}
    assert types == {ir.DataType.FLOAT16 if precision == "fp16" else ir.DataType.FLOAT}
    assert bundle.manifest.precisions_on("cpu") == {"qg": "fp32"}
    assert bundle.manifest.precisions_on("cuda") == bundle.manifest.precisions_on("tensorrt") == {"qg": precision}
    assert bundle.manifest.precisions_on("cuda", served=True) == {"qg": "fp32"}
    assert list_contents(bundle) == contents
    with pytest.raises(ExportError, match="has the target cuda already"):
        export_role("qg", options, tmp_path / "b")
    export_role("qg", options, tmp_path / "b", force=True)


def list_contents(bundle: Bundle) -> list[object]:
    """The operations and weights of the role's own graphs."""
    contents: list[object] = []
    for name in bundle.manifest.roles["qg"].graph_files:
        graph = ir.load(bundle.file(name)).graph
        contents += [(node.op_type, [value and value.name for value in node.inputs]) for node in graph]
        for value in graph.initializers.values():
            assert value.const_value is not None
            contents.append((value.name, value.const_value.tobytes()))
    return contents


def test_a_new_role_gets_its_own_graphs_too(checkpoint: str, tmp_path: Path) -> None:
    bundle = export_role("qg", RoleOptions(checkpoint, precision="fp32", target="cuda"), tmp_path / "b")
    role = bundle.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    assert role.precision == "fp16"
    assert role.target_files == ("qg.encoder.cuda.onnx", "qg.decoder.cuda.onnx")


def test_large_values_stay_float32_in_the_fused_step(checkpoint: str, tmp_path: Path) -> None:
    """The names of modules that are known to overflow do not count there, what the fixed texts show does."""
    model = AutoModelForSeq2SeqLM.from_pretrained(checkpoint)
    # The norm after it divides it out of the head; the layers between add to it.
    model.decoder.block[1].layer[2].DenseReluDense.wo.weight.data *= 4e4
    model.save_pretrained(tmp_path / "large")
    AutoTokenizer.from_pretrained(checkpoint).save_pretrained(tmp_path / "large")
    options = RoleOptions(str(tmp_path / "large"), precision="fp16", target="cuda", allow_unverified=True)
    bundle = export_role("qg", options, tmp_path / "b")
    role = bundle.manifest.roles["qg"]
    assert isinstance(role, QuestionGeneratorRole)
    target = role.find_target("cuda")
    assert target is not None
    step = ir.load(bundle.file(target.decoder))
    types = [node.outputs[0].dtype for node in step.graph if node.op_type == "SkipSimplifiedLayerNormalization"]
    assert types == [ir.DataType.FLOAT16] * 5 + [ir.DataType.FLOAT]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "tensorrt", "precision": "fp16"}, "'qg' has no target tensorrt; those of extractive_qa"),
        ({"target": "cuda", "precision": "int8"}, "precision='int8' is not for the target cuda"),
        (
            {"target": "cuda", "precision": "fp16", "kind": QuestionGeneratorSettings(shortlist=("a",))},
            "chooses among the whole vocabulary",
        ),
    ],
)
def test_what_has_no_target_is_refused(checkpoint: str, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExportError, match=re.escape(message)):
        export_role("qg", RoleOptions(checkpoint, **options), tmp_path / "b")


def test_heads_that_cuda_has_no_kernel_for_are_refused(folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    path = str(folder("question_generator", "t5"))
    with pytest.raises(ExportError, match="heads of 'qg' have 8 numbers; CUDA's operator takes 32, 64, 128"):
        export_role("qg", RoleOptions(path, precision="fp16", target="cuda"), tmp_path / "b")


def test_the_target_is_of_the_same_checkpoint(
    checkpoint: str, folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    export_role("qg", RoleOptions(str(folder("question_generator", "t5")), precision="fp32"), tmp_path / "b")
    with pytest.raises(ExportError, match=r"'qg' of .* is of another checkpoint"):
        export_role("qg", RoleOptions(checkpoint, precision="fp32", target="cuda"), tmp_path / "b")
