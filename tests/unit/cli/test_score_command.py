"""The command line, on the fake world; tests/integration/test_compact.py runs it on the embedded models."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from groundwire.cli import app, main
from groundwire.engine import Engine, LoadOptions, ModelError, Score
from groundwire.runtime.bundles import bundle
from groundwire.runtime.bundles.calibration import Feature, HeldOut, OrderStatistics
from groundwire.runtime.errors import BundleError, OutputError
from tests.support.broken_folds import break_folds
from tests.support.evaluation import CALIBRATION
from tests.support.fakes import world
from tests.support.usage import usage_error

GOOD = {"response": "Elvis was born in 1935.", "knowledge": "Elvis came in 1935."}
WRONG = {"id": "w", "response": "Elvis was born in 1936.", "knowledge": ["Elvis came in 1935."], "history": ["Who?"]}


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world())))


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=text)


COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
from groundwire.engine import Engine
from groundwire.cli import main
from tests.support.fakes import world
Engine.load = lambda *args, **kwargs: Engine(world())
main()
"""


def run_process(*args: str, stdout: Any = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *args],
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | environment,
        check=False,
    )


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def write_damaged(path: Path) -> Path:
    """A compressed file of ninety good lines that ends too early."""
    rows = (json.dumps(GOOD | {"note": str(random.Random(i).random())}) + "\n" for i in range(90))
    path.write_bytes(gzip.compress("".join(rows).encode())[:-30])
    return path


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_without_a_verdict_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import streams

    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(streams.world())))
    rows = [{"response": "Honey is sweet.", "knowledge": knowledge} for knowledge in ([], "Honey is sweet.", None)]
    result = run("score", str(write(tmp_path / "in.jsonl", *rows)), "--metrics", "nli,verifiability")
    assert "3 lines: 2 nothing_to_verify, 1 scored; 2 without a verdict (unknown)." in " ".join(result.stderr.split())


def test_a_table_marks_the_unsupported_words(tmp_path: Path) -> None:
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD, WRONG)), "--table")
    assert result.exit_code == 0, result.output
    assert "⟦1936⟧" in result.output
    assert "the knowledge says otherwise: “1935”" in result.output
    assert "1.00" in result.output
    assert "0.50" in result.output


def test_a_defect_of_the_verdict_ends_no_other_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_folds(monkeypatch)
    source = write(tmp_path / "in.jsonl", GOOD, GOOD | {"response": "It is broken."}, WRONG)
    out = tmp_path / "out.jsonl"
    result = run("score", str(source), "--out", str(out))
    assert result.exit_code == 3
    assert "2 scored, 1 failed" in result.output
    assert [line["score"]["status"] for line in results(out)] == ["scored", "failed", "scored"]


