"""Numbers and dates by rule: token patterns for spaCy's entity ruler, which keeps the longest match.

The ruler runs after the name recogniser and leaves its names alone ("Apollo 13", "World War II"). The types and the
extent follow OntoNotes: determiners and modifiers of a quantity belong to it ("the late 1960s", "more than 20 years").
Text may be split at every punctuation mark, as chat corpora often are: "the 1980 ' s", "10 , 000", "25 %".
"""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

Token: TypeAlias = dict[str, Any]
Part: TypeAlias = list[list[Token]]
"""Alternatives, each a sequence of token descriptions."""

_SMALL = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
_LARGE = "hundred thousand million billion trillion"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_MONTHS = "january february april june july august september october november december"
_MONTHS_SHORT = "jan feb mar apr jun jul aug sep sept oct nov dec"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_HOLIDAYS = "christmas thanksgiving easter halloween"
_SEASONS = "spring summer fall autumn winter"
_DATE_UNITS = "day week month year decade century millennium weekend"
_TIME_UNITS = "second minute hour"
_UNITS = (
    "mile kilometer kilometre km metre meter foot feet ft inch inches yard centimeter centimetre cm mm pound lb lbs kg "
    "kilogram gram ounce ton tonne acre hectare gallon liter litre mph degree calorie watt kilowatt megawatt volt"
)
_CURRENCIES = "dollar dollars euro euros cent cents usd yen rupee rupees pesos"


def patterns() -> list[dict[str, Any]]:
    """The entity ruler's patterns."""
    number = _numbers()
    about = _maybe(
        _words("about around over under nearly almost approximately roughly only"),
        *(_phrase(text) for text in ("more than", "less than", "fewer than", "at least", "at most", "up to")),
    )
    amount = number + _phrase("a few") + _words("several") + _phrase("a couple of") + _phrase("a couple")
    vague = _each(
        _words("tens dozens hundreds thousands millions billions"),
        _phrase("of"),
        _maybe(_each(_words("thousands millions billions"), _phrase("of"))),
    )
    found = {
        "DATE": _dates(about, amount, vague),
        "TIME": _times(about, amount, vague),
        "PERCENT": _each(about, number, [[{"LOWER": "%"}], *_words("percent"), *_phrase("per cent")]),
        "MONEY": _each(about, [[{"TEXT": {"IN": ["$", "£", "€", "us$"]}}]], number)
        + _each(about, number + _phrase("a"), _words(_CURRENCIES)),
        "QUANTITY": _each(
            about,
            number,
            _maybe(_hyphen()),
            _maybe(_words("square cubic")),
            _words(_plural(_UNITS)),
            _maybe(_words("celsius fahrenheit long tall high wide deep")),
        ),
        "ORDINAL": [
            [{"LOWER": {"IN": _ORDINALS.split()}, "POS": "ADJ"}],
            [{"LOWER": {"REGEX": r"^\d+(st|nd|rd|th)$"}}],
        ],
        "CARDINAL": _each(about, number)
        + [[{"LOWER": "one", "POS": "NUM"}]]
        + _words("half dozens hundreds thousands millions billions")
        + _phrase("a dozen"),
    }
    return [{"label": label, "pattern": pattern} for label, group in found.items() for pattern in group]


def _numbers() -> Part:
    """Numbers in figures and words, of one or more tokens."""
    figure = {"LOWER": {"REGEX": r"^\d[\d,]*(\.\d+)?$"}}
    large = {"LOWER": {"IN": _LARGE.split()}}
    small = {"LOWER": {"IN": _SMALL.split()}}
    word = {"LOWER": {"IN": ["one", *_SMALL.split(), *_LARGE.split()]}}
    more = {**large, "OP": "*"}
    return [
        [figure, more],
        [{"LOWER": {"REGEX": r"^\d{1,3}$"}}, {"LOWER": ","}, {"LOWER": {"REGEX": r"^(000|\d{3})$"}}, more],
        [{"LOWER": {"REGEX": r"^\d{1,3}$"}}, {"LOWER": "."}, {"LOWER": {"REGEX": r"^\d+$"}}, {**large, "OP": "+"}],
        [small],
        [{"LOWER": {"IN": ["a", "one", *_SMALL.split()]}}, {**large, "OP": "+"}],
        [word, {"LOWER": {"IN": ["-", "and"]}}, word],
        [word, large, {"LOWER": "and", "OP": "?"}, {**word, "OP": "+"}],
    ]


