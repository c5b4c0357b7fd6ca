"""Figures of a text that belong to another record, or that do not follow from the results.

A figure belongs to the record that is named before it. Counts, differences and durations are computed from the results;
what the rules cannot read is not reported.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from groundwire.engine.schema.knowledge import list_records
from groundwire.engine.values import Clock, Measure, Value, read_values
from groundwire.metrics import Sentence, sentences

from .context import TurnContext, flatten
from .mentions import DAY_MINUTES, HALF_DAY, Mentions, list_leaves, read_clock, read_date, stem_words
from .records import Finding, FindingStatus
from .words import NUMBERS

_COUNT = "|".join(word for word, number in NUMBERS.items() if number >= 1 and word not in ("a", "an"))
_SHARE = re.compile(
    rf"\b(?P<part>\d+|{_COUNT}) of (?:the |all |your |these |those )?(?P<whole>\d+|{_COUNT})\b", re.IGNORECASE
)
_DURATION = re.compile(
    rf"\b(?P<first>an?|half|\d+(?:\.\d+)?|{_COUNT})(?P<part>(?: and)? (?:a half|a quarter|three quarters))?(?: an?)? "
    r"(?P<unit>hours?|minutes?)(?P<rest> and a half)?\b(?!['’]? (?:walk|drive|ride|notice|away|on foot))",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    r"(?:saves?|costs?|leaves?|adds?)\s+(?:you\s+)?[^,.;]{0,12}?$"
    r"|^\W*(?:\w+\s+)?(?:better off|worse off|dearer|cheaper|more|less|extra|off\b|in savings)",
    re.IGNORECASE,
)
_EACH = re.compile(r"^\W*(?:a|per|each|every)\s+(?P<unit>night|day|person|head|month|week|hour|piece)\b", re.IGNORECASE)
_ROUGH = frozenset({"about", "almost", "less", "more"})
_LEAST = 4
"""Whole numbers below are too frequent to say whose they are."""
_HOURS_KEY = re.compile(r"(?:^|_)(?:h|hrs?|hours?)(?:_|$)")
_SPOKEN = 3
"""Minutes by which a spoken time may differ."""
_PRONOUN = re.compile(r"^\W*(?:it|that|this|they|he|she|there|the (?:one|room|train|place))\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[;.]\s|\b(?:while|whereas|but|than|of which|and (?:the|your|my))\b")


class Mention(NamedTuple):
    """Where a text names a record."""

    start: int
    record: Mapping[str, Any]
    key: str
    """Of the time that names it; empty for a name."""


def check_figures(context: TurnContext) -> list[Finding]:
    """Return the figures of a turn's text that are wrong.

    Args:
        context: The turn.
    """
    if not context.results or not context.text.strip():
        return []
    findings = [*_check_shares(context), *_check_durations(context), *_check_amounts(context), *_check_owners(context)]
    unique: dict[tuple[int | None, int | None], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.start, finding.end), finding)
    return sorted(unique.values(), key=lambda finding: finding.start or 0)


def _find(status: FindingStatus, text: str, start: int, end: int, message: str) -> Finding:
    return Finding(kind="value", status=status, where=text[start:end], start=start, end=end, message=message)


def _list_groups(context: TurnContext) -> list[tuple[Mapping[str, Any], ...]]:
    """The lists of records of the results."""
    return list({id(sibling.records): sibling.records for sibling in context.siblings}.values())


def _check_shares(context: TurnContext) -> Iterator[Finding]:
    """ "Six of the nine": as many records must have a value in common."""
    for match in _SHARE.finditer(context.text):
        part, whole = (_read_number(match[name]) for name in ("part", "whole"))
        groups = [records for records in _list_groups(context) if len(records) == whole]
        counts = {count for records in groups for count in _count_values(records)}
        if groups and part not in counts and part != whole and part != 1:
            yield _find(
                "miscounted", context.text, *match.span(), f"No value is shared by {part:g} of the {whole:g} records."
            )


def _count_values(records: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    for key in {key for record in records for key in record}:
        values = [record.get(key) for record in records]
        for value in values:
            if isinstance(value, str | bool | int) or value is None:
                yield sum(other == value for other in values)
                yield sum(other != value for other in values)
        yield sum(bool(value) for value in values)
        yield sum(not value for value in values)


def _read_number(text: str) -> float:
    return float(NUMBERS.get(text.lower(), text))


def _check_durations(context: TurnContext) -> Iterator[Finding]:
    lengths = {*_list_lengths(context), *context.dialogue.durations}
    has_times = any(lengths)
    for match in _DURATION.finditer(context.text):
        minutes = _read_number(match["first"])
        fraction = {"half": 0.5, "three quarters": 0.75, "quarter": 0.25}
        extra = f"{match['part'] or ''}{match['rest'] or ''}"
        minutes += next((share for word, share in fraction.items() if word in extra), 0.0)
        minutes *= 60 if match["unit"].lower().startswith("hour") else 1
        margin = max(3.0, 0.06 * minutes) if not extra else max(3.0, 0.04 * minutes)
        before = context.text[: match.start()][-16:].lower()
        margin = (
            margin * 2.5
            if re.search(r"\b(?:just|about|some|nearly|almost|over|under|around|roughly)\b", before)
            else margin
        )
        if has_times and not any(abs(minutes - length) <= margin for length in lengths):
            yield _find(
                "absent", context.text, *match.span(), "No result, and no two times of the results, give this duration."
            )


def _list_lengths(context: TurnContext) -> Iterator[float]:
    """Durations in minutes that results have, or that lie between two times: of one record, or next to each other."""
    times: set[int] = set(context.dialogue.clocks)
    for value in (*context.all_results, *(call.arguments for call in context.log)):
        for _, key, leaf in list_leaves(value, ""):
            if isinstance(leaf, int | float) and not isinstance(leaf, bool):
                yield from (leaf, 60 * leaf) if _HOURS_KEY.search(key.lower()) else (leaf,)
            elif isinstance(leaf, str):
                clock = read_clock(leaf)
                times |= set() if clock is None else {clock}
                yield from Mentions([leaf]).durations
        for record in list_records(value):
            clocks = [
                clock for leaf in record.values() if isinstance(leaf, str) and (clock := read_clock(leaf)) is not None
            ]
            for left, right in combinations(clocks, 2):
                yield from (abs(left - right), DAY_MINUTES - abs(left - right))
    for left, right in pairwise(sorted(times)):
        yield right - left


def _check_amounts(context: TurnContext) -> Iterator[Finding]:
    text = context.text
    numbers = [
        float(leaf)
        for result in context.results
        for _, _, leaf in list_leaves(result, "")
        if isinstance(leaf, int | float) and not isinstance(leaf, bool)
    ]
    numbers += list(Mentions(leaf for leaf in context.result_values if " " in leaf).numbers)
    keyed = [
        (key.lower(), float(leaf))
        for result in context.results
        for _, key, leaf in list_leaves(result, "")
        if isinstance(leaf, int | float) and not isinstance(leaf, bool)
    ]
    for value in read_values(text):
        if value.kind != "money" or not isinstance(value.content, Measure):
            continue
        amount = value.content.amount / value.content.factor
        before, after = text[max(0, value.start - 40) : value.start], text[value.end : value.end + 30]
        if _DIFFERENCE.search(before) or _DIFFERENCE.match(after):
            margin = max(0.6, 0.04 * amount)
            if not _has_gap(numbers, amount, margin) and not any(abs(number - amount) <= margin for number in numbers):
                yield _find("absent", text, value.start, value.end, "No two amounts of the results differ by this.")
        elif _EACH.match(after):
            owners = [key for key, number in keyed if abs(number - amount) < 0.01]
            if owners and all("total" in key for key in owners):
                yield _find("absent", text, value.start, value.end, f"The result has this as {owners[0]}.")


def _has_gap(numbers: Sequence[float], gap: float, margin: float) -> bool:
    """Whether two numbers lie so far apart, up to a margin."""
    ordered = sorted(numbers)
    nearest = ((bisect_left(ordered, number + gap - margin), number) for number in ordered)
    return any(index < len(ordered) and ordered[index] <= number + gap + margin for index, number in nearest)


def _check_owners(context: TurnContext) -> Iterator[Finding]:
    groups = _list_groups(context)
    previous: Mention | None = None
    for sentence in sentences(context.text):
        unsorted = [mention for records in groups for mention in _list_mentions(sentence.text, records)]
        mentions = sorted(unsorted, key=lambda mention: mention.start)
        for value in read_values(sentence.text):
            named = _find_named(sentence, value, mentions, previous)
            if named is not None:
                yield from _compare(sentence, value, named, groups, context)
        yield from _check_states(sentence, groups, mentions)
        previous = mentions[-1] if mentions else previous


def _find_named(
    sentence: Sentence, value: Value, mentions: Sequence[Mention], previous: Mention | None
) -> Mention | None:
    before = [mention for mention in mentions if mention.start < value.start]
    clause = sentence.text[: value.start]
    cut = max((match.end() for match in _CLAUSE_END.finditer(clause)), default=0)
    names = [mention for mention in before if not mention.key]
    chosen = [mention for mention in names or before if mention.start >= cut]
    if chosen:
        return chosen[-1]
    return previous if not before and not mentions and previous and _PRONOUN.match(sentence.text) else None


def _list_mentions(text: str, records: Sequence[Mapping[str, Any]]) -> Iterator[Mention]:
    stems = {word: match.start() for match in re.finditer(r"[^\W\d_]+", text) for word in stem_words(match[0])}
    clocks = [(value.start, value.content) for value in read_values(text) if isinstance(value.content, Clock)]
    if not stems:
        return
    held = Counter((key, value) for record in records for key, value in record.items() if isinstance(value, str))
    words = Counter(word for record in records for word in stem_words(" ".join(map(str, record.values()))))
    for record in records:
        texts = [(key, value) for key, value in record.items() if isinstance(value, str) and held[key, value] == 1]
        for name in (value for _, value in texts if _may_name(value)):
            wanted = {word for word in stem_words(name) if len(word) > 2 and words[word] == 1}
            said = [stems[word] for word in wanted if word in stems]
            if wanted and len(said) * 2 >= len(wanted):
                yield Mention(min(said), record, "")
                break
        for key, value in texts if clocks else ():
            clock = read_clock(value)
            for start, content in clocks:
                if clock is not None and content.minutes % HALF_DAY == clock % HALF_DAY:
                    yield Mention(start, record, key)


def _may_name(value: str) -> bool:
    return re.search(r"[^\W\d_]{3}", value) is not None and read_clock(value) is None and read_date(value) is None


def _compare(
    sentence: Sentence,
    value: Value,
    named: Mention,
    groups: Sequence[Sequence[Mapping[str, Any]]],
    context: TurnContext,
) -> Iterator[Finding]:
    """Yield the value if the record that is named does not have it, and another of its list does."""
    if (
        isinstance(value.content, Measure)
        and value.content.amount < _LEAST
        and value.content.amount.is_integer()
        and value.kind == "number"
    ):
        return
    if not isinstance(value.content, Measure | Clock) or value.kind == "ordinal":
        return
    for records in groups:
        if not any(record is named.record for record in records) or _equals(value, len(records)):
            continue
        named_keys = {key for key, leaf in _flatten(named.record) if _equals(value, leaf)}
        theirs = {
            key
            for record in records
            if record is not named.record
            for key, leaf in _flatten(record)
            if _equals(value, leaf)
        }
        if named_keys or not theirs or (named.key and theirs <= {named.key}):
            continue
        elsewhere = [leaf for result in context.results for leaf in _list_outside(result, records)]
        if any(_equals(value, leaf) for leaf in elsewhere) or _is_derived(
            value, named.record, context.dialogue.numbers
        ):
            continue
        start, end = sentence.start + value.start, sentence.start + value.end
        yield _find("other_record", context.text, start, end, f"Another record has this as {min(theirs)}.")
        return


def _list_outside(value: Any, records: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """The values of a result that are in none of some records."""
    if any(value is record for record in records):
        return
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _list_outside(inner, records)
    else:
        yield value


def _flatten(record: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(path.lstrip("."), leaf) for path, leaf in flatten(record).items() if not isinstance(leaf, bool)]


def _is_derived(value: Value, record: Mapping[str, Any], mentioned: Collection[float]) -> bool:
    """Whether two numbers of a record, or one and a number of the dialogue, give the value."""
    if not isinstance(value.content, Measure):
        return False
    numbers = [float(leaf) for _, leaf in _flatten(record) if isinstance(leaf, int | float)]
    numbers += mentioned
    amount = value.content.amount / value.content.factor
    return any(
        abs(result - amount) <= 0.01 * amount
        for left, right in combinations(numbers, 2)
        for result in (left + right, abs(left - right), left * right)
    )


def _equals(value: Value, leaf: Any) -> bool:
    """Whether a value of a result is the one that the text states, as exactly as the text states it."""
    content = value.content
    if isinstance(content, Clock):
        clock = read_clock(leaf) if isinstance(leaf, str) else None
        if clock is None:
            return False
        gap = abs(content.minutes - clock) % HALF_DAY
        return min(gap, HALF_DAY - gap) <= (0 if content.half_known else _SPOKEN)
    if not isinstance(content, Measure) or not isinstance(leaf, int | float) or isinstance(leaf, bool):
        return False
    amount = content.amount / content.factor
    margin = 0.5 * content.step / content.factor if content.hedge in _ROUGH else 1e-6
    return abs(abs(leaf) - amount) <= margin or abs(abs(leaf) - content.amount) < 1e-6


def _check_states(
    sentence: Sentence, groups: Sequence[Sequence[Mapping[str, Any]]], mentions: Sequence[Mention]
) -> Iterator[Finding]:
    """Yield the words of a state that a record which is named before them does not have: "the suitcase was paid"."""
    for start, end in _split_clauses(sentence.text):
        clause = sentence.text[start:end].lower()
        inside = [mention for mention in mentions if start <= mention.start < end and not mention.key]
        for mention in inside:
            records = next(records for records in groups if any(record is mention.record for record in records))
            for key, value in mention.record.items():
                states = {other.get(key) for other in records if isinstance(other.get(key), str)}
                if not isinstance(value, str) or not 1 < len(states) <= len(records) / 2:
                    continue
                names = "|".join(re.escape(str(state).replace("_", " ").lower()) for state in states)
                said = re.search(
                    rf"\b(?:is|are|been|was|were|still) (?:\w+ly )?({names})\b", clause[mention.start - start :]
                )
                if said and said[1] != value.replace("_", " ").lower():
                    yield Finding(
                        kind="value",
                        status="other_record",
                        where=sentence.text[start:end],
                        start=sentence.start + start,
                        end=sentence.start + end,
                        message=f"The record has {key} {value!r}.",
                    )


def _split_clauses(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in re.finditer(r"[;:]\s+|,?\s+(?:but|while|whereas)\s+", text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)
