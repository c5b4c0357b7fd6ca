"""Statements about two names: which are read, and which the knowledge contradicts with the names exchanged."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import ValuesExplanation
from groundwire.engine.values.comparing import normalize
from groundwire.engine.values.names import find_names
from groundwire.engine.values.records import Statement
from groundwire.engine.values.statements import _OPPOSITES, _VERBS, list_mentions, read_statements
from groundwire.engine.values.support import check_values
from groundwire.engine.values.tokens import tokenize
from groundwire.runtime.fake import FakeRuntime
from tests.support.count_calls import count_calls

CHESS = "In 1997 the computer Deep Blue beat the world champion Garry Kasparov in a match of six games."
CUISINE = "During that time, French cuisine was heavily influenced by Italian cuisine."


def find_exchanged(response: str, *knowledge: str) -> list[tuple[str, str]]:
    """What the response says of two names the wrong way round, and what the knowledge says."""
    return [
        (response[check.value.start : check.value.end], knowledge[at.passage][at.start : at.end])
        for check in check_values(response, knowledge)
        if check.value.kind == "relation" and (at := check.evidence) is not None
    ]


@pytest.mark.parametrize(
    ("response", "knowledge", "wrong"),
    [
        ("In 1997 Kasparov beat the computer Deep Blue.", CHESS, "Kasparov beat the computer Deep Blue"),
        ("kasparov beat deep blue", CHESS, "kasparov beat deep blue"),
        ("Deep Blue was beaten by Kasparov!", CHESS, "Deep Blue was beaten by Kasparov"),
        ("Deep Blue lost a match to Kasparov.", CHESS, "Deep Blue lost a match to Kasparov"),
        (
            "in that time italian cuisine was influenced by french cuisine",
            CUISINE,
            "italian cuisine was influenced by french cuisine",
        ),
        ("GitHub bought Microsoft in 2018.", "GitHub was bought by Microsoft in 2018.", "GitHub bought Microsoft"),
        ("Yes, Spain is larger than France.", "France is larger than Spain.", "Spain is larger than France"),
        (
            "Spain isn't small. Spain is bigger than France.",
            "France is bigger than Spain.",
            "Spain is bigger than France",
        ),
        ("Jupiter is smaller than Saturn.", "Jupiter is larger than Saturn.", "Jupiter is smaller than Saturn"),
        (
            "Japan is less crowded than Canada.",
            "Japan is more crowded than Canada.",
            "Japan is less crowded than Canada",
        ),
    ],
)
def test_exchanged_names_are_contradicted(response: str, knowledge: str, wrong: str) -> None:
    assert [ours for ours, _ in find_exchanged(response, knowledge)] == [wrong]


@pytest.mark.parametrize(
    ("response", "knowledge"),
    [
        # The same in other words.
        ("Kasparov was beaten by Deep Blue.", CHESS),
        ("Kasparov lost to Deep Blue.", CHESS),
        ("Italian cuisine influenced French cuisine.", CUISINE),
        ("Spain is smaller than France.", "France is larger than Spain."),
        # Less, or something else, than the words.
        ("Did Kasparov beat Deep Blue?", CHESS),
        ("Kasparov almost beat Deep Blue.", CHESS),
        ("Kasparov did not beat Deep Blue.", CHESS),
        ("Kasparov's team beat Deep Blue.", CHESS),
        ("The teacher of Kasparov beat Deep Blue.", CHESS),
        ("Kasparov beat the makers of Deep Blue.", CHESS),
        ("Karpov and Kasparov beat Deep Blue.", CHESS),
        ("Italian cuisine was influenced by French fashion.", CUISINE),
        ("Kasparov met Deep Blue.", "Deep Blue met Kasparov."),
        ("Kasparov admired Deep Blue.", CHESS),
        # The knowledge says both.
        ("Nadal beat Federer.", "Federer beat Nadal in 2007. In 2008 Nadal beat Federer in Paris."),
        # Two sentences.
        ("It was Kasparov. Beat that, Deep Blue!", CHESS),
    ],
)
def test_nothing_is_said_of_what_is_right_or_not_read(response: str, knowledge: str) -> None:
    assert find_exchanged(response, knowledge) == []


ANOTHER_EVENT = [
    (
        "In 1996 Kasparov beat Deep Blue.",
        "Garry Kasparov won the first match in 1996 by 4-2. In the rematch of 1997 Deep Blue beat Kasparov.",
    ),
    (
        "Kasparov beat Deep Blue in the first game, but he lost the match.",
        "In 1997 Deep Blue beat Garry Kasparov 3.5-2.5, although Kasparov won game one.",
    ),
    (
        "Nadal beat Federer at Wimbledon in 2008.",
        "Rafael Nadal won the Wimbledon final of 2008 against Roger Federer. In the Australian Open "
        "final of 2017, Federer beat Nadal.",
    ),
    (
        "Texas is larger than New Mexico.",
        "Texas is smaller than Mexico. With 315,000 square kilometres, New Mexico has less than half of "
        "the area of Texas.",
    ),
    (
        "Venus Williams beat Maria Sharapova in 2005.",
        "In 2004 Maria Sharapova beat Serena Williams at Wimbledon. A year later Venus Williams won the "
        "semi-final against Sharapova.",
    ),
    (
        "Maria Sharapova beat Venus Williams in 2007.",
        "Serena Williams beat Maria Sharapova in 2005. Sharapova's win over Venus Williams came in 2007.",
    ),
    (
        "In 1871 France lost Alsace to Germany.",
        "In 1871 France ceded Alsace to Germany. In the First World War France defeated Germany. In 1998"
        " France beat Germany at handball.",
    ),
    (
        "By population Italy is larger than Spain.",
        "By area, Spain is larger than Italy. Italy has 59 million people and Spain 48 million.",
    ),
    (
        "Today Tokyo is larger than London.",
        "In 1900 London was larger than Tokyo. Today Tokyo has 37 million people and London 9 million.",
    ),
    (
        "Picasso influenced Braque.",
        "Georges Braque influenced Pablo Picasso, and vice versa.",
    ),
    (
        "The Beatles influenced Bob Dylan.",
        "Bob Dylan influenced The Beatles, who in turn had a strong influence on Dylan.",
    ),
    (
        "Sydney is larger than Melbourne.",
        "It is a common misconception that Sydney is smaller than Melbourne. Sydney has 5.4 million "
        "inhabitants and Melbourne 5.2 million.",
    ),
    (
        "It is a myth that Kasparov beat Deep Blue in 1997.",
        "In 1997 Deep Blue beat Garry Kasparov.",
    ),
    (
        "You say Kasparov beat Deep Blue, but it was the other way round.",
        "In 1997 Deep Blue beat Garry Kasparov.",
    ),
    (
        "Kasparov did not beat Deep Blue in 1997.",
        "In 1997 Deep Blue beat Garry Kasparov.",
    ),
    (
        "Garry Kasparov was beaten by Deep Blue.",
        "In 1997 Deep Blue beat Garry Kasparov.",
    ),
    (
        "Do you know whether Kasparov beat Deep Blue?",
        "In 1997 Deep Blue beat Garry Kasparov.",
    ),
    (
        "Kasparov, whom Deep Blue beat in 1997, was the world champion.",
        "In 1997 Deep Blue beat Garry Kasparov.",
    ),
    (
        "When she married, Ann was younger than Bob was at his wedding.",
        "Ann Lee is older than Bob Ray. Ann Lee married at 20 and Bob Ray at 30.",
    ),
    (
        "The team that had faced Germany beat Spain in the group stage.",
        "Spain beat Germany in the semi-final. Switzerland had faced Germany before, and won against "
        "Spain in the group stage.",
    ),
    (
        "Germany plus Poland is larger than France.",
        "France is larger than Poland. Germany and Poland together are larger than France.",
    ),
    (
        "A student of the great Kasparov beat Deep Blue.",
        "Deep Blue beat Kasparov. A student of the great Kasparov later won against Deep Blue.",
    ),
    (
        "Poland was larger than East Germany.",
        "Germany is larger than Poland, but East Germany covered a smaller area than Poland.",
    ),
    (
        "Microsoft bought the phones of Nokia.",
        "Microsoft bought Nokia's phone business in 2014. Nokia acquired Alcatel.",
    ),
    (
        "YouTube was bought by Google, which is owned by Alphabet.",
        "Google bought YouTube in 2006.",
    ),
    (
        "In 1470 Henry VI succeeded Edward IV.",
        "Henry VI was succeeded by Edward IV in 1461. In 1470 Edward IV fled and Henry VI was king again.",
    ),
    (
        "Aristotle, whose teacher was Plato, taught Alexander.",
        "Plato taught Aristotle. Aristotle taught Alexander.",
    ),
    (
        "Arsenal beat Chelsea in the second leg.",
        "Arsenal lost the first leg to Chelsea 2-0. Arsenal won the second leg 3-0.",
    ),
    (
        "In January 2019 Chicago was colder than Moscow.",
        "In winter Moscow is colder than Chicago. In January 2019, Chicago had -30 degrees and Moscow -10.",
    ),
    (
        "In April Manchester United beat Liverpool 3-1.",
        "Manchester United lost to Liverpool in March. United won the match in April with 3-1.",
    ),
    (
        "In 2010 the Lakers beat the Celtics.",
        "The Boston Celtics beat the Los Angeles Lakers in 2008. In 2010 the title went to the Lakers "
        "after seven games against the Celtics.",
    ),
    (
        "In the end Sparta defeated Athens, though Athens beat Sparta at Cyzicus.",
        "Athens beat Sparta at Cyzicus in 410 BC. The war ended in 404 BC with the surrender of Athens to Sparta.",
    ),
    (
        "Unlike in 1866, in 1757 Austria attacked Prussia.",
        "Prussia attacked Austria in 1866. In 1757 the army of Austria had advanced against Prussia.",
    ),
    (
        "K2 is lower than Mount Everest.",
        "Mount Everest is higher than K2.",
    ),
    (
        "That week, Blur outsold Oasis.",
        "Oasis outsold Blur in Britain over the decade. In the week of the Battle of Britpop the single "
        "by Blur sold 58,000 copies more.",
    ),
    (
        "In level two Luigi is faster than Mario.",
        "The brothers Mario and Luigi race. In level one Mario is faster than Luigi, in level two it is "
        "Luigi who wins by far.",
    ),
    (
        "Obama beat McCain in 2008.",
        "McCain lost to Obama in 2008.",
    ),
    (
        "Clinton beat Bush in 1992.",
        "In 1988 George Bush beat Michael Dukakis, and in 1992 Bill Clinton beat George Bush.",
    ),
    (
        "In 2016 Trump beat Clinton.",
        "Bill Clinton defeated George Bush. In 2016 Hillary Clinton lost to Donald Trump.",
    ),
    (
        "Hungary shot down two planes of Germany.",
        "Germany shot down two planes of Hungary.",
    ),
    (
        "Lennon wrote it with McCartney.",
        "McCartney wrote it with Lennon.",
    ),
    (
        "Microsoft bought Activision.",
        "Activision was bought by Microsoft in 2023.",
    ),
    (
        "Tottenham were beaten by Arsenal 5-2, after Tottenham beat Arsenal in the cup.",
        "Arsenal beat Tottenham 5-2 in the league. Tottenham had knocked Arsenal out of the cup.",
    ),
    (
        "Rome conquered Greece, but Greece conquered Rome with its culture.",
        "Rome conquered Greece in 146 BC. Horace wrote that captive Greece took its rude conqueror "
        "captive with her arts.",
    ),
    (
        "Brazil beat Italy on penalties in 1994.",
        "Brazil won the 1994 final against Italy on penalties. In 1982 Italy beat Brazil 3-2.",
    ),
    (
        "Napoleon wanted to invade Russia. Then France invaded Russia.",
        "In 1812 Napoleon's army crossed the Neman. In 1814 Russia invaded France.",
    ),
    (
        "California is larger than Lower Saxony.",
        "Lower Saxony is smaller than Bavaria.",
    ),
    (
        "Spain is hotter than Portugal in July.",
        "Portugal is hotter than Spain on average, yet in July Spain has 33 degrees and Portugal 29.",
    ),
    (
        "Anna taught Ben French.",
        "Ben taught Anna chess, and Anna gave Ben lessons in French.",
    ),
    (
        "If anything, Apple influenced Xerox less than Xerox influenced Apple.",
        "Xerox influenced Apple.",
    ),
    (
        "Some say that Apple influenced Xerox.",
        "Xerox influenced Apple. Some historians claim the reverse.",
    ),
    (
        "Bob is older than Ann, not younger.",
        "Ann is younger than Bob.",
    ),
    (
        "Bob is taller than Ann, says Ann, but Ann is taller than Bob.",
        "Ann is taller than Bob.",
    ),
    (
        "Mary of Scotland was executed before Elizabeth was succeeded by James.",
        "James succeeded Elizabeth.",
    ),
    (
        "Barcelona lost the lead to Madrid, then won.",
        "Barcelona beat Madrid 3-2 after Madrid had gone ahead.",
    ),
    (
        "Hamilton lost the pole to Verstappen, but he won the race.",
        "Hamilton beat Verstappen in the race, although Verstappen had taken pole position.",
    ),
]
"""Responses with knowledge of which something else is true: another match, year, part or sense, or hearsay."""


@pytest.mark.parametrize(("response", "knowledge"), ANOTHER_EVENT)
def test_another_event_is_no_contradiction(response: str, knowledge: str) -> None:
    assert find_exchanged(response, knowledge) == []


def test_the_value_says_what_the_knowledge_says() -> None:
    with Engine(FakeRuntime({})) as engine:
        result = engine.score("Kasparov beat Deep Blue.", CHESS, metrics=["values"]).metrics["values"]
    assert isinstance(result.explanation, ValuesExplanation)
    (stated,) = [value for value in result.explanation.values if value.kind == "relation"]
    assert (stated.outcome, stated.normalized) == ("contradicted", "kasparov beat deep blue")
    assert stated.knowledge_says == "Deep Blue beat the world champion Garry Kasparov"
    assert [(span.text, span.reason) for span in result.unsupported] == [("Kasparov beat Deep Blue", "mismatch")]


@pytest.mark.parametrize("piece", ["Ann beat Bob ", "Ann beat Bob. ", "Ann is older than Bob, ", "beat than by Ann "])
def test_reading_takes_calls_in_proportion_to_the_length(piece: str) -> None:
    def read(size: int) -> None:
        tokens = tokenize((piece * size)[:size])
        list(read_statements(tokens, list_mentions(tokens, find_names(tokens, (), set()))))

    few, many = (count_calls(partial(read, size)) for size in (2_500, 10_000))
    assert many < 5 * few + 1_000


VERBS = sorted({form for form in _VERBS if _VERBS[form] != "lose"})
NAMES = st.sampled_from(["Rome", "Carthage", "Ada Lovelace", "Charles Babbage", "New York", "Sparta"])


@given(st.sampled_from(VERBS), NAMES, NAMES)
def test_every_verb_is_contradicted_the_other_way_round_and_by_nothing_else(verb: str, left: str, right: str) -> None:
    text, exchanged = f"In the end {left} {verb} {right}.", f"In the end {right} {verb} {left}."
    assert find_exchanged(text, text) == []
    assert [ours for ours, _ in find_exchanged(text, exchanged)] == (
        [] if left == right else [f"{left} {verb} {right}"]
    )


@given(st.sampled_from(sorted(_OPPOSITES.items())), NAMES, NAMES)
def test_opposite_comparisons_exchange_the_sides(pair: tuple[str, str], left: str, right: str) -> None:
    first, second = (f"In fact {left} is {word} than {right}." for word in pair)
    expected = [] if left == right else [f"{left} is {pair[0]} than {right}"]
    assert [ours for ours, _ in find_exchanged(first, second)] == expected
    assert find_exchanged(first, f"In fact {right} is {pair[1]} than {left}.") == []


def test_a_statement_has_a_normal_form() -> None:
    assert normalize(Statement(("ada",), "more famous", ("bob", "ross"))) == "ada more famous bob ross"
