"""``groundwire adapt`` on tiny models that the real exporter wrote: the new bundle does what the report says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import typer
from transformers import AutoModelForSequenceClassification
from typer.testing import CliRunner

from groundwire.cli.adapt import adapt, print_report
from groundwire.engine import Engine
from groundwire.evaluate.adaptation import bundles, report
from groundwire.evaluate.adaptation.bundles import adapt_bundle
from groundwire.evaluate.adaptation.report import AdaptationReport
from groundwire.evaluate.calibration.fusion import FusionOptions
from groundwire.evaluate.datasets.examples import Example
from groundwire.export import ClassifierSettings, RoleOptions, Title, export_bundle
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.ort.device import Device
from groundwire.runtime.parity.certify import certify
from tests.support import models

ROLE = "detector.a"
METRICS = ("nli", "overlap_precision")
FIRST = ("The first modern Olympic Games were held and", "I love cheese but my sister does not and")
WORDS = ("pizza", "guitar", "nurse", "river", "school", "show", "painter", "dogs")
LONG = " ".join(f"The river flows through town {number}." for number in range(60))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """An inference model and a detector on one encoder, in one graph."""
    root = tmp_path_factory.mktemp("adapt")
    encoder: Any = None
    for name, labels in {"nli": models.LABELS, ROLE: ("yes", "perhaps", "no")}.items():
        models.classifier(root / name, "bert", labels=labels)
        model = AutoModelForSequenceClassification.from_pretrained(root / name)
        encoder = encoder or model.bert.state_dict()
        model.bert.load_state_dict(encoder)
        model.save_pretrained(root / name)
    roles = {
        "nli": RoleOptions(str(root / "nli"), precision="fp32"),
        ROLE: RoleOptions(str(root / ROLE), ClassifierSettings(supported=("yes",)), precision="fp32"),
    }
    written = export_bundle(roles, root / "bundle", title=Title("tiny"))
    (written.directory / "README.md").write_text("What the bundle is.")
    return written


def make_rows(count: int, seed: int = 0, *, random_labels: bool = False) -> list[Example]:
    """Responses whose first words say their label; their words say it now and then, which is all that metrics know.

    Some are of two sentences, and one is on long knowledge. With ``random_labels`` nothing says it.
    """
    rng = random.Random(seed)
    rows = []
    for index in range(count):
        label = index % 2
        first = FIRST[rng.randrange(2) if random_labels else label]
        known = rng.sample(WORDS, 4)
        said = rng.sample(known if label and not random_labels and rng.random() < 0.5 else WORDS, 3)
        more = f" The {rng.choice(WORDS)} is small." if index % 3 == 0 else ""
        knowledge = LONG if index == 7 else f"The {' '.join(known)} in {1900 + index // 2}."
        response = f"{first} {' '.join(said)}.{more}"
        rows.append(Example(id=str(index), response=response, knowledge=(knowledge,), label=label))
    return rows


@pytest.fixture(scope="module")
def adapted(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AdaptationReport, list[Example]]:
    root, rows = tmp_path_factory.mktemp("adapted"), make_rows(160)
    result = adapt_bundle(
        {"mine": rows}, root / "new", root / "run", bundle.directory, role=ROLE, metrics=METRICS, threads=1, repeats=50
    )
    return root / "new", result, rows


Adapted = tuple[Path, AdaptationReport, list[Example]]


def test_what_the_rows_teach_is_found_on_rows_that_were_held_out(adapted: Adapted) -> None:
    _, result, _ = adapted
    counts = result.rows
    assert counts.consistent + counts.inconsistent + counts.unscored == counts.total == 160
    assert min(counts.consistent, counts.inconsistent) > 70
    assert result.before == "calibration"  # the bundle has none
    assert result.written == "head"
    before, after = result.candidates["calibration"], result.after
    assert before.roc_auc is not None
    assert after.roc_auc is not None
    assert result.gain.roc_auc is not None
    assert after.roc_auc.value > 0.8 > before.roc_auc.value
    assert result.gain.roc_auc.value == pytest.approx(after.roc_auc.value - before.roc_auc.value)
    assert "rose by more than chance explains" in result.conclusion
    assert all(figures.false_positive_rate is not None for figures in after.profiles.values())
    lenient = after.profiles["lenient"]  # the profile that promises a bound
    assert lenient.false_positive_rate is not None
    assert lenient.max_false_positive_rate is not None
    assert lenient.false_positive_rate.low <= lenient.max_false_positive_rate


def test_the_new_bundle_computes_what_was_fitted(adapted: Adapted, bundle: Bundle, tmp_path: Path) -> None:
    """The engine's values of the changed graph are those that the fit computed from features."""
    out, _, rows = adapted
    opened = Bundle.open(out)
    opened.verify()
    assert opened.manifest.name == "tiny-adapted"
    assert opened.manifest.roles[ROLE].parity is None
    expected = refit(bundle, rows, tmp_path)
    seen: list[tuple[Example, float]] = []
    with Engine.load(out, "cpu", threads=1) as engine, Engine.load(bundle.directory, "cpu", threads=1) as old:
        engine.warmup()
        for row in [row for row in rows if row.id in expected][:12]:
            new, given = (
                loaded.score(row.response, row.knowledge, metrics=(*METRICS, ROLE)) for loaded in (engine, old)
            )
            assert new.verdict.probability is not None
            value = new.metrics[ROLE].value
            assert value is not None
            seen.append((row, value))
            assert new.metrics["nli"].explanation == given.metrics["nli"].explanation  # to the last bit
    assert [value for _, value in seen] == pytest.approx([expected[row.id] for row, _ in seen], abs=2e-4)  # float32


