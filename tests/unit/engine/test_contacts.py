"""Phone numbers and addresses of somebody else: pairs that differ in the contact alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine.values.contacts import CONTACTS
from groundwire.engine.values.support import check_values

QUALITY = Path(__file__).parents[3] / "bench" / "quality"
PAIRS = [json.loads(line) for line in (QUALITY / "contacts.jsonl").read_text(encoding="utf-8").splitlines()]
STAFF = "Staff. Priya Nandakumar, customer care, phone 01632 960 417. Tom Wexley, workshop, phone 01632 960 582."


def list_contradicted(response: str, knowledge: list[str]) -> list[str]:
    return [
        response[check.value.start : check.value.end]
        for check in check_values(response, knowledge)
        if check.outcome == "contradicted" and check.value.kind in CONTACTS
    ]


def test_no_right_contact_is_taken_away_and_a_third_of_the_wrong_ones_is() -> None:
    """Of the 44 pairs 22 were read while the rule was made: of these 8 are found, of the others 8."""

    def count(side: str) -> int:
        return sum(bool(list_contradicted(pair[side], pair["knowledge"])) for pair in PAIRS)

    assert count("right") == 0
    assert count("wrong") >= 16


@pytest.mark.parametrize(
    ("response", "contradicted"),
    [
        ("Call Tom Wexley on 01632 960417.", ["01632 960417"]),
        ("Call Tom Wexley on 01632 960582.", []),
        ("Tom Wexley or Priya Nandakumar will answer on 01632 960417.", []),
        ("Call 01632 960417.", []),
    ],
)
def test_a_contact_is_that_of_the_one_name_of_the_sentence(response: str, contradicted: Any) -> None:
    assert list_contradicted(response, [STAFF]) == contradicted
