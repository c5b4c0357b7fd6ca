"""``groundwire evaluate`` and ``groundwire compare`` from end to end, on the fake world."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from groundwire import evaluate
from groundwire.cli import app
from groundwire.cli.calibrate import explain_few_rows
from groundwire.cli.evaluate import _tabulate_metrics
from groundwire.engine import Engine, InvalidRequest, LoadOptions
from groundwire.evaluate.calibration import choosing
from groundwire.evaluate.calibration.choosing import Candidate, Choice
from groundwire.evaluate.comparison import RunComparison
from groundwire.evaluate.datasets import LeftOut
from groundwire.evaluate.scores.scoring import ScoringSettings
from groundwire.evaluate.statistics.results import MetricFigures, Results, SetFigures
from groundwire.monitor.records import Estimate
from groundwire.monitor.shift import describe_distributions
from groundwire.runtime.bundles.calibration import Calibration, HeldOut, OrderStatistics
from tests.support.evaluation import CALIBRATION, plan_for_fakes
from tests.support.fakes import world
from tests.support.usage import usage_error


def run(*args: object) -> Result:
    return CliRunner().invoke(app, list(map(str, args)))


def write(path: Path, examples: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    return path


def examples(count: int, wrong: int = 0, first: int = 0) -> list[dict[str, Any]]:
    """Pairs about years: the first response repeats the knowledge's, the second does not; ``wrong`` are mislabelled."""
    out = []
    for i in range(first, first + count):
        year = 1900 + i
        for label, said in ((1, year), (0, year + 1)):
            flipped = i - first < wrong
            out.append(
                {
                    "id": f"{i}-{label}",
                    "context": str(i),
                    "knowledge": f"Elvis came in {year}.",
                    "response": f"Elvis was born in {said}.",
                    "label": 1 - label if flipped else label,
                }
            )
    return out


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world())))
    monkeypatch.setattr(ScoringSettings, "plan", plan_for_fakes)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """A run over two sets with a development set, and what it printed."""
    root = tmp_path_factory.mktemp("made")
    write(root / "years.jsonl", examples(12, wrong=1))
    write(root / "few.v1.jsonl", examples(6, first=40))
    write(root / "dev.jsonl", examples(8, first=8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world())))
        patch.setattr(ScoringSettings, "plan", plan_for_fakes)
        sets = (root / "years.jsonl", root / "few.v1.jsonl", "--dev", root / "dev.jsonl")
        yield root, run("evaluate", *sets, "--metrics", "q2,nli", "--set", "repeats=50", "--out", root / "run")


def test_a_broken_row_is_left_out_unless_the_run_is_strict(tmp_path: Path) -> None:
    path = write(tmp_path / "years.jsonl", [*examples(12), {"response": "It is red.", "label": 7}])
    run_of = ("evaluate", path, "--metrics", "nli", "--set", "repeats=10", "--out")
    lenient, strict = run(*run_of, tmp_path / "a"), run(*run_of, tmp_path / "b", "--strict")
    assert lenient.exit_code == 3, lenient.output
    assert "has 1 broken example, left out" in lenient.stderr
    assert "line 25" in lenient.stderr
    figures = Results.load(tmp_path / "a" / "results.json").sets[0]
    assert (figures.examples, figures.left_out) == (24, LeftOut(1, ("line 25",)))
    note = "Broken examples of the file are left out: 1 (line 25)."
    assert any(line.startswith(note) for line in figures.notes)
    assert note in (tmp_path / "a" / "report.html").read_text()
    assert isinstance(strict.exception, InvalidRequest)


@pytest.mark.parametrize("command", ["calibrate", "trusted", "card"])
def test_commands_that_leave_rows_out_say_so_and_exit_with_3(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=CALIBRATION)))
    )
    monkeypatch.setattr(ScoringSettings, "plan", lambda settings, *_: plan_for_fakes(settings, CALIBRATION))
    rows = [row for row in examples(22) if row["label"] or command != "trusted"]
    path = write(tmp_path / "rows.jsonl", [*rows, {"response": "It is red."}])
    of_command: dict[str, tuple[Any, ...]] = {
        "calibrate": ("calibrate", path, "--metrics", "q2,overlap_precision", "--out", tmp_path / "mine.json"),
        "trusted": ("calibrate", "--trusted", path, "--metrics", "q2,nli", "--out", tmp_path / "mine.json"),
        "card": ("card", path, "--metrics", "q2,nli", "--out", tmp_path / "card"),
    }
    result = run(*of_command[command])
    assert result.exit_code == 3, f"{result.output} {result.exception}"
    assert "1 broken row was left out of these figures." in " ".join(result.stderr.split())


