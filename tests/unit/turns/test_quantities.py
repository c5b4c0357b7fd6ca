"""Quantities in words that users name, beside the arguments of calls."""

from __future__ import annotations

import pytest

from groundwire.engine import ToolCall
from groundwire.turns.arguments import check_argument
from groundwire.turns.calls import list_arguments
from groundwire.turns.context import TurnContext


@pytest.mark.parametrize(
    ("said", "key", "right", "wrong"),
    [
        ("Extend the car park by two and a half hours.", "duration_minutes", 150, 120),
        ("The dog walk should last three quarters of an hour.", "minutes", 45, 60),
        ("Rent the kayak for an hour and three quarters.", "duration_minutes", 105, 60),
        ("One hour and twenty minutes.", "duration_minutes", 80, 60),
        ("Two hours 15 minutes.", "duration_minutes", 135, 120),
        ("A quarter of an hour will do.", "duration_minutes", 15, 60),
        ("A couple of hours of parking.", "minutes", 120, 60),
        ("Ninety minutes, please.", "hours", 1.5, 2),
        ("One and a half kilos of mince, please.", "weight_kg", 1.5, 1),
        ("One and a half kilos of mince, please.", "weight_g", 1500, 1000),
        ("Half a kilo of prawns.", "weight_g", 500, 1000),
        ("Two and a half litres of milk.", "litres", 2.5, 2),
        ("Two and a quarter metres of the linen.", "length_m", 2.25, 2),
        ("Two hundred and fifty grams of olives.", "grams", 250, 200),
        ("Three and a half thousand euros.", "amount", 3500, 3000),
        ("A million and a half impressions.", "impressions", 1_500_000, 1_000_000),
        ("A dozen and a half rolls.", "quantity", 18, 12),
        ("Half a dozen eggs.", "quantity", 6, 3),
        ("Between one and two kilos.", "max_kg", 2, 5),
        ("Half price tickets for two adults.", "adults", 2, 3),
    ],
)
def test_a_quantity_in_words_is_one_number(said: str, key: str, right: float, wrong: float) -> None:
    def find_status(value: float) -> str:
        call = ToolCall(name="order", arguments={key: value})
        context = TurnContext("", [call], [], [("user", said)])
        (argument,) = list_arguments(context)
        return check_argument(argument, context).status

    assert (find_status(right), find_status(wrong)) == ("user", "absent")
