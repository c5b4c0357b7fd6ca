"""Agreement of raters: the published examples, missing ratings, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from groundwire.cli.agreement import agreement
from groundwire.engine import InvalidRequest
from groundwire.evaluate.statistics.raters import Level, Rated, RaterAgreement, measure_raters
from tests.support.usage import usage_error

pytest.importorskip("krippendorff")
pytest.importorskip("nltk")

KRIPPENDORFF = [
    (1, 1, None, 1),
    (2, 2, 3, 2),
    (3, 3, 3, 3),
    (3, 3, 3, 3),
    (2, 2, 2, 2),
    (1, 2, 3, 4),
    (4, 4, 4, 4),
    (1, 1, 2, 1),
    (2, 2, 2, 2),
    (None, 5, 5, 5),
    (None, None, 1, 1),
    (None, 3, None, None),
]
"""Krippendorff 2011, part C: four raters, twelve units, values from 1 to 5; the last has a single rating."""
FLEISS = [
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
]
"""How many of fourteen raters chose each of five labels, for ten units; Fleiss' kappa is 0.210."""


def units(rows: list[tuple[Any, ...]], system: str = "") -> list[Rated]:
    return [Rated({str(i): value for i, value in enumerate(row) if value is not None}, system) for row in rows]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_published_one(level: Level, alpha: float) -> None:
    measured = measure_raters(units(KRIPPENDORFF), level, repeats=200)
    assert (measured.responses, measured.raters, measured.ratings) == (11, 4, 40)
    assert measured.alpha is not None
    assert measured.alpha.value == pytest.approx(alpha, abs=5e-4)
    assert measured.alpha.low < measured.alpha.value < measured.alpha.high
    assert measured.kappa is None, "some ratings are missing"


def test_kappa_is_the_published_one() -> None:
    rows = [tuple(label for label, count in enumerate(counts) for _ in range(count)) for counts in FLEISS]
    measured = measure_raters(units(rows), "nominal", repeats=10)
    assert measured.kappa == pytest.approx(0.210, abs=5e-4)
    words = [tuple("abcde"[label] for label in row) for row in rows]
    assert measure_raters(units(words), "nominal", repeats=10) == measured
    assert measure_raters(units(rows), "ordinal", repeats=10).kappa is None


def test_the_order_of_labels_does_not_matter_and_that_of_a_scale_does() -> None:
    swapped = {1: 5, 5: 1}
    turned = [tuple(swapped.get(value, value) for value in row) for row in KRIPPENDORFF]
    alphas: dict[Level, list[float]] = {"nominal": [], "ordinal": []}
    for level, values in alphas.items():
        for rows in (KRIPPENDORFF, turned):
            alpha = measure_raters(units(rows), level, 10).alpha
            assert alpha is not None
            values.append(alpha.value)
    assert alphas["nominal"][0] == pytest.approx(alphas["nominal"][1])
    assert alphas["ordinal"][0] > alphas["ordinal"][1] + 0.05


def test_chance_gives_no_agreement() -> None:
    rng = np.random.default_rng(0)
    rows = [tuple(row) for row in rng.integers(1, 6, (400, 3)).tolist()]
    alpha = measure_raters(units(rows), "ordinal", 200).alpha
    assert alpha is not None
    assert alpha.low < 0 < alpha.high


def test_systems_are_ranked_by_their_mean_rating() -> None:
    rated = units([(1, 2), (2, 2), (1, 1)], "a") + units([(4, 5), (5, 5), (4, None)], "b")
    ratings = measure_raters(rated, "ordinal", 200).systems
    assert [(rating.system, rating.responses, rating.mean.value) for rating in ratings] == [
        ("b", 3, pytest.approx(4.5)),
        ("a", 3, pytest.approx(1.5)),
    ]
    assert ratings[0].mean.low > ratings[1].mean.high
    assert measure_raters(rated, "nominal", 10).systems == ()


def test_what_cannot_be_measured_is_said() -> None:
    equal = measure_raters(units([(3, 3), (3, 3)]), "ordinal", 10)
    assert (equal.alpha, equal.kappa) == (None, None)
    with pytest.raises(InvalidRequest, match="two ratings"):
        measure_raters(units([(3, None)]), "ordinal")
    with pytest.raises(InvalidRequest, match="'good' is no number"):
        measure_raters(units([(3, "good")]), "interval")
    with pytest.raises(InvalidRequest, match="use one of nominal"):
        measure_raters(units([(3, 3)]), "ratio")  # type: ignore[arg-type]


def run(*args: object) -> Result:
    app = typer.Typer()
    app.command("agreement")(agreement)
    app.command("other")(lambda: None)
    return CliRunner().invoke(app, ["agreement", *map(str, args)])


def test_the_command(tmp_path: Path) -> None:
    source = tmp_path / "ratings.jsonl"
    lines = [{"ratings": list(row), "system": f"s{index % 2}"} for index, row in enumerate(KRIPPENDORFF)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    printed = run(source, "--repeats", 50)
    assert printed.exit_code == 0, f"{printed.output} {printed.exception}"
    assert "40 ratings by 4 raters of 11 responses" in printed.output
    assert "Krippendorff's alpha (ordinal): 0.815" in printed.output
    named = [{"marks": {f"r{i}": value for i, value in enumerate(line["ratings"])}} for line in lines]  # type: ignore[arg-type]
    source.write_text("".join(json.dumps(line) + "\n" for line in [*named, {"marks": 4}, {"marks": [True]}]))
    result = run(source, "--columns", "ratings=marks", "--level", "interval", "--repeats", 50, "--json")
    assert result.exit_code == 3
    measured = RaterAgreement.from_json(result.stdout)
    assert measured.alpha is not None
    assert measured.alpha.value == pytest.approx(0.849, abs=5e-4)
    assert "line 13: ratings is 4" in result.stderr
    assert "line 14: the rating True" in result.stderr
    assert "use nominal" in usage_error(run(source, "--level", "ratio"))


def test_without_the_libraries_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "krippendorff" else known(name))
    result = run(tmp_path / "absent.jsonl")
    assert "pip install 'groundwire[agreement]'" in str(result.exception)
