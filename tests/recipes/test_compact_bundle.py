"""Which roles the bundle gets from the recipes' checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundwire.export import ClassifierSettings, QuestionGeneratorSettings
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Schedule
from groundwire.recipes.compact import bundle, lm, multitask_nli
from groundwire.recipes.compact.multitask_model import TOKEN_LABELS
from groundwire.runtime.bundles.manifest import ClassifierRole, Template, TokenClassifierRole
from tests.support.training_sets import finished


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        (("qa",), {"qa", "embedder"}),
        (("spans", "qg", "qa", "nli"), {"spans", "qg", "qa", "nli", "embedder"}),
        (("multitask_nli/consistency", "lm"), {"detector.consistency", "lm", "embedder"}),
        (
            (
                "spans",
                "qg",
                "qa",
                "nli",
                "multitask_nli/nli",
                "multitask_nli/consistency",
                "multitask_nli/verifiability",
                "lm",
            ),
            {"spans", "qg", "qa", "nli", "detector.consistency", "detector.verifiability", "lm", "embedder"},
        ),
    ],
)
def test_roles_are_those_that_exist(tmp_path: Path, names: tuple[str, ...], roles: set[str]) -> None:
    collected = bundle.collect_compact_roles(finished(tmp_path, *names))
    assert set(collected) == roles
    assert collected["embedder"].source == str(backbone.PATH)
    assert all(Path(options.source).exists() for options in collected.values())


def test_the_inference_head_of_the_multitask_model_is_preferred(tmp_path: Path) -> None:
    assert bundle.collect_compact_roles(finished(tmp_path, "nli"))["nli"].source == str(tmp_path / "nli")
    assert bundle.collect_compact_roles(finished(tmp_path, "multitask_nli/nli"))["nli"].source == str(
        tmp_path / "multitask_nli" / "nli"
    )


def test_a_run_that_has_not_ended_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa" / "checkpoint.pt").write_bytes(b"")
    with pytest.raises(ValueError, match="holds no finished checkpoint"):
        bundle.collect_compact_roles(tmp_path)


def test_precision_and_templates(tmp_path: Path) -> None:
    names = ("qg", "multitask_nli/consistency", "multitask_nli/verifiability")
    collected = bundle.collect_compact_roles(finished(tmp_path, *names), "fp32")
    assert {options.precision for options in collected.values()} == {"fp32"}
    assert collected["qg"].kind == QuestionGeneratorSettings(Template("{answer}", "{context}"))
    verifiability = ClassifierSettings(template=Template("{hypothesis}"), unit="sentence")
    assert (collected["detector.verifiability"].kind, collected["detector.consistency"].kind) == (verifiability, None)


@pytest.mark.slow
def test_what_the_recipes_save_can_be_exported(sets: Path, small: Path, tmp_path: Path) -> None:
    schedule = Schedule(steps=1, batch=4, autocast="off")
    multitask_nli.train_multitask_nli(sets, tmp_path / "ckpt" / "multitask_nli", schedule, measured=20)
    lm.train_language_model(sets, tmp_path / "ckpt" / "lm", schedule, layers=2)
    made = bundle.export_compact_bundle(
        tmp_path / "ckpt", tmp_path / "bundle", lambda role, stage: None, precision="fp32"
    )
    heads = {"nli", "detector.consistency", "detector.verifiability", "token_classifier"}
    assert set(made.manifest.roles) == {*heads, "lm", "embedder"}
    tokens = made.manifest.roles["token_classifier"]
    assert isinstance(tokens, TokenClassifierRole)
    assert (tokens.labels, tokens.supported) == (TOKEN_LABELS, "supported")
    assert len({made.manifest.roles[role].graph_files for role in heads}) == 1
    assert "CDLA-Sharing-1.0" in made.manifest.license
    verifiability = made.manifest.roles["detector.verifiability"]
    assert isinstance(verifiability, ClassifierRole)
    assert (verifiability.labels, verifiability.supported) == (("verifiable", "non-verifiable"), ("verifiable",))
    assert (verifiability.unit, verifiability.template) == ("sentence", Template("{hypothesis}"))
