"""The embedded generator from a tiny checkpoint in place of the real one: its bundle, its model card, its package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

from typer.testing import CliRunner

from groundwire.cli import app as program
from groundwire.engine import Engine
from groundwire.generation import Generator
from groundwire.recipes.generator.bundle import LICENSE, read_stages
from groundwire.recipes.generator.card import read_table, render_card, write_card
from groundwire.recipes.generator.recipe import load_base_model
from groundwire.runtime.bundles import bundle
from groundwire.runtime.bundles.bundle import Bundle, embedded
from groundwire.runtime.bundles.manifest import ResponseGeneratorRole
from tests.support import models
from tests.support.packaging import ROOT, read_manifest, read_project, read_requirement, read_version
from tests.support.shared import make_once, shared_root
from tests.support.training_commands import run

HELD_OUT = {"responses": 128, "perplexity": 13.1, "perplexity_without_knowledge": 86.4, "knowledge_helps": 0.9922}
LAST = {"base": "CKPT/first", "rows": 4145, "steps": 250, "seed": 13, "held_out": HELD_OUT}
FIRST = {"base": "CKPT/lm", "rows": 24_000, "steps": 850, "seed": 13}
DIALOGUE = ("-k", "The guitar has six strings.", "-H", "how many strings?")


def write_report(directory: Path, report: dict[str, Any]) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "report.json").write_text(json.dumps(report))


def write_checkpoints(root: Path) -> None:
    models.language_model(root / "generator", "gpt2")
    write_report(root / "generator", LAST)
    write_report(root / "first", FIRST)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_once(shared_root(tmp_path_factory) / "generator-checkpoints", write_checkpoints)


@pytest.fixture(scope="module")
def checkout(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bundles with the generator that the command wrote."""
    folder = tmp_path_factory.mktemp("bundles")
    run("bundle-generator", "--checkpoints", checkpoints, "--out", folder / "generator", "--precision", "fp32")
    return folder


