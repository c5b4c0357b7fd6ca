"""Figures of a text that belong to another record, or that do not follow from the results.

A figure belongs to the record that is named before it. Counts, differences and durations are computed from the results;
what the rules cannot read is not reported.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

from groundwire.engine.schema.knowledge import list_records
from groundwire.engine.values import Clock, Date, Measure, Value, read_values
from groundwire.metrics import Sentence, sentences

from .amounts import check_amounts, check_keys, check_references, find_sentence, is_sum
from .context import TurnContext
from .details import check_moments
from .extremes import check_extremes
from .mentions import (
    Mentions,
    has_other,
    list_durations,
    list_leaves,
    read_float,
    split_words,
    stem_words,
)
from .moments import DAY_MINUTES, HALF_DAY, read_clock, read_date
from .records import Finding, FindingStatus, find_value
from .rows import Mention, RecordGroup, has_extreme, has_sum, is_day, list_mentions, list_values, read_leaf
from .words import NUMBERS

_COUNT = "|".join(word for word, number in NUMBERS.items() if number >= 1 and word not in ("a", "an"))
_SHARE = re.compile(
    rf"\b(?P<part>\d+|{_COUNT}) of (?:the |all |your |these |those )?(?P<whole>\d+|{_COUNT})\b", re.IGNORECASE
)
_DISTANCE = re.compile(r"['’]? (?:walk|drive|ride|notice|away|on foot)")
"""After a duration that no two times of a result give."""
_GIVEN_ON = re.compile(
    r"^(?:[\w.'’-]+\W+){1,4}(?:(?:is|was) (?:due|expected)|arrives|departs|leaves|comes|runs|ends|starts)"
    r"\W+(?:\w+\W+){0,2}$"
)
_OFFSET = re.compile(
    r"\b(?:later|earlier|before|after|ago|within|until|till|by|from|since|between|not)\b", re.IGNORECASE
)
"""Words with which a date may be computed."""
_ROUND = re.compile(r"\S+ \w+")
"""A duration in two words, which may be rounded."""
_ABOUT = re.compile(r"\b(?:just|about|some|nearly|almost|over|under|around|roughly)\b", re.IGNORECASE)
_ROUGH = frozenset({"about", "almost", "less", "more"})
_LEAST = 4
"""Whole numbers below are too frequent to say whose they are."""
_MINUTES_OF = (
    dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 60.0)
    | dict.fromkeys(("min", "mins", "minute", "minutes"), 1.0)
    | dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1 / 60)
)
"""Minutes of a unit that a key names."""
_DURATION_KEYS = frozenset({"duration", "length", "takes", "wait", "eta", "elapsed", "runtime"})
_PERIOD = re.compile(
    r"P?(?:(?P<days>\d+)d)?T?(?:(?P<hours>\d+(?:\.\d+)?) ?h(?:ours?|rs?)?)? ?(?:(?P<minutes>\d+) ?m(?:in(?:ute)?s?)?)?"
    r" ?(?:(?P<seconds>\d+) ?s(?:ec(?:ond)?s?)?)?",
    re.IGNORECASE,
)
"""A duration of ISO 8601, or as services write it: "PT1H30M", "1h 30m"."""
_SPOKEN = 3
"""Minutes by which a spoken time may differ."""
_PRONOUN = re.compile(r"^\W*(?:it|that|this|they|he|she|there|the (?:one|room|train|place))\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\?|\b(?:if|whether|unless|could|would|might|may|can|ask|check|except|extra|other|others|like|prefer|sure|was|were|now|yet)\b",
    re.IGNORECASE,
)
"""Words after which a clause states nothing about what a record has."""
_DENIAL = re.compile(
    r"no|not|without|never|neither|nor|none|nothing|hardly|barely|rarely|lacks?|lacking|exclud\w+|cannot|\w+n['’]t"
)
_DENIED_BEFORE = re.compile(
    r"(?:(?<!\bwith )\bno|\b(?:lacks?|excludes?)|\b(?:is|are|comes?) without|\bthere (?:is|are)(?: not|n['’]t)"
    r"|\b(?:do|does)(?: not|n['’]t) (?:have|offer|include|provide|serve|feature|allow|permit|accept|come with))"
    r"(?: (?:an?|any|the))? $"
)
"""A denial directly before what it denies. A "room without breakfast" denies nothing of its hotel; nor does "no free
parking", as an adjective says of which kind there is none."""
_GIVEN = re.compile(r" (?:included|available|allowed|permitted|offered|provided)\b")
_DENIED_AFTER = re.compile(rf"(?: (?:is|are)n['’]t|(?: is| are)? not){_GIVEN.pattern}")
_DENIED_WHOLLY = re.compile(r"(?: at all| whatsoever| here| there| either)?(?:\W*$| ?[,)]| (?:and|or|nor)\b)")
"""What may follow a denial, so that it is of the whole: not "fees", "on Sundays"."""
_AT_NAME = re.compile(r" (?:at|in) (?:[\w'’-]+ ){0,2}")
_PARTIAL = re.compile(
    r"\b(?:on|before|after|until|till|for|during|from|between|when|only|just|some|most|every|that|which|who|where"
    r"|sa(?:y|ys|id)|th(?:ink|ought)|winter|summer|\w+days?|nights?|mornings?|evenings?|weekends?|moment)\b"
)
"""Words with which a denial may be of a part, or somebody else's."""
_OTHER_SUBJECT = re.compile(r"\w\W+(?:at|in|of|from|near|with) (?:the )?(?:[\w'’-]+ )?$")
"""Before a name: something of the record, such as one of its rooms, is spoken of."""
_IN_ALL = re.compile(r"\b(?:in all|altogether|together|in total|combined|total(?:s|ling)?|sum|add up)\b", re.IGNORECASE)
"""Words with which a value may be the sum of those of several records."""
_SCALE = re.compile(r"\b(?:out of|scale (?:of|from) .{1,12} to)\s+$", re.IGNORECASE)
"""Before the end of a scale: "43 out of 100"."""
_CLAUSE_END = re.compile(r"[;.]\s|\b(?:while|whereas|but|than|of which|and (?:the|your|my))\b")


