"""Numbers and dates by rule: token patterns for two entity rulers, and each ruler keeps the longest match.

The ruler ``atoms`` finds numbers, years, months and the like beside the names already recognised, which it does not
change ("Apollo 13", "World War II"). The ruler ``phrases`` then joins an atom with the words around it. Types and
extent follow OntoNotes: determiners and modifiers of a quantity belong to it ("the late 1960s", "more than 20 years").
Text may be split at every punctuation mark, as chat corpora often are: "the 1980 ' s", "10 , 000", "25 %".
"""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

Token: TypeAlias = dict[str, Any]
Part: TypeAlias = list[list[Token]]
"""Alternatives, each a sequence of token descriptions."""

_UNITS_PLACE = "one two three four five six seven eight nine"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    f"nineteen {_TENS}"
)
_LARGE = "hundred thousand million billion trillion"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_DECADES = "twenties thirties forties fifties sixties seventies eighties nineties"
_MONTHS = "january february april june july august september october november december"
_MONTHS_SHORT = "jan feb mar apr jun jul aug sep sept oct nov dec"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_SEASONS = "spring summer fall autumn winter"
_LENGTHS = "day week month year decade century millennium weekend"
_HOURS = "second minute hour"
_MEASURES = (
    "mile kilometer kilometre km metre meter foot feet ft inch inches yard centimeter centimetre cm mm pound lb lbs kg "
    "kilogram gram ounce ton tonne acre hectare gallon liter litre mph degree calorie watt kilowatt megawatt volt"
)
_CURRENCIES = "dollar dollars euros euro cents cent usd yen rupees rupee pesos"
_YEAR = r"1\d{3}|20\d\d"


def make_atom_patterns() -> list[dict[str, Any]]:
    """Patterns of the first ruler."""
    figure, large = _like(r"\d[\d,]*(\.\d+)?"), _in(_LARGE)
    # A bare year is a date; the second ruler corrects "2000 miles".
    number = _like(rf"(?!({_YEAR})$)\d[\d,]*(\.\d+)?|{'|'.join(f'{_SMALL} {_LARGE}'.split())}")
    parts: dict[str, Part] = {
        "CARDINAL": [
            [_many(number)],
            [_in("a one"), _many(large), _any(number)],
            [_any(number), _in(_TENS), _in("-"), _in(_UNITS_PLACE), _any(large)],
            [_in(f"a one {_SMALL}"), _many(large), _in("and"), _many(number), _maybe("-"), _maybe(_UNITS_PLACE)],
            [_like(r"\d{1,3}"), _in(","), _like(r"\d{3}"), _any(large)],
            [figure, _in("."), _like(r"\d+"), _many(large)],
            [{"LOWER": "one", "POS": "NUM"}],
            [_maybe("a"), _in("half dozen")],
            [_in("tens dozens hundreds thousands millions billions")],
            [_in("tens hundreds thousands"), _in("of"), _in("thousands millions billions")],
        ],
        "ORDINAL": [[{**_in(_ORDINALS), "POS": "ADJ"}], [_like(r"\d+(st|nd|rd|th)")]],
        "DATE": [
            [_like(_YEAR)],
            [_like(_YEAR), _in("- – —"), _like(rf"{_YEAR}|\d\d")],
            [_like(rf"({_YEAR})[–—/](\d\d)?\d\d")],
            *_make_decade_patterns(),
            [_in(_MONTHS)],
            # "may" and "march" are mostly verbs.
            [{**_in("may march"), "POS": "PROPN"}],
            [_in(" ".join(f"{month}." for month in _MONTHS_SHORT.split()))],
            [_in(_plural(_WEEKDAYS))],
            [_in("christmas thanksgiving easter halloween"), _maybe("day eve")],
            [_in("yesterday today tomorrow nowadays")],
            [_in("last next this past previous every"), _in(f"{_LENGTHS} {_SEASONS} {_WEEKDAYS}")],
            [_in("a an"), _in(_plural(_LENGTHS)), _in("ago later")],
            [_like(r"\d{1,2}/\d{1,2}(/\d{2,4})?")],
        ],
        "TIME": [
            [_like(r"([01]?\d|2[0-3]):[0-5]\d")],
            [_in("last this"), _in("night morning evening afternoon")],
            [_in("a an"), _in(_HOURS), _in("ago later")],
            [_in("tonight")],
        ],
    }
    return _label_patterns(parts)


