"""A bare number in the place of an amount before it is one of the same thing: "24 months; sorry, 36"."""

from __future__ import annotations

import pytest

from groundwire.engine.values.knowledge import ValueText
from groundwire.engine.values.support import check_values
from groundwire.engine.values.tokens import Measure

KNOWLEDGE = "The warranty lasts 24 months. Parking costs 12 euros a day. The shop has 14 branches."


@pytest.mark.parametrize(
    "response",
    [
        "The warranty lasts 24 months; sorry, 99.",
        "The warranty lasts 24 months, no, 99.",
        "The warranty lasts 24 months - no, 99!",
        "The warranty lasts 24 months, I mean 99.",
        "The warranty lasts 24 months; 99.",
        "The warranty lasts 24 months (or 99).",
        "Parking costs 12 euros a day, or rather 99.",
        "The shop has 14 branches, scratch that, 99.",
        "The warranty lasts 24 months; sorry, 48.",
        "The warranty lasts 24 months, no, wait, 36.",
        "The warranty lasts 24 months; sorry, 1999.",
        "Parking costs 12 euros a day (oops, 24).",
        "The shop has 14 branches. Sorry, 7.",
    ],
)
def test_a_corrected_amount_is_contradicted(response: str) -> None:
    outcomes = [check.outcome for check in check_values(response, (KNOWLEDGE,))]
    assert outcomes == ["supported", "contradicted"]


@pytest.mark.parametrize(
    ("response", "measures"),
    [
        ("It is 24 months or 30 days.", ["duration", "duration"]),
        ("It is 24 months, and 3 came.", ["duration", "count"]),
        ("It is 12 or 14.", ["count", "count"]),
        ("Sorry, 99.", ["count"]),
        ("It lasts 24 months; since 1999.", ["duration"]),
    ],
)
def test_other_numbers_keep_what_they_measure(response: str, measures: list[str]) -> None:
    contents = [value.content for value in ValueText(response).find_values()]
    assert [content.measure for content in contents if isinstance(content, Measure)] == measures
