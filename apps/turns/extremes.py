"""Minima and maxima of a list that a text states: an amount, or the row that is said to be the cheapest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from groundwire.engine.extend import FUNCTION_WORDS
from groundwire.engine.schema.knowledge import CURRENCIES, list_records, split_key
from groundwire.engine.values import Clock, Date, Measure, Value, read_values
from groundwire.metrics import Sentence, sentences
from groundwire.runtime.texts.characters import is_digits, starts_upper

from .context import TurnContext
from .mentions import list_leaves, split_words, stem_words
from .moments import read_clock, read_date
from .records import Finding, find_value
from .rows import GREATEST, LEAST, Mention, RecordGroup, list_extremes, list_mentions, read_leaf, read_unit
from .words import DURATION_KEY

_SUPERLATIVE = re.compile(rf"\b(?:(?P<least>{LEAST})|{GREATEST})\b", re.IGNORECASE)
_PLAIN = stem_words(
    "one ones option options choice price prices bill cost costs rate rates fare fares total month months night nights"
    " only just yours here there overall all three two four five six of at was were is are being comes starts",
    content=False,
)
"""Stems of words beside a superlative that restrict nothing."""
_END = re.compile(r"[.;:!?]|,|\b(?:but|while|whereas)\b|—|–")
_RANKED = re.compile(
    r"\b(?:(?P<least>cheapest|least expensive|nearest|closest|shortest|earliest)"
    r"|dearest|most expensive|farthest|furthest|longest|latest)\b",
    re.IGNORECASE,
)
_OTHER_ROWS = re.compile(
    r"\?|\b(?:one of|among|after|before|besides?|except|apart|other than|next|if|would|could|might|may|not|never|nor)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
"""Words with which a superlative is not of all rows, or is not claimed."""
_SEPARATOR = re.compile(r"[,;:—–]|\b(?:but|while|whereas|and)\b|$", re.IGNORECASE)
"""What ends a clause."""


def check_extremes(context: TurnContext) -> Iterator[Finding]:
    """Yield values and names that are said to be the least or greatest of a list and are not.

    Args:
        context: The turn.
    """
    previous = ""
    queries = [_list_query_words(group, context) for group in context.groups]
    for sentence in sentences(context.text):
        context.check_time()
        has_finding = False
        for group, query in zip(context.groups, queries, strict=True):
            for finding in _check_values(sentence, previous, group, query):
                has_finding = True
                yield finding
            if not has_finding and not _OTHER_ROWS.search(sentence.text):
                yield from _check_names(sentence, previous, group, query, context)
        previous = sentence.text


def _list_query_words(group: RecordGroup, context: TurnContext) -> set[str]:
    """Stems of the names and arguments of the calls whose results a list is, as far as all rows or none have them."""
    queries = [
        stem_words(" ".join((call.name, *(str(value) for _, _, value in list_leaves(call.arguments, "")))))
        for call, result in zip(context.log, context.all_results, strict=True)
        if any(id(record) in group.ids for record in list_records(result))
    ]
    return queries[0].intersection(*queries) - _list_partial_words(group) if queries else set()


def _list_partial_words(group: RecordGroup) -> set[str]:
    """Stems of the texts of some rows that others do not have."""
    rows = [_stem_texts(record) for record in group.records]
    return rows[0].union(*rows) - rows[0].intersection(*rows)


def _stem_texts(record: Mapping[str, Any]) -> set[str]:
    return stem_words(" ".join(str(leaf) for leaf in record.values() if isinstance(leaf, str)))


def _check_values(sentence: Sentence, previous: str, group: RecordGroup, query: set[str]) -> Iterator[Finding]:
    values = [value for value in read_values(sentence.text) if isinstance(value.content, Measure)]
    for match in _SUPERLATIVE.finditer(sentence.text):
        after = [value for value in values if value.start >= match.end()]
        if not after or _END.search(sentence.text[match.end() : after[0].start]):
            continue
        (value, *_) = after
        begin = max((other.end for other in values if other.end <= match.start()), default=0)
        clause = sentence.text[begin : match.start()] + sentence.text[match.end() : value.start]
        text = f"{previous} {sentence.text}"
        if _is_plain(clause, group, query) and (extreme := _find_extreme(value, text, group, bool(match["least"]))):
            message = f"Of the rows, the {match[0].lower()} has {extreme}."
            yield find_value("miscounted", sentence.text, value.start, value.end, message, sentence.start)


def _is_plain(clause: str, group: RecordGroup, query: set[str]) -> bool:
    """Whether no word of a clause may restrict the rows that it is about."""
    names = set[str]().union(*map(_stem_texts, group.records))
    keys = stem_words(" ".join(key for record in group.records for key in record))
    words = [word for word in split_words(clause) if word.lower() not in FUNCTION_WORDS]
    return all(stem_words(word, content=False) <= names | keys | _PLAIN | query for word in words)


def _find_extreme(value: Value, text: str, group: RecordGroup, is_least: bool) -> str:
    """The extreme that a value should be, where it is the value of another row; empty if it is right, or of no row."""
    stated = list_extremes(value, group.select(text), is_least=is_least)
    whole = list_extremes(value, [group.records], is_least=is_least)
    if any(is_value for _, _, is_value, _ in stated):
        return ""
    return next((f"{key} {extreme:g}" for key, extreme, _, is_held in whole if is_held), "")


def _check_names(
    sentence: Sentence, previous: str, group: RecordGroup, query: set[str], context: TurnContext
) -> Iterator[Finding]:
    """Yield the name of a row that is called the cheapest, nearest, earliest … where another row is."""
    begin = 0
    for separator in _SEPARATOR.finditer(sentence.text):
        offset, clause, begin = begin, sentence.text[begin : separator.start()], separator.end()
        superlatives = list(_RANKED.finditer(clause))
        mentions = [mention for mention in list_mentions(clause, group) if not mention.key]
        if len(superlatives) != 1 or len(mentions) != 1:
            continue
        (match,), (named,) = superlatives, mentions
        numbers = _list_numbers(match[0].lower(), group)
        if not numbers or not _is_of_all(clause, match, group, query, context):
            continue
        choose = min if match["least"] else max
        texts = (f"{previous} {sentence.text}", context.user.text)
        selections = [rows for text in texts for rows in group.select(_drop_names(text, named))]
        index = next(index for index, record in enumerate(group.records) if record is named.record)
        ranks = {id(record): row for row, record in enumerate(group.records)}
        if any(
            of_key[index] == choose(of_key[ranks[id(record)]] for record in rows)
            for rows in selections
            for of_key in numbers.values()
        ):
            continue
        key, of_key = next(iter(numbers.items()))
        best = group.records[of_key.index(choose(of_key))][key]
        start = offset + named.start
        name = re.match(r"[\w'’-]+", sentence.text[start:])
        message = f"Of the rows, the {match[0].lower()} has {key} {best}."
        yield find_value(
            "miscounted", sentence.text, start, start + (len(name[0]) if name else 1), message, sentence.start
        )


def _is_of_all(clause: str, match: re.Match[str], group: RecordGroup, query: set[str], context: TurnContext) -> bool:
    """Whether nothing in a clause, and nothing that the user said, may restrict the rows that a superlative is of."""
    partial = _list_partial_words(group)
    texts = stem_words(
        " ".join(key for key in group.records[0] if not all(read_leaf(record.get(key)) for record in group.records))
    )
    chars = list(clause)
    for value in read_values(clause):
        if value.kind == "ordinal" or not isinstance(value.content, Measure | Clock | Date):
            continue
        chars[value.start : value.end] = " " * (value.end - value.start)
    rest = "".join(chars[: match.start()]) + " " + "".join(chars[match.end() :])
    keys = stem_words(" ".join(group.records[0])) - texts
    for word in split_words(rest):
        stems = stem_words(word, content=False)
        if word.lower() in FUNCTION_WORDS or stems <= (_PLAIN | query | keys):
            continue
        if not (starts_upper(word) and stems <= partial):
            return False
    said = {stem for word in split_words(context.user.text) if not starts_upper(word) for stem in stem_words(word)}
    return not (said - query) & (partial | texts)


def _drop_names(text: str, named: Mention) -> str:
    """A text without the capitalised words and the texts in digits of a row, so that they do not describe it."""
    names = _stem_texts(named.record)
    for leaf in named.record.values():
        if isinstance(leaf, str) and is_digits(leaf[:1]):
            text = text.replace(leaf, " ")
    return re.sub(
        r"[^\W\d_]+", lambda word: " " if starts_upper(word[0]) and stem_words(word[0]) <= names else word[0], text
    )


def _list_numbers(superlative: str, group: RecordGroup) -> Mapping[str, list[float]]:
    """The numbers of each key that a superlative ranks rows by, if all rows have them."""
    read = next(read for ending, read in _READERS.items() if superlative.endswith(ending))
    numbers = {key: [read(key, record.get(key)) for record in group.records] for key in group.records[0]}
    return {
        key: [number for number in of_key if number is not None]
        for key, of_key in numbers.items()
        if None not in of_key
    }


def _read_money(key: str, leaf: Any) -> float | None:
    number = read_leaf(leaf)
    is_money = number is not None and split_key(key, number, "EUR")[1] in CURRENCIES.values()
    return number if is_money else None


def _read_distance(key: str, leaf: Any) -> float | None:
    number = read_leaf(leaf)
    unit = "" if number is None else split_key(key, number)[1]
    return number if "distance" in key.lower() or read_unit(unit)[0] == "length" else None


def _read_duration(key: str, leaf: Any) -> float | None:
    number = read_leaf(leaf)
    return number if DURATION_KEY.search(key.lower()) or _read_distance(key, leaf) is not None else None


def _read_time(key: str, leaf: Any) -> float | None:
    if not isinstance(leaf, str):
        return None
    day, clock = read_date(leaf), read_clock(leaf)
    return clock if day is None else day.toordinal()


_READERS: Mapping[str, Callable[[str, Any], float | None]] = MappingProxyType(
    {
        **dict.fromkeys(("cheapest", "dearest", "expensive"), _read_money),
        **dict.fromkeys(("nearest", "closest", "farthest", "furthest"), _read_distance),
        **dict.fromkeys(("shortest", "longest"), _read_duration),
        **dict.fromkeys(("earliest", "latest"), _read_time),
    }
)
"""The number of a row that a superlative ranks it by."""
