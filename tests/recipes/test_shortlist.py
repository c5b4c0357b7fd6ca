"""Which words questions are made of, and a bundle whose generator writes with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from groundwire.cli.export import app as export_commands
from groundwire.export import QuestionGeneratorSettings, RoleOptions, export_role
from groundwire.recipes.cli import app
from groundwire.recipes.common import backbone
from groundwire.recipes.compact import bundle, shortlist
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole
from groundwire.runtime.errors import ExportError
from tests.support import models
from tests.support.training_sets import QUESTIONS, finished
from tests.support.usage import usage_error


def test_what_the_source_has_is_not_counted(small: Path, sets: Path) -> None:
    tokens = shortlist.select_frequent_tokens(sets, 1000)
    assert tokens == shortlist.select_frequent_tokens(sets, 1000)
    assert len(set(tokens)) == len(tokens)
    asked = {
        token for rows in QUESTIONS.values() for text, _ in rows for token in backbone.load_tokenizer().tokenize(text)
    }
    assert set(tokens) <= asked
    assert tokens[0] == "?"  # after every question and in no sentence
    # In the question and in the sentence that it is about.
    assert "presley" in asked
    assert "presley" not in tokens
    assert shortlist.select_frequent_tokens(sets, 3) == tokens[:3]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.encoder_decoder(tmp_path_factory.mktemp("shortlist") / "bert", "bert")


def test_the_command_shortens_a_bundle(small: Path, sets: Path, questions: Path, tmp_path: Path) -> None:
    export_role("qg", RoleOptions(str(questions), allow_unverified=True), tmp_path / "b")
    command = ["shortlist", "--bundle", str(tmp_path / "b"), "--data", str(sets), "--size", "100"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    record = Bundle.open(tmp_path / "b").manifest.roles["qg"]
    assert isinstance(record, QuestionGeneratorRole)
    assert record.shortlist == len(shortlist.select_frequent_tokens(sets, 100)) + len(record.eos_ids)


def test_a_recipes_list_goes_into_the_bundle(tmp_path: Path) -> None:
    finished(tmp_path, "qg")
    assert bundle.collect_compact_roles(tmp_path)["qg"].read(QuestionGeneratorSettings).shortlist == ()
    (tmp_path / "qg" / shortlist.FILE).write_text("what\n?\n")
    assert bundle.collect_compact_roles(tmp_path)["qg"].read(QuestionGeneratorSettings).shortlist == ("what", "?")
    assert bundle.collect_compact_roles(tmp_path, "fp32")["qg"].read(QuestionGeneratorSettings).shortlist == ()


def test_the_exporter_takes_a_list(questions: Path, tmp_path: Path) -> None:
    program = typer.Typer()
    program.add_typer(export_commands, name="export")
    words = tmp_path / "words.txt"
    words.write_text("the\nwhat\n?\n")
    out = ["--out", str(tmp_path / "b"), "--set", f"shortlist={words}", "--source", str(questions)]
    result = CliRunner().invoke(program, ["export", "qg", "--set", "allow_unverified=true", *out])
    assert result.exit_code == 0, result.output
    record = Bundle.open(tmp_path / "b").manifest.roles["qg"]
    assert isinstance(record, QuestionGeneratorRole)
    assert record.shortlist == 3 + len(record.eos_ids)
    for what in ("nli", "paper-q2"):
        misused = CliRunner().invoke(program, ["export", what, *out[:4]] + (out[4:] if what == "nli" else []))
        assert "--set shortlist" in usage_error(misused)
    failed = CliRunner().invoke(program, ["export", "qg", "--precision", "fp32", "--force", *out]).exception
    assert isinstance(failed, ExportError)
    assert "export it with int8" in str(failed)
