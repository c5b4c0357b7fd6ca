"""Values: what is found in a text, and what the knowledge says about each, by tables; on any text; and its cost."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.engine import Engine, MetricResult
from groundwire.engine.metrics import values
from groundwire.engine.schema.explanations import PassageRange, StatedValue, ValuesExplanation
from groundwire.engine.values import support, tokens
from groundwire.engine.values.knowledge import ValueText, find_values
from groundwire.engine.values.support import check_in_steps, check_values
from groundwire.engine.values.tokens import tokenize
from groundwire.runtime.fake import FakeRuntime
from tests.reference.number_words import spell, spell_ordinal
from tests.support.count_calls import count_calls

SIGNS = {"+": "supported", "-": "contradicted", "?": "absent", "=": "derived"}


def measure(response: str, *knowledge: str) -> MetricResult:
    with Engine(FakeRuntime({})) as engine:
        return engine.score(response, knowledge, metrics=["values"]).metrics["values"]


def list_outcomes(response: str, *knowledge: str) -> list[str]:
    """Each value with the sign of its outcome before it."""
    signs = {outcome: sign for sign, outcome in SIGNS.items()}
    return [
        f"{signs[check.outcome]}{response[check.value.start : check.value.end]}"
        for check in check_values(response, knowledge)
    ]


NUMBERS = [
    # digits, words, scales
    ("It has 3,000 seats.", "The hall has 3000 seats.", ["+3,000"]),
    ("It has 3000 seats.", "The hall has three thousand seats.", ["+3000"]),
    ("It has three thousand seats.", "The hall has 3,000 seats.", ["+three thousand"]),
    ("It has 4,000 seats.", "The hall has 3,000 seats.", ["-4,000"]),
    ("About 1.5 million people live there.", "1,500,000 people live there.", ["+1.5 million"]),
    ("There are 1,500,000 people.", "There are 1.5 million people.", ["+1,500,000"]),
    ("There are 15 million people.", "There are 1.5 million people.", ["-15 million"]),
    ("She won a dozen awards.", "She won 12 awards.", ["+a dozen"]),
    ("She won 13 awards.", "She won a dozen awards.", ["-13"]),
    ("You need a dozen and a half eggs.", "You need 18 eggs.", ["+a dozen and a half"]),
    ("You need a dozen and a half eggs.", "You need 12 eggs.", ["-a dozen and a half"]),
    ("It has a million and a half people.", "It has 1.5 million people.", ["+a million and a half"]),
    ("It has a million and a half people.", "It has 1 million people.", ["-a million and a half"]),
    ("It has two million and a half people.", "It has 2,500,000 people.", ["+two million and a half"]),
    ("He sold half a million copies.", "He sold 500,000 copies.", ["+half a million"]),
    ("He sold two hundred and fifty copies.", "He sold 250 copies.", ["+two hundred and fifty"]),
    ("The band has twenty-one albums.", "The band has 21 albums.", ["+twenty-one"]),
    ("The band has twenty one albums.", "The band has 22 albums.", ["-twenty one"]),
    ("The violin has six strings.", "The violin has four strings.", ["-six"]),
    ("The violin has four strings.", "The violin has 4 strings and 6 pegs.", ["+four"]),
    ("The violin has six strings.", "The violin has 4 strings and 6 pegs.", ["-six"]),
    ("Is she the older of the two?", "One is.", []),
    ("It has 12 songs.", "The album sold well.", ["?12"]),
    # citations are no numbers, amounts in brackets are
    ("It has 4 strings [2].", "It has four strings [1].", ["+4"]),
    ("It has 4 strings [1, 3-5].", "It has four strings.", ["+4"]),
    ("The ids are: [7, 9].", "It has four strings.", ["?7", "?9"]),
    ("The range is [1.3-1.9] mg.", "The range is [1.3-1.7] mg.", ["+1.3", "-1.9"]),
    ("It has 12 songs.", "There are 14 rooms in the house.", ["?12"]),
    ("No one knew, and it is the one I like.", "One.", []),
    ("U2 and COVID-19 are names.", "Nothing.", ["?COVID"]),
    # hedges: intervals
    ("It has more than 20 rooms.", "The house has 23 rooms.", ["+20"]),
    ("It has more than 20 rooms.", "The house has 19 rooms.", ["-20"]),
    ("It has more than 20 rooms.", "The house has 20 rooms.", ["?20"]),
    ("It has 20 rooms.", "The house has more than 20 rooms.", ["+20"]),
    ("It has at least 20 rooms.", "The house has 20 rooms.", ["+20"]),
    ("It has fewer than 20 rooms.", "The house has 23 rooms.", ["-20"]),
    ("It has over 15 rooms.", "The house has more than 20 rooms.", ["+15"]),
    ("It has over 30 rooms.", "The house has more than 20 rooms.", ["?30"]),
    ("Almost 5,000 people came.", "4,993 people came.", ["+5,000"]),
    ("5,000 people came.", "4,993 people came.", ["+5,000"]),
    ("Almost 5,000 people came.", "3,100 people came.", ["-5,000"]),
    ("About 300 people came.", "310 people came.", ["+300"]),
    ("300 people came.", "310 people came.", ["-300"]),
    ("About 300 people came.", "450 people came.", ["-300"]),
    ("Thousands of people came.", "4,993 people came.", ["+Thousands"]),
    ("Thousands of people came.", "93 people came.", ["-Thousands"]),
    ("There are 7 species.", "There are between 5 and 10 species.", ["?7"]),
    ("There are 12 species.", "There are between 5 and 10 species.", ["-12"]),
    ("There are 5 to 10 species.", "There are 5-10 species.", ["+5", "+10"]),
]
QUANTITIES = [
    ("The bridge is 5 km long.", "The bridge is five kilometres long.", ["+5 km"]),
    ("The bridge is 5 km long.", "The bridge is 5 miles long.", ["-5 km"]),
    ("The bridge is 5 miles long.", "The bridge is 8 km long.", ["+5 miles"]),
    ("The bridge is 5km long.", "The bridge is 3.1 miles long.", ["+5km"]),
    ("The tower is 330 m tall.", "The tower is 1,083 ft tall.", ["+330 m"]),
    ("The tower is 300 m tall.", "The tower is 330 metres tall.", ["-300 m"]),
    ("It is a 200-metre tower.", "The tower is 200 metres tall.", ["+200-metre"]),
    ("The lake covers 300 square kilometres.", "The lake covers 300 km².", ["+300 square kilometres"]),
    ("It weighs 70 kg.", "It weighs 70 pounds.", ["-70 kg"]),
    ("It costs 20 pounds.", "It costs £20.", ["+20 pounds"]),
    ("Water boils at 100 °C.", "Water boils at 212 degrees Fahrenheit.", ["+100 °C"]),
    ("It drives at 60 mph.", "It drives at 97 km/h.", ["+60 mph"]),
    ("It lasts 180 minutes.", "It lasts three hours.", ["+180 minutes"]),
    ("It lasts two hours.", "It lasts three hours.", ["-two hours"]),
    ("It ran for two decades.", "It ran for 20 years.", ["+two decades"]),
    ("She is 34 years old.", "The singer is 34.", ["+34 years old"]),
    ("The 34-year-old won.", "The singer won at the age of 34.", ["+34-year-old"]),
    ("He died aged seventy-two.", "He died at 72.", ["+seventy-two"]),
    ("She is 43 years old.", "She is 34 years old.", ["-43 years old"]),
    ("She is 34 years old.", "She has played for 10 years.", ["?34 years old"]),
    ("The film cost $25 million.", "The film cost 25 million dollars.", ["+$25 million"]),
    ("The film cost $25m.", "The film cost $52m.", ["-$25m"]),
    ("It costs €20.", "It costs 20 euros.", ["+€20"]),
    ("It costs €20.", "It costs $20.", ["?€20"]),
    ("25% are blue.", "A quarter of them are blue.", ["+25%"]),
    ("Twenty-five per cent are blue.", "25 percent are blue.", ["+Twenty-five per cent"]),
    ("Half of them are blue.", "50% of them are blue.", ["+Half"]),
    ("Two thirds of them are blue.", "A third of them are blue.", ["-Two thirds"]),
]
RANKS = [
    ("It is the second largest city.", "It is the 2nd largest city.", ["+second"]),
    ("It is the second largest city.", "It is the third largest city.", ["-second"]),
    ("He was the thirty-first president.", "He was the 31st president.", ["+thirty-first"]),
    ("The first corn is old.", "Corn was first grown in Mexico.", ["+first"]),
    ("It is tuned a fifth apart.", "It is tuned in fifths.", []),
    ("Wait a second, at first I laughed.", "Nothing.", []),
]
DATES = [
    ("He was born on 12 May 1887.", "He was born on May 12, 1887.", ["+12 May 1887"]),
    ("He was born on the 12th of May 1887.", "Born 1887-05-12.", ["+12th of May 1887"]),
    ("Send it by the first of March.", "Send it by 1 March.", ["+first of March"]),
    ("He was born on May 13, 1887.", "He was born on 12 May 1887.", ["-May 13, 1887"]),
    ("He was born in May 1887.", "He was born on 12 May 1887.", ["+May 1887"]),
    ("He was born on 12 May 1887.", "He was born in May 1887.", ["?12 May 1887"]),
    ("He was born in 1887.", "He was born on 12 May 1887.", ["+1887"]),
    ("He was born in 1888.", "He was born on 12 May 1887.", ["-1888"]),
    ("He was born in the 1880s.", "He was born in 1887.", ["+1880s"]),
    ("He was born in the 1890s.", "He was born in 1887.", ["-1890s"]),
    ("He was born in 1887.", "He was born in the 1880s.", ["?1887"]),
    ("It was built in the 19th century.", "It was built in 1887.", ["+19th century"]),
    ("It was built in the nineteenth century.", "It was built in the 1800s.", ["+nineteenth century"]),
    ("It was built in 1887.", "It was built in the 19th century.", ["?1887"]),
    ("It was built in the 18th century.", "It was built in 1887.", ["-18th century"]),
    ("It happened on July 4th.", "It happened on 4 July 1776.", ["+July 4th"]),
    ("It happened on July 5th.", "It happened on 4 July 1776.", ["-July 5th"]),
    ("The war lasted from 1939 to 1945.", "The war (1939–45) ended.", ["+1939", "+1945"]),
    ("In 1941 the war went on.", "The war lasted from 1939 to 1945.", ["?1941"]),
    ("In 1951 the war went on.", "The war lasted from 1939 to 1945.", ["-1951"]),
    ("It was founded in 44 BC.", "It was founded in 44 AD.", ["-44 BC"]),
    ("It came out in nineteen eighty-four.", "It came out in 1984.", ["+nineteen eighty-four"]),
    ("It was big in the eighties.", "It was big in the 1980s.", ["+eighties"]),
    ("It has 2012 seats.", "It opened in 2013.", ["?2012"]),
    ("You may march on.", "May 1887.", []),
    ("It starts at 7:30 pm.", "It starts at 19:30.", ["+7:30 pm"]),
    ("It starts at 8 pm.", "It starts at 19:30.", ["-8 pm"]),
    ("It starts at noon.", "It starts at 12:00.", ["+noon"]),
]
NAMES = [
    ("I like Bob Ross.", "Bob Ross painted.", ["+Bob Ross"]),
    ("I like Ross.", "Bob Ross painted.", ["+Ross"]),
    ("1. Open it.\n2) Turn it.\n3. **Wait.**\n4. I like Ross.", "Bob Ross painted.", ["+Ross"]),
    ("I like Diana Ross.", "Bob Ross painted.", ["?Diana Ross"]),
    ("I like Dr. Ross.", "Bob Ross painted.", ["+Dr. Ross"]),
    ("It was by Beyonce.", "A song by Beyoncé.", ["+Beyonce"]),
    ("It flew for NASA.", "The National Aeronautics and Space Administration flew it.", ["+NASA"]),
    ("She went to Yale University.", "She studied at Yale.", ["+Yale University"]),
    ("It was made in the United States.", "An American film.", ["+United States"]),
    ("It is an american film.", "It is a French film.", ["-american"]),
    ("It is a German film.", "It was filmed in Germany.", ["+German"]),
    ("She was born in Paris.", "She was born in London.", ["-Paris"]),
    ("She lives in Paris.", "She was born in London.", ["?Paris"]),
    ("It was directed by James Cameron.", "It was directed by Ridley Scott.", ["-James Cameron"]),
    ("Coffee is a drink.", "A drink.", []),
    ("Madonna was born there.", "The singer Madonna was born there.", ["+Madonna"]),
    ("It is not an album by Queen.", "It is an album by Pink Floyd.", []),
    ("Ann Lee moved to Rome.", "She moved to Rome.", ["+Rome"]),
    ("It ran on Apollo 11.", "The Apollo 11 crew.", ["+Apollo", "+11"]),
]


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [*NUMBERS, *QUANTITIES, *RANKS, *DATES, *NAMES],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_is_supported_contradicted_or_absent(response: str, knowledge: str, expected: list[str]) -> None:
    assert list_outcomes(response, knowledge) == expected


@pytest.mark.parametrize(
    ("response", "kinds"),
    [
        ("He paid $5 for 3 pens, 2 km away, on 4 May.", ["money", "number", "quantity", "date"]),
        ("At 9 am the second man, aged 30, ate 5% for ten days.", ["time", "ordinal", "age", "percentage", "duration"]),
        ("I met Ann, Dr. Ross and a French man.", ["name", "person", "nationality"]),
        ("We saw Yale University and Lake Tahoe.", ["organisation", "place"]),
    ],
)
def test_a_value_has_a_kind(response: str, kinds: list[str]) -> None:
    assert [value.kind for value in find_values(tokenize(response))] == kinds


def test_the_result_names_each_value_its_normal_form_and_the_evidence() -> None:
    knowledge = ("A singer.", "Madonna was born in 1958; she is 1.63 metres tall.")
    result = measure("Born in 1968 and 163 cm tall, by Ann.", *knowledge)
    assert isinstance(result.explanation, ValuesExplanation)
    assert result.explanation.values == (
        StatedValue("date", "1968", 8, 12, "1968", "contradicted", "1958", PassageRange(1, 20, 24)),
        StatedValue("quantity", "163 cm", 17, 23, "1.63 m", "supported", "1.63 metres", PassageRange(1, 33, 44)),
        StatedValue("name", "Ann", 33, 36, "ann", "absent"),
    )
    assert (result.status, result.value) == ("scored", pytest.approx(1 / 3))
    assert [(span.text, span.reason, span.knowledge_says) for span in result.unsupported] == [
        ("1968", "mismatch", "1958"),
        ("Ann", "not_in_knowledge", ""),
    ]


def test_the_nearest_value_of_the_best_sentence_contradicts() -> None:
    result = measure("He died on 2 February 2013.", "Born on 8 April 1974, he died on 2 February 2014.")
    (span,) = result.unsupported
    assert (span.text, span.knowledge_says) == ("2 February 2013", "2 February 2014")


def test_a_text_that_is_read_once_has_the_tokens_and_values_of_its_text() -> None:
    for text in (text for table in (NUMBERS, QUANTITIES, RANKS, DATES, NAMES) for row in table for text in row[:2]):
        read = ValueText(text)
        assert [token for part in read.read(3) for token in part] == tokenize(text) == list(read.tokens)
        assert list(read.read(3)) == []
        for _ in range(2):
            assert read.find_values() == find_values(tokenize(text))


@pytest.mark.parametrize("response", ["I love it!", "Coffee is acidic.", "..."])
def test_without_a_value_there_is_nothing_to_verify(response: str) -> None:
    result = measure(response, "Coffee has been drunk since 1500.")
    assert (result.status, result.value, result.unsupported) == ("nothing_to_verify", None, ())
    assert "no number, date or name" in result.message


def test_the_history_supports_nothing() -> None:
    with Engine(FakeRuntime({})) as engine:
        score = engine.score("Yes, since 1999.", "It is old.", history=["Since 1999?"], metrics=["values"])
    assert score.value == 0.0


def test_a_contradicted_value_is_marked_alone_and_an_absent_one_with_other_evidence() -> None:
    with Engine(FakeRuntime({})) as engine:
        contradicted = engine.score(
            "He was born in 1968.", "He was born in 1958.", metrics=["values", "overlap", "bleu"]
        )
        absent = engine.score("It was built by Ann.", "The house was built.", metrics=["values", "overlap"])
    assert [(span.text, span.knowledge_says, span.metric) for span in contradicted.unsupported] == [
        ("1968", "1958", "values")
    ]
    assert [span.text for span in absent.unsupported] == ["Ann"]


NATURAL = st.integers(0, 999_999_999_999).filter(lambda number: number != 1)
"""One is rarely a number: "one of them", "no one"."""


@given(NATURAL)
def test_a_number_in_words_is_the_number_in_digits(number: int) -> None:
    for text in (spell(number), f"{number:,}", str(number)):
        (value,) = find_values(tokenize(f"it has {text} of them"))
        assert value.content.amount == number, text  # type: ignore[union-attr]
    assert list_outcomes(f"it sold {spell(number)} copies", f"it sold {number:,} copies") == [f"+{spell(number)}"]


@given(st.integers(1, 99).filter(lambda number: number != 2))
def test_an_ordinal_in_words_is_the_ordinal_in_digits(number: int) -> None:
    text = spell_ordinal(number)
    assert list_outcomes(f"the {text} album", f"the {number}th album") == [f"+{text}"]


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)
_PIECES = (
    "12 |May |1887 |-|–|, |. |twenty |two |hundred |and |half |a |million |$|% |km |of |the |first |th |Ann |Dr. |'s |"
    "in |century |1|/|:|am |° |not |to |between |½|Ｇ|é|ß|١|²|United |States |old |about |\n|“|"
    "9-6 |Mon|Sat |@|+|.com |://|pm |until |v|Room |0124 |twice |each "
)
PIECES = st.sampled_from(_PIECES.split("|"))


@pytest.mark.parametrize("sign", ["🅿️", "Ⓜ", "🅰"])
def test_a_capital_in_a_circle_or_a_square_is_part_of_no_name(sign: str) -> None:
    text = f"Parking in Paris {sign} is free, {sign} too."
    assert [text[value.start : value.end] for value in find_values(tokenize(text))] == ["Paris"]


@example("1$½", "")
@example("States A A$1999", "")
@given(TEXTS | st.lists(PIECES, max_size=14).map("".join), TEXTS | st.lists(PIECES, max_size=14).map("".join))
def test_any_text_has_disjoint_values_in_order(response: str, knowledge: str) -> None:
    at = 0
    for value in find_values(tokenize(response)):
        assert at <= value.start < value.end <= len(response)
        at = value.end
    for check in check_values(response, [knowledge]):
        where = check.evidence
        assert where is not None or check.outcome in ("absent", "derived")
        assert (check.outcome == "derived") == bool(check.derivation)
        assert where is None or 0 <= where.start < where.end <= len(knowledge)


@pytest.mark.parametrize("before", ["", "$", "May ", "in ", "the ", "1-", "AD "])
@pytest.mark.parametrize("after", ["", "s", "th", " BC", " May", ":30", "/2", "%", ",000", ".5", "-2-2", " million"])
def test_numbers_of_thousands_of_digits_are_read_or_left_out(before: str, after: str) -> None:
    text = f"{before}{'9' * 5_000}{after}"
    assert all(check.outcome == "supported" for check in check_values(text, [text]))


@given(st.lists(PIECES, max_size=14).map("".join))
def test_a_text_contradicts_no_value_of_its_own(text: str) -> None:
    assert all(check.outcome != "contradicted" for check in check_values(text, [text]))


def read(text: str) -> None:
    find_values(tokenize(text))


HOSTILE = (
    "1|1,|1.|1 |twenty |two hundred and |may |May |1-|$|of the |A|A |A. |half a |first |a |between |in |1 / |'s |“|"
    "not |é|hundreds of |A's |\n1|5 to |12 May |1887-05-|a third |7:|the second |"
    "Mon-|9-6 |until |0124 |a.|@|Room |1.2.|v1|Sat 9-|5-8 May |1 hour "
)


@pytest.mark.parametrize("piece", HOSTILE.split("|"))
def test_reading_a_text_takes_calls_in_proportion_to_its_length(piece: str) -> None:
    few, many = (count_calls(partial(read, (piece * size)[:size])) for size in (1_500, 6_000))
    assert many < 5 * few + 1_000


def test_long_knowledge_is_read_in_steps_between_which_a_request_may_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    response, passages = "Ann has 3 cats and 4 dogs.", ["Ann has 3 cats. " * 100, "She has 5 dogs. " * 100]
    expected = check_values(response, passages)

    def read() -> tuple[ValueText, list[ValueText]]:
        return ValueText(response), [ValueText(passage) for passage in passages]

    assert list(check_in_steps(*read())) == []
    monkeypatch.setattr(support, "TOKENS_AT_ONCE", 100)
    monkeypatch.setattr(support, "COMPARISONS_AT_ONCE", 400)
    rounds = list(check_in_steps(*read()))
    assert len(rounds) == 1_000 // 100 + 2, "the tokens of the passages, and two values"
    assert not any(rounds)
    assert check_values(response, passages) == expected


def test_texts_with_too_many_words_are_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits and letters without a space are as many tokens as they alternate."""
    monkeypatch.setattr(values, "MAX_WORDS", 8)
    assert measure("1 man", "a1b2c3").status == "scored"
    result = measure("1 man", "a1b2c3d4")
    assert result.status == "truncated"
    assert "Values reads up to 8 words and punctuation marks; response and knowledge have 10" in result.message