def make_phrase_patterns() -> list[dict[str, Any]]:
    """Patterns of the second ruler, which overwrites what it joins: every pattern holds an atom."""
    about: Part = [
        [],
        [_in("about around over under nearly almost approximately roughly")],
        [_in("more less fewer at up"), _in("than least most to")],
    ]
    count, ordinal = {"ENT_TYPE": {"IN": ["CARDINAL", "DATE"]}}, {"ENT_TYPE": "ORDINAL"}
    date, year = {"ENT_TYPE": "DATE"}, _like(_YEAR)
    vague: Part = [[_maybe("a"), _in("few several couple many"), _maybe("of")], [_many(count), _in("of")]]
    amount: Part = [*_each(about, [[_many(count)]]), *vague]
    the, hyphen, comma = _maybe("the"), _maybe("- –"), _maybe(",")
    modifier = [_in("early mid late beginning end"), _maybe("- – of"), the]
    month = _in(f"{_MONTHS} may march {_MONTHS_SHORT} {_dotted()}")
    day = _like(r"(\d|[12]\d|3[01])(st|nd|rd|th)?")
    nth = _like(rf"\d+(st|nd|rd|th)|{'|'.join(_ORDINALS.split())}")
    ago = _maybe("ago later earlier old")
    parts: dict[str, Part] = {
        "CARDINAL": _each(about[1:], [[{"ENT_TYPE": "CARDINAL", "OP": "+"}]]),
        "DATE": [
            *_each(about[1:], [[{**year, **date}]]),
            [the, *modifier, _many(date)],
            [_like(r"\d[\d,]*"), _in("bc ad bce ce b.c. a.d.")],
            [_maybe(_WEEKDAYS), comma, month, day],
            [_maybe(_WEEKDAYS), comma, month, day, comma, year],
            [_maybe("early mid late"), _maybe("- –"), month, _maybe(", of"), year],
            [the, day, _maybe("of"), month, comma, {**year, "OP": "?"}],
            [the, nth, hyphen, _in("century centuries"), _maybe("bc ad bce ce")],
            [the, *modifier, nth, hyphen, _in("century centuries"), _maybe("bc ad bce ce")],
            [the, nth, _in("and"), nth, _in("centuries")],
            *_each(amount, [[_in(_plural(_LENGTHS)), ago]]),
            [count, _in("-"), _in(_LENGTHS), _maybe("-"), _maybe("old")],
            [the, _in("last past next first"), _any(count), _in(_plural(_LENGTHS))],
            [the, _in("last past next"), _in("few several couple"), _maybe("of"), _in(_plural(_LENGTHS))],
        ],
        "TIME": [
            [_like(r"\d|1[0-2]|([01]?\d|2[0-3]):[0-5]\d"), _in("am pm a.m. p.m. o'clock")],
            *_each(amount, [[_in(_plural(_HOURS)), ago]]),
            [count, _in("-"), _in(_HOURS)],
        ],
        "PERCENT": [
            *_each(about, [[_many(count), _in("% percent")], [_many(count), _in("per"), _in("cent")]]),
            *_each(about, [[count, _in("."), count, _in("% percent")]]),
        ],
        "MONEY": [
            *_each(about, [[_in("$ £ € us$"), _many(count), {**count, "OP": "*"}]]),
            *_each(about, [[_many(count), _in(_CURRENCIES)], [_in("a"), _in(_CURRENCIES)]]),
        ],
        "QUANTITY": _each(
            about,
            [
                [_many(count), hyphen, _maybe("square cubic"), _in(_plural(_MEASURES)), _maybe("celsius fahrenheit")],
                [_many(count), hyphen, _in(_plural(_MEASURES)), _in("long tall high wide deep")],
            ],
        ),
        "ORDINAL": [[_in("twenty thirty forty fifty sixty seventy eighty ninety"), hyphen, ordinal]],
    }
    return _label_patterns(parts)


def _make_decade_patterns() -> Part:
    tens = r"((1\d|20)\d|\d)0"
    begin = [_maybe("the"), _maybe("early mid late"), _maybe("-")]
    return [
        [*begin, _like(rf"'?{tens}'?s")],
        [*begin, _like(tens), _in("'s ’s")],
        [*begin, _like(tens), _in("' ’"), _in("s")],
        [*begin, _in("' ’"), _like(r"\d0s")],
        [_in("the"), _maybe("early mid late"), _maybe("-"), _maybe("eighteen nineteen"), _in(_DECADES)],
    ]


def _label_patterns(parts: dict[str, Part]) -> list[dict[str, Any]]:
    return [{"label": label, "pattern": pattern} for label, group in parts.items() for pattern in group]


def _in(words: str) -> Token:
    return {"LOWER": {"IN": words.split()}}


def _like(regex: str) -> Token:
    return {"LOWER": {"REGEX": f"^({regex})$"}}


def _maybe(words: str) -> Token:
    return {**_in(words), "OP": "?"}


def _many(token: Token) -> Token:
    return {**token, "OP": "+"}


def _any(token: Token) -> Token:
    return {**token, "OP": "*"}


def _dotted() -> str:
    return " ".join(f"{month}." for month in _MONTHS_SHORT.split())


def _plural(words: str) -> str:
    irregular = {"century": "centuries", "millennium": "millennia"}
    return " ".join(f"{word} {irregular.get(word, word + 's')}" for word in words.split())


def _each(*parts: Part) -> Part:
    """Every concatenation of one alternative of each part."""
    return [[token for sequence in choice for token in sequence] for choice in product(*parts)]
