"""``groundwire turn`` on an engine without models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine
from groundwire.testing import make_engine

TURN = {
    "text": "It's cancelled.",
    "log": [{"name": "cancel", "arguments": {"id": "A-7"}, "status": "failed"}],
    "history": ["Cancel A-7."],
    "id": 4,
}


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command loads is the fake."""
    monkeypatch.setattr(Engine, "load", lambda *arguments, **settings: make_engine(lambda text, passages: 0.9))


def test_each_line_is_a_turn(tmp_path: Path) -> None:
    source = tmp_path / "turns.jsonl"
    source.write_text("\n\n".join((json.dumps(TURN), json.dumps({"text": "Hello!"}), "no JSON")), encoding="utf-8")
    result = CliRunner().invoke(app, ["turn", str(source)])
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 3
    assert [(record["line"], record["id"], record["turn"]["label"]) for record in records] == [
        (1, 4, "inconsistent"),
        (3, None, "unverifiable"),
    ]
    assert "line 5" in result.stderr


def test_the_table_has_what_is_wrong() -> None:
    result = CliRunner().invoke(app, ["turn", "-", "--table"], input=json.dumps(TURN))
    assert result.exit_code == 3
    assert "It's cancelled." in result.stdout


@pytest.mark.parametrize(("actions", "code"), [([], 3), (["--actions", "get_taxi, other"], 0)])
def test_tools_may_be_declared_actions(actions: list[str], code: int) -> None:
    turn = {"text": "Your taxi has been booked.", "log": [{"name": "get_taxi", "result": {"minutes": 4}}]}
    assert CliRunner().invoke(app, ["turn", "-", *actions], input=json.dumps(turn)).exit_code == code


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["turn", str(tmp_path / "none.jsonl")])
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_a_line_that_cannot_be_read_does_not_end_the_run(tmp_path: Path) -> None:
    source = tmp_path / "turns.jsonl"
    nested = b'{"log": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    surrogate = b'{"text": "\\ud800 is booked."}'
    source.write_bytes(b"\n".join((b'{"text": "\xff"}', nested, surrogate, json.dumps(TURN).encode())))
    result = CliRunner().invoke(app, ["turn", str(source), "--json"])
    assert result.exit_code == 3
    assert [json.loads(line)["line"] for line in result.stdout.splitlines()] == [4]
    assert all(f"line {number}" in result.stderr for number in (1, 2, 3))


def test_a_line_may_define_the_tools() -> None:
    turn = {
        "text": "Your taxi has been booked.",
        "log": [{"name": "get_taxi", "result": {"minutes": 4}}],
        "tools": [{"name": "get_taxi", "annotations": {"readOnlyHint": False}}],
    }
    assert CliRunner().invoke(app, ["turn", "-"], input=json.dumps(turn)).exit_code == 0


def test_a_turn_that_could_not_be_checked_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def rate(text: str, passages: tuple[str, ...]) -> float:
        raise RuntimeError("no memory")

    monkeypatch.setattr(Engine, "load", lambda *arguments, **settings: make_engine(rate))
    turn = {"calls": [{"name": "mail", "arguments": {"body": "It is cancelled now."}}], "log": TURN["log"]}
    result = CliRunner().invoke(app, ["turn", "-"], input=json.dumps(turn))
    assert result.exit_code == 3
    assert "no memory" in result.stderr
