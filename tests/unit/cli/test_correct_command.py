"""``groundwire correct`` on fake models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from groundwire.cli import app
from groundwire.engine import Engine
from groundwire.repair import Correction
from tests.support.correcting import make_engine
from tests.support.usage import usage_error

KNOWLEDGE = "The violin has four strings, and Stradivari made it in Cremona."
WRONG = {"id": "w", "response": "The violin has six strings.", "knowledge": KNOWLEDGE}
RIGHT = {"response": "The violin has four strings.", "knowledge": [KNOWLEDGE]}
HOPELESS = {"response": "Bob sings loudly. The violin has four strings.", "knowledge": KNOWLEDGE}
UNTIDY = {"response": "Stradivari made it in Turin and sings.", "knowledge": KNOWLEDGE}


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **settings: make_engine()))


def run(tmp_path: Path, rows: list[Any], *args: str) -> Result:
    path = tmp_path / "in.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return CliRunner().invoke(app, ["correct", str(path), *args])


def test_a_table_shows_before_after_and_why(tmp_path: Path) -> None:
    result = run(tmp_path, [WRONG, RIGHT, HOPELESS, UNTIDY], "--table")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.replace("│", " ").split())
    for text in (
        "⟦six⟧",
        "⟦four⟧",
        "“six” (number): the",  # a row has its id in the second line
        "“four”",
        "unchanged",
        "consistent",
        "refused",
        "⟦Cremona⟧",
        "still inconsistent",
        "1 corrected, 1 better and still inconsistent; unchanged: 1 consistent, 1 refused.",
    ):
        assert text in shown, text


def test_json_lines_hold_the_whole_correction(tmp_path: Path) -> None:
    result = run(tmp_path, [WRONG, HOPELESS], "--json", "--remove-sentences", "--set", "max_drafts=2")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["line"], row["id"]) for row in rows] == [(1, "w"), (2, None)]
    first, second = (Correction.from_json(json.dumps(row["correction"])) for row in rows)
    assert (first.response, second.response) == ("The violin has four strings.", "The violin has four strings.")
    assert second.edits[0].action == "remove_sentence"


def test_lines_without_a_result_are_reported(tmp_path: Path) -> None:
    result = run(tmp_path, ["{", {"response": "It is."}, {"response": " ", "knowledge": "a"}, WRONG], "--json")
    assert result.exit_code == 3
    assert "The line has no knowledge; it has response." in result.output
    assert "response is empty" in result.output
    assert "4 lines: 3 invalid, 1 corrected." in result.output
    assert run(tmp_path, [WRONG], "--json", "--metrics", "values").exit_code == 3  # without a verdict


def test_wrong_usage_is_named(tmp_path: Path) -> None:
    assert "--set max_drafts" in usage_error(run(tmp_path, [WRONG], "--set", "max_drafts=0"))
    assert "--metrics" in usage_error(run(tmp_path, [WRONG], "--metrics", "nothing"))
