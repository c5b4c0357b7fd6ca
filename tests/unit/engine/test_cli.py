"""The command line, on the fake world; tests/integration/test_compact.py runs it on the embedded models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from groundwire.engine import Engine, Score
from groundwire.engine.cli import app, main
from tests.support.fakes import world

GOOD = {"response": "Elvis was born in 1935.", "knowledge": "Elvis came in 1935."}
WRONG = {"id": "w", "response": "Elvis was born in 1936.", "knowledge": ["Elvis came in 1935."], "history": ["Who?"]}


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world())))


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=text)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_table_marks_the_unsupported_words(tmp_path: Path) -> None:
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD, WRONG)))
    assert result.exit_code == 0, result.output
    assert "⟦1936⟧" in result.output
    assert "the knowledge says otherwise: “1935”" in result.output
    assert "1.00" in result.output
    assert "0.50" in result.output


def test_bad_lines_are_named_and_skipped_and_the_good_ones_kept(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", GOOD, "{not json", {"response": "x"}, "[1]", {"response": "", "knowledge": "k"}, WRONG
    )
    out = tmp_path / "out.jsonl"
    result = run("score", str(source), "--out", str(out))
    assert result.exit_code == 3
    for number in (2, 3, 4, 5):
        assert f"line {number}:" in result.output
    assert "4 lines skipped" in result.output
    assert [(row["line"], row["id"], row["score"]["value"]) for row in results(out)] == [(1, None, 1.0), (6, "w", 0.5)]


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD, WRONG, GOOD)
    out = tmp_path / "out.jsonl"
    assert run("score", str(source), "--out", str(out)).exit_code == 0
    whole = out.read_text()
    first, second, _ = whole.splitlines(keepends=True)
    out.write_text(first + second[:40])
    result = run("score", str(source), "--out", str(out))
    assert "1 line is done" in result.output
    strip = lambda text: [(r["line"], r["score"]["metrics"]) for r in map(json.loads, text.splitlines())]  # noqa: E731
    assert strip(out.read_text()) == strip(whole)


def test_results_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD)
    out = tmp_path / "out.jsonl"
    run("score", str(source), "--out", str(out))
    before = out.read_text()
    result = run("score", str(source), "--out", str(out), "--decoding", "greedy")
    assert "made with other settings" in str(result.exception)
    assert out.read_text() == before


def test_a_file_that_holds_something_else_is_not_touched(tmp_path: Path) -> None:
    out = write(tmp_path / "notes.txt", "my notes")
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD)), "--out", str(out))
    assert "not a file of results" in str(result.exception)
    assert out.read_text() == "my notes\n"


def test_csv_and_stdin(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text('response,knowledge,history\n"Elvis was born in 1936.","Elvis came in 1935.","Who?\nWhen?"\n')
    assert "⟦1936⟧" in run("score", str(table)).output
    assert "⟦1936⟧" in run("score", "-", text=json.dumps(WRONG)).output
    table.write_text("answer,knowledge\na,b\n")
    assert "no column response" in str(run("score", str(table)).exception)


def test_bytes_that_are_not_text_are_a_bad_line(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(json.dumps(GOOD).encode() + b"\n\xff\xfe{}\n" + json.dumps(GOOD).encode() + b"\n")
    result = run("score", str(source))
    assert result.exit_code == 3
    assert "line 2:" in result.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--metrics", "q3"), "Unknown metric 'q3'"),
        (("--device", "abacus"), "--device abacus is unknown"),
        (("--decoding", "psychic"), "--decoding psychic is unknown"),
        (("--questions", "some"), "--questions some is unknown"),
        (("--out", "/nowhere/at/all.jsonl"), "does not exist"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD)), *args)
    assert message in str(result.exception)


def test_a_missing_file_is_one_message_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["groundwire", "score", "absent.jsonl"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert "absent.jsonl cannot be read" in error
    assert "Traceback" not in error


def test_explain_shows_questions_answers_and_what_was_discarded() -> None:
    result = run("explain", WRONG["response"], "-k", "Elvis came in 1935.")  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    for text in ("⟦1936⟧", "which number?", "1935", "contradiction", "discarded: “what else?”"):
        assert text in result.output
    score = Score.from_json(run("explain", "Elvis sang.", "-k", "Elvis sang.", "--json").stdout)
    assert score.value == 1.0


def test_help_and_version() -> None:
    assert "groundwire score examples/dialogues.jsonl" in run("--help").output
    assert run("--version").output.startswith("groundwire 0.")
    for command in ("score", "explain", "doctor", "bundle", "export"):
        assert run(command, "--help").exit_code == 0


def test_doctor_names_versions_and_devices() -> None:
    output = run("doctor").output
    for word in ("onnxruntime", "python", "processor", "cuda"):
        assert word in output
