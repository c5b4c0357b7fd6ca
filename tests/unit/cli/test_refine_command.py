"""``groundwire refine`` on the fake world of films."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from groundwire.cli import app
from groundwire.engine import Engine
from groundwire.repair import Critique, Refinement
from groundwire.runtime.calls import GeneratedQuestion, GenerateQuestions
from groundwire.runtime.fake import FakeRuntime
from tests.support import fakes
from tests.support.graph_world import FACTS, FILMS, critic, retriever, world
from tests.support.usage import usage_error

WRONG = {"id": "w", "history": ["Do you know Alien?"], "response": "It was directed by James Cameron."}
RIGHT = {"history": ["Do you know Alien?"], "response": "It was directed by Ridley Scott."}
HOPELESS = {"history": ["Do you know Alien?"], "response": "It is where Kate Winslet was born."}
CHAT = {"response": "Sounds good!"}
OWN = {"response": "Alien came out in 1997.", "triples": [["Alien", "release_year", "1979"]]}


def question(call: GenerateQuestions) -> tuple[GeneratedQuestion, ...]:
    return (GeneratedQuestion("which number?" if call.answer.isdigit() else "which name?", -0.1),)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What ``Engine.load`` was asked for; the fake world comes back."""
    asked: list[tuple[Any, ...]] = []

    def load(cls: type[Engine], bundle: str, *args: Any, extra: Any = (), **settings: Any) -> Engine:
        asked.append((bundle, *extra))
        roles = fakes.ROLES | {"qg": question, "critic": critic, "retriever": retriever}
        return cls(FakeRuntime(roles, role_info=FACTS) if extra else world())

    monkeypatch.setattr(Engine, "load", classmethod(load))
    return asked


@pytest.fixture
def films(tmp_path: Path) -> Path:
    path = tmp_path / "films.tsv"
    path.write_text("".join(f"{triple.subject}\t{triple.predicate}\t{triple.object}\n" for triple in FILMS))
    return path


def run(*args: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(map(str, args)), input=text)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_a_table_shows_before_after_and_why(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    result = run("refine", write(tmp_path / "in.jsonl", WRONG, RIGHT, HOPELESS, CHAT, OWN), "--graph", films, "--table")
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.replace("│", " ").split())
    for text in (
        "⟦James Cameron⟧",
        "⟦Ridley Scott⟧",
        "Alien – directed by – Ridley Scott",
        "⟦1979⟧",
        "unchanged",
        "supported",
        "refused",
        "2 refined, of which the critic accepts 2",
        "unchanged: 1 supported, 1 refused, 1 without an entity of the graph.",
    ):
        assert text in shown, text
    assert loaded == [("nph",)]


def test_json_lines_hold_the_whole_repair(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    result = run("refine", write(tmp_path / "in.jsonl", WRONG, RIGHT), "--graph", films, "--json", "--set", "top=1")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["line"], row["id"]) for row in rows] == [(1, "w"), (2, None)]
    first, second = (Refinement.from_json(json.dumps(row["refinement"])) for row in rows)
    assert (first.response, second.status) == ("It was directed by Ridley Scott.", "clean")
    assert first.changes[0].runners_up == ()
    assert "feqa" not in rows[0]