def test_too_many_comparisons_are_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure("1 or 2?", "3, 4.").status == "scored"
    monkeypatch.setattr(support, "MAX_COMPARISONS", 5)
    result = measure("1 or 2?", "3, 4.")
    assert result.status == "truncated"
    assert "the response has 2 values, the knowledge 3 numbers, capitals and sentences" in result.message


def test_of_long_knowledge_the_parts_that_the_sentences_are_about_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many words as a book has, and with more comparisons than are made."""
    filler = [
        f"Nothing happened on day {number} of the voyage, said the cook to the mate."
        for number in range(10_000, 19_000)
    ]
    facts = ["The lamp of Porto burned until 1755.", "It needed 40 litres of oil a night."]
    knowledge = ("\n".join([*filler[:6_000], facts[0], *filler[6_000:]]), facts[1])
    response = "The lamp of Porto burned until 1765. It needed 40 litres of oil a night."
    monkeypatch.setattr(support, "MAX_COMPARISONS", 50_000)
    result = measure(response, *knowledge)
    assert isinstance(result.explanation, ValuesExplanation)
    stated = {value.text: value for value in result.explanation.values}
    assert (stated["1765"].outcome, stated["1765"].knowledge_says) == ("contradicted", "1755")
    assert stated["40 litres"].outcome == "supported"
    for value in stated.values():
        where = value.evidence
        assert where is not None
        assert knowledge[where.passage][where.start : where.end] == value.knowledge_says
    assert result.coverage is not None
    assert 0 < result.coverage < 0.1
    assert "values read" in result.message


def test_threads_and_orders_do_not_change_a_result() -> None:
    response, knowledge = "Ann ran 5 km in 1999.", ("Ann ran 3.1 miles.", "In 1999.")
    assert measure(response, *knowledge) == measure(response, *knowledge)
    assert measure(response, *knowledge).value == measure(response, *reversed(knowledge)).value == 1.0


def test_each_table_of_words_has_a_source_and_a_reader() -> None:
    folder = Path(tokens.__file__).parent
    tables = tomllib.loads((folder / "tables.toml").read_text("utf-8"))
    code = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    assert all(table["source"] for table in tables.values())
    assert set(tables) == set(re.findall(r'load_(?:table|names)\("(\w+)"\)', code))
