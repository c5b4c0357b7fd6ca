"""Response generators: encoder-decoders and causal models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from groundwire.cli.export import app
from groundwire.export import ResponseGeneratorSettings, RoleOptions, export_role, preset
from groundwire.export.options import PROMPT, Gate
from groundwire.export.passes import fold_transposes, to_half
from groundwire.export.roles import generation
from groundwire.export.roles.registry import KINDS, find_kind
from groundwire.export.session import CpuSession
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ResponseGeneratorRole, Template
from groundwire.runtime.errors import ExportError
from tests.support import models
from tests.support.usage import usage_error

Folder = Callable[[str, str], Path]
READ = Template("".join(PROMPT), "".join(PROMPT[1:]))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.language_model(tmp_path_factory.mktemp("generator") / "my-gpt2", "gpt2")


def test_the_command_makes_a_bundle(gpt2: Path, tmp_path: Path) -> None:
    program = typer.Typer()
    program.add_typer(app, name="export")
    command = ["export", "generator", "--source", str(gpt2), "--out", str(tmp_path / "b"), "--precision", "fp32"]
    pieces = ["Facts: {knowledge}\n", "{history} ", "Reply:"]
    for piece in pieces:
        command += ["--set", f"prompt={piece}"]
    result = CliRunner().invoke(program, command)
    assert result.exit_code == 0, result.output
    assert "generator" in result.output
    role = Bundle.open(tmp_path / "b").manifest.roles["generator"]
    assert isinstance(role, ResponseGeneratorRole)
    assert role.parity is not None
    assert (role.parity.gate, role.parity.decision_agreement) == ("passed", 1.0)
    assert (role.source, role.architecture, role.precision) == ("my-gpt2", "GPT2LMHeadModel", "fp32")
    assert (role.causal, role.start_id, role.eos_ids, role.prompt) == (True, None, (0,), tuple(pieces))
    assert (role.positions, role.max_tokens) == (models.MAX_TOKENS, models.MAX_TOKENS)
    assert (role.layers, role.heads, role.head_dim) == (models.LAYERS, models.HEADS, models.HIDDEN // models.HEADS)
    assert (tmp_path / "b" / role.encoder).is_file()
    assert (tmp_path / "b" / role.decoder).is_file()


def test_options_that_a_response_generator_refuses(gpt2: Path, tmp_path: Path) -> None:
    program = typer.Typer()
    program.add_typer(app, name="export")
    command = ["export", "nli", "--source", str(gpt2), "--out", str(tmp_path / "b"), "--set", "prompt={history}"]
    assert "--set prompt is no option of nli, whose kind is classifier; its options are --labels" in usage_error(
        CliRunner().invoke(program, command)
    )
    with pytest.raises(ExportError, match="once each"):
        export_role("generator", RoleOptions(str(gpt2), ResponseGeneratorSettings(("{history}",))), tmp_path / "b")
    bloom = models.language_model(tmp_path / "bloom", "bloom")
    with pytest.raises(ExportError, match=r"'bloom'.*Supported: t5, mt5, bart, .*gpt2, and llama"):
        export_role("generator", RoleOptions(str(bloom)), tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert find_kind("generator").name == "response_generator"
    assert "generator" not in preset("paper-pmi")


def test_the_parity_report_detects_other_weights(gpt2: Path, tmp_path: Path) -> None:
    kind = KINDS["response_generator"]
    loaded = kind.load(RoleOptions(str(gpt2)))
    reference = kind.reference(loaded, READ)
    other = kind.load(RoleOptions(str(models.language_model(tmp_path / "other", "gpt2", seed=1))))
    right, wrong = (
        reference.compare(generation.build_generation_graphs(generation.split_model(checkpoint.model), contrast=True))
        for checkpoint in (loaded, other)
    )
    assert not Gate.exact().failures(right)
    assert Gate().failures(wrong)


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_half_keeps_the_rule_in_float32(gpt2: Path, folder: Folder, family: str) -> None:
    """Only keys and values travel in float16; alpha, top_p and all numbers of the rule do not."""
    loaded = KINDS["response_generator"].load(
        RoleOptions(str(gpt2 if family == "gpt2" else folder("question_generator", family)))
    )
    halves = generation.split_model(loaded.model)
    cpmi = []
    for half in (False, True):
        encoder, decoder = (graph.clone() for graph in generation.build_generation_graphs(halves, contrast=True))
        for graph in (encoder, decoder):
            fold_transposes(graph)
            if half:
                to_half(graph, loaded.float_modules)
        reads, step = CpuSession(encoder), CpuSession(decoder)
        kind = step.dtype("past.key.0")
        assert kind == (np.float16 if half else np.float32)
        assert step.dtype("alpha") == step.dtype("top_p") == np.float32
        ids = np.arange(28).reshape(4, 7) + 6
        states = reads({"input_ids": ids, "attention_mask": np.ones_like(ids)})
        past = np.zeros((4, 1, halves.step.heads, 0, halves.step.head_dim), kind)
        feeds = {
            "tokens": np.full((4, 1), 9),
            "parents": np.zeros((4, 1), np.int64),
            "cross_mask": np.ones_like(ids),
            "count": np.array([halves.step.vocabulary]),
            "alpha": np.array([0.25, 1.0], np.float32),
            "top_p": np.array([0.6, 1.0], np.float32),
            "banned": np.array([[[7, -1]], [[-1, -1]]]),
        }
        output = step({**feeds, **states, **dict.fromkeys([n for n in step.inputs if n.startswith("past.")], past)})
        assert output["present.key.0"].dtype == kind
        assert output["scores"].dtype == output["cpmi"].dtype == np.float32
        cpmi.append(np.take_along_axis(output["cpmi"], np.argsort(output["candidates"], axis=-1), axis=-1))
        assert np.isfinite(output["scores"][1]).all()
        assert not np.isfinite(output["scores"][0]).all()
    finite = np.isfinite(cpmi[0])
    assert np.array_equal(finite, np.isfinite(cpmi[1]))
    np.testing.assert_allclose(cpmi[1][finite], cpmi[0][finite], atol=0.1)
