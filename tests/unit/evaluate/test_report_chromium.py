"""The report in a browser: nothing fails, nothing is asked of the network, and its controls do what they say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groundwire.evaluate.report.page import write_report
from tests.support.browser import BROWSER, observe_page
from tests.support.report_results import TEXT, build_errors, labelled, results

ASK = """
const one = (selector) => document.querySelector(selector);
const visible = () => [...document.querySelectorAll(".error")].filter((card) => card.checkVisibility()).length;
const part = one(".errors");
const press = (kind) => part.querySelector(`[data-filter="kind"][data-is="${kind}"]`).click();
const type = (text) => {
  const field = part.querySelector("input");
  field.value = text;
  field.dispatchEvent(new Event("input"));
};
found.at_first = visible();
part.querySelector(".rest button").click();
found.all = visible();
press("false-negative");
found.false_negatives = visible();
press("");
type("ELVIS 1936, in");
found.typed = visible();
found.said = part.querySelector("output").textContent;
type("no such words");
found.none = [visible(), part.querySelector(".nothing").checkVisibility()];
part.querySelector(".reset").click();
found.reset = visible();
const column = () => [...one("table").tBodies[0].rows].map((row) => row.cells[2].dataset.value ?? null);
const sort = one("table").tHead.rows[0].cells[2];
sort.firstChild.click();
found.falling = [sort.ariaSort, column()];
sort.firstChild.click();
found.rising = [sort.ariaSort, column()];
one('[data-toggle="intervals"]').click();
found.intervals = one("td.heat .interval").checkVisibility();
"""

pytestmark = pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the scripts saw, and what the browser wrote to its console."""
    folder = tmp_path_factory.mktemp("browser")
    hostile = msgspec.structs.replace(build_errors()[2], response=TEXT, unsupported=(), knowledge=(TEXT,), source=TEXT)
    figures = labelled("one", 80, 3, {"nli": 1.4, "overlap": 0.7, "q2": 1.0})
    sets = (
        msgspec.structs.replace(figures, errors=(*build_errors() * 2, hostile)),
        labelled(TEXT, 80, 5, {"nli": 1.4, "bleu": 0.3}),
    )
    page = write_report(msgspec.structs.replace(results(20, {}), sets=sets), folder)
    return observe_page(page, ASK, folder / "profile")


def test_nothing_fails_and_nothing_is_fetched(observed: dict[str, Any]) -> None:
    assert observed["problems"] == []
    assert observed["console"] == []
    assert observed["requests"] == []
    assert not observed["hacked"]


def test_it_fits_the_window(observed: dict[str, Any]) -> None:
    needed, there = observed["width"]
    assert there == 1280
    assert needed <= there


def test_errors_are_chosen_by_kind_and_by_text(observed: dict[str, Any]) -> None:
    shown = (*build_errors() * 2, build_errors()[2])
    others = len(build_errors())
    assert observed["at_first"] == 10 + others
    assert observed["all"] == len(shown) + others
    assert observed["false_negatives"] == sum(error.label == 0 for error in shown) + others
    assert (observed["typed"], observed["said"]) == (2 + others, f"2 of {len(shown)}")
    assert observed["none"] == [others, True]
    assert observed["reset"] == len(shown) + others


def test_a_click_sorts_and_what_is_missing_stays_last(observed: dict[str, Any]) -> None:
    assert observed["falling"][0] == "descending"
    assert observed["rising"][0] == "ascending"
    *falling, missing, missing_too = observed["falling"][1]
    assert observed["rising"][1] == [*falling[::-1], missing, missing_too]
    assert (missing, missing_too) == (None, None)
    assert [float(value) for value in falling] == sorted((float(value) for value in falling), reverse=True)
    assert len(falling) == 2


def test_intervals_are_shown_on_request(observed: dict[str, Any]) -> None:
    assert observed["intervals"]