@pytest.mark.parametrize("force", [False, True])
def test_a_worse_verdict_is_written_by_force_alone(
    force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: dict[Candidate, float] = {"unchanged": 0.9, "thresholds": 0.8, "weights": 0.65}
    errors = {name: 1 - value for name, value in figures.items()}
    worse = Choice(CALIBRATION, "weights", 44, accuracy=figures, errors=errors)
    monkeypatch.setattr(choosing, "choose_calibration", lambda *_: worse)
    path, out = write(tmp_path / "rows.jsonl", examples(22)), tmp_path / "mine.json"
    result = run("calibrate", path, "--metrics", "q2", "--out", out, *(["--force"] if force else []))
    assert (result.exit_code, out.exists()) == ((0, True) if force else (4, False)), result.output
    shown = " ".join(result.stderr.split())
    assert "on 44 rows, each left out of the fit: the verdict that is there 90.0%" in shown
    assert "weights and thresholds of these rows 65.0%" in shown
    assert ("written by --force" if force else "nothing was written; --force writes it") in shown


def test_a_run_leaves_figures_values_scores_and_a_report(made: tuple[Path, Result]) -> None:
    root, result = made
    assert result.exit_code == 0, result.output
    results = Results.load(root / "run" / "results.json")
    assert [figures.name for figures in results.sets] == ["years", "few"]
    years = results.sets[0]
    assert (years.examples, years.labels) == (
        24,
        {"consistent": 12, "inconsistent": 12, "unverifiable": 0, "none": 0},
    )
    area = years.metrics["q2"].roc_auc
    assert area is not None
    # q2 is 1 or 0.5; one example of each is mislabelled
    assert area.value == pytest.approx((11 * 11 + 2 * 11 * 0.5) / 144)
    assert years.metrics["q2"].decisions[-1].origin == "dev"
    assert years.metrics["q2"].decisions[-1].tuned_on == 8  # four of the eight contexts are in the set
    assert "8 share knowledge with this set" in years.notes[0]
    assert results.signature.endswith("metrics:q2+nli|options:default")
    assert (root / "run" / "report.html").is_file()
    assert len((root / "run" / "values" / "years.jsonl").read_text().splitlines()) == 24
    assert len((root / "run" / "scores" / "dev.jsonl").read_text().splitlines()) == 16
    for text in (
        "years: 24 examples (12 consistent, 12 inconsistent)",
        "q2",
        "ROC-AUC",
        f"{area.value:.3f}",
        "report: ",
    ):
        assert text in result.output


def test_a_set_without_a_verdict_says_why(tmp_path: Path) -> None:
    CALIBRATION.save(tmp_path / "mine.json")
    data = write(tmp_path / "years.jsonl", examples(3))
    given = ("--set", f"calibration={tmp_path / 'mine.json'}", "--set", "repeats=20", "--out", tmp_path / "run")
    assert "no verdict: it needs metrics" in run("evaluate", data, "--metrics", "overlap", *given).output
    given = (*given[:-1], tmp_path / "other")
    assert "no verdict: it needs metrics" not in run("evaluate", data, "--metrics", "q2", *given).output


def test_a_metric_that_did_not_score_every_example_says_on_how_many_it_was_measured() -> None:
    estimate = Estimate(0.8, 0.7, 0.9)
    metrics = {name: MetricFigures(name, count, {}, estimate) for name, count in (("q2", 383), ("pmi", 72))}
    table = _tabulate_metrics(SetFigures("tc", 400, {"consistent": 74, "inconsistent": 309, "none": 17}, metrics))
    assert list(table.columns[1].cells) == ["383", "72 of 383"]


def test_the_table_of_random_knowledge_reads_the_run_with_random_knowledge(tmp_path: Path) -> None:
    data = write(tmp_path / "years.jsonl", examples(12))
    done = run(
        "evaluate",
        data,
        "--metrics",
        "q2",
        "--random-knowledge",
        "any",
        "--set",
        "repeats=20",
        "--out",
        tmp_path / "run",
    )
    assert done.exit_code == 0, done.output
    # The knowledge of every example has another year, which contradicts half of the answers.
    rows = [json.loads(line) for line in (tmp_path / "run" / "values" / "years.jsonl").read_text().splitlines()]
    assert {row["label"] for row in rows} == {0}
    assert sum(row["values"]["q2"] == 0.5 for row in rows) > 20
    table = run("tables", "q2-10", tmp_path / "run", "--data", data, "--markdown")
    assert table.exit_code == 0, table.output
    assert "| Random dialogue | 0.00 / 0.5" in table.output
    assert "| Same dialogue | 0.02 / – |" in table.output


def test_the_table_of_random_knowledge_reads_a_run_of_the_same_dialogue(tmp_path: Path) -> None:
    data = write(tmp_path / "years.jsonl", [row | {"dialogue": n % 2} for n, row in enumerate(examples(12))])
    given = ("--metrics", "q2", "--random-knowledge", "same-dialogue", "--set", "repeats=20")
    done = run("evaluate", data, *given, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    table = run("tables", "q2-10", f"Same dialogue={tmp_path / 'run'}", "--data", data, "--markdown")
    assert table.exit_code == 0, table.output
    assert "| Random dialogue | 0.00 / – |" in table.output
    assert "| Same dialogue | 0.02 / 0.5" in table.output


def test_figures_again_without_a_model(
    made: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = made
    shutil.copytree(root / "run", tmp_path / "run")

    def fails(*args: object, **kwargs: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Engine, "load", fails)
    monkeypatch.setattr(ScoringSettings, "plan", fails)
    CALIBRATION.save(tmp_path / "mine.json")
    given = (root / "years.jsonl", "--set", f"calibration={tmp_path / 'mine.json'}", "--set", "repeats=20")
    result = run("evaluate", *given, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    results = Results.load(tmp_path / "run" / "results.json")
    assert results.sets[0].leading == "verdict"
    assert [difference.profile for difference in results.sets[0].verdicts] == ["balanced", "strict"]
    rate = results.sets[0].verdicts[1].false_positive_rate
    assert rate is not None
    (line,) = (line for line in result.output.splitlines() if "strict" in line)
    assert f"{rate.value:.3f} {rate.low:.3f}–{rate.high:.3f}" in line
    assert "false positive rate" in result.output
    assert "Sure are 0% of the labels of balanced: of the others " in result.output
    assert results.signature.endswith(f"|calibration:{CALIBRATION.digest()}")


def test_other_settings_are_refused(made: tuple[Path, Result]) -> None:
    root, _ = made
    for other in (
        ("--metrics", "q2"),
        ("--set", "questions=all"),
        ("--set", "personal=true"),
        ("--set", "decoding=greedy"),
    ):
        result = run("evaluate", root / "years.jsonl", *other, "--out", root / "run")
        assert "made with other settings" in str(result.exception)


def test_a_column_of_another_tool_is_measured(tmp_path: Path) -> None:
    rows = [row | {"hhem": (0.9 if row["label"] else 0.2) + number % 2 / 100} for number, row in enumerate(examples(6))]
    data, out = write(tmp_path / "rows.jsonl", rows), tmp_path / "run"
    given = ("--metrics", "nli", "--set", "repeats=20", "--out", out)
    result = run("evaluate", data, "--score-columns", "hhem", *given)
    assert result.exit_code == 0, result.output
    (figures,) = Results.load(out / "results.json").sets
    area = figures.metrics["hhem"].roc_auc
    assert area is not None
    assert (area.value, area.high) == (1.0, 1.0)
    assert 0.5 < area.low < 1  # twelve rows in a perfect order
    assert "hhem" in json.loads((out / "values" / "rows.jsonl").read_text().splitlines()[0])["values"]
    assert "│ hhem" in result.output
    refused = run("evaluate", data, "--score-columns", "hhem,nli", *given)
    assert "nli is the name of a metric of Groundwire" in usage_error(refused)


def test_a_set_without_labels_is_refused(tmp_path: Path) -> None:
    unlabelled = [example | {"label": None} for example in examples(2)]
    path = write(tmp_path / "logs.jsonl", unlabelled)
    for command in (("evaluate", path, "--out", tmp_path / "run"), ("calibrate", path, "--out", tmp_path / "c.json")):
        result = run(*command)
        assert result.exit_code == 1
        assert "None of the 4 examples of logs has a label" in str(result.exception)
    assert "is empty" in str(run("evaluate", write(tmp_path / "empty.jsonl", []), "--out", tmp_path / "run").exception)
    write(path, [example | {"grade": 0.5} for example in unlabelled])
    assert run("evaluate", path, "--out", tmp_path / "run", "--set", "repeats=10").exit_code == 0


def test_examples_without_a_score_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "set.jsonl", [*examples(3), examples(1, first=9)[0] | {"response": " "}])
    result = run("evaluate", path, "--out", tmp_path / "run", "--set", "repeats=10")
    assert "set: 1 of 7 examples have no score: 1 invalid." in result.output


def test_results_may_be_json(tmp_path: Path) -> None:
    path = write(
        tmp_path / "set.jsonl", [{"text": e.pop("response"), "verdict": e.pop("label"), **e} for e in examples(3)]
    )
    columns = ("--columns", "response=text,label=verdict")
    result = run("evaluate", path, *columns, "--out", tmp_path / "run", "--set", "repeats=10", "--json")
    assert Results.load(tmp_path / "run" / "results.json") == msgspec.json.decode(result.stdout, type=Results)


def test_a_calibration_is_read_by_the_commands_that_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few examples give one threshold for all profiles, and a warning."""
    path = write(tmp_path / "dev.jsonl", examples(22))
    out = tmp_path / "mine.json"
    result = run("calibrate", path, "--out", out, "--metrics", "q2,nli", "--json")
    assert result.exit_code == 0, result.output
    fitted = Calibration.load(out)
    assert msgspec.json.decode(result.stdout, type=Calibration) == fitted
    assert run("calibrate", path, "--out", out, "--metrics", "q2,nli", "--max-false-positive-rate", 0.3).exit_code == 0
    assert Calibration.load(out).fusions[0].profiles["lenient"].max_false_positive_rate == 0.3
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, options, **kwargs: cls(world(), options)))
    score = run("score", path, "--set", f"calibration={out}", "--json").stdout.splitlines()[0]
    explained = run("explain", "Elvis came in 1935.", "-k", "Elvis came in 1935.", "--set", f"calibration={out}").stdout
    for verdict in (json.loads(score)["score"]["verdict"], json.loads(explained)["verdict"]):
        assert verdict["threshold"] == fitted.fusions[0].profiles["balanced"].threshold


def test_trusted_answers_give_a_threshold_and_say_what_is_missed_of_made_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=CALIBRATION)))
    )
    monkeypatch.setattr(ScoringSettings, "plan", lambda settings, *_: plan_for_fakes(settings, CALIBRATION))
    rights = [{"knowledge": row["knowledge"], "response": row["response"]} for row in examples(40) if row["label"]]
    path, out = write(tmp_path / "answers.jsonl", rights), tmp_path / "mine.json"
    given = ("--trusted", path, "--out", out, "--metrics", "q2,nli")
    result = run("calibrate", *given, "--max-false-positive-rate", 0.1)
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    shown = " ".join(result.output.split())
    assert "by 40 trusted responses" in shown
    assert "On average at most 10% of right responses like these will be called inconsistent." in shown
    assert re.search(r"\d+ of \d+ made errors \(\d+%\) are missed; \d+% where every kind counts the same", shown)
    fitted = Calibration.load(out)
    assert fitted.fitted_on == ("answers",)
    assert fitted.fusions[0].profiles["balanced"].max_false_positive_rate == 0.1
    assert json.loads(run("calibrate", *given, "--json").stdout)["trusted"] == 40
    few = write(tmp_path / "few.jsonl", rights[:5])
    assert "Give 15 more" in str(run("calibrate", "--trusted", few, "--out", out).exception)
    assert "keep the bundle's fusion" in run("calibrate", *given, "--features", "q2").output
    assert "do not say what is missed" in usage_error(run("calibrate", *given, "--cost-of-missed", 2))


def test_a_calibration_is_not_measured_on_its_own_rows(tmp_path: Path) -> None:
    """The figures are of the other rows, in the table, the report and results.json; of its rows alone, none."""
    dev = write(tmp_path / "dev.jsonl", examples(22))
    mine = tmp_path / "mine.json"
    assert run("calibrate", dev, "--out", mine, "--metrics", "q2,nli").exit_code == 0
    given = ("--set", f"calibration={mine}", "--metrics", "q2,nli", "--set", "repeats=20")
    refused = run("evaluate", dev, *given, "--out", tmp_path / "own")
    assert refused.exit_code == 1
    assert "fitted to all 44 labelled examples of dev" in str(refused.exception)
    both = write(tmp_path / "both.jsonl", examples(30))
    result = run("evaluate", both, *given, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    note = "The calibration was fitted to 44 of the 60 examples."
    assert "both: 16 examples (8 consistent, 8 inconsistent)" in result.output
    assert note in " ".join(result.output.split())
    assert note in (tmp_path / "run" / "report.html").read_text()
    (figures,) = Results.load(tmp_path / "run" / "results.json").sets
    assert (figures.fitted, figures.examples, figures.metrics["verdict"].examples) == (44, 16, 16)
    assert len((tmp_path / "run" / "values" / "both.jsonl").read_text().splitlines()) == 16
    plain = tmp_path / "plain"
    assert run("evaluate", both, *given[2:], "--out", plain).exit_code == 0
    compared = run("compare", plain, tmp_path / "run", "--fail-below", 1, "--set", "repeats=20")
    assert compared.exit_code == 4
    assert "B leaves out 44 examples of both, which its calibration was fitted to." in compared.output


def test_a_fit_states_what_it_promises_and_what_is_left_of_the_power(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.jsonl", examples(22))
    result = run(
        "calibrate",
        path,
        "--out",
        tmp_path / "mine.json",
        "--metrics",
        "q2,overlap_precision",
        *("--cost-of-missed", 5),
    )
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.split())
    for text in (
        "fitted on 44 examples of dev",
        "│ full │ q2, overlap_precision │ 22 │ 22 │",
        "│ fast │ overlap_precision │ 22 │ 22 │",
        "profiles of fast",
        "│ lenient │",
        "≤ 5%",
        "balanced accuracy",
        "other thresholds of full, on rows that were held out",
        "│ 0.5 │",
        "cost (a missed error costs 5)",
        "Power: the share of inconsistent responses that are called so.",
        "Profile balanced of full: false positive rate",
        "of 22 inconsistent rows. For ± 5 points label",
    ):
        assert text in shown, shown
    assert "compared with those of the calibration" not in shown


def described(*probabilities: float) -> Calibration:
    """A calibration that describes its consistent responses."""
    responses = [{"probability": value} for value in probabilities]
    distributions = describe_distributions(responses)  # type: ignore[arg-type]
    fusion = msgspec.structs.replace(CALIBRATION.fusions[0], distributions=distributions)
    return msgspec.structs.replace(CALIBRATION, fusions=(fusion,))


def test_responses_unlike_those_of_the_calibration_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibration = described(*(i / 400 for i in range(100)))
    calibration.save(tmp_path / "mine.json")
    data = write(tmp_path / "years.jsonl", examples(32))
    given = (
        "--metrics",
        "q2",
        "--set",
        f"calibration={tmp_path / 'mine.json'}",
        "--set",
        "repeats=20",
        "--out",
        tmp_path / "run",
    )
    output = " ".join(run("evaluate", data, *given).output.split())
    assert "consistent responses, compared with those of the calibration" in output
    assert "│ probability │ 32 │" in output
    note = "The consistent responses differ from those of the calibration in probability"
    assert output.count(note) == 1
    page = (tmp_path / "run" / "report.html").read_text()
    assert note in page
    assert "Stability index" in page

    monkeypatch.setattr(
        ScoringSettings, "plan", lambda self, given=None: plan_for_fakes(self, given or calibration), raising=True
    )
    fitted = run("calibrate", data, "--out", tmp_path / "new.json", "--metrics", "q2,nli")
    assert fitted.exit_code == 0, fitted.output
    shown = " ".join(fitted.output.split())
    assert "years and the calibration that the bundle has" in shown
    assert note in shown


def test_responses_like_those_of_the_calibration_are_a_line(tmp_path: Path) -> None:
    described(*[0.1] * 5, *[0.2] * 95).save(tmp_path / "mine.json")
    shown = {}
    for count in (32, 2):
        data = write(tmp_path / f"years{count}.jsonl", examples(count))
        out = tmp_path / f"run{count}"
        given = (
            "--metrics",
            "q2",
            "--set",
            f"calibration={tmp_path / 'mine.json'}",
            "--set",
            "repeats=20",
            "--out",
            out,
        )
        shown[count] = " ".join(run("evaluate", data, *given).output.split())
    assert "The consistent responses look like those of the calibration." in shown[32]
    assert "look like those of the calibration." not in shown[2]
    assert "│ too few to tell │" in shown[2]
    assert "2 consistent responses are too few to tell whether they look like those of the calibration" in shown[2]


@pytest.mark.parametrize(("count", "warns"), [(99, True), (100, False)])
def test_few_rows_without_a_verdict_to_compare_with_are_a_warning(count: int, warns: bool) -> None:
    values = OrderStatistics(count=count, values=(0.5,) * count)
    held_out = HeldOut(consistent=values, inconsistent=OrderStatistics(count=200, values=(0.1,)))
    fusion = msgspec.structs.replace(CALIBRATION.fusions[0], held_out=held_out)
    shown = explain_few_rows(msgspec.structs.replace(CALIBRATION, rows=299, fusions=(fusion,)))
    assert ("299 rows are few for weights of their own" in shown) is warns


def test_labels_are_counted_before_anything_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: pytest.fail("models are loaded")))
    dev = write(tmp_path / "dev.jsonl", examples(14))
    result = run("calibrate", dev, "--out", tmp_path / "mine.json", "--metrics", "q2")
    assert (
        "14 consistent and 14 inconsistent examples are labelled; a calibration needs at least 20 of each. Label 6"
        in (str(result.exception))
    )
    assert not (tmp_path / "mine.run").exists()


def test_left_out_examples_are_counted(tmp_path: Path) -> None:
    dev = write(tmp_path / "dev.jsonl", examples(22))
    shared = write(tmp_path / "tests.jsonl", examples(5))
    given = ("--out", tmp_path / "mine.json", "--metrics", "q2,nli")
    result = run("calibrate", dev, "--apart-from", shared, *given)
    assert "dev: 10 of 44 examples share knowledge with the sets of --apart-from and are left out." in result.output
    refused = run("calibrate", shared, "--apart-from", dev, *given)
    assert "All 10 examples of tests share knowledge" in str(refused.exception)


def test_sets_need_different_names(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    paths = [write(folder / "set.jsonl", examples(1)) for folder in (tmp_path, tmp_path / "more")]
    result = run("evaluate", *paths, "--out", tmp_path / "run")
    assert "would both be the set 'set'; rename one of them" in str(result.exception)
    result = run("evaluate", paths[0], "--dev", paths[0], "--out", tmp_path / "run")
    assert "would both be the set 'set'" in str(result.exception)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--device", "abacus"), "for --device: abacus is unknown"),
        (("--metrics", "q3"), "Unknown metric 'q3'"),
        (("--columns", "label"), "for --columns: 'label' is not FIELD=NAME"),
        (("--set", "decoding=psychic"), "for --set decoding: psychic is unknown"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    result = run("evaluate", write(tmp_path / "in.jsonl", examples(1)), "--out", tmp_path / "run", *args)
    assert message in usage_error(result)


def changed(root: Path, to: Path, metric: str, by: float) -> Path:
    """A copy of the run whose values of one metric are other ones on the consistent examples of one set."""
    shutil.copytree(root / "run", to)
    path = to / "values" / "years.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["label"]:
            line["values"][metric] += by
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return to


def test_no_number_of_a_comparison_is_cut(made: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.cli.compare.output_console", lambda: Console(width=95))
    root, _ = made
    result = run("compare", root / "run", root / "run", "--set", "repeats=20")
    assert result.exit_code == 0
    assert "+0.000 +0.000 to +0.000" in result.output
    assert "…" not in result.output


def test_a_regression_closes_the_gate(made: tuple[Path, Result], tmp_path: Path) -> None:
    root, _ = made
    worse = changed(root, tmp_path / "worse", "q2", -1.0)
    out = tmp_path / "comparison.json"
    result = run(
        "compare", root / "run" / "results.json", worse, "--fail-below", 5, "--json", out, "--set", "repeats=200"
    )
    assert result.exit_code == 4
    for text in ("worse: q2 on years, roc_auc by", "worse: q2 on years, ranking by"):
        assert text in result.output
    assert "worse: nli" not in result.output
    differences = {
        (difference.set, difference.metric, difference.figure): difference
        for difference in RunComparison.from_json(out.read_text()).differences
    }
    assert differences["years", "q2", "roc_auc"].p < 0.05
    assert differences["few", "q2", "roc_auc"].difference.value == 0
    # Without a gate, or with one that is wide enough, it is a table.
    assert run("compare", root / "run", worse, "--set", "repeats=100").exit_code == 0
    assert run("compare", root / "run", worse, "--fail-below", 100, "--set", "repeats=100").exit_code == 0
    assert run("compare", worse, root / "run", "--fail-below", 0, "--set", "repeats=100").exit_code == 0
    assert (
        run("compare", root / "run", worse, "--fail-below", 5, "--metrics", "nli", "--set", "repeats=100").exit_code
        == 0
    )


def test_a_set_that_is_gone_closes_the_gate(made: tuple[Path, Result], tmp_path: Path) -> None:
    root, _ = made
    shutil.copytree(root / "run", tmp_path / "run")
    results = Results.load(tmp_path / "run" / "results.json")
    msgspec.structs.replace(results, sets=results.sets[:1]).save(tmp_path / "run" / "results.json")
    result = run("compare", root / "run", tmp_path / "run", "--fail-below", 5, "--set", "repeats=50")
    assert result.exit_code == 4
    assert result.output.count("missing in B: set few") == 1
    ungated = run("compare", root / "run", tmp_path / "run", "--set", "repeats=50")
    assert (ungated.exit_code, ungated.output.count("missing in B: set few")) == (0, 1)


def test_results_apart_from_their_values(made: tuple[Path, Result], tmp_path: Path) -> None:
    root, _ = made
    shutil.copy(root / "run" / "results.json", tmp_path / "baseline.json")
    result = run("compare", tmp_path / "baseline.json", root / "run")
    assert "cannot be read" in str(result.exception)
    given = ("--set", f"scores_a={root / 'run'}", "--set", "repeats=50")
    assert run("compare", tmp_path / "baseline.json", root / "run", *given).exit_code == 0


def test_help_teaches() -> None:
    assert "groundwire evaluate tests.jsonl --dev dev.jsonl" in " ".join(run("evaluate", "--help").output.split())
    assert "groundwire compare baseline runs/now --fail-below 1" in run("compare", "--help").output
    for command in ("evaluate", "compare"):
        assert command in run("--help").output


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("evaluate", write(tmp_path / "in.jsonl", examples(1)), "--out", tmp_path / "run")
    assert "pip install 'groundwire[evaluate]'" in str(result.exception)
    with pytest.raises(ImportError, match=r"needs sklearn, scipy, matplotlib, jinja2; run: pip install"):
        _ = evaluate.analyse


def test_the_package_has_what_it_names() -> None:
    for name in evaluate.__all__:
        assert getattr(evaluate, name).__name__ == name
    assert set(evaluate.__all__) == set(evaluate._MODULES)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = evaluate.absent


def test_the_command_line_loads_no_heavy_library() -> None:
    import subprocess

    code = (
        "import sys, groundwire.cli.evaluate, groundwire.cli.compare; "
        "print([name for name in ('sklearn', 'scipy', 'matplotlib', 'jinja2') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert printed.stdout.strip() == "[]"
