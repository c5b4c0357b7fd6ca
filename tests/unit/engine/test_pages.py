"""Values of answers whose knowledge is several pages: no page acquits a value that another page contradicts."""

from __future__ import annotations

from itertools import permutations

import pytest

from groundwire.engine.metrics.requests import ReadRequest
from groundwire.engine.metrics.values import METRICS
from groundwire.engine.schema.explanations import StatedValue, ValuesExplanation
from groundwire.engine.schema.options import Options
from groundwire.engine.values.support import check_values

DELIVERY = (
    "Standard delivery within the UK costs £3.95 and takes 3 to 5 working days. Orders over £50 are delivered free. "
    "Next-day delivery costs £7.95; order before 2 pm, Monday to Friday. We do not deliver to PO boxes. Delivery to "
    "the Channel Islands takes up to 10 working days."
)
RETURNS = (
    "You can return most items within 30 days of delivery for a full refund. Items must be unused and in their "
    "original packaging. Returns are free if you drop the parcel at a shop; a home collection costs £4.50. Refunds "
    "reach your account within 5 working days after the parcel arrives at our warehouse."
)
GUARANTEE = (
    "All kettles and toasters come with a two-year guarantee. Coffee machines have a three-year guarantee if you "
    "register them within 28 days of purchase."
)
GIFTS = (
    "Gift cards are valid for 24 months from the date of purchase. You can use up to three gift cards per order. "
    "Discount codes cannot be combined, but a gift card may be used together with one discount code."
)
HELP = (
    "Our phone line is open Monday to Friday from 9 am to 6 pm and on Saturday from 10 am to 2 pm. Chat is available "
    "every day until 10 pm."
)
LEAFLET = "Adults: one or two tablets every four to six hours. Do not take more than eight tablets in 24 hours."
TRIP = "The trip costs €640 for adults and €320 for children under 12. A single room costs €95 extra."
FAMILY = "£120 for one adult and one child; each further child costs £35."
BAKERY = "We open at 10 am and close at 5 pm on Sundays. Our café does not open on Mondays."
LOANS = (
    "Cello: on loan to Viola Datta since 2022. Double bass: bought 2020 for €3,200. The piano has to be tuned by 31 "
    "August. The rooms are free from 1 September."
)
PAGES = (DELIVERY, RETURNS, GUARANTEE, GIFTS, HELP)

ANSWERS = [
    # The sentence that says what the response says decides, whatever the numbers of other pages give.
    ("You have 60 days from delivery to send it back for a full refund.", RETURNS, {"60 days": "30 days"}),
    ("You have 30 days from delivery to send it back for a full refund.", RETURNS, {}),
    ("Refunds reach your account within 2 working days.", RETURNS, {"2": "5"}),
    ("You get your refund within 2 working days after the parcel arrives.", RETURNS, {"2": "5"}),
    ("You get your refund within 5 working days after the parcel arrives.", RETURNS, {}),
    ("Standard delivery is £4.95 and takes 3 to 5 working days.", DELIVERY, {"£4.95": "£3.95"}),
    ("Standard delivery is £3.95 and takes 3 to 5 working days.", DELIVERY, {}),
    ("Register your coffee machine within 14 days of the purchase.", GUARANTEE, {"14 days": "28 days"}),
    ("Register your coffee machine within four weeks of the purchase.", GUARANTEE, {}),
    ("Gift cards last two years from the date of purchase.", GIFTS, {}),
    # Numbers that the response computes, or that no sentence speaks of, are not contradicted.
    ("Standard delivery of two orders costs £7.90.", DELIVERY, {}),
    ("Next-day delivery costs £4 more than standard delivery.", DELIVERY, {}),
    ("For an order of £45 with standard delivery you pay £48.95.", DELIVERY, {}),
    ("An order of £60 is delivered free.", DELIVERY, {}),
    ("We repair bicycles within 90 minutes.", HELP, {}),
    ("Delivery to the Channel Islands takes up to 10 working days.", DELIVERY, {}),
    ("The trip costs €640 for adults.", TRIP, {}),
    # A clause has the words up to the semicolon after it, and the qualifier at the end of its sentence.
    ("One adult and one child cost £120.", FAMILY, {}),
    ("Each further child costs £35.", FAMILY, {}),
    ("The bakery opens at 10 am on Sundays.", BAKERY, {}),
    ("The bakery opens at 5 pm on Sundays.", BAKERY, {"5 pm": "10 am"}),
    ("The bakery closes at 10 am on Sundays.", BAKERY, {"10 am": "5 pm"}),
    # Days after "but" are none of the times before it.
    ("Our phone line closes at 6 pm, but the chat is open until 10 pm every day.", HELP, {}),
    ("Our phone line closes at 7 pm, but the chat is open until 10 pm every day.", HELP, {"7 pm": "6 pm"}),
    ("The cello is on loan to her since 2022.", LOANS, {}),
    # A bound is compared with the bound of the same things.
    ("Adults can take up to eight tablets in 24 hours.", LEAFLET, {}),
    ("Adults can take two tablets every four hours.", LEAFLET, {}),
]