def test_feqa_is_measured_before_and_after(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", OWN, {"response": "Alien came out in 1979.", "triples": OWN["triples"]})
    result = run("refine", source, "--feqa", "--json")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert loaded == [("compact", "nph")]
    # Of "Alien" and the year, the triples contain the first in both cases.
    assert [row["feqa"] for row in rows] == [{"before": 0.5, "after": 1.0}, {"before": 1.0, "after": 1.0}]
    shown = run("refine", source, "--feqa", "--table").output
    assert "0.50 → 1.00" in shown


def test_feqa_loads_compact_once_with_compact_as_a_further_bundle(
    loaded: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    source = write(tmp_path / "in.jsonl", OWN)
    assert run("refine", source, "--feqa", "--extra", "compact", "--json").exit_code == 0
    assert loaded == [("compact", "nph")]


def test_critique_marks_and_changes_nothing(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", WRONG, RIGHT, CHAT)
    result = run("refine", source, "--graph", films, "--critique", "--table")
    assert "⟦James Cameron⟧" in result.output
    assert "“James Cameron” 0.90" in result.output
    assert "without an entity" in " ".join(result.output.replace("│", " ").split())
    rows = [json.loads(line) for line in run("refine", source, "-g", films, "--critique", "--json").stdout.splitlines()]
    critiques = [Critique.from_json(json.dumps(row["critique"])) for row in rows]
    assert [critique.hallucinated for critique in critiques] == [True, False, None]
    assert "which --critique does not make" in usage_error(run("refine", source, "-g", films, "--critique", "--feqa"))


def test_bad_lines_are_named_and_skipped(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl",
        WRONG,
        "{not json",
        {"text": "x"},
        {"response": ""},
        {"response": "a", "triples": ["x"]},
        {"response": "a", "history": 7},
        OWN,
    )
    result = run("refine", source, "--graph", films, "--table")
    assert result.exit_code == 3
    for number, why in {
        2: "not JSON",
        3: "has no response; it has text",
        4: "response is empty",
        5: "knowledge[0] is one string",
        6: "history is int",
    }.items():
        assert f"line {number}: " in result.output
        assert why in result.output
    assert "7 lines: 5 invalid, 2 refined." in result.output
    assert result.output.count("⟦Ridley Scott⟧") == 1


def test_without_a_graph_a_line_needs_triples(loaded: list[tuple[Any, ...]], tmp_path: Path) -> None:
    result = run("refine", write(tmp_path / "in.jsonl", WRONG, OWN), "--table")
    assert "line 1: The line has no triples; add some, or pass --graph." in result.output
    assert "⟦1979⟧" in result.output


def test_broken_lines_of_the_graph_are_named_and_the_rest_is_used(
    loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path
) -> None:
    films.write_text("just one field\n" + films.read_text() + "a\tb\n")
    result = run("refine", write(tmp_path / "in.jsonl", WRONG), "--graph", films, "--table")
    assert "films.tsv line 1:" in result.output.replace("\n", "")
    assert "2 lines of the graph left out." in result.output
    assert "⟦Ridley Scott⟧" in result.output


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("films.xml", "", "has no suffix that says its format"),
        ("e.tsv", "", "no triples"),
    ],
)
def test_a_graph_that_cannot_be_used_is_named(
    loaded: list[tuple[Any, ...]], tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    result = run("refine", write(tmp_path / "in.jsonl", WRONG), "--graph", tmp_path / name)
    assert message in str(result.exception)
    assert loaded == []


def test_csv_and_stdin(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text('response,history\n"It was directed by James Cameron.","Hi!\nDo you know Alien?"\n')
    assert "⟦Ridley Scott⟧" in run("refine", table, "--graph", films, "--table").output
    assert "⟦Ridley Scott⟧" in run("refine", "-", "--graph", films, "--table", text=json.dumps(WRONG)).output
    table.write_text("text\na\n")
    assert "no column response" in usage_error(run("refine", table, "--graph", films))
    assert "'--graph'" in usage_error(run("refine", table, "--graph", tmp_path / "absent.tsv"))


def test_options_reach_the_engine(loaded: list[tuple[Any, ...]], films: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", WRONG)
    row = json.loads(
        run(
            "refine",
            source,
            "-g",
            films,
            "--json",
            "--set",
            "hops=2",
            "--set",
            "top=3",
            "--set",
            "type_aware=false",
            "--set",
            "min_probability=0.2",
            "--set",
            "mask_all=true",
            "--set",
            "veto=false",
            "--extra",
            "compact",
        ).stdout
    )
    assert loaded == [("nph", "compact")]
    assert row["refinement"]["signature"].endswith(
        "|refine:hops=2,top=3,type_aware=False,min_probability=0.2,mask_all=True,veto=False"
    )


def test_help_has_an_example() -> None:
    result = run("refine", "--help")
    assert result.exit_code == 0
    assert "groundwire refine graph_dialogues.jsonl" in " ".join(result.output.split())
