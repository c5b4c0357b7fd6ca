"""Limits and fractions: "up to 15 days" beside "within 5 days", "two and a half hours" beside "150 minutes"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundwire.engine.values.comparing import normalize
from groundwire.engine.values.knowledge import read_values
from groundwire.engine.values.support import check_values

QUALITY = Path(__file__).parents[3] / "bench" / "quality"


def list_outcomes(response: str, *knowledge: str) -> list[str]:
    return [check.outcome for check in check_values(response, knowledge)]


def read_pairs(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (QUALITY / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("pair", read_pairs("limits.jsonl"), ids=lambda pair: pair["id"])
def test_a_limit_is_supported_by_the_same_limit_alone(pair: dict[str, str]) -> None:
    right = list_outcomes(pair["right"], *pair["knowledge"])
    assert {*right} == ({"absent"} if pair["kind"] == "allowed" else {"supported"})  # 3 days, of up to 5
    assert {"contradicted", "absent"} & {*list_outcomes(pair["wrong"], *pair["knowledge"])}


@pytest.mark.parametrize("wording", ["no more than", "at most", "up to", "a maximum of", "within"])
def test_a_limit_of_the_knowledge_supports_before_another_contradicts(wording: str) -> None:
    knowledge = ("We refund the price within 6 working days.", "Delivery takes 3 to 5 working days, abroad up to 10.")
    assert list_outcomes(f"You get your refund in {wording} six working days.", *knowledge) == ["supported"]
    assert list_outcomes(f"You get your refund in {wording} eight working days.", *knowledge) == ["contradicted"]


@pytest.mark.parametrize("pair", read_pairs("fractions.jsonl"), ids=lambda pair: pair["id"])
def test_a_fraction_in_words_is_part_of_its_number(pair: dict[str, str]) -> None:
    assert {*list_outcomes(pair["right"], *pair["knowledge"])} == {"supported"}
    assert "contradicted" in list_outcomes(pair["wrong"], *pair["knowledge"])


def test_values_that_are_exchanged_between_clauses_are_contradicted() -> None:
    pairs = read_pairs("exchanged.jsonl")
    assert sum("contradicted" in list_outcomes(pair["right"], *pair["knowledge"]) for pair in pairs) <= 1  # x-39
    assert sum("contradicted" in list_outcomes(pair["wrong"], *pair["knowledge"]) for pair in pairs) >= 31


@pytest.mark.parametrize(
    ("response", "knowledge", "outcomes"),
    [
        ("Adults pay £6 on Mondays.", "Adults pay £10 and children pay £6 on Mondays.", ["contradicted", "supported"]),
        ("Adults pay £10 on Mondays.", "Adults pay £10 and children pay £6 on Mondays.", ["supported", "supported"]),
        ("Children pay £6 on Mondays.", "Adults pay £10 and children pay £6 on Mondays.", ["supported", "supported"]),
        ("The archive closes at 8 pm.", "The shop closes at 8 pm and the archive closes at 5 pm.", ["contradicted"]),
        ("Adults pay £6.", "Adults pay £10 and children pay £6. On Mondays adults pay £6.", ["supported"]),
        ("Cards protect for 25 years.", "Cards come in 2 years and last 25 years.", ["supported"]),
        ("Adults pay £6 after 5.", "Adults pay £10 and children pay £6 after 5.", ["supported", "supported"]),
    ],
)
def test_whose_a_value_is_in_a_sentence(response: str, knowledge: str, outcomes: list[str]) -> None:
    assert list_outcomes(response, knowledge) == outcomes


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Two and a half hours and two-and-a-quarter miles.", ["0.1041666667 days", "3621.024 m"]),
        ("A year and a half, half a year, a half-year course.", ["547.86375 days", "182.62125 days", "182.62125 days"]),
        ("2 1/2 stars, 2½ stars, open 24/7.", ["2.5", "2.5"]),
        ("Two and three quarters million people.", ["2750000"]),
        ("Three quarters of an hour, three quarters of them.", ["0.03125 days", "75 %"]),
        ("Two boys and a quarter of the girls.", ["2", "25 %"]),
        ("Two and a quarter of them.", ["2", "25 %"]),
        ("An hour and a half of sport at half past six.", ["0.0625 days", "06:30"]),
        ("A two-and-a-half-year-old child pays half price.", ["913.10625 days"]),
        ("Add 1/2 cup for an hour, then half a cup.", ["0.1183 l", "0.04166666667 days", "0.1183 l"]),
        ("It is £5 an hour, and a day is long.", ["5 sterling"]),
    ],
)
def test_fractions_in_words(text: str, values: list[str]) -> None:
    assert [normalize(value.content) for value in read_values(text)] == values


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
        # "within" bounds a fact; what one may or has to do within a time is a limit
        ("The inn is within 500 m of the station.", "The inn is 300 m from the station.", "supported"),
        ("The inn is within 200 m of the station.", "The inn is 300 m from the station.", "contradicted"),
        ("You can finish the course within 2 months.", "The course takes 6 weeks.", "supported"),
        ("The parcel comes within 3 days.", "Tea draws for 2 days. The inn is 2 km away.", "absent"),
        ("Return it within 60 days.", "You have 30 days to return it.", "contradicted"),
        ("Up to 40,000 people attended the concert.", "38,500 people attended the concert.", "supported"),
        ("Up to 40,000 people are allowed in.", "38,500 people are allowed in.", "contradicted"),
        ("You can complain after 20 days.", "You can complain within 30 days.", "absent"),
        ("You can complain after 40 days.", "You can complain within 30 days.", "contradicted"),
        ("That adds up to £20.", "Tea is £18, coffee is £2.", "derived"),
    ],
)
def test_a_limit_is_compared_with_what_the_knowledge_allows(response: str, knowledge: str, outcome: str) -> None:
    assert outcome in list_outcomes(response, knowledge)
