"""``groundwire report`` from end to end, on the fake world, and its page in a browser."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from groundwire.cli import app as engine_app
from groundwire.cli.options import EngineOptions
from groundwire.cli.report import _Loader, report
from groundwire.engine import Engine, InvalidRequest, LoadOptions
from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.report.traffic import render_traffic
from groundwire.monitor.records import TrafficReport
from groundwire.monitor.summary import Reference, build_report
from groundwire.runtime.bundles.bundle import embedded
from groundwire.runtime.bundles.calibration import Calibration
from tests.support.browser import BROWSER, observe_page
from tests.support.fakes import world
from tests.support.report_results import TEXT
from tests.support.traffic import DESCRIBED, EXACT, describe_alike, make_score, observe
from tests.support.usage import usage_error

YEARS = 40


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world(), LoadOptions(calibration=EXACT)))
    )


def run(*args: object, text: str | bytes | None = None) -> Result:
    app = typer.Typer()
    app.command("report")(report)
    app.command("other")(lambda: None)
    return CliRunner().invoke(app, ["report", *map(str, args)], input=text)


def rows(count: int = YEARS, wrong: int = 4) -> list[dict[str, Any]]:
    """Responses about years; of ``wrong`` in all, the year is not that of the knowledge."""
    return [
        {
            "id": f"r{i}",
            "response": f"Elvis was born in {1900 + i + (i % (count // wrong) == 0)}{' again' * (i % 3)}.",
            "knowledge": f"Elvis came in {1900 + i}.",
            "system": f"s{i % 2}",
            "time": f"2026-11-{i % 20 + 1:02}T12:00:00Z",
        }
        for i in range(count)
    ]


@pytest.mark.skipif(not {"compact", "reader"} <= set(embedded()), reason="this checkout lacks embedded bundles")
def test_saved_scores_are_compared_with_the_calibration_of_the_default_engine() -> None:
    with contextlib.ExitStack() as stack:
        fitted = _Loader(stack, EngineOptions()).find_calibration()
    assert fitted is not None
    assert [fusion.name for fusion in fitted.fusions] == ["reader", "full", "fast"]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def read(result: Result) -> TrafficReport:
    assert result.exit_code in (0, 3), f"{result.output} {result.exception}"
    return TrafficReport.from_json(result.stdout)


def test_texts_are_scored_and_reported(tmp_path: Path) -> None:
    source = write(tmp_path / "traffic.jsonl", rows())
    out = tmp_path / "out"
    result = run(source, "--out", out)
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    assert "traffic.jsonl: 40 lines, 40 consistent" in result.output  # of Q² 0.5 the probability is the threshold
    stored = TrafficReport.from_json((out / "traffic.json").read_bytes())
    page = (out / "traffic.html").read_text(encoding="utf-8")
    assert stored.lines == 40
    assert render_traffic(stored) == page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_results_of_score_give_the_same_report_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, scores = write(tmp_path / "traffic.jsonl", rows()), tmp_path / "scores.jsonl"
    scored = CliRunner().invoke(engine_app, ["score", str(source), "--out", str(scores)])
    assert scored.exit_code == 0, scored.output
    with_texts = [
        row | {"score": json.loads(line)["score"]}
        for row, line in zip(rows(), scores.read_text().splitlines(), strict=True)
    ]
    direct = read(run(source, "--json"))

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the engine was loaded")

    monkeypatch.setattr(Engine, "load", refuse)
    EXACT.save(tmp_path / "calibration.json")
    given = ("--set", f"calibration={tmp_path / 'calibration.json'}", "--json")
    again = read(run(write(tmp_path / "both.jsonl", with_texts), *given))
    bare = read(run(scores, *given))
    assert again == msgspec.structs.replace(direct, source="both.jsonl", when=again.when)
    assert (bare.labels, bare.share, bare.corrected) == (direct.labels, direct.share, direct.corrected)
    assert {group.factor for group in direct.groups} == {"response length"}
    assert bare.groups == ()
    as_text = [row | {"score": json.dumps(row["score"])} for row in with_texts]
    assert read(run(write(tmp_path / "text.jsonl", as_text), *given)).share == direct.share


def test_other_formats_and_names(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    expected = read(run(write(tmp_path / "a.jsonl", rows()), "--json"))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    renamed = [{("model" if name == "system" else name): value for name, value in row.items()} for row in rows()]
    same = [
        run(tmp_path / "b.jsonl.gz", "--json"),
        run("-", "--json", text=lines),
        run(write(tmp_path / "c.jsonl", renamed), "--columns", "system=model", "--json"),
    ]
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.Table.from_pylist(rows()), tmp_path / "d.parquet")
    same.append(run(tmp_path / "d.parquet", "--json"))
    assert read(same[1]).source == "standard input"
    for result in same:
        built = read(result)
        assert (built.labels, built.groups, built.first_time) == (
            expected.labels,
            expected.groups,
            "2026-11-01T12:00:00Z",
        )


def test_lines_without_a_score_are_counted_and_named(tmp_path: Path) -> None:
    bad = ["{", {"response": "No knowledge."}, {"score": {"value": 1}}, rows()[0] | {"time": "soon"}]
    result = run(write(tmp_path / "traffic.jsonl", [*rows(), *bad]), "--json")
    built = read(result)
    assert result.exit_code == 3
    assert built.labels["unscored"] == 4
    assert built.problems == {"invalid": 4}
    for number, message in ((41, "JSON"), (42, "no knowledge"), (43, "no score of Groundwire"), (44, "time is 'soon'")):
        assert re.search(rf"line {number}: .*{message}", result.stderr), result.stderr
    nothing = run(write(tmp_path / "bad.jsonl", ["{"]), "--json")
    assert isinstance(nothing.exception, InvalidRequest)


def test_the_text_decides_what_is_drawn(tmp_path: Path) -> None:
    many = rows(400, 40)
    first = read(run(write(tmp_path / "a.jsonl", many), "--rate", 0.25, "--json"))
    again = read(run(write(tmp_path / "b.jsonl", many[::-1]), "--rate", 0.25, "--json"))
    more = read(run(write(tmp_path / "b.jsonl", many), "--rate", 0.5, "--json"))
    drawn = sum(first.labels.values())
    assert 70 < drawn < 130
    assert (first.rate, first.lines) == (0.25, 400)
    assert again.labels == first.labels
    assert drawn < sum(more.labels.values()) < 260


def scored_lines(probabilities: list[float], first: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": str(first + index), "score": msgspec.to_builtins(make_score(value))}
        for index, value in enumerate(probabilities)
    ]


def test_an_alert_has_an_exit_code(tmp_path: Path) -> None:
    EXACT.save(tmp_path / "c.json")
    options = ("--set", f"calibration={tmp_path / 'c.json'}", "--set", "look_size=100")
    calm, worse = ([0.2 if i % every == 0 else 0.9 for i in range(300)] for every in (10, 3))
    old = write(tmp_path / "old.jsonl", scored_lines(calm))
    new = write(tmp_path / "new.jsonl", scored_lines(worse))
    alarmed = run(new, "--reference", old, *options, "--fail-on-alert")
    assert alarmed.exit_code == 4
    assert "alert: more responses are inconsistent than in the reference, since look 1" in alarmed.output
    assert run(new, "--reference", old, *options).exit_code == 0
    quiet = run(old, "--reference", old, *options, "--fail-on-alert")
    assert (quiet.exit_code, "no alert in 3 looks" in quiet.output) == (0, True)
    both = write(tmp_path / "both.jsonl", scored_lines(calm + worse))
    windowed = read(run(both, "--set", "reference_lines=300", *options, "--json"))
    assert windowed.drift is not None
    assert (windowed.lines, windowed.drift.responses, windowed.drift.alerts[0].first) == (300, 300, 301)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rate", "0"), "not above 0"),
        (("--rate", "1.5"), "at most 1"),
        (("--set", "alert_rate=1"), "not between 0 and 1"),
        (("--set", "reference_lines=3", "--reference", "x.jsonl"), "not both"),
        (("--columns", "system=absent"), "No line has absent"),
        (("--metrics", "nothing"), "nothing"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_scored(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    source = write(tmp_path / "traffic.jsonl", rows(4, 1))
    assert message in usage_error(run(source, *arguments))


def build(calibration: Calibration = EXACT) -> TrafficReport:
    """A report with everything, of texts that are hostile to a page."""
    names = [TEXT if index % 4 else "s2" for index in range(240)]
    texts = [f"Elvis was born in 1936. {TEXT}" if index % 3 else "Elvis came." for index in range(240)]
    fields = [
        {"id": TEXT, "system": name, "source": f"part {index % 3}", "time": 1795348800 + 9000 * index}
        for index, name in enumerate(names)
    ]
    scores = [make_score((index * 37 % 240) / 240 if index % 3 else 0.9) for index in range(240)]
    scores[5] = make_score(None)
    observations = observe(scores, texts, fields, TEXT * 9, examples=12)
    observations.add_problem("invalid")
    old = observe([make_score(0.1 if index % 9 == 0 else 0.9) for index in range(240)], ["Elvis came."] * 240)
    against = Reference(old, TEXT, 0.05, 40)
    return build_report(observations, TEXT, "2026-11-23T00:00:00Z", calibration, rate=0.5, reference=against)


def test_the_page_says_what_the_report_says() -> None:
    built = build()
    page = " ".join(re.sub(r"<[^>]*>", "", render_traffic(built)).split())
    assert built.share is not None
    assert built.range is not None
    assert built.drift is not None
    for said in (
        f"{built.labels['inconsistent']} are called inconsistent",
        f"between {100 * built.range.low:.1f} % and {100 * built.range.high:.1f} % are inconsistent",
        "2 lines were not checked and are in no share: 1 failed, 1 invalid",
        f"{len(built.drift.alerts)} of {len(built.drift.looks)} looks gave an alert",
        "groups differ",
        "50.0 % of the lines were drawn",
        "their difference with its 95 % interval",
    ):
        assert said in page, said


def test_a_corrected_share_is_on_the_page_of_responses_like_the_calibrations() -> None:
    scores = [make_score(0.9 if index // 9 % 3 else 0.1, calibration=DESCRIBED) for index in range(90)]
    built = build_report(observe(scores, describe_alike(90)), "t", "2026-11-23T00:00:00Z", DESCRIBED)
    assert built.corrected is not None
    page = " ".join(re.sub(r"<[^>]*>", "", render_traffic(built)).split())
    assert f"{100 * built.corrected.share.value:.1f} %" in page
    assert "How often the verdict errs here is not known" not in page


def test_the_sheet_is_labelled_and_read_again(tmp_path: Path) -> None:
    source = write(tmp_path / "traffic.jsonl", rows())
    result = run(source, "--sheet", tmp_path / "sheet.csv")
    assert result.exit_code == 0, result.output
    assert "of all lines with a score would be stopped: balanced" in result.output
    assert "sure: 0 of 40 (outside the band" in result.output
    table = (tmp_path / "sheet.csv").read_text(encoding="utf-8").splitlines()
    assert (table[0], len(table)) == ("id,history,knowledge,response,label", 41)
    (tmp_path / "labelled.csv").write_text("\n".join([table[0], *(f"{line}1" for line in table[1:])]))
    examples = read_dataset(tmp_path / "labelled.csv")
    assert [example.label for example in examples] == [1] * 40
    assert examples[0].response == rows()[0]["response"]


def test_two_systems_are_compared(tmp_path: Path) -> None:
    lines = [
        {**line, "system": "old" if line["score"]["verdict"]["label"] == "inconsistent" else "new"}
        for line in scored_lines([0.9, 0.9, 0.1, 0.9] * 20)
    ]
    result = run(write(tmp_path / "both.jsonl", lines), "--out", tmp_path)
    assert "new − old: called inconsistent 0.0% of 60 − 100.0% of 20 = -100.0 points" in result.output
    assert "points (-100.0 to -8" in result.output
    assert "from fewer than 30 responses" in result.output  # the interval is on one side of 0 all the same
    page = " ".join(re.sub(r"<[^>]*>", " ", (tmp_path / "traffic.html").read_text(encoding="utf-8")).split())
    assert re.search("−100.0 −100.0 to −8[0-9].[0-9] A, from fewer than 30 responses", page)


def test_a_report_without_anything_has_a_page() -> None:
    built = build_report(observe([make_score(None)]), "traffic.jsonl", "2026-11-23T00:00:00Z", EXACT)
    page = render_traffic(built)
    assert "no share of inconsistent ones" in page
    assert "Worst" not in page


ASK = """
const part = document.querySelector(".errors");
const visible = () => [...part.querySelectorAll(".error")].filter((card) => card.checkVisibility()).length;
found.at_first = visible();
part.querySelector(".rest button").click();
found.all = visible();
const list = part.querySelector("select");
list.selectedIndex = 1;
list.dispatchEvent(new Event("change"));
found.of_one_system = visible();
document.querySelector('[data-toggle="intervals"]').click();
found.intervals = document.querySelector("#groups td .interval").checkVisibility();
const head = document.querySelector("#groups table").tHead.rows[0].cells[1];
head.firstChild.click();
found.sorted = head.ariaSort;
"""


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (500, 900)], ids=["desktop", "phone"])
def test_the_page_works_in_a_browser(tmp_path: Path, width: int, height: int) -> None:
    built = build()
    page = tmp_path / "traffic.html"
    page.write_text(render_traffic(built), encoding="utf-8")
    seen = observe_page(page, ASK, tmp_path / "profile", width, height)
    assert (seen["problems"], seen["console"], seen["requests"], seen["hacked"]) == ([], [], [], False)
    assert seen["width"][0] <= seen["width"][1] == width
    assert (seen["at_first"], seen["all"]) == (10, len(built.worst))
    systems = sorted({worst.system for worst in built.worst})
    assert seen["of_one_system"] == sum(worst.system == systems[0] for worst in built.worst)
    assert seen["intervals"]
    assert seen["sorted"] == "descending"