def refit(bundle: Bundle, rows: list[Example], tmp_path: Path) -> dict[str, float]:
    """The detector's values by row of the head that ``adapt_bundle`` fits, computed without its graph."""
    kept: dict[str, float] = {}
    with pytest.MonkeyPatch.context() as patch:
        measure = report.measure_adaptation

        def watch_measure(material: Any, *arguments: Any) -> Any:
            measured = measure(material, *arguments)
            change = measured[1].change("head")
            assert change is not None
            for index, row in enumerate(material.rows):
                value = material.answers.result(index, change).value
                assert value is not None
                kept[row.example.id] = value
            return measured

        patch.setattr(bundles, "measure_adaptation", watch_measure)
        adapt_bundle(
            {"mine": rows},
            tmp_path / "again",
            tmp_path / "run",
            bundle.directory,
            role=ROLE,
            metrics=METRICS,
            threads=1,
            repeats=10,
        )
    return kept


def test_nothing_of_the_rows_is_in_the_bundle_and_nothing_else_is_changed(adapted: Adapted, bundle: Bundle) -> None:
    out, _, rows = adapted
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    words = [row.response.encode() for row in rows] + [row.knowledge[0].encode() for row in rows]
    assert not [name for name, content in files.items() if any(word in content for word in words)]
    given = {path.relative_to(bundle.directory).as_posix() for path in bundle.directory.rglob("*") if path.is_file()}
    assert set(files) == given | {"report.json"}
    different = {name for name in given if files[name] != (bundle.directory / name).read_bytes()}
    graphs = {role.graph for name, role in bundle.manifest.roles.items() if name == ROLE}
    assert different == {"bundle.json", *graphs}
    assert Bundle.open(out).manifest.size - bundle.manifest.size < 4000
    assert AdaptationReport.from_json(files["report.json"]).written == "head"


def test_the_logits_of_the_head_as_it_was_are_not_those_of_the_new_one(adapted: Adapted, bundle: Bundle) -> None:
    device = Device("cpu")
    assert all(report is not None and not report.failures for report in certify(bundle, device).values())
    reports = certify(Bundle.open(adapted[0]), device)
    assert reports[ROLE] is None
    assert reports["nli"] is not None
    assert reports["nli"].failures == ()


def test_rows_that_teach_nothing_buy_nothing(adapted: Adapted, tmp_path: Path) -> None:
    rows = make_rows(120, seed=5, random_labels=True)
    result = adapt_bundle(
        {"mine": rows},
        tmp_path / "new",
        tmp_path / "run",
        adapted[0],
        role=ROLE,
        metrics=METRICS,
        threads=1,
        repeats=50,
    )
    assert result.gain.roc_auc is not None
    assert result.gain.roc_auc.low <= 0
    assert "rose" not in result.conclusion


