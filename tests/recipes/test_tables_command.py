"""``groundwire tables``: runs and examples come from files, and a table goes to the terminal or into Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from groundwire.engine.schema.results import Score
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.scores.scoring import Stored, request_key
from groundwire.evaluate.statistics.results import MetricFigures, Results, SetFigures
from groundwire.files.results_file import ResultsFile
from groundwire.recipes.papers import TABLES
from groundwire.recipes.papers.command import show_table
from groundwire.recipes.papers.needs import NEEDS
from groundwire.recipes.papers.runs import load_run
from groundwire.runtime.errors import InvalidRequest
from tests.support.paper_runs import DEV, TEST, build_example, results, simulated

app = Typer()
app.command()(show_table)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_lists_tables() -> None:
    listed = invoke()
    assert all(f"{name} " in listed for name in TABLES)


def save_run(folder: Path, scored: dict[str, list[tuple[Example, Score]]], figures: Results) -> Path:
    (folder / "scores").mkdir(parents=True)
    figures.save(folder / "results.json")
    for name, scored_examples in scored.items():
        file = ResultsFile(folder / "scores" / f"{name}.jsonl", Stored)
        for example, score in scored_examples:
            file.append(Stored(request_key(example), score))
        file.close()
    return folder


def test_the_command_reads_a_runs_scores_by_what_was_scored(tmp_path: Path) -> None:
    header = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"
    label = {0: "Not fully attributable", 1: "Fully attributable"}
    for name, scored_examples in (("test", TEST), ("dev", DEV)):
        lines = [
            f"m\t{example.source}\tk\t\t{example.response}-{name}\t{label[example.label or 0]}\n"
            for example, _ in scored_examples
        ]
        (tmp_path / f"begin_{name}.tsv").write_text(header + "".join(lines), encoding="utf-8")
    renamed = {
        name: [(Example("x", f"{example.response}-{name}", ("k",)), score) for example, score in scored_examples]
        for name, scored_examples in (("test", TEST), ("dev", DEV))
    }
    run = save_run(tmp_path / "run", renamed, results())
    options = ["--data", str(tmp_path / "begin_test.tsv"), "--dev", str(tmp_path / "begin_dev.tsv")]
    assert "| PMI-Faith | 0.607 / 0.500 | 0.818 / 0.333 |" in invoke("pmi-1", str(run), *options, "--markdown")
    assert "0.607 / 0.500" in invoke("pmi-1", str(run), *options)


def test_the_command_counts_examples_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "gt.csv").write_text(
        "conv_index,model_type,decoding,context,knowledge,response,Avg Factual Correctness,Hallucination,Verifiable\n"
        "1,GPT2-small,beam search,A: Hi<br>,Rain.,It rains.,1.0,No,y\n",
        encoding="utf-8",
    )
    assert "| GT BS | 64 / 1 | 65 / – |" in invoke("conv-fever-7", "--data", str(tmp_path / "gt.csv"), "--markdown")


def test_a_variant_is_named_before_its_directory(tmp_path: Path) -> None:
    small = save_run(tmp_path / "a=b", {}, results(simulated(0.8)))
    assert "| T5-small | 0.9722 / 0.8000 |" in invoke("q2-7", f"T5-small={small}", "--markdown")
    assert "| Original Q² | 0.9798 / 0.8000 |" in invoke("q2-7", str(small), "--markdown")


def test_a_directory_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        load_run(tmp_path)
    save_run(tmp_path / "run", {}, results())
    assert load_run(tmp_path / "run").sets == ()
    with pytest.raises(InvalidRequest, match="keeps no scores"):
        load_run(tmp_path / "run", data={"x": [build_example(0, 1)]})


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("q2-4", (), "finds none of the examples that it is about. It is measured on sets with two or more contexts"),
        ("conv-fever-8", ("--data",), "The table needs detector.mnli; the runs have q2. It is measured on labelled"),
        ("pmi-1", ("--data",), "needs one of the metrics overlap, bleu, rouge_l, bertscore, detector.faithcritic, q2"),
        ("pmi-9", ("--data",), "needs the scored examples: give their files with --dev. It is measured on responses"),
        ("q2-3", (), "The table needs the scored examples: give their files with --data. It is measured on 150"),
    ],
)
def test_a_table_without_a_figure_says_why(tmp_path: Path, table: str, options: tuple[str, ...], said: str) -> None:
    """The run has a metric of every table but one, and examples of no paper's set."""
    example = build_example(0, 1)
    metric = "nothing" if table == "pmi-1" else "q2"
    figures = SetFigures("x", 1, {"consistent": 1}, {metric: MetricFigures(metric, 1, {"scored": 1})})
    made = save_run(tmp_path / "run", {"x": [(example, TEST[0][1])]}, results(figures))
    (tmp_path / "x.jsonl").write_text('{"response": "r", "knowledge": "k", "label": 1}\n', encoding="utf-8")
    given = [part for option in options for part in (option, str(tmp_path / "x.jsonl"))]
    result = CliRunner().invoke(app, [table, str(made), *given], catch_exceptions=False)
    assert result.exit_code == 1
    assert said in " ".join(result.output.split())


def test_without_a_run_the_published_figures_are_all_there_is() -> None:
    assert "0.9798 / –" in invoke("q2-4")


def test_every_table_says_what_it_needs() -> None:
    assert set(NEEDS) == set(TABLES)


def test_a_folder_of_examples_is_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("What this is.", encoding="utf-8")
    header = "model_type,decoding,context,knowledge,response,Avg Factual Correctness,Hallucination,Verifiable\n"
    for name, model in (("gt", "GPT2-small"), ("knn", "GPT2-large")):
        text = header + f"{model},nucleus,A: Hi<br>,Rain.,It rains.,1.0,No,y\n"
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    output = invoke("conv-fever-7", "--data", str(tmp_path), "--markdown")
    assert "| GT NS | 58 / 1 | 69 / – |" in output
    assert "| KNN NS | 44 / – | 50 / – | 57 / 1 |" in output


def test_a_folder_without_examples_and_files_of_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(InvalidRequest, match=r"has no files of examples \(.csv, "):
        invoke("conv-fever-7", "--data", str(tmp_path))
    for name in ("a", "b"):
        (tmp_path / name / "x.jsonl").write_text('{"response": "r", "knowledge": "k"}\n', encoding="utf-8")
    with pytest.raises(InvalidRequest, match="Two files are named x"):
        invoke("conv-fever-7", "--data", str(tmp_path / "a"), "--data", str(tmp_path / "b"))
