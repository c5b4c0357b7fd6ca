"""Whether the row that a text calls the cheapest, nearest, earliest … of a list is that."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.engine import ToolCall
from groundwire.turns.context import TurnContext
from groundwire.turns.figures import check_figures


def make_rows(keys: str, *rows: str) -> list[dict[str, Any]]:
    """Rows of words and numbers: ``make_rows("name price", "Finch 79")``."""
    return [
        {
            key: int(word) if word.isdigit() else word.replace("_", " ")
            for key, word in zip(keys.split(), row.split(), strict=True)
        }
        for row in rows
    ]


GRINDERS = ToolCall(
    name="search_products",
    arguments={"query": "grinder"},
    result=make_rows("name price", "Finch 79", "Wren 64", "Heron 120"),
)
KETTLES = ToolCall(
    name="list_kettles",
    arguments={},
    result=make_rows("name price warranty", "Arlo £35.00 yes", "Bora £29.50 no", "Cleo £48.00 yes"),
)
GARAGES = ToolCall(
    name="find_garages",
    arguments={"town": "Hexham"},
    result=make_rows("garage distance_km quote_gbp", "Tyne 4 310", "Borderline 11 280", "Abbots 2 390"),
)
TRAINS = ToolCall(
    name="search_trains",
    arguments={"to": "Oslo"},
    result=make_rows("train departs minutes", "Alfa 07:10 95", "Bravo 09:40 80", "Coral 18:05 140"),
)


def find(call: ToolCall, text: str, said: str = "Which one?") -> list[str]:
    return [finding.status for finding in check_figures(TurnContext(text, [], [call], [("user", said)]))]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (GRINDERS, "The cheapest grinder is the Finch at £79."),
        (GRINDERS, "The cheapest grinder is the Finch."),
        (GRINDERS, "The Finch is the cheapest grinder, at £79."),
        (GRINDERS, "The dearest product is the Finch at £79."),
        (KETTLES, "Arlo is the cheapest kettle at £35."),
        (KETTLES, "The cheapest kettle is Cleo."),
        (GARAGES, "The nearest garage is Tyne."),
        (GARAGES, "The cheapest garage in Hexham is Tyne at £310."),
        (TRAINS, "The earliest train to Oslo is Bravo at 09:40."),
        (TRAINS, "Bravo is the latest train."),
        (GRINDERS, "The Heron is our cheapest grinder."),
        (GRINDERS, "The most expensive grinder is the Wren at £64."),
        (KETTLES, "The dearest of the kettles is the Bora."),
        (KETTLES, "Your cheapest option is the Cleo at £48.00."),
        (GARAGES, "Borderline is the closest, at 11 km."),
        (GARAGES, "The farthest garage is Abbots."),
        (GARAGES, "The most expensive is Borderline."),
        (TRAINS, "The last one is Coral, and the earliest is Bravo."),
        (TRAINS, "The longest is Alfa at 95 minutes."),
        (TRAINS, "Alfa is the shortest."),
    ],
)
def test_another_row_is_the_extreme(call: ToolCall, text: str) -> None:
    assert set(find(call, text)) & {"miscounted", "other_record"}


@pytest.mark.parametrize(
    ("call", "text", "said"),
    [
        (GRINDERS, "The cheapest grinder is the Wren at £64.", "Which grinder is cheapest?"),
        (GRINDERS, "The cheapest grinder is the Wren.", "Which grinder is cheapest?"),
        (GRINDERS, "The Finch is not the cheapest grinder.", "Is the Finch the cheapest?"),
        (GRINDERS, "The second cheapest grinder is the Finch at £79.", "And after that?"),
        (KETTLES, "The cheapest kettle with a warranty is Arlo at £35.", "Which has a warranty?"),
        (KETTLES, "The cheapest is Arlo.", "Which one above £30 is best?"),
        (GARAGES, "The nearest garage is Abbots, 2 km away.", "Which is near?"),
        (GARAGES, "Tyne is one of the cheapest.", "Which are cheap?"),
        (TRAINS, "The earliest train after 8 is Bravo.", "When can I go?"),
        (TRAINS, "The earliest is Alfa at 07:10.", "When is the first?"),
        (GRINDERS, "Is the Finch the cheapest grinder?", "Hm."),
        (GRINDERS, "After the Wren, the cheapest is the Finch at £79.", "And then?"),
        (KETTLES, "The cheapest quiet kettle is the Cleo.", "I need a quiet one."),
        (KETTLES, "The dearest kettle is the Cleo at £48.", "Which is the best?"),
        (GARAGES, "The farthest garage is Borderline, and the dearest is Abbots.", "Tell me more."),
        (GARAGES, "The cheapest besides Borderline is Tyne.", "Not Borderline please."),
        (TRAINS, "The fastest train is Bravo, the latest is Coral.", "Which is fast?"),
        (TRAINS, "The latest train is Coral at 18:05.", "And in the evening?"),
        (TRAINS, "The earliest train that has seats is Bravo.", "Three seats please."),
        (GRINDERS, "The Finch would be the cheapest if you returned the Wren.", "What if I return it?"),
    ],
)
def test_an_extreme_may_be_of_other_rows(call: ToolCall, text: str, said: str) -> None:
    assert find(call, text, said) == []