def _dates(about: Part, amount: Part, vague: Part) -> Part:
    year: Part = [[{"LOWER": {"REGEX": r"^(1\d{3}|20\d\d)$"}}]]
    years = year + [
        [*year[0], {"LOWER": {"IN": ["-", "–", "—"]}}, {"LOWER": {"REGEX": r"^(1\d{3}|20\d\d|\d\d)$"}}],
    ]
    era = [[{"LOWER": {"IN": ["bc", "ad", "bce", "ce", "b.c.", "a.d.", "bc."]}}]]
    the = _maybe(_words("the"))
    part = _maybe(_each(_words("early mid late"), _maybe(_hyphen())), _phrase("beginning of"), _phrase("end of"))
    month = (
        _words(_MONTHS)
        # "may" and "march" are mostly verbs.
        + [[{"LOWER": {"IN": ["may", "march"]}, "POS": "PROPN"}]]
        + [[{"LOWER": {"IN": [f"{short}." for short in _MONTHS_SHORT.split()]}}]]
    )
    dated = month + [[{"LOWER": {"IN": ["may", "march", *_MONTHS_SHORT.split()]}}]]
    day: Part = [[{"LOWER": {"REGEX": r"^(\d|[12]\d|3[01])(st|nd|rd|th)?$"}}]]
    comma = _maybe([[{"LOWER": ","}]])
    decade: Part = [
        [{"LOWER": {"REGEX": r"^'?((1\d|20)\d|\d)0'?s$"}}],
        [{"LOWER": {"REGEX": r"^((1\d|20)\d|\d)0$"}}, {"LOWER": {"IN": ["'s", "’s"]}}],
        [{"LOWER": {"REGEX": r"^((1\d|20)\d|\d)0$"}}, {"LOWER": {"IN": ["'", "’"]}}, {"LOWER": "s"}],
        [{"LOWER": {"IN": ["'", "’"]}}, {"LOWER": {"REGEX": r"^\d0s$"}}],
    ]
    named = _each(
        _words("the"), part, _maybe(_words("nineteen eighteen")), _words("twenties thirties forties fifties sixties")
    ) + _each(_words("the"), part, _words("seventies eighties nineties"))
    ordinal: Part = [
        [{"LOWER": {"REGEX": r"^\d+(st|nd|rd|th)$"}}],
        [{"LOWER": {"IN": _ORDINALS.split()}}],
        [{"LOWER": {"IN": ["twenty"]}}, {"LOWER": "-", "OP": "?"}, {"LOWER": {"IN": _ORDINALS.split()}}],
    ]
    unit = _words(_plural(_DATE_UNITS))
    weekday = _words(_plural(_DAYS))
    return [
        *_each(about, years),
        *_each(part, years),
        *_each(about, [[{"LOWER": {"REGEX": r"^\d[\d,]*$"}}]], era),
        *_each(part, month),
        *_each(_maybe(weekday), comma, dated, day),
        *_each(dated, day, comma, year),
        *_each(part, dated, comma, year),
        *_each(the, day, _maybe(_words("of")), dated, comma, _maybe(year)),
        *_each(the, part, decade),
        *named,
        *_each(the, part, ordinal, _maybe(_hyphen()), _words("century centuries"), _maybe(era)),
        *_each(the, ordinal, _words("and"), ordinal, _words("centuries")),
        *_each(about, amount, unit, _maybe(_words("ago later earlier old"))),
        *_each(vague, unit, _maybe(_words("ago"))),
        *_each(about, _words("a an"), unit, _words("ago later")),
        *_each(amount, _hyphen(), _words(_DATE_UNITS), _maybe(_each(_hyphen(), _words("old")))),
        *_each(_words("last next past this previous every"), _words(f"{_DATE_UNITS} {_SEASONS} {_DAYS}")),
        *_each(_phrase("the last") + _phrase("the past") + _phrase("the next"), _maybe(amount), unit),
        *weekday,
        *_each(_words(_HOLIDAYS), _maybe(_words("day eve"))),
        *_words("yesterday today tomorrow nowadays"),
        [{"LOWER": {"REGEX": r"^\d{1,2}/\d{1,2}(/\d{2,4})?$"}}],
        [{"LOWER": {"REGEX": r"^\d{4}-\d\d-\d\d$"}}],
    ]


def _times(about: Part, amount: Part, vague: Part) -> Part:
    clock: Part = [[{"LOWER": {"REGEX": r"^([01]?\d|2[0-3])[:.][0-5]\d$"}}]]
    hour: Part = [*clock, [{"LOWER": {"REGEX": r"^(\d|1[0-2])$"}}]]
    return [
        *clock,
        *_each(about, hour, _words("am pm a.m. p.m. o'clock")),
        *_each(about, amount, _words(_plural(_TIME_UNITS)), _maybe(_words("ago later"))),
        *_each(vague, _words("seconds minutes hours")),
        *_each(amount, _hyphen(), _words(_TIME_UNITS)),
        *_each(_words("last this"), _words("night morning evening afternoon")),
        *_words("tonight"),
    ]


def _words(text: str) -> Part:
    return [[{"LOWER": {"IN": text.split()}}]]


def _phrase(text: str) -> Part:
    return [[{"LOWER": word} for word in text.split()]]


def _hyphen() -> Part:
    return [[{"LOWER": {"IN": ["-", "–"]}}]]


def _plural(text: str) -> str:
    irregular = {"century": "centuries", "millennium": "millennia"}
    return " ".join(f"{word} {irregular.get(word, word + 's')}" for word in text.split())


def _maybe(*parts: Part) -> Part:
    return [[], *(sequence for part in parts for sequence in part)]


def _each(*parts: Part) -> Part:
    """Every way to read one alternative of each part after the other."""
    return [[token for sequence in choice for token in sequence] for choice in product(*parts)]
