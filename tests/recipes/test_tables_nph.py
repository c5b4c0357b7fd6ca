"""Tables 2 to 7 of the Neural Path Hunter paper, measured on what other commands write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

from groundwire.cli import app as groundwire
from groundwire.engine import Engine
from groundwire.recipes.papers import ScoredRun, render_table
from groundwire.recipes.papers.command import show_table
from groundwire.runtime.calls import GeneratedQuestion, GenerateQuestions
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.fake import FakeRuntime
from tests.support import fakes
from tests.support.graph_world import FACTS, critic, retriever
from tests.support.paper_runs import measured

app = Typer()
app.command()(show_table)
TRIPLES = [["Alien", "directed_by", "Ridley Scott"], ["Alien", "release_year", "1979"]]
WRONG = {"response": "Alien came out in 1997.", "triples": TRIPLES}
RIGHT = {"response": "Alien came out in 1979.", "triples": TRIPLES}
RANKS = {"hits@1": 0.5, "hits@3": 0.75, "hits@10": 1, "mr": 2, "mrr": 0.6}
CHAT = {"response": "Sounds good!", "triples": TRIPLES}


def question(call: GenerateQuestions) -> tuple[GeneratedQuestion, ...]:
    return (GeneratedQuestion("which number?" if call.answer.isdigit() else "which name?", -0.1),)


@pytest.fixture
def refined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What ``groundwire refine`` prints about three responses, of which one is wrong and one says nothing."""
    roles = fakes.ROLES | {"qg": question, "critic": critic, "retriever": retriever}
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **settings: cls(FakeRuntime(roles, role_info=FACTS)))
    )
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in (WRONG, RIGHT, CHAT)))
    result = CliRunner().invoke(groundwire, ["refine", str(source), "--feqa", "--json"])
    assert result.exit_code == 0, result.output
    path = tmp_path / "refined.jsonl"
    path.write_text(result.stdout)
    return path


def test_a_file_of_refine_fills_the_rows_before_and_after(refined: Path) -> None:
    table = render_table("nph-3", [ScoredRun("AdapterBot + NPH-w/o critic", file=refined)])
    cells = measured(table)
    # "Alien", the year and, of the small talk, "Sounds" are asked about.
    lines = [json.loads(line) for line in refined.read_text().splitlines()]
    before, after = ([line["feqa"][name] for line in lines] for name in ("before", "after"))
    assert (before[0], after[0]) == (0.5, 1.0)
    assert cells == {
        ("AdapterBot", "Critic"): pytest.approx(100 / 3),
        ("AdapterBot", "FeQA"): pytest.approx(100 * sum(before) / 3),
        ("AdapterBot + NPH-w/o critic", "Critic"): 0.0,
        ("AdapterBot + NPH-w/o critic", "FeQA"): pytest.approx(100 * sum(after) / 3),
    }
    assert "– / –" in table.markdown()


def test_the_command_takes_files_and_the_first_variant_without_a_name(refined: Path) -> None:
    result = CliRunner().invoke(app, ["nph-3", str(refined), "--markdown"], catch_exceptions=False)
    assert "| GPT2-KG | 26.54 / " in result.output
    assert "| GPT2-KG + NPH | 28.98 / " in result.output
    assert "19.04% / 33.33%" in result.output


@pytest.mark.parametrize(
    ("table", "report", "variant", "expected"),
    [
        (
            "nph-4",
            {
                "gold": {
                    "responses": 9,
                    "ppl": 8.5,
                    "retriever": {"hits@1": 0.5, "hits@3": 0.75, "hits@10": 1, "mr": 2, "mrr": 0.6},
                }
            },
            "CompGCN NPH, SANS",
            {"PPL": 8.5, "Hits@1": 0.5, "Hits@3": 0.75, "Hits@10": 1, "MR": 2, "MRR": 0.6},
        ),
        (
            "nph-4",
            {"gold": {"retriever": RANKS}},
            "GPT2 NPH-w/o NCE",
            {"Hits@1": 0.5, "Hits@3": 0.75, "Hits@10": 1, "MR": 2, "MRR": 0.6},
        ),
        (
            "nph-5",
            {"critic": {"token": {"f1": 0.9}, "entity": {"precision": 0.5, "recall": 0.25, "f1": 0.3333}}},
            "RoBERTa-Extrin",
            {"Precision": 50.0, "Recall": 25.0, "F1": pytest.approx(33.33)},
        ),
    ],
)
def test_a_report_of_the_training_package_fills_a_row(
    tmp_path: Path, table: str, report: dict[str, Any], variant: str, expected: dict[str, float]
) -> None:
    path = tmp_path / "report.json"
    other = {part: {"retriever": {"hits@1": 0.0}, "entity": {"precision": 0.0}} for part in report}
    path.write_text(json.dumps({"fb15k237_test": other, "opendialkg_test": report}))
    assert measured(render_table(table, [ScoredRun(variant, file=path)])) == {
        (variant, column): value for column, value in expected.items()
    }


def write_ratings(path: Path, rows: list[tuple[str, list[str]]]) -> Path:
    path.write_text("".join(json.dumps({"system": system, "ratings": ratings}) + "\n" for system, ratings in rows))
    return path


def test_people_say_what_holds_of_a_response(tmp_path: Path) -> None:
    path = write_ratings(
        tmp_path / "ratings.jsonl",
        [
            ("Greedy", ["Ex", "Fluency"]),
            ("Greedy", ["Faithfulness", "Coherence", "Fluency"]),
            ("Top20", ["Generic"]),
            ("mine", []),
        ],
    )
    result = CliRunner().invoke(app, ["nph-7", str(path), "--markdown"], catch_exceptions=False)
    assert "| Greedy | 17.66% / 50.00% | 2.00% / 0.00% | 1.66% / 0.00% | 69.00% / 50.00% | 9.66% / 0.00% |" in (
        result.output
    )
    assert "| Top20 | 28.33% / 0.00% |" in result.output
    assert "| Beam Search | 18.33% / – |" in result.output
    assert "- Here: Systems that are no row of the table: mine." in result.output


def test_shares_are_in_the_papers_unit(tmp_path: Path) -> None:
    rows = [("Topical Chat PMI-D", ["Fai", "Gra"]), ("Topical Chat PMI-D", ["Fai"])]
    path = write_ratings(tmp_path / "ratings.jsonl", rows)
    assert measured(render_table("pmi-7", [ScoredRun(file=path)])) == {
        ("Topical Chat PMI-D", "Fai"): 1.0,
        ("Topical Chat PMI-D", "Rel"): 0.0,
        ("Topical Chat PMI-D", "Gra"): 0.5,
    }


def test_a_rating_that_is_no_column_is_refused(tmp_path: Path) -> None:
    path = write_ratings(tmp_path / "ratings.jsonl", [("GPT2-KG", ["Coherence"])])
    with pytest.raises(InvalidRequest, match="'Coherence' is no column of the table; it has Hallucination, Fluency"):
        render_table("nph-6", [ScoredRun(file=path)])
    path.write_text("no JSON")
    with pytest.raises(InvalidRequest, match=r"ratings\.jsonl cannot be read"):
        render_table("nph-6", [ScoredRun(file=path)])


@pytest.mark.parametrize("table", ["nph-3", "nph-4", "nph-5"])
@pytest.mark.parametrize("content", ["", "{}", '{"a": 1}', "no JSON"])
def test_another_file_is_refused(tmp_path: Path, table: str, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(InvalidRequest, match=r"other\.json"):
        render_table(table, [ScoredRun(file=path)])
