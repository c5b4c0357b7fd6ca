"""Values that the knowledge has of something else."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.engine.values.roles import MAX_CHARS, MAX_VALUES, belongs, find_exchanged
from groundwire.runtime.fake import FakeRuntime

HOURS = ["The kitchen closes at 21:30, the bar at 01:00."]
DOORS = ["Doors open at 18:30; the show begins at 20:00."]
CLINICS = ["Dr Singh heads the eye clinic.", "Dr Walsh heads the dental clinic."]
PROSE = (
    "Ann, who lives in Oslo, wrote a long book about Rome and its old walls for children, which Bob and Cy read "
    "together in the summer of a rainy year."
)
PASSES = ["The monthly pass costs CHF 82 and the annual pass CHF 790."]
INVOICE = ["Invoice date: 2 September. Due date: 16 September. Reminder fee from 30 September."]
MEMBERS = ["Course fee: 420 euros for members, 510 euros for non-members."]
BOATS = ["Ferry to Skarv Island: 09:20. Last ferry back: 17:45."]
TRAINS = ["Train 12 departs from Linz at 07:04 and arrives in Salzburg at 08:12."]
FLIGHTS = ["Evening flight: departs 19:50, lands 22:15."]
SHIPPING = ["Shipping within the EU is €6. Shipping to Switzerland is €14. Shipping overseas is €29."]
ORDER = [
    "Order 48213: coffee machine, £189, paid on 14 November. Status: dispatched on 16 November. Expected delivery: 19 "
    "November. A voucher of £10 was sent to the holder of the account with a letter on 21 November, valid until 3 May. "
    "Returns within 30 days, guarantee 2 years, delivery £3.95 and 3 to 5 days."
]
PAINTS = [
    "Paint Meadow is for indoor use and dries in 2 hours.",
    "Paint Storm is for outdoor use and dries in 8 hours.",
]
JOBS = ["Ben lives in Cork and has worked there since 2011.", "Liam lives in Galway and has worked there since 2016."]
NOVEL = ["The novel 'Tide' was written by Marta Oyen and translated into English by Paul Kerr."]
PLANS = ["Group A: course from 6 October, exam on 17 October.", "Group B: course from 13 October, exam on 24 October."]

SUNDAYS = ["We open at 10 am and close at 5 pm on Sundays."]
COACH = ["The bus leaves at 9 am and returns at 6 pm at weekends."]
MONDAYS = ["Adults pay £10, children £6 and seniors pay £5 on Mondays."]
FAMILIES = ["It costs £120 for one adult and one child; each further child costs £35."]


@pytest.mark.parametrize(
    ("response", "knowledge", "history", "expected"),
    [
        ("The bar closes at 21:30.", HOURS, [], [("21:30", "01:00")]),
        ("The bar closes at 1 am.", HOURS, [], []),
        (
            "The Danube is more than twice as long as the Rhine.",
            "The Danube is 2,850 kilometres long, and the Rhine 1,230 kilometres.",
            [],
            [],
        ),
        ("The doors open at 8 pm.", DOORS, [], [("8 pm", "18:30")]),
        ("They start at 8 pm.", DOORS, [], []),
        ("It is at 18:30.", DOORS, ["When is the show?"], [("18:30", "20:00")]),
        ("It is at 20:00.", DOORS, ["When is the show?"], []),
        ("In group B the exam is on 17 October.", PLANS, [], [("17 October", "24 October")]),
        ("Dr Singh runs the dental clinic.", CLINICS, [], [("Dr Singh", "Dr Walsh")]),
        # In prose two names are not the rows of a list.
        ("Ann wrote the book about Oslo.", [PROSE], [], []),
        # In longer knowledge a word is enough in a short clause, and two are needed in others.
        ("It was dispatched on 19 November.", ORDER, [], [("19 November", "16 November")]),
        ("It was dispatched on 16 November.", ORDER, [], []),
        ("The voucher is valid until 3 May.", ORDER, [], []),
        # The end of a period is not exchanged with its beginning.
        ("Juniors wear it from November until March.", ["Rowers wear it from November to March if juniors."], [], []),
        # A value that the knowledge does not have is not exchanged, nor is one that has no rival.
        ("The bar closes at 23:00.", HOURS, [], []),
        ("The bar closes at 21:30.", ["The kitchen closes at 21:30."], [], []),
        # One unit of time is the period of a price.
        ("Someone who commits for one month is charged 790 francs.", PASSES, [], [("790 francs", "CHF 82")]),
        ("Someone who commits for one year is charged 790 francs.", PASSES, [], []),
        # What a clause only carries on from the clause before it does not suffice.
        ("The invoice was issued on 2 September and has to be settled by 16 September.", INVOICE, [], []),
        # What is denied, or comes after a comparison, is something else.
        ("The course costs 510 euros without being a member.", MEMBERS, [], []),
        ("The course costs 420 euros without being a member.", MEMBERS, [], [("420 euros", "510 euros")]),
        ("At eight in the evening, an hour and a half after the doors open.", DOORS, ["When is the show?"], []),
        ("Storm needs 8 hours, longer than the indoor paint Meadow.", PAINTS, [], []),
        # A clause after a comma may say which value is meant.
        ("Be at the pier on Skarv before 17:45, as that is the final boat home.", BOATS, [], []),
        # Verbs with a particle, and what a sentence is about.
        ("The evening flight takes off at 19:50 and touches down at 22:15.", FLIGHTS, [], []),
        ("The evening flight takes off at 22:15.", FLIGHTS, [], [("22:15", "19:50")]),
        ("Train 12 arrives in Salzburg at 7:04.", TRAINS, [], [("7:04", "08:12")]),
        ("Sending it to Bern, Switzerland, means a fee of €29.", SHIPPING, [], [("€29", "€14")]),
        # A pronoun in the first sentence is who the user asked about.
        ("He has worked there since 2011.", JOBS, ["What about Liam?"], [("2011", "2016")]),
        ("He has worked there since 2016.", JOBS, ["What about Liam?"], []),
        # A qualifier at the end holds for each clause that "and" joins, unless it has its own or says that one changes.
        ("We open at 10 am on Sundays.", SUNDAYS, [], []),
        ("On Sundays we open at 10 am.", SUNDAYS, [], []),
        ("On Sundays we close at 5 pm.", SUNDAYS, [], []),
        ("We open at 10 am in July.", ["We open at 10 am and close at 5 pm in July."], [], []),
        ("The bus leaves at 9 am at weekends.", COACH, [], []),
        ("The bus leaves at 6 pm at weekends.", COACH, [], [("6 pm", "9 am")]),
        ("Children pay £6 on Mondays.", MONDAYS, [], []),
        ("You pay £10 on Mondays.", MONDAYS, [], []),
        ("The swim is £10 in winter.", ["The swim is £10 and it drops to £6 in winter."], [], [("£10", "£6")]),
        ("We open at 10 on Sundays.", ["We open at 10 and open at 12 on Sundays."], [], [("10", "12")]),
        ("Tickets are £5 for children.", ["Tickets are £5 and £3 for children."], [], [("£5", "£3")]),
        ("Non-members pay £5.", ["Members pay £5 and the entry is £9 for non-members."], [], [("£5", "£9")]),
        # The clause of a value begins after a semicolon before it, or with the value.
        ("It costs £120 for one adult and one child.", FAMILIES, [], []),
        ("It costs £35 for one adult and one child.", FAMILIES, [], [("£35", "£120")]),
        ("Each further child costs £120.", FAMILIES, [], [("£120", "£35")]),
        ("One adult and one child pay £120.", ["£120 for one adult and one child, £35 for any further child."], [], []),
        ("One adult and one child pay £35.", ["£120 for one adult and one child, £35 for any further child."], [],
         [("£35", "£120")]),
        ("Two adults and one child pay £20.", ["£20 for two adults and one child, but each dog costs £8."], [], []),
        # A nationality is not exchanged with a name of another kind.
        ("The English text of 'Tide' is the work of Paul Kerr.", NOVEL, [], []),
    ],
)  # fmt: skip
def test_exchanged_values_are_found(
    response: str, knowledge: list[str], history: list[str], expected: list[tuple[str, str]]
) -> None:
    exchanges = find_exchanged(response, knowledge, history)
    assert [
        (response[item.start : item.end], knowledge[item.passage][item.known_start : item.known_end])
        for item in exchanges
    ] == expected


def test_an_exchanged_value_is_contradicted() -> None:
    with Engine(FakeRuntime({})) as engine:
        wrong = engine.score("The bar closes at 21:30.", HOURS, metrics=["values"])
        right = engine.score("The kitchen closes at 21:30.", HOURS, metrics=["values"])
    (span,) = wrong.unsupported
    assert (span.text, span.reason, span.knowledge_says) == ("21:30", "mismatch", "01:00")
    assert (right.unsupported, right.value) == ((), 1.0)


def test_a_value_belongs_to_what_its_clause_is_about() -> None:
    response = "The bar closes at 23:00."
    where = (response.index("23:00"), response.index("23:00") + 5)
    assert [belongs(response, where, HOURS, 0, (at, at + 5)) for at in (22, 40)] == [False, True]


def test_in_long_knowledge_nothing_is_distinguished() -> None:
    many = HOURS + [f"Room {number} has {number} chairs." for number in range(2, 2 * MAX_VALUES)]
    assert find_exchanged("The bar closes at 21:30.", many) == []
    assert find_exchanged("The bar closes at 21:30.", [*HOURS, "It is so. " * MAX_CHARS]) == []