def check_figures(context: TurnContext) -> list[Finding]:
    """Return the figures of a turn's text that are wrong.

    Args:
        context: The turn.
    """
    if not context.text.strip():
        return []
    with_results = (
        _check_shares,
        _check_durations,
        check_amounts,
        _check_owners,
        check_keys,
        check_extremes,
        check_moments,
    )
    checks = (*(with_results if context.results else ()), check_references)
    findings = [finding for check in checks for finding in check(context)]
    unique: dict[tuple[int | None, int | None], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.start, finding.end), finding)
    return sorted(unique.values(), key=lambda finding: finding.start or 0)


def _check_shares(context: TurnContext) -> Iterator[Finding]:
    """ "Six of the nine": as many records must have a value in common."""
    by_length: defaultdict[float, list[RecordGroup]] = defaultdict(list)
    for group in context.groups:
        by_length[len(group.records)].append(group)
    counts_of: dict[float, set[int]] = {}
    for match in _SHARE.finditer(context.text):
        context.check_time()
        part, whole = (_read_number(match[name]) for name in ("part", "whole"))
        of_length = by_length.get(whole, ())
        if whole not in counts_of:
            counts_of[whole] = {count for group in of_length for count in _count_values(group.records)}
        counts = counts_of[whole]
        if not of_length or part in counts or part in (1, whole):
            continue
        sentence, _ = find_sentence(context.text, match.start())
        if not any(len(rows) == part for group in of_length for rows in group.select(sentence)):
            message = f"No value is shared by {part:g} of the {whole:g} records."
            yield find_value("miscounted", context.text, *match.span(), message)


