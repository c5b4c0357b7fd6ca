"""``groundwire generate`` on a fake model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from groundwire.cli import app
from groundwire.engine import Engine, InvalidRequest, LoadOptions
from groundwire.runtime.bundles import bundle
from groundwire.runtime.bundles.decode import SCHEMA
from groundwire.runtime.bundles.manifest import Manifest, ResponseGeneratorRole, Role
from tests.support.generation import make_engine
from tests.support.usage import usage_error

ROWS = [
    {"id": "a", "knowledge": "bees make honey", "history": ["who makes honey?"]},
    {"knowledge": ["bees make honey", "wasps do not"], "history": ["who makes honey?"], "response": "ignored"},
]


GENERATOR = ResponseGeneratorRole(
    source="tiny",
    architecture="GPT2LMHeadModel",
    precision="fp32",
    tokenizer="generator.tokenizer.json",
    max_tokens=64,
    pad_id=0,
    encoder="generator.encoder.onnx",
    decoder="generator.decoder.onnx",
    prompt=("{knowledge}", "{history}"),
    causal=True,
    eos_ids=(0,),
    start_id=None,
    vocabulary=100,
    layers=1,
    heads=1,
    head_dim=8,
    positions=64,
)


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the command loads is the fake; the arguments are kept."""
    seen: list[tuple[Any, ...]] = []

    def load(bundle: Any, device: str, *, threads: int | None, extra: Any, options: LoadOptions) -> Engine:
        seen.append((bundle, device, threads, list(extra)))
        return make_engine()

    monkeypatch.setattr(Engine, "load", load)
    return seen


