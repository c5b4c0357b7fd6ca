"""The error card: the two rates by kind of text, what is not covered, its page and its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine, InvalidRequest, Score, Verdict
from groundwire.engine.schema.results import Label, Timings
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.report.card import build_card_table, write_card_page
from groundwire.evaluate.scores.scoring import ScoringSettings
from groundwire.evaluate.statistics.card import ALL, ErrorCard, KindErrors, measure_card
from groundwire.runtime.bundles.calibration import Calibration
from tests.support.browser import BROWSER, observe_page
from tests.support.evaluation import CALIBRATION, make_example, plan_for_fakes
from tests.support.fakes import world
from tests.support.report_results import TEXT


def call(label: Label) -> Score:
    threshold = None if label == "unknown" else 0.5
    verdict = Verdict(label, threshold=threshold, message="no calibration.")
    return Score("scored", 1.0, verdict, {}, (), None, Timings(0.0, {}), "s")


def make_rows(kind: str, counts: dict[tuple[int | None, Label], int]) -> list[tuple[Example, Score]]:
    """So many responses with a label of people and one of the verdict."""
    return [
        (
            make_example(f"{kind}-{label}-{called}-{i}", label, knowledge=f"{kind} {label} {i}", source=kind),
            call(called),
        )
        for (label, called), count in counts.items()
        for i in range(count)
    ]


def measure(rows: list[tuple[Example, Score]], calibration: Calibration | None = None) -> ErrorCard:
    sets, scores = {"mine": [row[0] for row in rows]}, {"mine": [row[1] for row in rows]}
    return measure_card(sets, scores, calibration, "signature", repeats=50)


SHOP = make_rows(
    "shop",
    {
        (1, "consistent"): 30,
        (1, "inconsistent"): 10,
        (1, "unknown"): 2,
        (0, "inconsistent"): 24,
        (0, "consistent"): 4,
        (0, "unverifiable"): 4,
        (None, "inconsistent"): 3,
    },
)
BANK = make_rows("bank", {(1, "consistent"): 5})


def test_each_kind_has_two_rates_of_the_responses_with_a_verdict() -> None:
    card = measure(SHOP + BANK)
    bank, shop = card.kinds
    assert (shop.kind, shop.responses, shop.consistent, shop.inconsistent, shop.unknown) == ("shop", 74, 40, 32, 2)
    assert shop.false_positive_rate is not None
    assert shop.false_negative_rate is not None
    assert shop.false_positive_rate.value == pytest.approx(10 / 40)
    assert shop.false_negative_rate.value == pytest.approx(8 / 32)
    assert shop.false_positive_rate.low < 10 / 40 < shop.false_positive_rate.high
    assert (bank.consistent, bank.inconsistent, bank.false_negative_rate) == (5, 0, None)
    assert bank.false_positive_rate is not None
    assert bank.false_positive_rate.value == 0 < bank.false_positive_rate.high
    assert (card.total.kind, card.total.responses) == (ALL, 79)
    assert (card.threshold, card.profile, card.fitted) == (0.5, "balanced", 0)
    assert ErrorCard.from_json(card.to_json()) == card


def test_it_says_what_is_not_covered() -> None:
    said = " ".join(measure(SHOP + BANK).not_covered)
    for part in (
        "knowledge of more than 3 words",
        "known roughly: bank",
        "none has one",
        "2 responses without a verdict",
    ):
        assert part in said
    assert "shop" not in said


def test_the_kind_without_a_source_is_the_name_of_the_set() -> None:
    rows = [(msgspec.structs.replace(example, source=""), result) for example, result in SHOP]
    assert [kind.kind for kind in measure(rows).kinds] == ["mine"]


def test_what_the_calibration_was_fitted_to_is_left_out() -> None:
    def fit(rows: list[tuple[Example, Score]]) -> Calibration:
        return msgspec.structs.replace(CALIBRATION, row_digests=tuple(example.digest for example, _ in rows))

    card = measure(SHOP + BANK, fit(BANK))
    assert ([kind.kind for kind in card.kinds], card.fitted) == (["shop"], 5)
    with pytest.raises(InvalidRequest, match="None of 5 labelled responses is left"):
        measure(BANK, fit(BANK))


def test_without_a_verdict_there_is_no_card() -> None:
    with pytest.raises(InvalidRequest, match=r"None of 4 labelled responses has a verdict: no calibration\."):
        measure(make_rows("shop", {(1, "unknown"): 4}))


def test_the_table_has_all_kinds_and_then_the_total() -> None:
    table = build_card_table(measure(SHOP + BANK))
    assert (table.rows, table.lead) == (("bank", "shop", ALL), ALL)
    assert [column.values[0] for column in table.columns[2:]] == [5, 0]


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_shows_any_text_and_fits(tmp_path: Path, width: int) -> None:
    card = measure(SHOP + BANK)
    hostile = msgspec.structs.replace(card.kinds[0], kind=TEXT)
    page = write_card_page(msgspec.structs.replace(card, kinds=(hostile, card.kinds[1])), tmp_path)
    script = 'found.interval = document.querySelector("td.share .interval").checkVisibility();'
    observed: dict[str, Any] = observe_page(page, script, tmp_path / "profile", width)
    assert (observed["problems"], observed["console"], observed["requests"], observed["hacked"]) == ([], [], [], False)
    assert observed["width"][0] <= observed["width"][1]
    assert observed["interval"]


def test_the_command_reads_a_folder_and_writes_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, options=None, **kwargs: cls(world(), options)))
    monkeypatch.setattr(ScoringSettings, "plan", plan_for_fakes)
    (tmp_path / "rows").mkdir()
    with (tmp_path / "rows" / "years.jsonl").open("w") as file:
        for year in range(1900, 1912):
            for label, said in ((1, year), (0, year + 1)):
                row = {"response": f"Elvis was born in {said}.", "knowledge": f"Elvis came in {year}.", "label": label}
                file.write(json.dumps({"id": f"{year}-{label}", **row}) + "\n")
    calibration = tmp_path / "calibration.json"
    CALIBRATION.save(calibration)
    arguments = [str(tmp_path / "rows"), "--out", str(tmp_path / "card"), "--metrics", "q2", "--set", "repeats=50"]
    arguments += ["--set", f"calibration={calibration}"]
    result = CliRunner().invoke(app, ["card", *arguments])
    assert result.exit_code == 0, result.output
    assert "years" in result.output
    card = ErrorCard.from_json((tmp_path / "card" / "card.json").read_text())
    (kind,) = card.kinds
    assert isinstance(kind, KindErrors)
    assert (kind.kind, kind.consistent, kind.inconsistent) == ("years", 12, 12)
    assert (tmp_path / "card" / "card.html").is_file()
    again = CliRunner().invoke(app, ["card", *arguments, "--json"])
    assert ErrorCard.from_json(again.stdout).kinds == card.kinds
    (tmp_path / "empty").mkdir()
    refused = CliRunner().invoke(app, ["card", str(tmp_path / "empty"), "--out", str(tmp_path / "card")])
    assert refused.exit_code != 0
