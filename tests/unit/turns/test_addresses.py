"""Whether the street of a call is the one that was said."""

from __future__ import annotations

import pytest

from groundwire.engine import ToolCall
from groundwire.turns.arguments import check_argument
from groundwire.turns.calls import list_arguments
from groundwire.turns.context import TurnContext

LOG = [ToolCall(name="get_depot", arguments={"id": 7}, result={"name": "North depot", "address": "9 Station Road"})]


def check(said: str, key: str, value: str) -> str:
    call = ToolCall(name="update_record", arguments={key: value})
    context = TurnContext("", [call], LOG, [("user", said)])
    return next(check_argument(argument, context).status for argument in list_arguments(context))


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("Send it to 14 Mill Rise, LS2 8TT instead.", "street", "14 Mill Road"),
        ("The boiler is at 3 Abbey Close.", "address", "3 Abbey Court"),
        ("please pick us up at 27 kings avenue", "pickup_address", "27 Kings Street"),
        ("My new address is 8 Orchard Drive, Bath BA1 2AB.", "address_line_1", "8 Orchard Way"),
        ("The flat is 2b Harbour Terrace, Leith.", "address", "2b Harbour Square, Leith"),
        ("Drop the keys at 110 Ferry Rd please.", "location", "110 Ferry Rise"),
        ("We moved to Elm Grove 5 days ago, number 12.", "street", "Elm Gardens"),
        ("Collect the sofa from 41 Old Church Street.", "collection_address", "41 Old Church Rise"),
        ("The meter is in 6 Castle Mews.", "note", "Meter at 6 Castle Court"),
        ("Bill it to 77 West Park Crescent, Hull.", "billing_street", "77 West Park Avenue"),
        ("The vet should come to 5 Rose Hill Rise.", "address", "5 Rose Hill Road"),
        ("Deliver the cake to 19 Queen's Walk.", "delivery_address", "19 Queen's Row"),
        ("I park at 30 Bridge St, bay 4.", "street", "30 Bridge Rd"),
        ("Take us to 250 Sunset Boulevard.", "destination", "250 Sunset Drive"),
        ("The sensor is for 1 Quarry Place.", "site", "1 Quarry Street"),
        ("Our clinic is on Linden Avenue.", "street", "Linden Road"),
        ("The leak is at 64 Market Square, top floor.", "address", "64 Market Street, top floor"),
        ("The skip goes to 22 Dock Street.", "description", "Deliver a skip to 22 Dock Road on Monday"),
        ("Ship to 901 Lake View Parkway.", "line1", "901 Lake View Boulevard"),
    ],
)
def test_a_street_of_another_kind_is_absent(said: str, key: str, value: str) -> None:
    assert check(said, key, value) == "absent"


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("Send it to 14 Mill Rise, LS2 8TT instead.", "street", "14 Mill Rise"),
        ("The boiler is at 3 Abbey Cl.", "address", "3 Abbey Close"),
        ("please pick us up at 27 kings avenue", "pickup_address", "27 Kings Ave."),
        ("My new address is 8 Orchard, Bath BA1 2AB.", "address_line_1", "8 Orchard Road"),
        ("It's 2b Harbour Terrace. Sorry, Harbour Square I mean.", "address", "2b Harbour Square"),
        ("14 Ferry Rise. Oh, I meant road, not rise.", "street", "14 Ferry Road"),
        ("From the North depot please, to 9 Station Rise", "pickup", "9 Station Road"),
        ("Collect the sofa from 41 Old Church Street.", "collection_address", "41 Old Church St"),
        ("My dog walk on Monday is cancelled.", "note", "Dog park visit cancelled"),
        ("Bill it to 77 West Park Crescent, Hull.", "billing_street", "77 West Park Cres"),
        ("The vet should come to 5 Rose Hill.", "address", "5 Rose Hill Road"),
        ("Deliver the cake to St Mary's Church on Queen's Walk.", "delivery_address", "St Mary's Church, Queen's Walk"),
        ("I park at 30 bridge st, bay 4.", "street", "30 Bridge Street"),
        ("Take us to 250 Sunset Blvd.", "destination", "250 Sunset Boulevard"),
        ("A test drive at the Quarry Place branch.", "subject", "Test drive, Quarry Place"),
        ("Our clinic is on Linden Avenue, the court is on Linden Road.", "street", "Linden Road"),
        ("The leak is at 64 Market Square, top floor.", "address", "64 Market Square, Top Floor"),
        ("Register me at 13 Green Rise; the school is Green Court.", "note", "School: Green Court"),
        ("The skip goes to 22 Dock Street.", "description", "Deliver a skip to 22 Dock St."),
        ("Ship to 901 Lake View Pkwy.", "line1", "901 Lake View Parkway"),
    ],
)
def test_a_street_may_be_said_otherwise(said: str, key: str, value: str) -> None:
    assert check(said, key, value) != "absent"