@pytest.fixture(autouse=True)
def bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded bundles as manifests alone, and in the working directory the bundles mine, own and other."""
    monkeypatch.setattr(bundle, "CHECKOUT", tmp_path / "bundles")
    monkeypatch.setattr(bundle, "ENTRY_POINTS", "groundwire.bundles.none")
    monkeypatch.chdir(tmp_path)
    for name in ("bundles/compact", "bundles/nph", "other"):
        write_manifest(tmp_path / name, {})
    for name in ("bundles/generator", "mine", "own"):
        write_manifest(tmp_path / name, {"generator": GENERATOR})
    return tmp_path / "bundles"


def write_manifest(directory: Path, roles: dict[str, Role]) -> None:
    directory.mkdir(parents=True)
    manifest = Manifest(
        schema=SCHEMA, name=directory.name, version="1", license="", created_with="", roles=roles, files={}
    )
    (directory / bundle.MANIFEST).write_bytes(msgspec.json.encode(manifest))


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["generate", *arguments], input=stdin)


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


ONE = ("-k", "bees make honey", "--history", "who makes honey?")


def test_one_dialogue() -> None:
    result = run(*ONE, "--table")
    assert result.exit_code == 0, result.output
    assert "wasps make honey" in result.output
    assert "CPMI +0.44" in result.output
    assert "generate:alpha=0.25,pmi_top_p=0.6" in result.output


def test_one_dialogue_as_json_with_checks() -> None:
    result = run(*ONE, "--n-candidates", "4", "--metrics", "pmi,overlap", "-n", "2", "--json", "--alpha", "0.5")
    generation = json.loads(result.output)
    assert [response["text"] for response in generation["responses"]] == ["bees make honey", "wasps make honey"]
    assert set(generation["responses"][0]["check"]["metrics"]) == {"pmi", "overlap"}
    assert generation["options"]["alpha"] == 0.5
    assert generation["options"]["n_candidates"] == 4


def test_streaming_prints_the_text_alone() -> None:
    result = run(*ONE, "--stream", "--method", "greedy")
    assert result.output == "wasps make honey\n"


def test_a_file_becomes_json_lines_and_is_continued(tmp_path: Path) -> None:
    source, out = write(tmp_path / "rows.jsonl", ROWS), tmp_path / "out.jsonl"
    assert run(str(source), "--out", str(out)).exit_code == 0
    first, second = map(json.loads, out.read_text().splitlines())
    assert (first["line"], first["id"], second["line"], second["id"]) == (1, "a", 2, None)
    assert first["generation"]["responses"][0]["text"] == "wasps make honey"
    out.write_text(out.read_text().splitlines()[0] + "\n")
    again = run(str(source), "--out", str(out))
    assert "1 line is done" in again.output
    assert [json.loads(line)["line"] for line in out.read_text().splitlines()] == [1, 2]
    out.write_text(out.read_text().splitlines()[0] + "\n")
    other = run(str(source), "--out", str(out), "--alpha", "0.5")
    assert isinstance(other.exception, InvalidRequest)
    assert "was made with other settings" in str(other.exception)


def test_a_file_becomes_a_table_and_bad_lines_are_named(tmp_path: Path) -> None:
    bad = [*ROWS, "{", {"knowledge": "bees make honey", "history": []}, {"history": ["hello"]}]
    result = run(str(write(tmp_path / "rows.jsonl", bad)), "--metrics", "pmi", "--table")
    assert result.exit_code == 3
    assert "line 3: not JSON" in result.output
    assert "line 4: history is empty" in result.output
    assert "line 5: knowledge is empty" in result.output
    assert "5 lines: 3 invalid, 2 generated." in result.output
    assert result.output.count("wasps make honey") == 2
    assert "pmi" in result.output


def test_standard_input_and_many_lines_keep_their_order() -> None:
    rows = "".join(json.dumps({"id": i, "knowledge": f"k{i}", "history": ["h"]}) + "\n" for i in range(30))
    result = run("-", "--json", stdin=rows)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == list(range(30))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (ONE, ("generator", [])),
        ((*ONE, "--metrics", "pmi"), ("compact", ["generator"])),
        ((*ONE, "--n-candidates", "2", "--extra", "nph"), ("compact", ["generator", "nph"])),
        ((*ONE, "--bundle", "other"), ("generator", [])),
        ((*ONE, "--generator", "mine"), ("mine", [])),
        ((*ONE, "--generator", "mine", "--metrics", "pmi"), ("compact", ["mine"])),
        ((*ONE, "--bundle", "own"), ("own", [])),
        ((*ONE, "--bundle", "own", "--n-candidates", "2"), ("own", [])),
        ((*ONE, "--extra", "mine", "--metrics", "pmi"), ("compact", ["mine"])),
    ],
)
def test_which_bundles_are_loaded(
    arguments: tuple[str, ...], expected: tuple[Any, list[Any]], loaded: list[tuple[Any, ...]]
) -> None:
    run(*arguments)
    ((bundle, _, _, extra),) = loaded
    assert (bundle, extra) == expected


def test_a_missing_generator_is_named_with_its_package(bundles: Path, loaded: list[tuple[Any, ...]]) -> None:
    assert "for --generator: No bundle 'absent'" in usage_error(run(*ONE, "--generator", "absent"))
    assert "for --extra: No bundle 'absent'" in usage_error(run(*ONE, "--extra", "absent"))
    shutil.rmtree(bundles / "generator")
    problem = usage_error(run(*ONE))
    assert "for --generator: The bundle 'generator' is not installed: pip install groundwire-generator" in problem
    assert not loaded


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "pass a file of dialogues, or one dialogue"),
        (("rows.jsonl", *ONE), "pass a file of dialogues, or one dialogue"),
        ((*ONE, "--method", "best"), "for --method: best is unknown; use greedy, beam"),
        ((*ONE, "--alpha", "2"), "alpha=2.0; allowed is 0"),
        ((*ONE, "--stream", "--json"), "for --stream: it prints the text of one dialogue"),
        ((*ONE, "--stream", "-n", "2"), "for --stream: it prints one response without checking"),
        ((*ONE, "-n", "65"), "n is 65; allowed are whole numbers from 1 to 64"),
        ((*ONE, "-n", "3", "--n-candidates", "2"), "n_candidates is 2; allowed are whole numbers from 3"),
        ((*ONE, "--metrics", "q3"), "for --metrics: Unknown metric 'q3'"),
        (("-H", "who?"), "knowledge is empty"),
        (("-H", "who?", "--stream"), "knowledge is empty"),
        (("-k", "bees make honey"), "history is empty"),
    ],
)
def test_wrong_options(arguments: tuple[str, ...], problem: str) -> None:
    result = run(*arguments)
    assert problem in usage_error(result)


def test_help_teaches() -> None:
    shown = run("--help").output
    assert "0.25 with" in shown
    assert "--n-candidates" in shown
