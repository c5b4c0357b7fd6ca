"""Limits: what "up to 15 days", "within 5 days" and "the minimum age is 16" say about each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundwire.engine.values.support import check_values

FILE = Path(__file__).parents[3] / "bench" / "quality" / "limits.jsonl"
PAIRS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def list_outcomes(response: str, *knowledge: str) -> list[str]:
    return [check.outcome for check in check_values(response, knowledge)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_a_limit_is_supported_by_the_same_limit_alone(pair: dict[str, str]) -> None:
    assert "contradicted" not in list_outcomes(pair["right"], *pair["knowledge"])
    assert {"contradicted", "absent"} & {*list_outcomes(pair["wrong"], *pair["knowledge"])}


@pytest.mark.parametrize(
    ("response", "knowledge", "outcome"),
    [
        ("Refunds take up to 15 days.", "Refunds are paid within 5 days.", "contradicted"),
        ("Refunds take up to 5 days.", "Refunds are paid within 5 days.", "supported"),
        ("Refunds take up to 10 days.", "Refunds take 3 to 5 days.", "contradicted"),
        ("Refunds take up to 5 days.", "Refunds take 3 to 5 days.", "supported"),
        ("Refunds take at least 3 days.", "Refunds take 3 to 5 days.", "supported"),
        ("Refunds take at least 5 days.", "Refunds take 3 to 5 days.", "contradicted"),
        ("Refunds take less than 7 days.", "Refunds take 3 to 5 days.", "supported"),
        ("Refunds come within 4 to 6 days.", "Refunds come in up to 15 days.", "contradicted"),
        ("The room holds up to 80 people.", "The room holds 40 people.", "contradicted"),
        ("The fee is under £20.", "The fee is £18.", "supported"),
        ("The fee is no more than £20.", "The fee is £18.", "supported"),
        ("The fee may be no more than £20.", "The fee is £18.", "contradicted"),
        ("You have up to 90 days to return it.", "Items must be returned within 30 days.", "contradicted"),
        ("You must be at least 16 years old.", "You must be 18 or over.", "contradicted"),
        ("Bags must be no longer than 60 cm.", "Bags are limited to 40 cm.", "contradicted"),
        ("Bags are at most 40 cm.", "Bags are limited to 40 cm.", "supported"),
        ("Stays from 3 nights are cheaper.", "Stays of at least 5 nights are cheaper.", "contradicted"),
        ("Trailers can weigh up to 950 kg.", "Trailers: max. 750 kg.", "contradicted"),
        ("A stay is at least 3 nights.", "The minimum stay in the cabin is 4 nights.", "contradicted"),
        ("That adds up to £20.", "Tea is £18, coffee is £2.", "derived"),
    ],
)
def test_a_limit_is_compared_with_what_the_knowledge_allows(response: str, knowledge: str, outcome: str) -> None:
    assert outcome in list_outcomes(response, knowledge)