def test_bad_lines_are_named_and_skipped_and_the_good_ones_kept(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", GOOD, "{not json", {"response": "x"}, "[1]", {"response": "", "knowledge": "k"}, WRONG
    )
    out = tmp_path / "out.jsonl"
    result = run("score", str(source), "--out", str(out))
    assert result.exit_code == 3
    for number in (2, 3, 4, 5):
        assert f"line {number}:" in result.output
    assert "6 lines: 4 invalid, 2 scored." in result.output
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


def test_a_result_belongs_to_its_text_and_not_to_its_line(tmp_path: Path) -> None:
    """An edited input is an error that names the line; what comes before it is scored and kept."""
    source = write(tmp_path / "in.jsonl", GOOD, WRONG)
    out = tmp_path / "out.jsonl"
    assert run("score", str(source), "--out", str(out)).exit_code == 0
    before = out.read_text()
    for second in (WRONG | {"response": "Bob."}, WRONG | {"knowledge": "k"}, WRONG | {"history": []}, "{not json"):
        write(source, GOOD, second, GOOD)
        result = run("score", str(source), "--out", str(out))
        assert "Line 2 of" in str(result.exception)
        assert "the input has changed" in str(result.exception)
        assert out.read_text() == before
    write(source, GOOD, WRONG | {"id": "another", "note": "not read"}, GOOD)
    assert run("score", str(source), "--out", str(out)).exit_code == 0
    assert [row["line"] for row in results(out)] == [1, 2, 3]


def test_what_did_not_score_is_tried_again(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD, WRONG, GOOD)
    out = tmp_path / "out.jsonl"
    run("score", str(source), "--out", str(out))
    rows = results(out)
    rows[0]["score"] |= {"status": "deadline", "value": None}
    rows[2]["score"]["metrics"]["q2"] |= {"status": "failed", "value": None}
    write(out, *rows)
    result = run("score", str(source), "--out", str(out))
    assert result.exit_code == 0
    assert "1 line is done, 2 without a result tried again" in result.output
    assert "3 lines: 2 scored, 1 done before." in result.output
    assert [(row["line"], row["score"]["status"]) for row in results(out)[3:]] == [(1, "scored"), (3, "scored")]
    again = run("score", str(source), "--out", str(out))  # the later line counts
    assert "3 lines: 3 done before." in again.output


def test_the_input_is_not_overwritten(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD)
    before = source.read_text()
    assert "is the input" in usage_error(run("score", str(source), "--out", str(source)))
    assert source.read_text() == before


def test_a_damaged_end_of_the_input_loses_nothing_before_it(tmp_path: Path) -> None:
    source, out = write_damaged(tmp_path / "in.jsonl.gz"), tmp_path / "out.jsonl"
    result = run("score", str(source), "--out", str(out))
    assert "is damaged" in str(result.exception)
    assert len(results(out)) > 60


def test_standard_output_is_a_place_for_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = write(tmp_path / "in.jsonl", GOOD, WRONG)
    rows = run("score", str(source), "--out", "-").stdout
    assert [json.loads(row)["line"] for row in rows.splitlines()] == [1, 2]
    assert not Path("-").exists()
    rows = run_process("score", str(source), "--out", "/dev/stdout").stdout
    assert [json.loads(row)["line"] for row in rows.splitlines()] == [1, 2]


def test_a_pipe_gets_json_lines_whatever_its_encoding(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD | {"id": "é"})
    result = run_process("score", str(source), PYTHONIOENCODING="ascii")
    assert json.loads(result.stdout)["id"] == "é"
    assert "1 line: 1 scored." in result.stderr
    table = run_process("score", str(source), "--table", PYTHONIOENCODING="ascii")
    assert "Elvis was born in 1935." in table.stdout
    assert table.returncode == 0, table.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("arguments", [("--json",), ("--table",)])
def test_a_full_disk_is_one_message(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    source = write(tmp_path / "in.jsonl", GOOD)
    with Path("/dev/full").open("wb") as full:
        result = run_process("score", str(source), *arguments, stdout=full)
    assert result.returncode == 1
    assert "OutputError:" in result.stderr
    assert "cannot be written: No space left on device" in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_device_may_be_the_output(tmp_path: Path) -> None:
    source = str(write(tmp_path / "in.jsonl", GOOD))
    assert isinstance(run("score", source, "--out", "/dev/full").exception, OutputError)
    assert run("score", source, "--out", "/dev/null").exit_code == 0


def test_rows_are_printed_as_they_come(tmp_path: Path) -> None:
    """A table whose input ends in an error, or that is interrupted, has the rows before."""
    result = run("score", str(write_damaged(tmp_path / "in.jsonl.gz")), "--table")
    assert "is damaged" in str(result.exception)
    assert result.output.count("Elvis was born in 1935.") > 60
    assert result.output.count("response with unsupported") == 1


def test_an_interrupted_table_keeps_its_rows() -> None:
    """The input stays open, so that the command waits for more of it when the signal comes."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "score", "-", "--table"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write((json.dumps(GOOD) + "\n") * 70)
        process.stdin.flush()
        while "Elvis was born in 1935." not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        assert process.wait() == 130
    assert "Interrupted. With --out, the same command continues the run." in errors
    assert "Traceback" not in errors


def test_what_a_text_writes_reaches_no_terminal(tmp_path: Path) -> None:
    evil = "Elvis \x1b[2J\x9b31m \u202eborn [red]in[/red] :smile: 1936.\r"
    source = write(tmp_path / "in.jsonl", {"response": evil, "knowledge": "Elvis 1935."}, {"\x1b[2J": 1})
    for arguments in (("score", str(source), "--table"), ("explain", evil, "-k", evil + "1935", "--table")):
        shown = run(*arguments).output
        assert not set(shown) & set("\x1b\x9b\u202e\r")
        assert "\\x1b[2J" in shown
        assert "[red]in[/red]" in shown
        assert ":smile:" in shown


def test_an_error_writes_no_escapes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["groundwire", "score", "absent\x1b[2J.jsonl"])
    with pytest.raises(SystemExit):
        main()
    assert "absent\\x1b[2J.jsonl cannot be read" in capsys.readouterr().err


def test_the_exit_code_says_whether_every_line_has_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "in.jsonl", GOOD, WRONG)
    assert run("score", str(source)).exit_code == 0

    def broken(call: Any) -> Any:
        raise ModelError("no answer")

    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(qa=broken))))
    result = run("score", str(source))
    assert result.exit_code == 3
    assert "2 lines: 2 failed." in result.output
    assert run("explain", "Elvis 1936.", "-k", "Elvis 1935.").exit_code == 3
    empty = run("score", str(write(tmp_path / "empty.jsonl")))
    assert empty.exit_code == 3
    assert "The input has no lines." in empty.output


def test_a_table_says_what_the_numbers_of_the_verdict_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "in.jsonl", GOOD)
    legend = "Verdict: the probability that the knowledge supports the response"
    assert legend not in run("score", str(source), "--table").output
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=CALIBRATION)))
    )
    threshold = CALIBRATION.fusions[0].profiles["strict"].threshold
    shown = " ".join(run("score", str(source), "--table", "--profile", "strict").output.split())
    assert f"{legend}; consistent from {threshold:.2f}, profile strict." in shown
    assert legend not in run("score", str(source), "--json").output


def test_a_bound_on_the_false_positive_rate_takes_the_profiles_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = OrderStatistics(count=19, values=tuple(i / 20 for i in range(1, 20)))
    (fusion,) = CALIBRATION.fusions
    fusion = msgspec.structs.replace(fusion, held_out=HeldOut(consistent=record, inconsistent=record))

    def load(*features: Feature) -> None:
        changed = msgspec.structs.replace(fusion, features=(*fusion.features, *features))
        loaded = LoadOptions(calibration=msgspec.structs.replace(CALIBRATION, fusions=(changed,)))
        monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(), loaded)))

    load()
    source = str(write(tmp_path / "in.jsonl", GOOD, WRONG))
    given = ("--set", "max_false_positive_rate=0.1")
    shown = " ".join(run("score", source, "--table", *given).output.split())
    assert "consistent from 0.10, false positive rate at most 10 % for responses like the" in shown
    texts = ("explain", GOOD["response"], "-k", GOOD["knowledge"], "--table")
    assert "rate at most 10 % for responses like the calibration's)" in " ".join(run(*texts, *given).output.split())
    load(Feature(name="pmi", mean=0.0, deviation=1.0, weight=1.0))  # which is not asked for
    shown = " ".join(run("score", source, "--table", *given).output.split())
    assert "lines 1, 2: The value of pmi is absent and counts as its mean." in shown
    assert "consistent from 0.10." in shown
    explained = " ".join(run(*texts, *given).output.split())
    assert "consistent from 0.10) The value of pmi is absent" in explained
    assert "rate at most" not in shown + explained
    assert "enough for 0.05 or more" in str(run("score", source, "--set", "max_false_positive_rate=0.04").exception)
    refused = run("score", source, "--set", "max_false_positive_rate=1")
    assert "1 is not 0.999 or less" in usage_error(refused)


def test_a_table_says_the_verdict_first_and_the_metrics_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=CALIBRATION)))
    )
    source = write(tmp_path / "in.jsonl", GOOD)
    for given, titles in (((), ["line", "verdict"]), (("--metrics", "q2"), ["line", "verdict", "q2"])):
        shown = run("score", str(source), "--table", *given).output
        header = next(line for line in shown.splitlines() if "verdict" in line)
        assert [title.strip() for title in header.split("┃")][:-2] == titles


@pytest.mark.parametrize("command", ["score", "explain"])
def test_options_reach_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    loaded: list[Any] = []

    def load(cls: type[Engine], *args: Any, **kwargs: Any) -> Engine:
        loaded.append((args, kwargs))
        return cls(world(), LoadOptions(calibration=CALIBRATION))

    monkeypatch.setattr(Engine, "load", classmethod(load))
    mine = tmp_path / "mine.json"
    CALIBRATION.save(mine)
    given = (
        "--set",
        "threads=2",
        "--extra",
        "nph",
        "--extra",
        "mine",
        "--set",
        f"calibration={mine}",
        "--profile",
        "strict",
    )
    texts = (str(write(tmp_path / "in.jsonl", GOOD)),) if command == "score" else ("Elvis.", "-k", "Elvis.")
    result = run(command, *texts, *given, "--bundle", "b", "--device", "cpu", "--json")
    assert loaded == [
        (("b", "cpu"), {"threads": 2, "extra": ("nph", "mine"), "options": LoadOptions(calibration=mine)})
    ]
    record = json.loads(result.stdout)
    assert record.get("score", record)["verdict"]["profile"] == "strict"


def test_columns_have_other_names(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {"answer": GOOD["response"], "contexts": [GOOD["knowledge"]]}, {"text": "a"})
    result = run("score", str(source))
    assert json.loads(result.stdout)["score"]["value"] == 1.0
    assert "line 2: The line has no response and no knowledge; it has text." in result.output
    assert "--columns response=NAME" in result.output


def test_results_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD)
    out = tmp_path / "out.jsonl"
    run("score", str(source), "--out", str(out))
    before = out.read_text()
    result = run("score", str(source), "--out", str(out), "--set", "decoding=greedy")
    assert "made with other settings" in str(result.exception)
    assert out.read_text() == before


def test_a_file_that_holds_something_else_is_not_touched(tmp_path: Path) -> None:
    out = write(tmp_path / "notes.txt", "my notes")
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD)), "--out", str(out))
    assert "not a file of results" in usage_error(result)
    assert out.read_text() == "my notes\n"


def test_csv_and_stdin(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text('response,knowledge,history\n"Elvis was born in 1936.","Elvis came in 1935.","Who?\nWhen?"\n')
    assert "⟦1936⟧" in run("score", str(table), "--table").output
    assert "⟦1936⟧" in run("score", "-", "--table", text=json.dumps(WRONG)).output
    table.write_text("text,knowledge\na,b\n")
    assert "no column response" in usage_error(run("score", str(table)))


def test_bytes_that_are_not_text_are_a_bad_line(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(json.dumps(GOOD).encode() + b"\n\xff\xfe{}\n" + json.dumps(GOOD).encode() + b"\n")
    result = run("score", str(source))
    assert result.exit_code == 3
    assert "line 2:" in result.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--metrics", "q3"), "for --metrics: Unknown metric 'q3'"),
        (("--metrics", "pmi"), "for --metrics: Metric 'pmi' needs the roles lm"),
        (("--metrics", " ,"), "for --metrics: ' ,' names no metric"),
        (("--device", "abacus"), "for --device: abacus is unknown"),
        (("--set", "decoding=psychic"), "for --set decoding: psychic is unknown"),
        (("--set", "questions=some"), "for --set questions: some is unknown"),
        (("--profile", "kind"), "for --profile: kind is unknown; use balanced, strict, lenient"),
        (("--set", "deadline_ms=inf"), "for --set deadline_ms: inf is not a number up to 1e+09"),
        (("--set", "deadline_ms=nan"), "--set deadline_ms"),
        (("--set", "threads=0"), "--set threads"),
        (("--set", "calibration=absent.json"), "--set calibration"),
        (("--columns", "reply=text"), "for --columns: 'reply=text' is not FIELD=NAME"),
        (("--out", "/nowhere/at/all.jsonl"), "does not exist"),
        (("--out", "/"), "for --out: / is a directory; name a file in it, such as /results.jsonl"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_a_wrong_value_of_an_option_is_wrong_usage(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    assert message in usage_error(run("score", str(write(tmp_path / "in.jsonl", GOOD)), *args))


def test_a_bundle_that_is_not_there_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(cls: type[Engine], bundle: str, *args: Any, extra: tuple[str, ...], **kwargs: Any) -> Engine:
        raise BundleError("damaged")

    monkeypatch.setattr(Engine, "load", classmethod(load))
    source, there = str(write(tmp_path / "in.jsonl", GOOD)), str(tmp_path)
    assert "for --bundle: No bundle 'nowhere'" in usage_error(run("score", source, "--bundle", "nowhere"))
    absent = run("score", source, "--bundle", there, "--extra", "nowhere")
    assert "for --extra: No bundle 'nowhere'" in usage_error(absent)
    assert str(run("score", source, "--bundle", there).exception) == "damaged"


def test_texts_that_cannot_be_explained_are_wrong_usage() -> None:
    assert "response is empty" in usage_error(run("explain", " ", "-k", "Elvis."))


@pytest.mark.parametrize("name", ["in.jsonl", "in.json", "in.csv"])
def test_a_column_that_no_line_has_is_one_message_before_models_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: pytest.fail("loaded")))
    source = tmp_path / name
    rows = [{"text": "a", "passage": "b", "id": str(number)} for number in range(150)]
    if name == "in.csv":
        source.write_text("text,passage,id\n" + "a,b,c\n" * 150)
    else:
        source.write_text(json.dumps(rows) if name == "in.json" else "".join(json.dumps(row) + "\n" for row in rows))
    for given, message in (
        ("response=bar,knowledge=passage", "for --columns: "),
        ("response=text,knowledge=passage,history=turns", "Correct --columns history=turns."),
    ):
        error = usage_error(run("score", str(source), "--columns", given))
        assert message in error
        assert error.count(" has no column " if name == "in.csv" else "No line has ") == 1
    error = usage_error(run("score", str(source)))
    assert "If knowledge has another name, say so: --columns knowledge=NAME." in error
    assert "text, passage, id" in error


def test_a_column_may_be_missing_in_the_first_lines(tmp_path: Path) -> None:
    rows = [{"knowledge": "Elvis"}] * 99
    source = write(tmp_path / "in.jsonl", *rows, "{", {"knowledge": "Elvis", "text": "Elvis."})
    assert "No line has text" in usage_error(run("score", str(source), "--columns", "response=text"))
    source = write(tmp_path / "in.jsonl", *rows, {"knowledge": "Elvis", "text": "Elvis."}, "{")
    result = run("score", str(source), "--columns", "response=text")
    assert result.exit_code == 3
    assert "101 lines: 100 invalid, 1 scored." in result.output


@pytest.mark.parametrize("arguments", [("--json",), ("--table",), ("--out", "-")])
def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    source = write(tmp_path / "in.jsonl", *[GOOD] * 20)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = run_process("score", str(source), *arguments, stdout=writing)
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


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


FRENCH = "Le chat est dans la maison et il ne veut pas sortir de sa chambre."


def test_warnings_are_under_the_table_with_their_lines(tmp_path: Path) -> None:
    foreign = {"response": FRENCH, "knowledge": "Elvis came in 1935."}
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD, foreign, WRONG, foreign)), "--table")
    assert "warning: lines 2, 4: The response does not look like English." in result.output
    result = run("score", str(write(tmp_path / "in.jsonl", *[foreign] * 12)), "--table")
    assert "warning: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …: The response" in result.output
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD, foreign)), "--table")
    assert "warning: line 2: The response" in result.output
    assert "warning" not in run("score", str(write(tmp_path / "in.jsonl", GOOD)), "--table").output


def test_explain_shows_warnings() -> None:
    result = run("explain", FRENCH, "-k", "Elvis came in 1935.", "--table")
    assert "warning: The response does not look like English." in result.output
    assert "warning" not in run("explain", "Elvis sang.", "-k", "Elvis sang.", "--table").output


def test_explain_shows_questions_answers_and_what_was_discarded() -> None:
    result = run("explain", WRONG["response"], "-k", "Elvis came in 1935.", "--table")  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    for text in ("⟦1936⟧", "which number?", "1935", "contradiction", "discarded: “what else?”"):
        assert text in result.output
    score = Score.from_json(run("explain", "Elvis sang.", "-k", "Elvis sang.", "--json").stdout)
    assert score.value == 1.0


def test_help_and_version() -> None:
    assert "groundwire score dialogues.jsonl" in run("--help").output
    assert run("--version").output.startswith("groundwire 0.")
    commands = (
        "score",
        "explain",
        "generate",
        "stream",
        "refine",
        "doctor",
        "evaluate",
        "calibrate",
        "compare",
    )
    for command in (*commands, "tables", "bundle", "export"):
        result = run(command, "-h")
        assert result.exit_code == 0
        assert f"Usage: groundwire {command}" in result.output.replace("root", "groundwire")
        assert result.output == run(command, "--help").output
        assert command not in commands or f"groundwire {command}" in result.output.partition("Options")[0][20:]


def test_doctor_names_versions_and_devices() -> None:
    output = run("doctor").output
    for word in ("onnxruntime", "python", "processor", "cuda"):
        assert word in output


def test_doctor_names_the_packages_of_missing_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bundle, "ENTRY_POINTS", "groundwire.bundles.none")
    output = "".join(run("doctor").output.split())  # whatever lines it is broken into
    for name in ("compact", "reader", "nph", "generator"):
        assert f"bundle{name}notinstalled:pipinstallgroundwire-{name}" in output


def test_doctor_exits_with_1_if_a_bundle_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(bundle.CHECKOUT / "nph", tmp_path / "nph")
    monkeypatch.setattr(bundle, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bundle, "ENTRY_POINTS", "groundwire.bundles.none")
    assert run("doctor").exit_code == 0
    (folder / "weights.bin").write_bytes(b"cut")
    damaged = run("doctor")
    assert damaged.exit_code == 1
    assert "weights.bin" in damaged.output


def test_the_help_names_no_folder_of_the_checkout() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    helps = {"": root.help or ""}
    for name, command in root.commands.items():
        if not getattr(command.callback, "__module__", "").startswith("groundwire.recipes"):
            helps[name] = command.help or ""
    assert len(helps) > 15
    folders = re.compile(r"\b(examples|docs|bench|tests|bundles|recipes)/")
    assert {name: folders.findall(text) for name, text in helps.items() if folders.search(text)} == {}


def test_without_the_metrics_of_the_verdict_the_table_has_none_and_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=CALIBRATION))  # noqa: E731
    monkeypatch.setattr(Engine, "load", classmethod(load))
    file = str(write(tmp_path / "in.jsonl", GOOD, GOOD))
    result = run("score", file, "--table", "--metrics", "overlap")
    assert "unknown" not in result.output
    assert result.output.count("No verdict. The verdict needs the metric q2: name it too") == 1
    assert "consistent" in run("score", file, "--table", "--metrics", "default,overlap").output


QUOTING = (
    {"response": "Ole said “we cannot buy it”.", "knowledge": "Ole Dahl: “We cannot buy it.”"},
    {"response": "Hanne Vik said “we cannot buy it”.", "knowledge": "Ole Dahl: “We cannot buy it.” Hanne Vik: “No.”"},
    {"response": "Ole said “we all love it”.", "knowledge": "Ole Dahl: “We cannot buy it.”"},
)


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [("absent", 4), ("altered", 0), ("altered,misattributed", 4), ("", 0)],
)
def test_fail_on_ends_with_code_4_where_a_quotation_is_so(tmp_path: Path, fail_on: str, code: int) -> None:
    out = tmp_path / "out.jsonl"
    command = ("score", str(write(tmp_path / "in.jsonl", *QUOTING)), "--metrics", "quotations", "--fail-on", fail_on)
    assert run(*command).exit_code == code
    assert run(*command[:4], "--out", str(out)).exit_code == 0
    broken = run("score", str(write(tmp_path / "broken.jsonl", *QUOTING, "{")), *command[2:])
    assert broken.exit_code == (code or 3)
    continued = run(*command, "--out", str(out))  # lines that an earlier run scored count too
    assert continued.exit_code == code
    assert ("Lines that --fail-on names: 1" in continued.output) == (code == 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fail-on", "wrong"), "'wrong' is unknown; use inconsistent, unverifiable, unknown, altered"),
        (("--fail-on", "absent", "--metrics", "q2"), "absent needs the metric quotations"),
        (("--fail-on", "inconsistent", "--metrics", "quotations"), "for --fail-on: The bundle has no calibration"),
    ],
)
def test_fail_on_refuses_what_is_never_found(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run("score", str(write(tmp_path / "in.jsonl", GOOD)), *arguments)
    assert result.exit_code == 2
    assert message in usage_error(result)


def test_the_table_has_the_outcomes_of_quotations(tmp_path: Path) -> None:
    result = run("score", str(write(tmp_path / "in.jsonl", *QUOTING)), "--table", "--metrics", "quotations")
    assert [word for word in ("normalized", "misattributed", "absent") if word in result.output] == [
        "normalized",
        "misattributed",
        "absent",
    ]
    assert "another speaker or source: “Ole Dahl”" in " ".join(re.sub(r"[│┃\n]", " ", result.output).split())


def test_a_folder_of_json_is_read_by_name(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", GOOD, "{", WRONG)
    (tmp_path / "a.json").write_text(json.dumps(GOOD, indent=1))
    (tmp_path / "notes.txt").write_text("no rows")
    result = run("score", str(tmp_path), "--metrics", "overlap")
    assert result.exit_code == 3
    assert "line 3 (b.jsonl:2): not JSON" in result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["line"], line["id"]) for line in lines] == [(1, "a.json:1"), (2, "b.jsonl:1"), (4, "w")]
