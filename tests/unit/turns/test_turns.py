"""Turns of assistants: where arguments are from, which actions were done, and whose figures are said."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock, patch

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.engine import InvalidRequest, Options, Overloaded, ToolCall
from groundwire.testing import make_engine
from groundwire.turns import TurnChecker
from groundwire.turns.actions import check_actions
from groundwire.turns.arguments import check_argument as check_one
from groundwire.turns.calls import list_arguments
from groundwire.turns.checker import MAX_PROSE, _read_context
from groundwire.turns.context import NO_TOOLS, DeadlinePassed, TurnContext
from groundwire.turns.figures import check_figures

HOTELS = {
    "name": "find_hotels",
    "arguments": {"city": "Rimini"},
    "result": [
        {
            "hotel_id": "h_1",
            "name": "Lido Blu",
            "price_per_night": 131,
            "currency": "EUR",
            "open": True,
            "from": "14:00",
        },
        {
            "hotel_id": "h_2",
            "name": "Pensione Gina",
            "price_per_night": 72,
            "currency": "EUR",
            "open": False,
            "from": "15:30",
        },
        {
            "hotel_id": "h_3",
            "name": "Villa Fiorita",
            "price_per_night": 104,
            "currency": "EUR",
            "open": True,
            "from": "16:00",
        },
    ],
}
SAID = [
    {
        "role": "user",
        "content": "Two of us, 3 to 5 August 2026, arriving after 4 pm. The Fiorita please, my name is Ann Ray.",
    }
]


@pytest.fixture
def checker() -> Iterator[TurnChecker]:
    engine = make_engine(lambda text, passages: 0.1 if "wheelchair" in text else 0.9)
    with engine:
        yield TurnChecker(engine)


def check_argument(checker: TurnChecker, value: Any, key: str = "value", said: str = "", **others: Any) -> str:
    history = [{"role": "user", "content": said}] if said else SAID
    checked = checker.check(
        calls=[{"name": "book", "arguments": {key: value, **others}}], log=[HOTELS], history=history
    )
    (finding,) = (finding for finding in checked.findings if finding.where.startswith(f"calls[0].arguments.{key}"))
    return finding.status


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [
        ("hotel_id", "h_3", "result"),
        ("hotel_id", "h_1", "other_record"),
        ("hotel_id", "h_9", "absent"),
        ("guests", 2, "user"),
        ("guests", 7, "absent"),
        ("price", 104, "result"),
        ("check_in", "2026-08-03", "user"),
        ("check_in", "2026-08-09", "absent"),
        ("arrives", "16:00", "user"),
        ("arrives", "19:30", "absent"),
        ("arrives", "2026-08-03T19:30", "absent"),
        ("name", "Ann Ray", "user"),
        ("name", "Bo Lind", "absent"),
        ("name", "bo", "absent"),
        ("month", "August", "user"),
        ("month", "May", "absent"),
        ("currency", "EUR", "result"),
        ("limit", 50, "composed"),
        ("breakfast", True, "composed"),
        ("note", None, "composed"),
        ("cuisine", "seafood", "composed"),
        ("query", "quiet hotel by the sea", "composed"),
        ("remarks", "Guests arrive after 4 pm.", "composed"),
        ("remarks", "Guests arrive after 4 pm in a wheelchair.", "absent"),
        ("remarks", "Guests arrive after 7 on day 23.", "absent"),
    ],
)
def test_where_an_argument_is_from(checker: TurnChecker, key: str, value: Any, status: str) -> None:
    assert check_argument(checker, value, key) == status


@pytest.mark.parametrize(
    ("said", "value", "others", "status"),
    [
        ("Three nights from the 9th of October 2026.", "2026-10-12", {"check_in": "2026-10-09"}, "user"),
        ("Three nights from the 9th of October 2026.", "2026-10-13", {"check_in": "2026-10-09"}, "absent"),
        ("Today is 6 July. Tomorrow, please.", "2026-07-07", {}, "user"),
        ("Today is 6 July. Tomorrow, please.", "2026-07-08", {}, "absent"),
        ("Today's Monday 8 June 2026. On Wednesday.", "2026-06-10", {}, "user"),
        ("Today's Monday 8 June 2026. On Wednesday.", "2026-06-11", {}, "absent"),
        ("On the 12th.", "2026-06-12", {}, "user"),
        ("On the 12th.", "2026-06-13", {}, "absent"),
        ("On a Friday.", "2026-06-12", {}, "user"),
        ("At 10, for half an hour.", "10:30", {"start": "10:00"}, "user"),
        ("At 10, for half an hour.", "11:00", {"start": "10:00"}, "absent"),
        ("In the morning.", "09:00", {}, "user"),
        ("2 adults and 3 kids.", 5, {}, "user"),
        ("9 of us including 2 children.", 11, {}, "absent"),
        ("Move half of the 80.", 40, {}, "user"),
        ("Open it halfway.", 50, {}, "user"),
        ("At an hour's notice.", 60, {}, "user"),
        ("Every weekday.", "mon", {}, "user"),
        ("Every weekday.", "Mondays", {}, "user"),
        ("On Monday.", "wedding", {}, "composed"),
        ("On Monday.", "satin", {}, "composed"),
        ("I fly from Edinburgh.", "Rome", {}, "absent"),
        ("It is 1,200.", "12", {}, "absent"),
        ("It is 1,200.", "200", {}, "absent"),
        ("Cancel HB-77120.", "hb77120", {}, "user"),
        ("Ping 192.168.0.7.", "192.168.0.7", {}, "user"),
        ("Ping 192.168.0.7.", "192.168.0.8", {}, "absent"),
        ("On 21 June 2026.", "21.06.2026", {}, "user"),
        ("On 21 June 2026.", "22.06.2026", {}, "absent"),
        ("On the day before 31 December.", "9999-12-31", {}, "user"),
        ("Today is 29 February. Tomorrow, please.", "2027-03-01", {}, "absent"),
        ("Forty parcels.", 10**400, {}, "absent"),
        ("Book 3 of 7 for 12 pages each.", 36, {}, "user"),
        ("Book 3 of 7 for 12 pages each.", 38, {}, "absent"),
        ("Enough packs of 6 for 20 people, please; how many?", 4, {}, "user"),
        ("Enough packs of 6 for 20 people, please; how many?", 9, {}, "absent"),
        ("On Tuesday.", "mon", {}, "absent"),
        ("From Paddington.", "PAD", {}, "composed"),
        ("From NYC.", "New York", {}, "composed"),
        ("With parking.", "BAHNCARD_50", {}, "absent"),
    ],
)
def test_what_follows_from_words(
    checker: TurnChecker, said: str, value: Any, others: dict[str, Any], status: str
) -> None:
    assert check_argument(checker, value, "value", said, **others) == status


BOOKING = "Book Trattoria Rossi at 19:45 on Friday 6 March 2026 for four people. I am Priya Nair."
EVENING = "Four of us, quarter to eight on Friday evening, 6 March 2026."
ON_FRIDAY = "Today is Monday, 2 March 2026. Something on Friday please."


@pytest.mark.parametrize(
    ("said", "key", "right", "wrong"),
    [
        ("Transfer 200 euros to Maria Ana Lopez.", "recipient", ("Maria Lopez", "Dr. Maria Lopez", "M. Lopez"), ()),
        ("Transfer 200 euros to Maria Lopez.", "recipient", ("maria lopez",), ("Maria Santos", "Carlos Lopez")),
        ("I fly to New York.", "city", ("New York City", "New York, USA"), ("New Delhi", "Newark")),
        (BOOKING, "restaurant", ("Restaurant Trattoria Rossi",), ("Trattoria Verdi", "Osteria Rossi")),
        (BOOKING, "guest", ("Priya Nair", "P. Nair"), ("Priya Patel", "Anna Nair", "Rossi Patel")),
        (BOOKING, "party_size", (4, "4"), (2, 5, 6, 8, 10, 19, 20, 40, 45, "2", "19")),
        (EVENING, "party_size", (4,), (2, 5, 8, 10, 20, 40)),
        (EVENING, "time", ("19:45", "7:45 pm", "7.45pm"), ("17:00", "18:00", "20:00", "23:00", "20:30", "16:00")),
        (BOOKING, "time", ("19:45", "7:45 PM", "quarter to eight"), ("07:45", "04:00", "16:00", "7:15 pm")),
        ("Friday evening, please.", "time", ("18:00", "7 pm"), ("09:00", "20:30")),
        ("At 7 for 4 people.", "time", ("19:00", "7 pm"), ("16:00", "4 pm")),
        (BOOKING, "date", ("2026-03-06", "6 March 2026", "March 6", "Fri 6 Mar", "06/03/2026", "03/06/2026"), ()),
        (BOOKING, "date", ("2026-03-06T19:45",), ("2026-03-20", "2026-03-19", "2026-03-04", "2027-03-06", "7 March")),
        (ON_FRIDAY, "date", ("2026-03-06", "6 March", "Friday 6 March", "06/03/2026"), ("7 March", "tomorrow")),
        (ON_FRIDAY, "day", ("Friday", "fri"), ("Saturday", "2026-03-13T10:00")),
        ("Send Maria some money.", "amount", (), (2, "2", 7)),
        ("Two adults and 2 kids.", "guests", (4,), (3, 5, 8)),
        ("My wife and I.", "guests", (2,), (3, 4)),
        ("My two sisters and me.", "guests", (3,), (4,)),
        ("My member number is 555 0142.", "member", (5550142, "5550142"), (5550143, "5550124")),
        ("A double room for 3 nights.", "nights", (3,), (6,)),
    ],
)
def test_values_are_supported_by_values_of_their_kind(
    checker: TurnChecker, said: str, key: str, right: tuple[Any, ...], wrong: tuple[Any, ...]
) -> None:
    def list_absent(values: tuple[Any, ...]) -> list[Any]:
        calls = [{"name": "book", "arguments": {key: value}} for value in values]
        checked = checker.check(calls=calls, history=[said], sentences=False)
        return [values[int(finding.where[len("calls[")])] for finding in checked.problems]

    assert list_absent(right) == []
    for value in wrong:
        assert list_absent((value,)) == [value]


def test_nothing_is_a_result_of_an_empty_log(checker: TurnChecker) -> None:
    values = ("Maria Santos", "Dr. Maria Lopez", "the lopez account", "New Lopez", "Maria")
    call = {"name": "send", "arguments": {f"value_{index}": value for index, value in enumerate(values)}}
    checked = checker.check(calls=[call], history=["To Maria Lopez."], sentences=False)
    assert "result" not in {finding.status for finding in checked.findings}


def test_a_value_beside_what_was_asked_for_is_invented(checker: TurnChecker) -> None:
    call = {"name": "search", "arguments": {"amenities": ["parking", "breakfast"], "tags": ["parking", "breakfast"]}}
    checked = checker.check(calls=[call], history=[{"role": "user", "content": "With parking."}])
    assert [(finding.where, finding.status) for finding in checked.problems] == [
        ("calls[0].arguments.amenities[1]", "absent")
    ]


def test_a_word_put_into_what_was_said_is_invented(checker: TurnChecker) -> None:
    said = "The plumber says the leak was in the cold water pipe under the bath."
    assert check_argument(checker, said, "body", said) == "user"
    assert check_argument(checker, said.replace("cold", "corroded cold"), "body", said) == "absent"


def check_claim(checker: TurnChecker, text: str, *calls: tuple[str, str], result: Any = None) -> list[str]:
    log = [
        {"name": name, "arguments": {"id": "A-7"}, "status": status, "result": result or {"id": "A-7"}}
        for name, status in calls
    ]
    checked = checker.check(text, log=log, history=["Do it."], sentences=False)
    return [finding.status for finding in checked.findings if finding.kind == "action"]


@pytest.mark.parametrize(
    ("text", "call", "status", "expected"),
    [
        ("I've cancelled it.", "cancel_order", "succeeded", ["succeeded"]),
        ("I've cancelled it.", "cancel_order", "failed", ["failed"]),
        ("I've cancelled it.", "cancelOrder", "pending", ["pending"]),
        ("I've cancelled it.", "send_mail", "succeeded", ["absent"]),
        ("I've cancelled it.", "get_order", "succeeded", ["absent"]),
        ("A-7 is void.", "cancel_order", "failed", ["failed"]),
        ("A-7 is void.", "get_order", "succeeded", ["absent"]),
        ("All done!", "cancel_order", "succeeded", ["succeeded"]),
        ("All done!", "cancel_order", "failed", ["failed"]),
        ("Moved: Friday at four.", "reschedule", "failed", ["failed"]),
        ("The payment was successful.", "make_payment", "failed", ["failed"]),
        ("I've asked them to change it.", "update_order", "pending", ["succeeded"]),
        ("I couldn't cancel it.", "cancel_order", "failed", []),
        ("I'll cancel it now.", "get_order", "succeeded", []),
        ("Shall I say it is cancelled?", "get_order", "succeeded", []),
        ("If it is cancelled, tell me.", "get_order", "succeeded", []),
        ("Cancelling it now.", "get_order", "succeeded", []),
    ],
)
def test_what_came_of_an_action(checker: TurnChecker, text: str, call: str, status: str, expected: list[str]) -> None:
    assert check_claim(checker, text, (call, status)) == expected


def test_the_last_try_counts(checker: TurnChecker) -> None:
    assert check_claim(checker, "It's cancelled.", ("cancel", "failed"), ("cancel", "succeeded")) == ["succeeded"]
    assert check_claim(checker, "It's cancelled.", ("cancel", "succeeded"), ("cancel", "failed")) == ["failed"]


def test_a_result_may_say_what_was_done(checker: TurnChecker) -> None:
    text = "Your order has been cancelled."
    assert check_claim(checker, text, ("get_order", "succeeded"), result={"state": "cancelled"}) == ["succeeded"]
    assert check_claim(checker, text, ("get_order", "succeeded"), result={"state": "open"}) == ["absent"]


def test_all_of_it_needs_all_calls(checker: TurnChecker) -> None:
    loans = {
        "name": "list_loans",
        "arguments": {},
        "result": [{"loan": "L1", "title": "Momo"}, {"loan": "L2", "title": "Stoner"}],
    }
    renewals = [
        {"name": "renew", "arguments": {"loan": loan}, "status": status, "result": {"loan": loan}}
        for loan, status in (("L1", "succeeded"), ("L2", "failed"))
    ]
    for text, expected in (
        ("I've renewed Momo.", "succeeded"),
        ("I've renewed Stoner.", "failed"),
        ("I've renewed both.", "failed"),
    ):
        checked = checker.check(text, log=[loans, *renewals], sentences=False)
        assert [finding.status for finding in checked.findings] == [expected]


@pytest.mark.parametrize(
    ("said", "account", "status"),
    [
        ("From my savings.", "savings", "user"),
        ("From my savings.", "checking", "absent"),
        ("From the account with more in it.", "checking", "composed"),
        ("From savings to checking.", "checking", "user"),
    ],
)
def test_an_enumeration_says_what_was_chosen(said: str, account: str, status: str) -> None:
    schema = {"type": "object", "properties": {"account": {"enum": ["checking", "savings"]}, "to": {"type": "string"}}}
    call = {"name": "transfer", "arguments": {"account": account}}
    for tool in (
        {"type": "function", "function": {"name": "transfer", "parameters": schema}},
        {"name": "transfer", "input_schema": schema},
        {"name": "transfer", "inputSchema": schema},
    ):
        with make_engine(lambda text, passages: 0.9) as engine:
            checked = TurnChecker(engine, tools=[tool]).check(calls=[call], history=[said])
        assert [finding.status for finding in checked.findings] == [status]


def test_annotations_say_which_tools_change_something() -> None:
    def label(name: str, is_read: bool) -> str:
        tool = {"name": name, "annotations": {"readOnlyHint": is_read}}
        log = [{"name": name, "arguments": {}, "result": {"minutes": 4}}]
        with make_engine(lambda text, passages: 0.9) as engine:
            return TurnChecker(engine, tools=[tool]).check("Your taxi has been booked.", log=log, sentences=False).label

    assert label("get_taxi", is_read=False) == label("book_taxi", is_read=False) == "consistent"
    assert label("get_taxi", is_read=True) == label("book_taxi", is_read=True) == "inconsistent"
    with (
        make_engine(lambda text, passages: 0.9) as engine,
        pytest.raises(InvalidRequest, match=r"tools\[0\] has no name"),
    ):
        TurnChecker(engine, tools=[{"title": "taxi"}])


def test_a_tool_may_be_declared_an_action() -> None:
    taxi = {"name": "get_taxi", "arguments": {}, "result": {"minutes": 4}}
    with make_engine(lambda text, passages: 0.9) as engine:
        labels = [
            TurnChecker(engine, actions=actions).check("Your taxi has been booked.", log=[taxi], sentences=False).label
            for actions in ((), ("get_taxi",))
        ]
    assert labels == ["inconsistent", "consistent"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Two of the three are open.", []),
        ("Lido Blu is €131 a night, and Pensione Gina €72.", []),
        ("Lido Blu is €72 a night.", [("€72", "other_record")]),
        ("Pensione Gina takes you from 4 pm.", [("4 pm", "other_record")]),
        ("Pensione Gina takes you from half past three.", []),
        ("Villa Fiorita saves you €27.", []),
        ("Villa Fiorita saves you €45.", [("€45", "absent")]),
        ("You would be €59 better off.", []),
        ("It opens an hour and a half later.", []),
        ("It opens three hours later.", [("three hours", "absent")]),
        ("The three cost you €307 in all.", []),
        ("The three cost you €307.50 in all.", [("€307.50", "absent")]),
        ("The three cost you $307 in all.", [("$307", "absent")]),
        ("The two open ones cost you €235.", []),
        ("The two that are not open cost you €235.", [("€235", "absent")]),
        ("Villa Fiorita is €104, the cheapest one is €72.", []),
        ("Villa Fiorita is €104, the dearest one is €72.", [("€72", "other_record")]),
        ("Villa Fiorita is the cheapest at €72.", [("Villa", "miscounted"), ("€72", "other_record")]),
        ("Villa Fiorita, the cheapest, is €72.", [("€72", "other_record")]),
    ],
)
def test_whose_figures_are_said(checker: TurnChecker, text: str, expected: list[tuple[str, str]]) -> None:
    checked = checker.check(text, log=[HOTELS], sentences=False)
    assert [(finding.where, finding.status) for finding in checked.findings if finding.kind == "value"] == expected
    assert all(
        text[finding.start : finding.end] == finding.where for finding in checked.findings if finding.start is not None
    )


def test_a_count_must_be_that_of_a_value(checker: TurnChecker) -> None:
    log = [{"name": "list_rooms", "arguments": {}, "result": [{"free": number < 6} for number in range(9)]}]
    found = [
        checker.check(text, log=log, sentences=False).label
        for text in ("Six of the nine are free.", "Five of the nine are free.")
    ]
    assert found == ["unverifiable", "inconsistent"]


TRIPS = {
    "name": "list_trips",
    "arguments": {},
    "result": [
        {"line": f"L{number}", "fare": 11 + number, "currency": "EUR", "walk_m": 10 * number, "ride_min": 7 * number}
        | {"state": "late" if number < 6 else "due", "direct": number % 2 == 0, "fee": number, "quantity": number}
        for number in range(9)
    ],
}


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("Four of the nine cost under €15.", True),
        ("Two of the nine cost under €15.", False),
        ("Five of the nine cost €15 or more.", True),
        ("Four of the nine are at most 30 m away.", True),
        ("Four of the nine are within 0.03 km.", True),
        ("Two of the nine are within 30 m.", False),
        ("Two of the nine are direct and due.", True),
        ("Two of the nine are direct and late.", False),
        ("Two of the nine are direct and cost under €15.", True),
        ("Seven of the nine do not cost under €13.", True),
        ("Seven of the nine cost under €13.", False),
        ("The rides add up to 4 hours 12 minutes.", True),
        ("The rides add up to 4 hours 19 minutes.", False),
        ("It adds €135 to the bill.", True),
        ("It adds €136 to the bill.", False),
        ("It adds €600 to the bill.", True),
        ("It adds €601 to the bill.", False),
    ],
)
def test_counts_and_sums_follow_from_rows(checker: TurnChecker, text: str, is_right: bool) -> None:
    problems = checker.check(text, log=[TRIPS], sentences=False).problems
    assert (not problems) == is_right


def test_states_belong_to_their_records(checker: TurnChecker) -> None:
    states = [("Lost suitcase", "rejected"), ("Bike theft", "paid"), ("Hail", "paid"), ("Storm", "rejected")]
    log = [
        {
            "name": "list_claims",
            "arguments": {},
            "result": [{"subject": name, "state": state} for name, state in states],
        }
    ]
    assert checker.check("The bike is paid.", log=log, sentences=False).label != "inconsistent"
    (finding,) = checker.check("The suitcase is paid.", log=log, sentences=False).problems
    assert (finding.kind, finding.status) == ("value", "other_record")


def test_the_score_is_beside_the_label(checker: TurnChecker) -> None:
    checked = checker.check("It has a wheelchair ramp.", log=[HOTELS], history=["Hello."])
    assert checked.label == "unverifiable"
    assert checked.score is not None
    assert checked.score.verdict.label == "inconsistent"
    assert checker.check("", log=[HOTELS]).score is None


def test_chats_and_asyncio_have_the_same_findings(checker: TurnChecker) -> None:
    call = {"id": "c", "function": {"name": "cancel_order", "arguments": json.dumps({"id": "A-7"})}}
    chat = [
        {"role": "user", "content": "Cancel A-7."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"error": "closed"})},
    ]
    log = [ToolCall(name="cancel_order", arguments={"id": "A-7"}, result={"error": "closed"})]
    expected = checker.check("It's cancelled.", [call], log=log, history=chat[:1], sentences=False)
    assert expected.label == "inconsistent"
    assert checker.check("It's cancelled.", [call], history=chat, sentences=False) == expected
    assert (
        asyncio.run(checker.acheck("It's cancelled.", [call], log=chat[1:], history=["Cancel A-7."], sentences=False))
        == expected
    )


def nest(depth: int) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for _ in range(depth):
        record = {"a": record}
    return record


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"log": [{"name": "find", "result": nest(5_000)}]}, "nested too deeply"),
        ({"text": 7}, "text is int"),
        ({"calls": [{"tool": "book"}]}, r"calls\[0\] has no name"),
        ({"calls": [{"name": "book", "payload": {"guests": 7}}]}, r"has the fields payload; pass its arguments as one"),
        ({"calls": [{"name": "book", "args": {}, "input": {"guests": 7}}]}, r"calls\[0\] has the fields args, input"),
        ({"log": ["booked"]}, r"log\[0\] is str; pass a ToolCall"),
        ({"log": [{"tool": "book"}]}, r"log\[0\] has the fields tool"),
        ({"history": [7]}, "history has int that is no message"),
    ],
)
def test_a_turn_that_cannot_be_read_is_refused(checker: TurnChecker, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        checker.check(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"guests": 7',
        '{"guests": 2,}',
        '{"guests": 7, "guests": 2}',
        "not json",
        '"x"',
        "[2]",
        [2],
        7,
        '{"guests": NaN}',
    ],
)
def test_arguments_that_are_no_object_are_unknown(checker: TurnChecker, arguments: Any) -> None:
    for call in ({"name": "book", "arguments": arguments}, {"function": {"name": "book", "arguments": arguments}}):
        checked = checker.check(calls=[call], history=SAID)
        assert (checked.label, checked.status, checked.findings) == ("unknown", "invalid", ())
        assert checked.message == "calls[0] has arguments that are no JSON object with each key once."
    right = {"name": "book", "arguments": {"guests": 7}}
    assert checker.check(calls=[call, right], history=SAID).label == "inconsistent"


@pytest.mark.parametrize("key", ["arguments", "args", "input", "parameters", "params", "kwargs"])
def test_arguments_have_several_names(checker: TurnChecker, key: str) -> None:
    checked = checker.check(calls=[{"name": "book", key: {"guests": 7}}], history=SAID)
    assert [(finding.where, finding.status) for finding in checked.findings] == [
        ("calls[0].arguments.guests", "absent")
    ]


def test_the_text_of_a_custom_tool_is_its_input(checker: TurnChecker) -> None:
    call = {"type": "custom", "id": "1", "custom": {"name": "sql", "input": "SELECT name FROM guests"}}
    assert checker.check(calls=[call], history=SAID).status == "scored"


@pytest.mark.parametrize(
    ("ending", "options"),
    [("failed", Options()), ("deadline", Options(deadline_ms=0.001))],
)
def test_an_argument_that_models_did_not_read_is_unknown(ending: str, options: Options) -> None:
    def rate(text: str, passages: tuple[str, ...]) -> float:
        raise RuntimeError("no memory")

    call = {"name": "book", "arguments": {"remarks": "Guests arrive after 4 pm."}}
    with make_engine(rate) as engine:
        checked = TurnChecker(engine, options=options).check(calls=[call], log=[HOTELS], history=SAID)
    assert (checked.label, checked.status) == ("unknown", ending)
    assert checked.message
    assert [finding.status for finding in checked.findings] == (["unknown"] if ending == "failed" else [])


def test_models_read_no_more_sentences_than_allowed(checker: TurnChecker) -> None:
    notes = ["Guests arrive after 4 pm."] * MAX_PROSE
    assert checker.check(calls=[{"name": "book", "arguments": {"notes": notes}}], history=SAID).label == "consistent"
    with pytest.raises(InvalidRequest, match=f"65 arguments that are sentences; allowed are {MAX_PROSE}"):
        checker.check(calls=[{"name": "book", "arguments": {"notes": [*notes, notes[0]]}}])


def test_what_is_not_waited_for_is_cancelled() -> None:
    calls = [{"name": "book", "arguments": {"notes": ["Guests arrive after 4 pm.", "Guests leave on day three."]}}]
    with make_engine(lambda text, passages: 0.9) as engine:
        checker, submit = TurnChecker(engine), engine.submit
        pending: list[Any] = []

        def submit_once(*arguments: Any) -> Any:
            if pending:
                raise Overloaded("full", 1)
            pending.append(Mock(wraps=submit(*arguments)))
            return pending[0]

        with patch.object(engine, "submit", submit_once), pytest.raises(Overloaded):
            checker.check(calls=calls)
    assert pending[0].cancel.called


def test_texts_keep_their_places_among_messages() -> None:
    history = ["In Rimini, please.", {"role": "assistant", "content": "Which day?"}, "The 3rd."]
    context = _read_context("", [], [], history, NO_TOOLS, None)
    assert context.history == (("user", history[0]), ("assistant", "Which day?"), ("user", history[2]))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"days": {"type": "array", "items": True}}},
        {"properties": {"days": True}},
        {"properties": []},
        {"properties": {"days": {"items": [{"enum": [1]}]}}},
        True,
    ],
)
def test_schemas_without_enumerations_are_read(schema: Any) -> None:
    with make_engine(lambda text, passages: 0.9) as engine:
        TurnChecker(engine, tools=[{"name": "book", "parameters": schema, "annotations": ["read"]}])


def test_tools_are_objects_and_actions_are_several(checker: TurnChecker) -> None:
    with make_engine(lambda text, passages: 0.9) as engine:
        with pytest.raises(InvalidRequest, match=r"tools\[0\] has no name"):
            TurnChecker(engine, tools=[{"function": "book"}])
        with pytest.raises(InvalidRequest, match="actions is one string"):
            TurnChecker(engine, actions="get_taxi")
        TurnChecker(engine, actions={"get_taxi"})


ODD = (
    "9" * 400,
    "9999-12-31",
    "0001-01-01",
    "0000-00-00",
    "2026-02-29",
    "1.2.3",
    "1,2,3",
    "99:99",
    "½",
    "²",
    "٣",
    "٣٣",
    "1e400",
    "",
)
"""Texts that look like numbers, dates and times."""
WORDS = (
    "today",
    "tomorrow",
    "the day before",
    "hours",
    "nights",
    "week after next",
    "29 February",
    "on the 31st",
    "half",
    "how many",
)


@given(st.lists(st.sampled_from(ODD + WORDS), min_size=1, max_size=4), st.sampled_from((*ODD, 10**400, -1e308, 0.1)))
@example(["today", "29 February", "tomorrow"], "2027-03-01")
@example(["the day before"], "0001-01-01")
def test_whatever_is_said_has_a_finding(said: list[str], value: Any) -> None:
    text = " ".join(said)
    call = ToolCall(name="book", arguments={"value": value, "note": f"It is {text} {value} as you said."})
    log = [{"name": "find", "arguments": {"day": value}, "result": [{"a": value, "b": text}, {"a": 1, "b": "c"}]}]
    context = _read_context(f"It takes {text} {value}.", [call], log, [text], NO_TOOLS, None)
    assert len([check_one(argument, context) for argument in list_arguments(context)]) == 2
    assert all(finding.where for finding in (*check_figures(context), *check_actions(context)))


@pytest.mark.parametrize(
    ("result", "text", "expected"),
    [
        ({"duration": "PT1H30M", "price": 40}, "It takes 90 minutes.", []),
        ({"duration": "PT1H30M", "price": 40}, "It takes two hours.", ["absent"]),
        ({"duration": "1h 30m"}, "It takes 90 minutes.", []),
        ({"duration": "one and a bit", "wait_minutes": 5}, "It takes 90 minutes.", []),
        ({"duration_seconds": 7200}, "It takes two hours.", []),
        ({"duration_seconds": 7200}, "It takes three hours.", ["absent"]),
        ({"durationMinutes": 120}, "It takes two hours.", []),
        ({"duration": 7200, "wait_minutes": 5}, "It takes two hours.", []),
        ({"price": 40}, "It takes two hours.", []),
        ({"flight_hours": 2}, "It takes two hours.", []),
        ({"flight_hours": 2}, "It takes four hours.", ["absent"]),
    ],
)
def test_durations_are_read_in_their_units(
    checker: TurnChecker, result: dict[str, Any], text: str, expected: list[str]
) -> None:
    log = [{"name": "find", "arguments": {}, "result": result}]
    assert [finding.status for finding in checker.check(text, log=log, sentences=False).findings] == expected


def test_rules_run_beside_the_event_loop(checker: TurnChecker) -> None:
    threads = []

    def note(context: Any) -> list[Any]:
        threads.append(threading.current_thread())
        return []

    with patch("groundwire.turns.checker.check_actions", note):
        asyncio.run(checker.acheck("It's cancelled.", sentences=False))
    assert threads
    assert threads[0] is not threading.main_thread()


def test_figures_are_checked_within_the_deadline() -> None:
    log = [ToolCall(**HOTELS)]
    for text in ("Two of the three are open.", "It opens three hours later.", "It is €45.", "Saves you €45."):
        context = TurnContext(text, (), log, (), NO_TOOLS, 0.0)
        with pytest.raises(DeadlinePassed):
            check_figures(context)


def test_without_a_deadline_the_rules_have_an_end(checker: TurnChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.turns.checker.MAX_RULES_MS", 0.0)
    turn = checker.check(calls=[{"name": "book", "arguments": {"guests": 2}}], history=SAID)
    assert (turn.label, turn.status) == ("unknown", "deadline")


def test_what_system_messages_say_counts_as_said(checker: TurnChecker) -> None:
    system = {"role": "system", "content": "The caller's account is AC-771."}
    call = {"name": "open", "arguments": {"account": "AC-771"}}
    assert [checker.check(calls=[call], history=[*messages, *SAID]).label for messages in ([], [system])] == [
        "inconsistent",
        "consistent",
    ]


@pytest.mark.parametrize(("count", "status"), [(10, "user"), (300, "absent")])
def test_sums_of_many_numbers_are_no_support(checker: TurnChecker, count: int, status: str) -> None:
    said = ", ".join(str(1000 + 7 * number) for number in range(count))
    assert check_argument(checker, 2007 + 7, said=f"{said}.", key="total") == status


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [
        ("amount", 307, "user"),
        ("amount", 235.0, "user"),
        ("amount", 203, "absent"),
        ("amount", 308, "absent"),
        ("guests", 307, "absent"),
    ],
)
def test_an_amount_may_be_the_sum_of_rows(checker: TurnChecker, key: str, value: float, status: str) -> None:
    assert check_argument(checker, value, key=key, said="Pay for the open ones.") == status


def test_an_argument_may_be_the_gap_of_two_others(checker: TurnChecker) -> None:
    assert check_argument(checker, 95, begin="10:10", end="11:45") == "user"
    assert check_argument(checker, 5, first="2026-09-01", last="2026-09-06") == "user"
    assert check_argument(checker, 6, first="2026-09-01", last="2026-09-06") == "absent"


SECOND = ("Arms", "Court", "House", "Inn", "Lodge", "Manor", "Park", "Rest")


def test_models_read_the_records_of_a_long_list_that_are_named() -> None:
    read: list[str] = []

    def rate(text: str, passages: tuple[str, ...]) -> float:
        read.extend(passages)
        return 0.9

    rows = [{"name": f"{first} {second}"} for first in ("Alder", "Birch", "Cedar") for second in SECOND]
    log = [
        {"name": "find", "arguments": {}, "result": msgspec.json.encode({"total": 24, "rooms": rows}).decode()},
        {"name": "list", "arguments": {}, "result": [{"name": "Short Row"}, {"name": "Long Row"}]},
    ]
    with make_engine(rate) as engine:
        for text, count in (("The Birch Lodge is open.", 1), ("Birch Lodge or Cedar Inn?", 2), ("It is open.", 24)):
            read.clear()
            TurnChecker(engine).check(text, log=log)
            assert sum("".join(read).count(row["name"]) for row in rows) == count
            assert all(words in "".join(read) for words in ("total: 24", "Short Row", "Long Row"))


ROOMS = {
    "name": "find_rooms",
    "arguments": {},
    "result": [
        {
            "name": f"{first} {second}",
            "price": 60 + 3 * number,
            "breakfast_included": number % 2 == 0,
            "sea_view": False,
        }
        for number, (first, second) in enumerate(
            (first, second) for second in ("Arms", "Court", "Lodge") for first in ("Alder", "Birch", "Cedar", "Dune")
        )
    ],
}


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ("The Birch Court costs 75.", []),
        ("The Birch Court costs 78.", ["other_record"]),
        ("The Birch Court has no breakfast.", []),
        ("The Birch Court includes breakfast.", ["other_record"]),
        ("The Alder Court includes breakfast.", []),
        ("Breakfast isn't included at the Alder Court.", ["other_record"]),
        ("The Alder Court has a sea view.", ["absent"]),
        ("The Alder Court has no sea view.", []),
        ("The Birch Court could include breakfast if you ask.", []),
        ("Does the Birch Court include breakfast?", []),
        ("The Birch Court and the Alder Court include breakfast.", []),
        ("The Arms includes breakfast.", []),
    ],
)
def test_records_of_a_long_list_are_named_by_all_their_words(
    checker: TurnChecker, text: str, statuses: list[str]
) -> None:
    checked = checker.check(text, log=[ROOMS], history=["What about them?"], sentences=False)
    assert [finding.status for finding in checked.findings] == statuses


INNS = {
    "name": "find_hotels",
    "arguments": {},
    "result": [
        {"name": "Grand Leeds Hotel", "breakfast": True, "parking": False, "pets": True, "free_wifi": True},
        {"name": "Royal York Inn", "breakfast": False, "parking": True, "pets": False, "free_wifi": False},
    ],
}


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("Grand Leeds Hotel has no parking but breakfast.", False),
        ("Grand Leeds Hotel has breakfast, no parking.", False),
        ("Not only breakfast is included at Grand Leeds Hotel.", False),
        ("Grand Leeds Hotel has breakfast at no charge.", False),
        ("Grand Leeds Hotel offers breakfast without extra cost.", False),
        ("Grand Leeds Hotel has no parking.", False),
        ("Breakfast at Grand Leeds Hotel is not bad.", False),
        ("Grand Leeds Hotel, unlike Royal York Inn, has breakfast.", False),
        ("Grand Leeds Hotel has free breakfast and Royal York Inn does not have breakfast.", False),
        ("Grand Leeds Hotel never runs out of breakfast.", False),
        ("You will not regret breakfast at Grand Leeds Hotel.", False),
        ("Pets are no problem at Grand Leeds Hotel.", False),
        ("No worries, breakfast is included at Grand Leeds Hotel.", False),
        ("Grand Leeds Hotel has no breakfast.", True),
        ("Grand Leeds Hotel doesn't have breakfast.", True),
        ("Grand Leeds Hotel does not offer any breakfast, but the rooms are large.", True),
        ("There is no breakfast at Grand Leeds Hotel.", True),
        ("Breakfast is not included at the Grand Leeds Hotel.", True),
        ("Pets aren't allowed at Grand Leeds Hotel.", True),
        ("Grand Leeds Hotel has no parking and no breakfast.", True),
        ("Grand Leeds Hotel has no free wifi.", True),
        ("Grand Leeds Hotel has parking.", True),
        ("Grand Leeds Hotel has no parking fee.", False),
        ("Grand Leeds Hotel has no breakfast buffet.", False),
        ("Grand Leeds Hotel has no breakfast on Sundays.", False),
        ("Grand Leeds Hotel does not have only breakfast.", False),
        ("Grand Leeds Hotel isn't without breakfast.", False),
        ("Rooms without breakfast at Grand Leeds Hotel cost 80.", False),
        ("The smallest room at Grand Leeds Hotel has no breakfast.", False),
        ("Breakfast is not included in the cheapest rate at Grand Leeds Hotel.", False),
        ("Pets are not allowed in the pool of Grand Leeds Hotel.", False),
        ("There is no charge for breakfast at Grand Leeds Hotel.", False),
        ("Royal York Inn has no pets or breakfast.", False),
        ("No guest leaves Grand Leeds Hotel without breakfast.", False),
    ],
)
def test_a_denial_counts_beside_what_it_denies(checker: TurnChecker, text: str, is_wrong: bool) -> None:
    checked = checker.check(text, log=[INNS], history=["What about them?"], sentences=False)
    assert [finding.status for finding in checked.findings] == ["other_record"] * is_wrong


def test_a_key_is_no_flag_where_another_has_its_words(checker: TurnChecker) -> None:
    rooms = [{"name": name, "breakfast": False, "breakfast_price": 12} for name in ("Lido Blu", "Villa Rosa")]
    checked = checker.check("The Lido Blu has breakfast for 12.", log=[{"name": "find", "result": rooms}])
    assert checked.findings == ()
