"""``groundwire calibrate``: from labelled examples to a file that the engine reads, and into a bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine, LoadOptions
from groundwire.runtime.bundles.bundle import Bundle, embedded, locate
from groundwire.runtime.bundles.calibration import Calibration
from tests.support.usage import usage_error

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle yet")
METRICS = "overlap,overlap_precision,rouge_l"
THINGS = ("violin", "marathon", "river", "castle", "painter", "museum", "bridge", "planet")


def labelled(path: Path, count: int = 60) -> Path:
    """Examples whose response repeats its knowledge, or is about something else; every fifth label is wrong."""
    examples = []
    for index in range(count):
        thing, other, year = THINGS[index % 8], THINGS[(index + 3) % 8], 1900 + index
        knowledge = f"The {thing} was shown to the public in {year} and became famous at once."
        faithful = index % 2 == 0
        response = f"The {thing} became famous in {year}." if faithful else f"That {other} is sold every summer."
        examples.append(
            {"id": str(index), "response": response, "knowledge": knowledge, "label": int(faithful != (index % 5 == 0))}
        )
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    return path


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["calibrate", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_that_the_engine_reads(tmp_path: Path) -> None:
    data, out = labelled(tmp_path / "dev.jsonl"), tmp_path / "mine.json"
    output = run(data, "--metrics", METRICS, "--out", out)
    assert "balanced" in output
    assert "needed" in output
    fitted = Calibration.load(out)
    assert (fitted.fitted_on, fitted.rows) == (("dev",), 60)
    assert set(fitted.metrics) <= set(METRICS.split(","))
    with Engine.load("compact", options=LoadOptions(calibration=out)) as engine:
        good = engine.score("The bridge became famous in 1902.", "The bridge became famous at once in 1902.")
        bad = engine.score("Few people like summer.", "The bridge became famous at once in 1902.")
    assert good.verdict.probability is not None
    assert bad.verdict.probability is not None
    assert good.verdict.probability > 0.5 > bad.verdict.probability
    # Once more, from the kept scores, and the same.
    assert run(data, "--metrics", METRICS, "--out", out) == output
    assert Calibration.load(out) == fitted


def test_into_the_bundle_and_without_the_knowledge_of_a_test_set(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(locate("compact"), bundle)
    data = labelled(tmp_path / "dev.jsonl", 80)
    tested = tmp_path / "tests.jsonl"
    tested.write_text("".join(data.read_text().splitlines(keepends=True)[:10]))
    run(data, "--bundle", bundle, "--metrics", METRICS, "--run", tmp_path / "run", "--save", "--apart-from", tested)
    calibration = Bundle.open(bundle).manifest.calibration
    assert calibration is not None
    assert calibration.rows == 70
    Bundle.open(bundle).verify()
    with Engine.load(bundle) as engine:
        assert engine.core.calibration == calibration


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--metrics", METRICS), "--out FILE, or --save"), (("--save", "--metrics", METRICS), "needs --run DIR")],
)
def test_a_destination_is_required(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["calibrate", str(labelled(tmp_path / "dev.jsonl")), *arguments])
    assert message in usage_error(result)