def check(response: str, knowledge: tuple[str, ...]) -> dict[str, str]:
    """The contradicted values of a response, each with what the knowledge says."""
    steps = METRICS[0].compute(ReadRequest(response, knowledge), Options(), lambda role: pytest.fail(role))
    try:
        while True:
            next(steps)
    except StopIteration as end:
        explanation = end.value.explanation
    stated: tuple[StatedValue, ...] = explanation.values if isinstance(explanation, ValuesExplanation) else ()
    return {value.text: value.knowledge_says for value in stated if value.outcome == "contradicted"}


@pytest.mark.parametrize(("response", "page", "expected"), ANSWERS)
def test_further_pages_change_no_contradiction(response: str, page: str, expected: dict[str, str]) -> None:
    others = tuple(other for other in PAGES if other != page)
    assert check(response, (page,)) == expected
    assert check(response, (page, *others)) == expected
    assert check(response, (*others, page)) == expected


def test_no_page_derives_what_another_contradicts() -> None:
    response = "You have 60 days from delivery to send it back for a full refund."
    for pages in permutations((RETURNS, GUARANTEE, GIFTS)):
        assert [check.outcome for check in check_values(response, pages)] == ["contradicted"]


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [
        # A duration of durations is none, nor is a difference of other things.
        ("A refund takes 60 days.", ["We answer in 30 days.", "Kettles have a two-year guarantee."], "absent"),
        ("Use two cards with a discount.", ["Use up to three gift cards.", "Refunds take 5 days."], "absent"),
        ("A refund takes 4 hours.", ["We open for 8 hours.", "Half of the refunds are late."], "absent"),
        # Numbers of one passage, and factors of the response, are computed with.
        ("A term of 6 months costs £192.", ["It costs £32 a month."], "derived"),
        ("With both you save £12.", ["The kettle costs £20.", "With the set you save £5 and £7."], "derived"),
    ],
)  # fmt: skip
def test_a_derivation_takes_numbers_that_belong_together(response: str, knowledge: list[str], expected: str) -> None:
    assert check_values(response, knowledge)[-1].outcome == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("You can combine up to three discount codes in one order.", "absent"),
        ("You can use up to three gift cards in one order.", "supported"),
        ("You can use three vouchers in one order.", "supported"),
    ],
)
def test_a_number_of_other_things_supports_none_that_the_knowledge_names(response: str, expected: str) -> None:
    assert [check.outcome for check in check_values(response, [GIFTS])] == [expected]


def test_a_month_that_follows_before_is_a_limit() -> None:
    (check,) = check_values("The piano has to be tuned before September.", [LOANS])
    assert check.outcome == "supported"
