"""``groundwire stream`` on fake models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from groundwire.cli import app
from groundwire.engine import Engine
from tests.support.streams import KNOWLEDGE, METRICS, ROLES, world

TEXT = "Hi there! Honey is sweet. Honey is blue. It is golden. 🙂\n"


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command loads is the fake."""

    def fail(call: Any) -> Any:
        if "broken" in call.hypothesis:
            raise ZeroDivisionError("a defect")
        return ROLES["nli"](call)

    monkeypatch.setattr(Engine, "load", lambda *arguments, **settings: Engine(world(nli=fail)))


def run(*arguments: str, stdin: str | bytes | None = TEXT) -> Result:
    command = ["stream", *arguments, "-k", KNOWLEDGE, "--metrics", ",".join(METRICS)]
    return CliRunner().invoke(app, command, input=stdin)


def list_events(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def join_released(result: Result) -> str:
    return "".join(event["text"] for event in list_events(result) if event["type"] == "release")


def test_text_is_blocked_by_default() -> None:
    result = run()
    assert result.exit_code == 3
    assert [event["type"] for event in list_events(result)] == [
        "sentence", "release", "sentence", "release", "sentence", "early_verdict", "blocked", "final",
    ]  # fmt: skip
    assert join_released(result) == "Hi there! Honey is sweet."


@pytest.mark.parametrize(
    ("action", "released"),
    [("flag", TEXT), ("redact", TEXT.replace("blue", "[…]")), ("fallback:Oh.", "Hi there! Honey is sweet. Oh.")],
)
def test_the_policy_is_given_by_outcome(action: str, released: str) -> None:
    result = run("--on", f"inconsistent={action}", "--on", "failed=flag")
    assert result.exit_code == 0, result.output
    assert join_released(result) == released
    assert list_events(result)[-1]["released"] == released


def test_pieces_are_json_lines_and_may_cut_characters() -> None:
    pieces = ['"Honey is sw"', '{"delta": "eet. It is \\ud83d"}', "", '{"delta": "\\ude42"}', '" golden."']
    result = run("--deltas", stdin="\n".join(pieces))
    assert result.exit_code == 0, result.output
    assert join_released(result) == "Honey is sweet. It is 🙂 golden."


def test_a_file_is_read_and_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    source = tmp_path / "answer.txt"
    source.write_bytes(b"Honey is sweet \xff. It is golden.")
    result = run(str(source), stdin=None)
    assert result.exit_code == 0, result.output
    assert join_released(result) == "Honey is sweet \ufffd. It is golden."
    assert join_released(run("-")) == "Hi there! Honey is sweet."


def test_what_ends_with_the_text_is_blocked_too() -> None:
    result = run(stdin="Honey is sweet. It is broken")
    assert result.exit_code == 3
    assert [event["type"] for event in list_events(result)][-2:] == ["blocked", "final"]
    assert list_events(result)[-2]["outcome"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--on", "wrong=flag"], TEXT, "names no outcome"),
        (["--on", "failed=ignore"], TEXT, "Policy.failed is 'ignore'"),
        (["--set", "max_held_words=0"], TEXT, "--set max_held_words"),
        (["nowhere.txt"], TEXT, "cannot be read"),
        (["-H", "a\0b"], TEXT, "NUL character"),
        ([], " \n", "response is empty"),
    ],
)
def test_wrong_usage(arguments: list[str], stdin: str, message: str) -> None:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("line", "message"), [("{", "Line 1 is not JSON"), ("[1]", 'pass "text"'), ('{"delta": 1}', "is {'delta': 1}")]
)
def test_a_line_that_is_no_piece_ends_the_command(line: str, message: str) -> None:
    result = run("--deltas", stdin=line)
    assert result.exit_code == 1
    assert message in str(result.exception)


def test_knowledge_is_needed() -> None:
    result = CliRunner().invoke(app, ["stream"], input=TEXT)
    assert result.exit_code == 2
    assert "--knowledge" in result.output