def test_a_calibrated_bundle_that_is_right_already_stays_as_it_is(adapted: Adapted, tmp_path: Path) -> None:
    """Of what was adapted to many rows, fewer rows of the same kind improve nothing."""
    out = adapted[0]
    again = adapt_bundle(
        {"mine": make_rows(90, seed=9)},
        tmp_path / "b",
        tmp_path / "run",
        out,
        role=ROLE,
        metrics=METRICS,
        threads=1,
        repeats=10,
    )
    assert again.before == "unchanged"
    assert again.written == "unchanged"
    assert (tmp_path / "b" / "bundle.json").read_bytes() == (out / "bundle.json").read_bytes()


def test_a_directory_that_is_not_empty_and_other_roles_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    rows = make_rows(4)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(InvalidRequest, match="exists and is not empty; choose another --out"):
        adapt_bundle({"mine": rows}, tmp_path / "full", tmp_path / "run", bundle.directory, role=ROLE)
    with pytest.raises(InvalidRequest, match=r"no detector 'nli' .* it has detector\.a"):
        adapt_bundle({"mine": rows}, tmp_path / "new", tmp_path / "run", bundle.directory, role="nli")
    assert not (tmp_path / "run").exists()


def test_the_command_prints_the_report_and_takes_rows_of_a_test_set_out(bundle: Bundle, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(adapt)
    rows = [json.loads(row.to_json()) for row in make_rows(120)]
    for row in rows:
        del row["grade"], row["verifiable"]
    paths, test = [tmp_path / "mine.jsonl", tmp_path / "others.jsonl"], tmp_path / "test.jsonl"
    for path, part in zip(paths, (rows[:60], rows[60:]), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in part))
    test.write_text(json.dumps(rows[0]) + "\n")
    arguments = [*paths, "--out", tmp_path / "new", "--bundle", bundle.directory, "--role", ROLE, "--set", "repeats=10"]
    arguments += ["--metrics", ",".join(METRICS), "--apart-from", test, "--set", "threads=1"]
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "mine: 1 of 60 examples share knowledge with the sets of --apart-from" in text
    assert " inconsistent rows about " in text
    assert Bundle.open(tmp_path / "new").manifest.calibration.fitted_on == ("mine", "others")
    assert "balanced: balanced accuracy" in text
    assert "balanced: wrong, unverifiable" in text
    assert "cost" not in text
    assert "(promised ≤ 5%)" in text
    assert "head and calibration fitted to the rows" in text
    assert (tmp_path / "new.run" / "scores").is_dir()


def test_a_cost_and_a_bound_move_the_thresholds_and_are_stated(
    adapted: Adapted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where missed errors cost nothing, nothing is worth to be stopped; and what is stopped then costs as stated."""
    options = FusionOptions(cost_of_missed=0.05, max_false_positive_rate=0.2)
    result = adapt_bundle(
        {"mine": make_rows(120)},
        tmp_path / "new",
        tmp_path / "run",
        adapted[0],
        role=ROLE,
        metrics=METRICS,
        options=options,
        threads=1,
        repeats=10,
    )
    assert result.written != "unchanged", "the bundle's own thresholds know of no cost"
    profiles = Bundle.open(tmp_path / "new").manifest.calibration.fusions[0].profiles  # type: ignore[union-attr]
    before = Bundle.open(adapted[0]).manifest.calibration.fusions[0].profiles  # type: ignore[union-attr]
    assert profiles["lenient"].max_false_positive_rate == 0.2
    assert before["lenient"].max_false_positive_rate == 0.05
    assert profiles["balanced"].threshold < before["balanced"].threshold
    balanced = result.after.profiles["balanced"]
    assert balanced.false_positive_rate is not None
    assert balanced.power is not None
    assert balanced.cost is not None
    expected = 100 * (balanced.false_positive_rate.value + 0.05 * (1 - balanced.power.value))
    assert balanced.cost.value == pytest.approx(expected)
    print_report(result, tmp_path / "new")
    text = " ".join(capsys.readouterr().out.split())
    assert "balanced: cost" in text
    assert "if a missed error costs 0.05; less is better." in text