def _count_values(records: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    for key in {key for record in records for key in record}:
        values = [record.get(key) for record in records]
        for count in Counter(value for value in values if isinstance(value, str | int | None)).values():
            yield from (count, len(values) - count)
        yield sum(bool(value) for value in values)
        yield sum(not value for value in values)


def _read_number(text: str) -> float:
    return float(NUMBERS.get(text.lower(), text))


def _check_durations(context: TurnContext) -> Iterator[Finding]:
    lengths, others, are_read = _list_lengths(context)
    lengths |= context.dialogue.durations
    has_times = are_read and any(lengths)
    for start, end, minutes in list_durations(context.text, read_values(context.text)):
        context.check_time()
        margin = max(3.0, (0.06 if _ROUND.fullmatch(context.text, start, end) else 0.04) * minutes)
        if _ABOUT.search(context.text[max(0, start - 16) : start]):
            margin *= 2.5
        if not has_times or any(abs(minutes - length) <= margin for length in (*lengths, *others)):
            continue
        if not is_sum(context, start) and not _DISTANCE.match(context.text, end):
            message = "No result, and no two times of the results, give this duration."
            yield find_value("absent", context.text, start, end, message)


def _list_lengths(context: TurnContext) -> tuple[set[float], set[float], bool]:
    """Durations in minutes that results have, or that lie between two times: of one record, or next to each other.

    Beside them the numbers without a unit, which may be durations, and whether every value with the key of a duration
    could be read.
    """
    times: set[int] = set(context.dialogue.clocks)
    lengths: set[float] = set()
    others: set[float] = set()
    are_read = True
    for value in (*context.all_results, *(call.arguments for call in context.log)):
        for _, key, leaf in list_leaves(value, ""):
            words = {word.lower() for word in split_words(key)}
            is_duration = not words.isdisjoint(_DURATION_KEYS)
            if (number := read_leaf(leaf)) is not None:
                units = [_MINUTES_OF[word] for word in words if word in _MINUTES_OF]
                lengths.update(number * unit for unit in units)
                others |= {number, 60 * number, number / 60} if is_duration and not units else {number}
            elif isinstance(leaf, str):
                clock = read_clock(leaf)
                times |= set() if clock is None else {clock}
                periods = {*Mentions([leaf]).durations, *_read_period(leaf, is_duration=is_duration)}
                lengths |= periods
                are_read &= not is_duration or bool(periods)
        for record in list_records(value):
            clocks = [
                clock for leaf in record.values() if isinstance(leaf, str) and (clock := read_clock(leaf)) is not None
            ]
            context.check_time()
            if len(set(clocks)) < len(clocks):
                lengths |= {0, DAY_MINUTES}
            for left, right in combinations(set(clocks), 2):
                lengths |= {abs(left - right), DAY_MINUTES - abs(left - right)}
    lengths.update(right - left for left, right in pairwise(sorted(times)))
    return lengths, others, are_read


def _read_period(text: str, *, is_duration: bool) -> Iterator[float]:
    """The minutes of a duration in units; without the P of ISO 8601 only where the key says that it is one."""
    match = _PERIOD.fullmatch(text.strip())
    if match and any(match.groups()) and (is_duration or text.lstrip()[0] == "P"):
        days, hours, minutes, seconds = (read_float(part or "0") or 0.0 for part in match.groups())
        yield DAY_MINUTES * days + 60 * hours + minutes + seconds / 60
    elif is_duration and (clock := read_clock(text)) is not None:
        yield clock


def _check_owners(context: TurnContext) -> Iterator[Finding]:
    previous: Mention | None = None
    for sentence in sentences(context.text):
        context.check_time()
        unsorted = [mention for group in context.groups for mention in list_mentions(sentence.text, group)]
        mentions = sorted(unsorted, key=lambda mention: mention.start)
        for value in read_values(sentence.text):
            named = _find_named(sentence, value, mentions, previous)
            if named is not None:
                context.check_time()
                yield from _compare(sentence, value, named, context)
        yield from _check_states(sentence, mentions)
        yield from _check_flags(sentence, mentions)
        yield from _check_codes(sentence, mentions)
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


def _compare(
    sentence: Sentence,
    value: Value,
    named: Mention,
    context: TurnContext,
) -> Iterator[Finding]:
    """Yield the value if the record that is named does not have it, and another of its list does."""
    content = value.content
    if not isinstance(content, Measure | Clock | Date) or value.kind == "ordinal":
        return
    if isinstance(content, Date) and (not content.day or (content.month, content.day) in context.dialogue.dates):
        return
    is_small = (
        isinstance(content, Measure)
        and content.amount < _LEAST
        and content.amount.is_integer()
        and value.kind == "number"
    )
    if _equals(value, len(named.group.records)) or _SCALE.search(sentence.text[: value.start]):
        return
    has_it, theirs = False, set[str]()
    for record, leaves in named.group.leaves:
        keys = {
            key for key, leaf in leaves if _equals(value, leaf) and not (is_small and not _is_counted(content, key))
        }
        if record is named.record:
            has_it = bool(keys)
        else:
            theirs |= keys
    start, end = sentence.start + value.start, sentence.start + value.end
    if isinstance(content, Date) and not (has_it or theirs) and _is_said_directly(sentence.text, value, named):
        if (content.month, content.day) not in context.everything.dates and not context.dialogue.spans:
            yield find_value("absent", context.text, start, end, "No result has this date.")
        return
    if has_it or not theirs or (named.key and theirs <= {named.key}):
        return
    selections = named.group.select(sentence.text)
    if has_extreme(value, selections, sentence.text[max(0, named.start) : value.start]) or (
        _IN_ALL.search(sentence.text) and has_sum(value, selections)
    ):
        return
    elsewhere = (leaf for result in context.results for leaf in _list_outside(result, named.group.ids))
    if any(_equals(value, leaf) for leaf in elsewhere) or _is_derived(value, named.record, context.dialogue.numbers):
        return
    yield find_value("other_record", context.text, start, end, f"Another record has this as {min(theirs)}.")


def _is_said_directly(text: str, value: Value, named: Mention) -> bool:
    """Whether a date is given to a record that is named shortly before it, and that has dates: "is due on 3 May"."""
    if named.key or not any(isinstance(leaf, str) and read_date(leaf) for leaf in named.record.values()):
        return False
    between = text[named.start : value.start]
    return _GIVEN_ON.search(between) is not None and not _OPEN.search(between) and not _OFFSET.search(text)


def _is_counted(content: Measure | Clock | Date, key: str) -> bool:
    """Whether a key names what a number counts: three places, of ``places_left``."""
    return isinstance(content, Measure) and not content.nouns.isdisjoint(stem_words(key))


def _list_outside(value: Any, ids: Collection[int]) -> Iterator[Any]:
    """The values of a result that are in none of some records."""
    if id(value) in ids:
        return
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _list_outside(inner, ids)
    else:
        yield value


def _is_derived(value: Value, record: Mapping[str, Any], mentioned: Collection[float]) -> bool:
    """Whether two numbers of a record, or one and a number of the dialogue, give the value."""
    if not isinstance(value.content, Measure):
        return False
    numbers = [number for _, leaf in list_values(record) if (number := read_leaf(leaf)) is not None]
    ordered = sorted((*numbers, *mentioned))
    amount = value.content.amount / value.content.factor
    margin = 0.01 * amount
    for index, number in enumerate(ordered):
        sums = [(amount - number, margin), (number + amount, margin), (number - amount, margin)]
        products = [(amount / number, abs(margin / number))] if number else []
        if any(has_other(ordered, index, wanted - near, wanted + near) for wanted, near in (*sums, *products)):
            return True
    return False


def _equals(value: Value, leaf: Any) -> bool:
    """Whether a value of a result is the one that the text states, as exactly as the text states it."""
    content = value.content
    if isinstance(content, Date):
        day = read_date(leaf) if isinstance(leaf, str) else None
        return day is not None and is_day(content, day)
    if isinstance(content, Clock):
        clock = read_clock(leaf) if isinstance(leaf, str) else None
        if clock is None:
            return False
        gap = abs(content.minutes - clock) % HALF_DAY
        return min(gap, HALF_DAY - gap) <= (0 if content.half_known else _SPOKEN)
    number = read_leaf(leaf)
    if not isinstance(content, Measure) or number is None:
        return False
    amount = content.amount / content.factor
    margin = 0.5 * content.step / content.factor if content.hedge in _ROUGH else 1e-6
    return abs(abs(number) - amount) <= margin or abs(abs(number) - content.amount) < 1e-6


def _check_states(sentence: Sentence, mentions: Sequence[Mention]) -> Iterator[Finding]:
    """Yield the words of a state that a record which is named before them does not have: "the suitcase was paid"."""
    for start, end in _split_clauses(sentence.text):
        clause = sentence.text[start:end].lower()
        inside = [mention for mention in mentions if start <= mention.start < end and not mention.key]
        for mention in inside:
            said_of = _cut_at_next(clause, mention, inside, start)
            for key, states in mention.group.states.items():
                value = mention.record.get(key)
                if not isinstance(value, str):
                    continue
                names = "|".join(re.escape(state.replace("_", " ").lower()) for state in states)
                said = re.search(rf"\b(?:is|are|been|was|were|still) (?:\w+ly )?({names})\b", said_of)
                if said and said[1] != value.replace("_", " ").lower():
                    message = f"The record has {key} {value!r}."
                    yield find_value("other_record", sentence.text, start, end, message, sentence.start)


def _cut_at_next(clause: str, mention: Mention, inside: Sequence[Mention], offset: int) -> str:
    """A clause from a record's name to the next record's, if more than a list of names is between them."""
    record_words = stem_words(" ".join(map(str, mention.record.values())))
    for other in sorted(inside, key=lambda item: item.start):
        between = clause[mention.start - offset : other.start - offset]
        if (
            other.start > mention.start
            and other.record is not mention.record
            and not stem_words(between) <= record_words
        ):
            return between
    return clause[mention.start - offset :]


def _check_codes(sentence: Sentence, mentions: Sequence[Mention]) -> Iterator[Finding]:
    """Yield a code that is said under its key of the record that is named before it, and is another's: "room 204"."""
    for group in {id(mention.group): mention.group for mention in mentions}.values():
        for owner, key, code in group.codes:
            if code not in sentence.text:
                continue
            word = re.escape(split_words(key)[-1] if split_words(key) else key)
            said = re.search(rf"\b{word} {re.escape(code)}(?![\w-])", sentence.text, re.IGNORECASE)
            before = [item for item in mentions if said and item.group is group and item.start < said.start()]
            if said and before and before[-1].record is not owner and key in before[-1].record:
                message = f"Another record has this as {key}."
                yield find_value("other_record", sentence.text, *said.span(), message, sentence.start)


def _check_flags(sentence: Sentence, mentions: Sequence[Mention]) -> Iterator[Finding]:
    """Yield what a record that is named is said to have and has not, or the other way round: "no breakfast"."""
    for start, end in _split_clauses(sentence.text):
        clause = sentence.text[start:end]
        inside = {
            id(mention.record): mention for mention in mentions if start <= mention.start < end and not mention.key
        }
        if len(inside) != 1 or _OPEN.search(clause):
            continue
        (mention,) = inside.values()
        said = _read_flags(clause, mention.start - start, mention.group.flags)
        for key, is_denied in said.items():
            value = mention.record.get(key)
            if is_denied is value:
                has_other = any(record.get(key) is not value for record in mention.group.records)
                status: FindingStatus = "other_record" if has_other else "absent"
                message = f"The record has {key} {str(value).lower()}."
                yield find_value(status, sentence.text, start, end, message, sentence.start)


def _read_flags(clause: str, name: int, flags: Mapping[str, frozenset[str]]) -> dict[str, bool]:
    """Which flags a clause about the record that is named at ``name`` denies, by their keys, and which it does not.

    Nothing where it has a denial that does not stand directly beside a flag; with a denial of one flag, nothing of the
    others: "no parking or breakfast".
    """
    clause = re.sub(r"\s", " ", clause.lower())
    words = list(re.finditer(r"[\w'’]+", clause))
    stems = [stem_words(word[0]) for word in words]
    indices = {key: [index for index, of_word in enumerate(stems) if of_word & wanted] for key, wanted in flags.items()}
    mentioned = {key: of_key for key, of_key in indices.items() if len(of_key) >= len(flags[key])}
    denials = {word.start() for word in words if _DENIAL.fullmatch(word[0])}
    if not denials:
        return dict.fromkeys(mentioned, False)
    if _PARTIAL.search(clause) or (max(denials) > name and _OTHER_SUBJECT.search(clause[:name])):
        return {}
    direct: set[int] = set()
    denied: dict[str, bool] = {}
    for key, of_key in mentioned.items():
        if of_key[-1] - of_key[0] < len(of_key):  # one beside the other
            begin, end = _find_denial(clause, words[of_key[0]].start(), words[of_key[-1]].end(), name, "free" in key)
            direct |= {denial for denial in denials if begin <= denial < end}
            denied |= {key: True} if begin < end else {}
    return denied if direct == denials else {}


def _find_denial(clause: str, start: int, end: int, name: int, is_free: bool) -> tuple[int, int]:
    """The range of a clause with the words of a flag, which are from ``start`` to ``end``, and what denies them; empty
    if nothing does."""
    before = clause[:start].removesuffix("free ") if is_free else clause[:start]
    if match := _DENIED_BEFORE.search(before):
        begin, stop = match.start(), end
        participle = _GIVEN.match(clause, end)
        end = participle.end() if participle else end
    elif after := _DENIED_AFTER.match(clause, end):
        begin, stop = start, after.end()
        end = stop
    else:
        return 0, 0
    is_whole = _DENIED_WHOLLY.match(clause, end) or (end < name and _AT_NAME.fullmatch(clause, end, name))
    return (begin, stop) if is_whole else (0, 0)


def _split_clauses(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in re.finditer(r"[;:]\s+|,?\s+(?:but|while|whereas)\s+", text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)
