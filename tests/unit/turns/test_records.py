"""Which record a figure of a text, or an amount of a call, is of, where a tool was called for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from groundwire.engine import ToolCall
from groundwire.turns.arguments import check_argument
from groundwire.turns.calls import list_arguments
from groundwire.turns.context import TurnContext
from groundwire.turns.figures import check_figures


def make_log(tool: str, *results: Any) -> list[ToolCall]:
    return [ToolCall(name=tool, arguments={"of": index}, result=result) for index, result in enumerate(results)]


FLIGHTS = make_log(
    "get_flight",
    {"flight": "LH400", "gate": "B12", "departs": "2026-12-03T09:40", "status": "on time", "fare": "€240"},
    {"flight": "BA112", "gate": "C4", "departs": "2026-12-05T16:15", "status": "delayed", "fare": "€315"},
)
LOANS = make_log(
    "get_loan",
    {"loan_id": "LN-881", "title": "Silent Spring", "due": "2026-12-14", "renewals_left": 2},
    {"loan_id": "LN-902", "title": "The Grove", "due": "2026-12-21", "renewals_left": 5},
)
PARCELS = make_log(
    "track_parcel",
    {"parcel_id": "PX-55012", "status": "in customs", "weight_kg": 4.2, "eta": "2026-12-17"},
    {"parcel_id": "PX-55190", "status": "out for delivery", "weight_kg": 11.5, "eta": "2026-12-10"},
)
DOCTORS = make_log(
    "get_doctor",
    {"name": "Dr. Halvorsen", "next_free": "2026-12-08 10:30", "room": "204"},
    {"name": "Dr. Mbeki", "next_free": "2026-12-11 15:00", "room": "117"},
)
JOBS = make_log(
    "list_jobs",
    [
        {"job_id": "J-17", "state": "failed", "runs": 12, "next_run": "2026-12-04T02:00"},
        {"job_id": "J-23", "state": "running", "runs": 48, "next_run": "2026-12-06T05:30"},
    ],
)


@pytest.mark.parametrize(
    ("log", "right", "wrong"),
    [
        (
            FLIGHTS,
            (
                "LH400 leaves from gate B12 at 9:40, and BA112 from gate C4 at 4:15 pm.",
                "BA112 departs on 5 December and costs €315.",
                "LH400 costs €240, which is €75 less than BA112.",
                "LH400 is on time, but BA112 is delayed.",
                "BA112 goes two days after LH400, on the 5th.",
            ),
            (
                "LH400 leaves at 4:15 pm.",
                "BA112 departs on 3 December.",
                "LH400 costs €315.",
                "LH400 is delayed, but BA112 is on time.",
                "BA112 goes from gate B12.",
            ),
        ),
        (
            LOANS,
            (
                "LN-881 is due on 14 December and LN-902 a week later, on the 21st.",
                "You can renew LN-902 five more times.",
                "Your two loans are due on 14 and 21 December.",
                "The Grove is due on 21 December; Silent Spring, a week before, on 14 December.",
            ),
            (
                "LN-881 is due on 21 December and LN-902 on 14 December.",
                "Silent Spring is due back on 21 December.",
                "LN-902 is due on 22 December.",
            ),
        ),
        (
            PARCELS,
            (
                "PX-55190, the heavier one at 11.5 kg, is out for delivery.",
                "PX-55012 weighs 4.2 kg, so both weigh 15.7 kg.",
                "PX-55012 is in customs and should arrive on 17 December. PX-55190 comes on 10 December.",
            ),
            (
                "PX-55012 is out for delivery, and PX-55190 is in customs.",
                "PX-55190 weighs 4.2 kg.",
                "PX-55190 arrives on 17 December.",
            ),
        ),
        (
            DOCTORS,
            ("The earlier one is Dr. Halvorsen: 8 December, half past ten.", "Dr. Mbeki is in room 117."),
            ("Dr. Mbeki can see you on 8 December at 10:30.", "Dr. Mbeki is in room 204."),
        ),
        (
            JOBS,
            (
                "J-17 failed; it runs again on 4 December at 2 am. J-23 is running.",
                "J-23 is due at 5:30 on 6 December.",
            ),
            ("J-17 runs again on 6 December.", "J-23 has run 12 times.", "J-23 is failed and J-17 is running."),
        ),
    ],
)
def test_details_of_several_results(log: Sequence[ToolCall], right: Sequence[str], wrong: Sequence[str]) -> None:
    def is_wrong(text: str) -> bool:
        return any(finding.is_problem for finding in check_figures(TurnContext(text, [], log, [])))

    assert [text for text in right if is_wrong(text)] == []
    assert [text for text in wrong if not is_wrong(text)] == []


LAMPS = make_log(
    "get_order",
    {
        "order": "W-3310",
        "total": 126.0,
        "items": [{"sku": "LAMP-2", "name": "Lamp", "quantity": 3, "unit_price": 42.0}],
    },
)
MUGS = make_log(
    "get_order",
    {
        "order": "W-3344",
        "total": 93.5,
        "items": [
            {"sku": "MUG-1", "name": "Mug", "quantity": 4, "unit_price": 11.0},
            {"sku": "JUG-7", "name": "Glass jug", "quantity": 1, "unit_price": 45.0},
        ],
    },
)
INVOICES = make_log(
    "get_invoice",
    {"invoice": "R-2041", "amount_due": "£310.00", "customer": "Halle GmbH"},
    {"invoice": "R-2055", "amount_due": "£88.00", "customer": "Otto & Co"},
)
TICKETS = make_log("find_tickets", {"tickets": [{"seat": "C4", "price": 55}, {"seat": "K9", "price": 30}], "sum": 85})


@pytest.mark.parametrize(
    ("log", "said", "arguments", "right", "wrong"),
    [
        (LAMPS, "One lamp of W-3310 is broken.", {"order": "W-3310", "quantity": 1}, 42.0, 126.0),
        (LAMPS, "Two of the lamps of W-3310.", {"order": "W-3310", "sku": "LAMP-2", "quantity": 2}, 84.0, 126.0),
        (MUGS, "The jug is cracked.", {"order": "W-3344", "sku": "JUG-7", "quantity": 1}, 45.0, 93.5),
        (MUGS, "Two mugs, please.", {"order": "W-3344", "sku": "MUG-1", "quantity": 2}, 22.0, 45.0),
        (INVOICES, "Pay R-2041.", {"invoice": "R-2041"}, "310.00", "88.00"),
        (INVOICES, "Pay Otto's.", {"invoice": "R-2055"}, 88, 310),
        (TICKETS, "K9, please.", {"seat": "K9"}, 30, 85),
        (TICKETS, "Both, please.", {"seats": ["C4", "K9"]}, 85, 100),
    ],
)
def test_an_amount_is_of_what_the_call_names(
    log: Sequence[ToolCall], said: str, arguments: Mapping[str, Any], right: Any, wrong: Any
) -> None:
    def is_wrong(amount: Any) -> bool:
        call = ToolCall(name="pay", arguments={**arguments, "amount": amount})
        context = TurnContext("", [call], log, [("user", said)])
        found = [check_argument(argument, context) for argument in list_arguments(context)]
        return [finding.where for finding in found if finding.is_problem] == ["calls[0].arguments.amount"]

    assert (is_wrong(right), is_wrong(wrong)) == (False, True)


def test_an_amount_that_the_user_named_is_right() -> None:
    call = ToolCall(name="pay", arguments={"invoice": "R-2041", "amount": 88.0})
    context = TurnContext("", [call], INVOICES, [("user", "Pay 88 pounds towards R-2041.")])
    assert [check_argument(argument, context).status for argument in list_arguments(context)] == ["user", "user"]


def test_a_code_that_another_argument_has_contradicts_none() -> None:
    log = make_log("list_accounts", [{"account": "DE01", "owner": "Mia"}, {"account": "DE02", "owner": "Jon"}])
    call = ToolCall(name="transfer", arguments={"source": "DE01", "target": "DE09"})
    context = TurnContext("", [call], log, [("user", "Empty Mia's account into mine, DE09.")])
    assert not any(check_argument(argument, context).is_problem for argument in list_arguments(context))