@pytest.fixture
def shipped(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """That generator in the place of the embedded one."""
    monkeypatch.setattr(bundle, "CHECKOUT", checkout)
    return Bundle.open("generator")


def make_cell(alpha: float, pmi_top_p: float, value: float) -> dict[str, Any]:
    mean = {"value": value, "half_width": 0.25, "count": 100}
    means = dict.fromkeys(("pmi", "overlap_precision", "nli", "rouge_l", "log_prob"), mean)
    return {
        "alpha": alpha,
        "pmi_top_p": pmi_top_p,
        **means,
        "words": 14.06,
        "unfinished": 0.02,
        "examples": ["six strings."],
    }


def make_table(digest: str, *cells: dict[str, Any], rows: str = "held_out.jsonl") -> dict[str, Any]:
    setup = {"digest": digest, "rows": rows, "scorer": "compact", "method": "beam_sampling", "max_new_tokens": 32}
    return {"setup": setup, "cells": list(cells)}


def test_the_bundle_is_whole_and_is_what_the_package_says(shipped: Bundle) -> None:
    shipped.verify()
    manifest = shipped.manifest
    assert (manifest.name, manifest.license, set(manifest.roles)) == ("generator", LICENSE, {"generator"})
    assert set(manifest.canaries or ()) == {"generator"}
    role = manifest.roles["generator"]
    assert isinstance(role, ResponseGeneratorRole)
    assert role.parity is not None
    assert role.parity.gate == "passed"
    assert read_project("generator")["project"]["license"] == manifest.license
    version = read_version("generator", read_manifest(shipped.directory))
    assert version == f"{manifest.schema}.{manifest.version}"
    assert version in read_requirement("generator").specifier


def test_it_generates_by_its_name(shipped: Bundle) -> None:
    with Engine.load("generator", "cpu") as engine:
        engine.warmup()
        generation = Generator(engine).generate("The guitar has six strings.", ["how many strings?"])
    assert generation.status == "generated"
    assert f"bundle:generator@{shipped.manifest.digest()}" in generation.signature
    result = CliRunner().invoke(program, ["generate", *DIALOGUE, "--bundle", "generator", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["responses"][0]["text"] == generation.text


@pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle 'compact'")
def test_the_command_takes_it_without_an_option(shipped: Bundle) -> None:
    (shipped.directory.parent / "compact").symlink_to(ROOT / "bundles" / "compact")
    result = CliRunner().invoke(program, ["generate", *DIALOGUE, "--json"])
    assert result.exit_code == 0, result.output
    assert f"bundle:generator@{shipped.manifest.digest()}" in json.loads(result.stdout)["signature"]


def test_the_stages_are_those_that_made_the_checkpoint(checkpoints: Path) -> None:
    assert read_stages(checkpoints) == {"generator": LAST, "first": FIRST}


@pytest.mark.parametrize(
    ("base", "problem"),
    [
        ("facebook/bart-large", r"was trained from facebook/bart-large, which is neither .*lm nor"),
        ("CKPT/generator", "was trained from CKPT/generator, which is neither"),
        ("CKPT/begun", "begun is not a finished checkpoint; train it with"),
    ],
)
def test_a_checkpoint_of_unknown_licence_is_refused(tmp_path: Path, base: str, problem: str) -> None:
    (tmp_path / "begun").mkdir()
    write_report(tmp_path / "generator", {**LAST, "base": base})
    with pytest.raises(ValueError, match=problem):
        read_stages(tmp_path)


def test_the_card_has_the_figures(shipped: Bundle, checkpoints: Path, tmp_path: Path) -> None:
    digest = shipped.manifest.digest()
    cells = [make_cell(alpha, 0.6, 0.5 + alpha) for alpha in (0.5, 0.25, 0.0)]
    tables = [tmp_path / "first.json", tmp_path / "second.json"]
    tables[0].write_text(json.dumps(make_table(digest, *cells, make_cell(0.25, 0.9, 7))))
    tables[1].write_text(json.dumps(make_table(digest, *cells[1:2], rows="mine.jsonl")))
    given = [option for table in tables for option in ("--table", table)]
    run("generator-card", "--bundle", shipped.directory, "--checkpoints", checkpoints, *given)
    text = (shipped.directory / "README.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert "850 steps of 16 on 24,000 rows, 250 steps of 16 on 4,145 rows" in lines[2]
    assert lines[5:] == [
        "| 100 turns of Topical-Chat's test split | 0 | 0.50 ± 0.25 | 0.50 | 0.50 | 0.500 ± 0.250 | 14.1 | 2% |",
        "| 100 turns of Topical-Chat's test split | 0.25 | 0.75 ± 0.25 | 0.75 | 0.75 | 0.750 ± 0.250 | 14.1 | 2% |",
        "| 100 rows of `mine.jsonl` | 0.25 | 0.75 ± 0.25 | 0.75 | 0.75 | 0.750 ± 0.250 | 14.1 | 2% |",
    ]
    words = " ".join(text.split())
    assert "Perplexity of 128 held-out responses: 13.1 with their knowledge and 86.4 without it" in words
    assert words.count("Decoding is beam sampling of at most 32 tokens; the bundle `compact` scores.") == 1
    assert f"Treat them as `{LICENSE}`" in words
    report = json.loads((shipped.directory / "report.json").read_text(encoding="utf-8"))
    assert list(report["training"]) == ["generator", "first"]
    assert "examples" not in report["responses"][0]["cells"][0]
    shipped.verify()


def test_a_card_without_its_figures_is_refused(shipped: Bundle, checkpoints: Path, tmp_path: Path) -> None:
    digest, table = shipped.manifest.digest(), tmp_path / "table.json"
    table.write_text(json.dumps(make_table("0123456789ab")))
    with pytest.raises(ValueError, match=f"with the digest 0123456789ab; this one has {digest}"):
        read_table(table, digest)
    model = load_base_model(checkpoints / "generator")
    with pytest.raises(ValueError, match=r"has no cell of alpha 0\.25 and top-p 0\.6"):
        render_card(shipped, {"generator": LAST}, model, [make_table(digest, make_cell(0.5, 0.6, 1.0))])
    write_report(tmp_path / "generator", {**FIRST, "base": "lm"})
    with pytest.raises(ValueError, match="measures nothing; train with --held-out"):
        write_card(shipped.directory, tmp_path, [])
