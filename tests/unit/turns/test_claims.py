"""What a turn claims to have done, against the call that did it, and what no result has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from groundwire.testing import make_engine
from groundwire.turns import TurnChecker
from groundwire.turns.claims import list_claims


@pytest.fixture
def checker() -> Iterator[TurnChecker]:
    with make_engine(lambda text, passages: 0.9) as engine:
        yield TurnChecker(engine)


PARCEL = (
    "Send the 2.5 kg parcel to Ines Duarte, Rua Nova 14 in Porto, pickup 2 December at 10. Not to Ana Duarte.",
    "ship_parcel",
    {
        "to": "Ines Duarte",
        "address": "Rua Nova 14, Porto",
        "weight_kg": 2.5,
        "pickup_date": "2026-12-02",
        "pickup_time": "10:00",
    },
    {"tracking": "PX-88120", "price": 14.9, "currency": "EUR"},
)
SURGERY = (
    "Put Leo Brandt down for OR-3 on Friday 20 November at 8:30, 90 minutes.",
    "schedule_surgery",
    {"patient": "Leo Brandt", "room": "OR-3", "start": "2026-11-20T08:30", "duration_min": 90},
    {"case_id": "C-4410", "surgeon": "Dr. Mehta"},
)
SEMINAR = (
    "Register Ada Mills, Jon Reyes and Kofi Mensah for the fire safety seminar on 25 November, not 2 December.",
    "register_participants",
    {"seminar": "Fire safety", "date": "2026-11-25", "participants": ["Ada Mills", "Jon Reyes", "Kofi Mensah"]},
    {"registration": "SEM-209", "fee_total": 270, "currency": "EUR"},
)
INVOICE = (
    "Pay invoice 2026-0417 from Lumen Print, 812.50, and leave the one from Korda Paper (640) for next week.",
    "pay_invoice",
    {"invoice": "2026-0417", "amount": 812.5, "currency": "EUR", "payee": "Lumen Print"},
    {"payment_id": "PM-3391", "executed_on": "2026-11-12"},
)
TABLE = (
    "Book Trattoria Rossi at 19:45 on Friday 6 March 2026 for four, for Priya Nair. Or Casa Verde if it is full.",
    "book_table",
    {"restaurant": "Trattoria Rossi", "date": "2026-03-06", "time": "19:45", "party_size": 4},
    {"booking_ref": "TR-4471", "deposit_per_person": 10},
)


@pytest.mark.parametrize(
    ("said", "right", "wrong"),
    [
        (
            PARCEL,
            (
                "I've booked the pickup for 2 December at 10 am. Your tracking number is PX-88120.",
                "Your parcel to Ines Duarte is booked: pickup on Wednesday 2 December, €14.90.",
                "I've sent the 2.5 kg parcel on its way to Porto.",
                "I've arranged the pickup; it costs €14.90 and they come at ten.",
            ),
            (
                "I've booked the pickup for 3 December at 10 am.",
                "Your parcel to Ana Duarte is booked.",
                "I've booked the parcel and emailed Ines the tracking number.",
                "Booked! The tracking number is PX-88210.",
            ),
        ),
        (
            SURGERY,
            (
                "Leo Brandt is scheduled in OR-3 on Friday 20 November at 8:30, until 10:00.",
                "I've scheduled Leo Brandt with Dr. Mehta for half past eight on the 20th (case C-4410).",
                "Done, 90 minutes in OR-3 are reserved for Leo Brandt.",
                "I've scheduled the surgery with Dr. Mehta and noted the 90 minutes you asked for.",
            ),
            (
                "Leo Brandt is scheduled in OR-3 on Friday 20 November at 9:30.",
                "I've scheduled Leo Brandt in OR-5 on Friday 20 November at 8:30.",
                "I've scheduled Lea Brandt in OR-3 for the 20th.",
                "I've scheduled the surgery and informed the family.",
            ),
        ),
        (
            SEMINAR,
            (
                "All three are registered for the fire safety seminar on 25 November; the fee is €270.",
                "I've registered Ada, Jon and Kofi (SEM-209).",
                "I've registered the three for €90 each, €270 in total.",
            ),
            (
                "All four are registered for the fire safety seminar on 25 November.",
                "I've registered Ada Mills, Jon Reyes and Kofi Mensah for 2 December.",
                "I've registered Ada Mills, Jon Reyes and Carla Mensah for 25 November.",
                "I've registered the three for €290 in total.",
            ),
        ),
        (
            INVOICE,
            (
                "I've paid Lumen Print €812.50.",
                "Invoice 2026-0417 is paid; the bank executed it on 12 November.",
                "Paid: €812.50 to Lumen Print, payment PM-3391. Korda Paper's €640 can wait until next week.",
                "I've paid Lumen's invoice, a little over 812 euros.",
            ),
            (
                "I've paid Korda Paper €640.",
                "I've paid Lumen Print €640.",
                "I've paid the invoice and scheduled Korda Paper for next week.",
                "I've paid invoice 2026-0471.",
            ),
        ),
        (
            TABLE,
            (
                "Your table for four is booked, Priya: Friday at 7:45 pm. The reference is TR-4471.",
                "I've booked Rossi for you on 6 March at quarter to eight.",
            ),
            (
                "I've booked Casa Verde for you.",
                "Your table is booked for 20:45.",
                "Your table for five is booked.",
                "Your table is booked for 7 March.",
                "Booked. Your reference is TR-4477.",
                "I've booked it and cancelled your old one.",
                "I've booked the table and emailed you the confirmation.",
                "Your taxi is booked.",
            ),
        ),
    ],
)
def test_a_claim_is_compared_with_its_call(
    checker: TurnChecker, said: tuple[str, str, dict[str, Any], Any], right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    history, name, arguments, result = said
    log = [{"name": name, "arguments": arguments, "result": result, "status": "succeeded"}]

    def label(text: str) -> str:
        return checker.check(text, log=log, history=[history], sentences=False).label

    assert [text for text in right if label(text) != "consistent"] == []
    assert [text for text in wrong if label(text) != "inconsistent"] == []


def read_booking(state: str) -> dict[str, Any]:
    return {"name": "get_booking", "arguments": {}, "result": {"train": "9:15", "status": state}, "status": "succeeded"}


@pytest.mark.parametrize(
    ("text", "log", "label"),
    [
        ("You're booked in at Trattoria Rossi for Friday at 19:45.", [], "inconsistent"),
        ("Your booking is in.", [], "inconsistent"),
        ("We've got you down for 19:45 on Friday.", [], "inconsistent"),
        ("✅ Table booked", [], "inconsistent"),
        ("Your booking reference is TR-4471.", [], "inconsistent"),
        ("The table is yours: Friday at 19:45.", [], "inconsistent"),
        ("Order confirmed ✔ two mugs.", [], "inconsistent"),
        ("Membership cancelled. Sorry to see you go.", [], "inconsistent"),
        ("You're booked in for 9:15.", [read_booking("confirmed")], "consistent"),
        ("You're booked in for 10:45.", [read_booking("confirmed")], "inconsistent"),
        ("We're fully booked on Friday, I'm afraid.", [], "unverifiable"),
        ("The 9:15 is booked already.", [read_booking("open")], "unverifiable"),
        ("You're not booked in yet; shall I do it?", [], "unverifiable"),
        ("Great, I've got it. For how many people?", [], "unverifiable"),
        ("Everyone knows that Rossi is good.", [], "unknown"),
    ],
)
def test_a_claim_without_a_call_is_absent(
    checker: TurnChecker, text: str, log: list[dict[str, Any]], label: str
) -> None:
    history = ["A table at Trattoria Rossi on Friday at 19:45 please."]
    assert checker.check(text, log=log, history=history, sentences=False).label == label


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("I've booked it and cancelled your old one.", ["I've booked it", "cancelled your old one."]),
        ("I've updated and saved your preferences.", ["I've updated and saved your preferences."]),
        ("I've booked it, emailed Tom and informed Eva.", ["I've booked it", "emailed Tom", "informed Eva."]),
        ("I've refilled it.", ["I've refilled it."]),
        ("I've polished it.", []),
    ],
)
def test_each_verb_is_a_claim(text: str, claims: list[str]) -> None:
    assert [claim.text for claim in list_claims(text)] == claims


def test_a_tool_of_any_verb_may_be_claimed() -> None:
    assert [claim.text for claim in list_claims("I've polished it.", frozenset({"polish_floor"}))] == [
        "I've polished it."
    ]


BILLS = [
    {
        "name": "get_bills",
        "arguments": {},
        "result": [
            {"month": "September", "kwh": 210, "cost": 67.2, "currency": "GBP"},
            {"month": "October", "kwh": 410, "cost": 131.2, "currency": "GBP"},
            {"month": "November", "kwh": 365, "cost": 116.8, "currency": "GBP"},
        ],
    }
]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("The lowest bill was £67.20.", []),
        ("Your highest bill was £131.20, and the lowest £67.20.", []),
        ("The three add up to £315.20.", []),
        ("September and November were £184 together.", []),
        ("On average you paid £105.07.", []),
        ("The highest under £120 was £116.80.", []),
        ("The highest with the old tariff was £116.80.", []),
        ("The lowest bill was £116.80.", ["£116.80"]),
        ("The highest cost was £67.20.", ["£67.20"]),
        ("The three add up to £325.20.", ["£325.20"]),
        ("You paid £118.60 in November.", ["£118.60"]),
        ("Write to help@bills.example or call 0151 496 0188.", ["help@bills.example", "0151 496 0188"]),
        ("Your reference is GB-20931.", ["reference is GB-20931"]),
    ],
)
def test_amounts_and_references_are_in_the_log_or_follow(checker: TurnChecker, text: str, wrong: list[str]) -> None:
    checked = checker.check(text, log=BILLS, history=["How much did I pay?"], sentences=False)
    assert [finding.where for finding in checked.problems] == wrong


GYM = {
    "plan": "Flex",
    "joining_fee": 25,
    "monthly_fee": 39.9,
    "currency": "EUR",
    "notice_weeks": 4,
    "max_guests": 2,
    "age_min": 16,
}
CROSSING = {
    "vessel": "Loch Nevin",
    "duration_min": 85,
    "capacity_cars": 60,
    "fare_adult": 18.5,
    "fare_child": 9.25,
    "surcharge": 6,
    "currency": "GBP",
    "gate": 3,
}
RULES = {"loan_days": 21, "max_loans": 12, "late_fee_per_day": 0.3, "deposit": 20, "renewals": 2}
FLAT = {
    "address": "Mill Road 14",
    "rent": 940,
    "utilities": 160,
    "deposit_months": 3,
    "floor": 2,
    "rooms": 3,
    "size_m2": 71,
    "currency": "EUR",
}


@pytest.mark.parametrize(
    ("result", "right", "wrong"),
    [
        (
            GYM,
            (
                "The joining fee is €25.",
                "The joining fee is 25.",
                "The monthly fee is €39.90, so your first month costs €64.90.",
                "The notice is 4 weeks.",
                "You can bring a maximum of 2 guests.",
                "The minimum age is 16.",
            ),
            (
                "The joining fee is €35.",
                "The joining fee is 30.",
                "The monthly fee is €49.90.",
                "The minimum age is 18.",
            ),
        ),
        (
            CROSSING,
            (
                "The surcharge is 6 pounds.",
                "The adult fare is £18.50, the child fare £9.25.",
                "A family of two adults and two children pays a fare of £55.50.",
                "The duration is 85 minutes.",
                "It leaves from gate 3.",
                "The capacity is 60 cars.",
            ),
            (
                "The adult fare is £19.50.",
                "The child fare is £9.75.",
                "The duration is 95 minutes.",
                "The capacity is 80 cars.",
            ),
        ),
        (
            RULES,
            (
                "The deposit is 20.",
                "There is a late fee of 30p per day.",
                "The late fee is 0.30 a day, so a week costs 2.10.",
                "You have 21 days for each loan.",
                "You get 2 renewals.",
            ),
            (
                "The deposit is 25.",
                "There is a late fee of 50p per day.",
                "The late fee is 0.20 a day.",
                "The deposit of 40 is paid back.",
                "The late fee is 3 a day.",
            ),
        ),
        (
            FLAT,
            (
                "The rent is €940 plus utilities of €160, so €1,100.",
                "The deposit is 3 months' rent, €2,820.",
                "The rent is 940.",
                "Utilities are €160.",
                "It is on floor 2.",
            ),
            ("The rent is €990.", "The rent of 904 includes nothing.", "Utilities are €180.", "The utilities are 140."),
        ),
    ],
)
def test_a_number_is_of_the_key_that_it_is_given_to(
    checker: TurnChecker, result: dict[str, Any], right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    history = ["Tell me about it, for my family of 2 adults and 2 children."]

    def label(text: str) -> str:
        return checker.check(text, log=[{"name": "get", "result": result}], history=history, sentences=False).label

    assert [text for text in right if label(text) in ("inconsistent", "unknown")] == []
    assert [text for text in wrong if label(text) != "inconsistent"] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "text", "is_right"),
    [
        ("book_sauna", {"from": "09:30"}, {}, "I've booked the sauna from 9:30.", True),
        ("reserve_hall", {"until": "22:00"}, {}, "I've reserved it until 10 pm.", True),
        ("book_room", {"guest": "Olga Ruiz"}, {}, "I've booked the guest Ms Ruiz in.", True),
        ("order_item", {"size": "medium"}, {}, "I've ordered the size M shirt.", True),
        ("book_flight", {"flight": "LH400"}, {}, "I've booked flight LH 400.", True),
        ("book_room", {"room": "B-12"}, {}, "I've booked room B12.", True),
        ("book_room", {"room": "B-12"}, {}, "I've booked room B14.", False),
        ("book_table", {"people": 4}, {}, "I've booked a table for 7 people.", False),
        ("book_table", {"people": 4}, {}, "I've booked a table for seven.", False),
        ("place_order", {"sku": "DF", "qty": 2}, {}, "I've ordered 3 bags.", False),
        ("place_order", {"sku": "DF", "qty": 2}, {}, "I've ordered two bags.", True),
        ("buy_tickets", {"count": 2}, {}, "I've bought 6 tickets.", False),
        ("transfer", {"to": "Sam", "amount": 70}, {}, "I've transferred £350 to Sam.", False),
        ("transfer", {"to": "Sam", "amount": 70}, {}, "I've transferred £70 to Sam.", True),
        ("send_invites", {"people": ["Priya Rao", "Tom Ek"]}, {}, "I've invited Priya, Tom and Lena.", False),
        ("update_address", {"address": "5 Kiln Road"}, {}, "Your address is updated to 15 Kiln Road.", False),
        ("update_address", {"address": "5 Kiln Road"}, {}, "Your address is updated to 5 Kiln Road.", True),
        ("extend_membership", {"id": "M1"}, {"until": "2027-03-31"}, "It is extended until 31 December.", False),
        ("send_email", {"to": "a@x.example"}, {}, "I've sent it to a@y.example.", False),
        ("refund_order", {"order": "A1", "amount": 35}, {}, "I've issued a refund of $35.", True),
        ("top_up_card", {"card": "8812", "amount": 40}, {}, "I've charged your card with €40.", True),
    ],
)
def test_what_a_claim_says_is_in_the_arguments(
    checker: TurnChecker, tool: str, arguments: dict[str, Any], result: Any, text: str, is_right: bool
) -> None:
    log = [{"name": tool, "arguments": arguments, "result": result or {"done": True}, "status": "succeeded"}]
    history = ["There are 5 of us, and Lena Ots. Write to a@y.example too. Do it, please."]
    checked = checker.check(text, log=log, history=history, sentences=False)
    assert checked.label == ("consistent" if is_right else "inconsistent")


def read_order(number: str) -> dict[str, Any]:
    result = {"order_id": number, "total": 64, "state": "packed"}
    return {"name": "get_order", "arguments": {"order_id": number}, "result": result, "status": "succeeded"}


ORDERS = [read_order("ST-40817"), read_order("ST-40902"), read_order("40817"), read_order("40902")]


@pytest.mark.parametrize(
    ("said", "key", "value", "status"),
    [
        ("Cancel order ST-40817 please.", "order_id", "ST-40902", "other_record"),
        ("Cancel order ST-40817 please.", "order_id", "ST-40817", "user"),
        ("Cancel order 40817 please.", "order_id", "40902", "other_record"),
        ("Cancel my second order.", "order_id", "ST-40902", "result"),
        ("Refund 20 of it.", "amount", 64, "result"),
        ("I moved to 4 Mill Road, Otley LS21 3BT.", "postcode", "LS21 3TB", "absent"),
        ("I moved to 4 Mill Road, Otley ls21 3bt.", "postcode", "LS213BT", "user"),
    ],
)
def test_a_code_is_the_one_that_was_named(checker: TurnChecker, said: str, key: str, value: Any, status: str) -> None:
    call = {"name": "cancel_order", "arguments": {key: value}}
    (finding,) = checker.check(calls=[call], log=ORDERS, history=[said], sentences=False).findings
    assert finding.status == status


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Order ST-40902 is cancelled.", "consistent"),
        ("I've cancelled ST-40902; ST-40817 is still being packed.", "consistent"),
        ("Order ST-40817 is cancelled.", "inconsistent"),
        ("I've cancelled ST-40817 and ST-40902.", "inconsistent"),
    ],
)
def test_a_claim_is_about_the_record_of_its_call(checker: TurnChecker, text: str, label: str) -> None:
    arguments = {"order_id": "ST-40902"}
    done = {"name": "cancel_order", "arguments": arguments, "result": {"status": "cancelled"}, "status": "succeeded"}
    history = ["Cancel ST-40902, not ST-40817."]
    assert checker.check(text, log=[*ORDERS, done], history=history, sentences=False).label == label


CANCELLED = {"name": "cancel_visit", "arguments": {"visit": "V9"}, "result": {"status": "cancelled"}}
MAILED = {"name": "send_email", "arguments": {"to": "ann@x.example"}, "result": {"sent": True}}
RENEWED = {"name": "renew_pass", "arguments": {"pass": "P1"}, "result": {"confirmation_sent_to": "ann@x.example"}}


@pytest.mark.parametrize(
    "text",
    [
        "Your visit is cancelled. A confirmation is on its way to your inbox.",
        "Your visit is cancelled; you'll find the confirmation in your inbox.",
        "I've cancelled it and an e-mail has been sent to you.",
        "Cancelled, and the confirmation has gone out to your address.",
        "It's cancelled, and the letter is in the post.",
    ],
)
def test_a_message_that_is_on_its_way_was_sent(checker: TurnChecker, text: str) -> None:
    def label(*log: dict[str, Any]) -> str:
        return checker.check(text, log=[call | {"status": "succeeded"} for call in log], sentences=False).label

    assert (label(CANCELLED), label(CANCELLED, MAILED)) == ("inconsistent", "consistent")
    assert label(CANCELLED, RENEWED) == "consistent"


def test_an_order_that_is_on_its_way_needs_no_message(checker: TurnChecker) -> None:
    log = [{"name": "order_shirt", "arguments": {"size": "L"}, "result": {"order": "O77"}, "status": "succeeded"}]
    assert checker.check("I've ordered it. The parcel is on its way.", log=log, sentences=False).label == "consistent"


READY = {
    "name": "order_food",
    "arguments": {"dish": "risotto"},
    "result": {"ready_at": "18:30", "delivery": "2026-11-18"},
    "status": "succeeded",
}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I've ordered the food; you can collect it after 6:30 pm.", "consistent"),
        ("I've ordered the food; you can collect it after 7:30 pm.", "inconsistent"),
        ("I've ordered it. It arrives by 18 November.", "consistent"),
        ("I've ordered it. It arrives by 16 November.", "inconsistent"),
        ("I've ordered it. It arrives two days after 16 November.", "consistent"),
        ("I've ordered it. I'll remind you on 17 November.", "consistent"),
        ("I've ordered it. Would 7:30 pm suit you, too?", "consistent"),
    ],
)
def test_dates_and_times_of_a_text_are_from_somewhere(checker: TurnChecker, text: str, label: str) -> None:
    history = [
        {"role": "user", "content": "The risotto, please, two days after 16 November." if "two" in text else "Hi"}
    ]
    assert checker.check(text, log=[READY], history=history, sentences=False).label == label


def test_a_check_has_a_label_and_its_score_a_verdict(checker: TurnChecker) -> None:
    checked = checker.check("It's sunny.", log=[], history=[])
    with pytest.raises(AttributeError, match=r"did you mean label or score\.verdict\?"):
        _ = checked.verdict  # type: ignore[attr-defined]
