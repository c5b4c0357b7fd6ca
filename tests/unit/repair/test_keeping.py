"""What corrections leave as it is, and how values are fitted."""

from __future__ import annotations

import pytest

from groundwire.engine.text.sentences import Sentence
from groundwire.repair import Corrector
from groundwire.repair.correction.keeping import Kept, find_clause
from tests.support.correcting import METRICS, make_engine


@pytest.mark.parametrize(
    ("response", "knowledge", "value"),
    [
        # One step, two steps, a percentage, a sum of several,
        ("Two packs hold 24 batteries.", "A pack holds 12 batteries.", "24"),
        ("Members get it for €272.", "The desk is €320, with 15% off for members.", "€272"),
        ("Together they needed 204 seconds.", "The runners needed 52, 50, 53 and 49 seconds.", "204 seconds"),
        # words that say so,
        ("The desk is $7 cheaper.", "The desk is $12.", "$7"),
        ("The sum is 99 dollars in total.", "The desk is $12.", "99 dollars"),
        # what the reader brings,
        ("If 15 guests come, call us.", "We have 30 chairs.", "15"),
        # times and dates that a duration leads to.
        ("Leave the water by 20:30.", "The pool closes at 21:00; leave the water 30 minutes before.", "20:30"),
        ("It lands at 13:30 there.", "It leaves at 11:00 local time.", "13:30"),
        ("Send it until 9 July 2025.", "It was ordered on 9 June 2025 and goes back within 30 days.", "9 July 2025"),
        ("The jubilee was in 2023.", "It was founded in 1998, with a jubilee every 25 years.", "2023"),
    ],
)
def test_a_value_that_follows_is_kept(response: str, knowledge: str, value: str) -> None:
    start = response.index(value)
    assert Kept(response, [knowledge]).find_reason(start, start + len(value))


@pytest.mark.parametrize(
    ("response", "knowledge", "value"),
    [
        ("The violin has six strings.", "The violin has four strings.", "six"),
        ("It opened in 1854.", "It opened in 1969.", "1854"),
        ("The shop opens at 9 am.", "The shop opens at 10 am.", "9 am"),
        ("It opens on 4 May.", "It opens on 7 June.", "4 May"),
    ],
)
def test_another_value_is_not(response: str, knowledge: str, value: str) -> None:
    start = response.index(value)
    assert not Kept(response, [knowledge]).find_reason(start, start + len(value))


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ("Run `wait 5` now.", "wait 5"),
        ("Write ``a `b` 5`` there.", "b"),
        ("Put this:\n\n```sh\nPORT=9090 ./run\n```\nthere.", "9090"),
        ("Put this:\n~~~\nPORT=9090", "9090"),
        ("| S | L |\n|---|---|\n| 5 | 6 |", "5"),
    ],
)
def test_code_and_tables_are_kept(response: str, code: str) -> None:
    start = response.index(code)
    kept = Kept(response, ["The port is 8080."])
    assert kept.touches_code(start, start + len(code))
    assert not kept.touches_code(0, 1) or response.startswith("|")


def test_a_part_with_an_amount_or_a_day_is_not_left_out() -> None:
    response = "It closes on Friday in the evening, after 9, with a song."
    kept = Kept(response, ["It closes."])
    for part, states in ((" on Friday", True), (" in the evening", True), (" after 9", True), (" with a song", False)):
        start = response.index(part)
        assert kept.states_amount(start, start + len(part)) is states


def test_a_clause_ends_at_commas_and_conjunctions() -> None:
    text = "The bar closes at 1, and the kitchen at 9."
    assert find_clause(text, text.index("9"), text.index("9") + 1).text == "the kitchen at 9"
    assert Sentence(text, 0, len(text)).text == text


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [
        # As coarse as the response,
        ("Ann was born in 1936.", "Ann was born on January 8, 1935.", "Ann was born in 1935."),
        ("Ann was born in June 1935.", "Ann was born on January 8, 1935.", "Ann was born in January 1935."),
        # with its unit,
        ("The bridge is 61 kilometres long.", "The bridge is 34 km long.", "The bridge is 34 kilometres long."),
        # and of what it speaks of.
        (
            "The bar closes at 23:00.",
            "The kitchen closes at 21:30. The bar closes at 01:00.",
            "The bar closes at 01:00.",
        ),
        # An address or a phone number is of whom the response speaks.
        ("Write to support@a.example.", "Support: help@a.example.", "Write to help@a.example."),
        ("Write to help@a.example.org.", "Support: help@a.example.", "Write to help@a.example."),
        (
            "Call the York shop on 020 7946 0002.",
            "The York shop is at 020 7946 0001.",
            "Call the York shop on 020 7946 0001.",
        ),
    ],
)
def test_a_value_is_replaced_by_one_of_its_kind(response: str, knowledge: str, expected: str) -> None:
    with make_engine() as engine:
        assert Corrector(engine).correct(response, knowledge, metrics=METRICS).response == expected


@pytest.mark.parametrize(
    ("response", "knowledge", "reason"),
    [
        ("Press: press@a.example.", "Support: help@b.example.", "no word around it says"),
        ("We will call 07700 900123.", "Our number is 07700 900124.", "no word around it says"),
        ("For sales, write to sales@a.example.", "For help, write to help@a.example.", "no word around it says"),
        (
            "For the Leeds shop please call us at 020 7946 0002.",
            "For the York shop please call us at 020 7946 0001.",
            "about something else",
        ),
        ("The Leeds shop: 020 7946 0002.", "The York shop: 020 7946 0001.", "about something else"),
        ("The shop: 020 7946 0002.", "The York shop: 020 7946 0001. The Hull shop: 020 7946 0009.", "is as near to"),
        ("A kettle is £5.", "A cup is £3 and a kettle £4, a kettle with a lid £6.", "is as near to"),
        ("Run `wait --for 5` now.", "Run wait --for 6 now.", "code and tables are not changed"),
        ("The desk is £7 cheaper.", "The desk is £12.", "'cheaper' says that '£7' was worked out"),
        ("It opens at 9, and closes at 5.", "It opens at 5.", "elsewhere, too"),
    ],
)
def test_a_refusal_says_why(response: str, knowledge: str, reason: str) -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct(response, knowledge, metrics=METRICS)
    assert correction.status == "refused"
    assert reason in correction.message


def test_an_address_of_the_dialogue_is_the_readers() -> None:
    response, knowledge = "The shop is at 07700 900123.", "The shop is at 07700 900124."
    with make_engine() as engine:
        ours, theirs = (
            Corrector(engine).correct(response, knowledge, history=history, metrics=METRICS)
            for history in ([], ["Call my shop on 07700 900123."])
        )
    assert (ours.status, theirs.status) == ("corrected", "refused")
    assert "the dialogue has '07700 900123', too" in theirs.message
