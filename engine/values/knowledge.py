"""The values that a text states, found in one pass over its tokens, and the passages of a request, read once.

For each passage: what it states, and which words its sentences have.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice
from math import inf
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import is_alphanumeric, is_digits, is_letters, starts_lower, starts_upper

from ..text.normalization import FUNCTION_WORDS
from .codes import find_codes
from .dates import MONTHS, read_clock, read_date, read_hours
from .names import ORGANISATIONS, PHRASES, PLACES, find_names, fold_name, split_by_case
from .numbers import (
    DENOMINATORS,
    FRACTIONS,
    ONES,
    ORDINALS,
    PLURAL_SCALES,
    SCALES,
    TENS,
    ReadMeasure,
    is_one,
    read_measure,
    stem,
)
from .tokens import Content, Date, Measure, Name, Token, Value, iterate_tokens, load_table, text_at, tokenize
from .units import COUNTRY_OF, CURRENCY_SIGNS

_DECADES = frozenset(f"{word[:-1]}ies" for word in TENS)
_STARTS = frozenset({*ONES, *TENS, *ORDINALS, *DENOMINATORS, *PLURAL_SCALES, *MONTHS, *FRACTIONS, *_DECADES}) | {
    "a", "an", "half", "noon", "midday", "midnight",
}  # fmt: skip
"""Words that a number or date may begin with, in lower case."""
_AFTER_ARTICLE = frozenset({"hundred", "dozen", *SCALES, *DENOMINATORS})
_RANGE_SIGNS = frozenset({"-", "–", "—", "to", "and", "until", "till", "through"})


Amounts: TypeAlias = tuple[Sequence[Value], Set[int]]
"""Values other than names, in order, and the indices of their tokens."""


def find_values(
    tokens: Sequence[Token], capitalised: Set[str] = frozenset(), lower: Set[str] = frozenset()
) -> list[Value]:
    """The values that a text states, in order and disjoint; takes time in proportion to the number of its tokens.

    ``capitalised`` and ``lower``: words that are, and are not, written as names elsewhere (``find_names``).

    >>> from .tokens import tokenize
    >>> text = "It opened in May 1887, is 3,000 feet long, and Bob Ross painted it."
    >>> [(value.kind, text[value.start : value.end]) for value in find_values(tokenize(text))]
    [('date', 'May 1887'), ('quantity', '3,000 feet'), ('name', 'Bob Ross')]
    """
    return _join_names(tokens, find_amounts(tokens), capitalised, lower)


def read_values(text: str) -> list[Value]:
    """Return the values that a text states, in order and disjoint; its own capitals tell which words are names.

    >>> text = "The Joy of Painting, which Ross hosted, began in 1983."
    >>> [text[value.start : value.end] for value in read_values(text)]
    ['Joy of Painting', 'Ross', '1983']
    """
    tokens = tokenize(text)
    return find_values(tokens, *split_by_case(tokens))


def _join_names(tokens: Sequence[Token], amounts: Amounts, capitalised: Set[str], lower: Set[str]) -> list[Value]:
    others, taken = amounts
    values = [*others, *find_names(tokens, taken, capitalised, lower)]
    values.sort(key=lambda value: value.start)
    return values


class ValueText:
    """A text whose tokens and amounts are read at their first use, and once."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, size: int) -> Iterator[list[Token]]:
        """Read the tokens, and yield them in parts of ``size``; nothing if they are read."""
        if "tokens" in self.__dict__:
            return
        tokens: list[Token] = []
        reader = iterate_tokens(self.text)
        while part := list(islice(reader, size)):
            tokens += part
            yield part
        self.__dict__["tokens"] = tuple(tokens)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens, in order."""
        return tuple(iterate_tokens(self.text))

    @cached_property
    def amounts(self) -> Amounts:
        """The values other than names, in order, and the indices of their tokens."""
        return find_amounts(self.tokens)

    def find_values(self, capitalised: Set[str] = frozenset(), lower: Set[str] = frozenset()) -> list[Value]:
        """Return the values that the text states (``find_values``)."""
        return _join_names(self.tokens, self.amounts, capitalised, lower)


def find_amounts(tokens: Sequence[Token]) -> Amounts:
    """The values other than names, in order, and the indices of their tokens."""
    codes, taken = find_codes(tokens)
    values: list[Value] = []
    end = 0
    starts = [index for index, token in enumerate(tokens) if token.lower in _STARTS or is_digits(token.text[0])]
    cited = _list_citations(tokens)
    for index in starts:
        token = tokens[index]
        article = token.lower in ("a", "an") and not (
            text_at(tokens, index + 1) in _AFTER_ARTICLE or is_one(tokens, index)
        )
        if index < end or article or index in taken or index in cited:
            continue
        value, end = _read_value(tokens, index)
        if value is None:
            continue
        if values and value.start < values[-1].end:  # "1$½": the sign belongs to the first
            value = value._replace(start=token.start)
        compound = _join_compound(tokens, values[-1], value, index) if values else None
        joined = compound or (_join_range(tokens, values[-1], value, index) if values else None)
        values[-1:] = joined or (*values[-1:], value)
        taken.update(number for number in range(max(index - 2, 0), end) if tokens[number].start >= value.start)
    values = read_hours(tokens, _complete_units(tokens, values), taken)
    return sorted([*values, *codes], key=lambda value: value.start) if codes else values, taken


_CORRECTING = frozenset(load_table("correcting"))
_CORRECTION_GAP = 6
"""Words between a value and the number that corrects it, at most: "12 euros a day, sorry, 20"."""


def _complete_units(tokens: Sequence[Token], values: Sequence[Value]) -> list[Value]:
    """The values; a bare number in the place of the one before has its unit and sentence: "24 months; sorry, 36"."""
    index_of = {token.start: index for index, token in enumerate(tokens)}
    completed: list[Value] = []
    for value in values:
        last = completed[-1] if completed else None
        number = _find_bare_number(value)
        if last is not None and number is not None and _corrects(tokens, index_of, last, value):
            assert isinstance(last.content, Measure)
            factor = last.content.factor
            content = last.content._replace(
                amount=number.amount * factor, step=number.step * factor, hedge="exact", span=None
            )
            value = value._replace(kind=last.kind, content=content, sentence=last.sentence, corrects=True)
        completed.append(value)
    return completed


def _find_bare_number(value: Value) -> Measure | None:
    """A number that does not say what it counts; after an amount, a year is one too: "900 dollars; sorry, 1800"."""
    content = value.content
    if isinstance(content, Date) and content.first == content.last and content.first is not None:
        is_year = content == Date(content.first, content.first)
        return Measure("count", float(content.first), 1.0) if is_year else None
    is_bare = isinstance(content, Measure) and content.measure == "count" and not content.nouns
    return content if isinstance(content, Measure) and is_bare else None


def _corrects(tokens: Sequence[Token], index_of: Mapping[int, int], last: Value, value: Value) -> bool:
    """Whether a bare number, which ends its clause, follows an amount after a word like "sorry"."""
    amount = last.content
    if not isinstance(amount, Measure) or amount.measure == "rank" or not (amount.nouns or amount.measure != "count"):
        return False
    first = index = index_of[value.start]
    while index > 0 and (tokens[index - 1].lower in _CORRECTING or not is_alphanumeric(tokens[index - 1].text[0])):
        index -= 1
    if not any(token.lower in _CORRECTING or token.text == ";" for token in tokens[index:first]):
        return False
    between = [token for token in tokens[max(0, index - _CORRECTION_GAP - 1) : index] if token.start >= last.end]
    following = next((token for token in tokens[first + 1 : first + 2]), None)
    ends = following is None or not is_alphanumeric(following.text[0])
    return ends and len(between) <= _CORRECTION_GAP and all(token.sentence == last.sentence for token in between)


def _list_citations(tokens: Sequence[Token]) -> set[int]:
    """Indices of the numbers of citations, "[2]" or "[1, 3]": they say where a statement is from."""
    cited: set[int] = set()
    for first in [index for index, token in enumerate(tokens) if token.text == "["]:
        last = first + 1
        while (
            last < len(tokens)
            and last < first + _MAX_CITED
            and (tokens[last].text in ",-–" or (is_digits(tokens[last].text) and len(tokens[last].text) < 4))
        ):
            last += 1
        is_listed = text_at(tokens, first - 1) in (":", "=", "[", ",") or last == first + 1
        if not is_listed and text_at(tokens, last) == "]":
            cited.update(range(first + 1, last))
    return cited


_MAX_CITED = 20
"""Numbers and commas between the brackets of a citation, at most."""


def _read_value(tokens: Sequence[Token], index: int) -> tuple[Value | None, int]:
    token = tokens[index]
    clock = read_clock(tokens, index)
    if clock is not None:
        return Value("time", token.start, tokens[clock[1] - 1].end, token.sentence, clock[0]), clock[1]
    currency = index > 0 and tokens[index - 1].text in CURRENCY_SIGNS
    date = None if currency else read_date(tokens, index)
    if date is not None:
        return Value("date", token.start, tokens[date.end - 1].end, token.sentence, date.date), date.end
    measure = read_measure(tokens, index)
    if measure is None:
        return None, index + 1
    return _make(tokens, measure), measure.end


def _make(tokens: Sequence[Token], read: ReadMeasure) -> Value:
    first = tokens[read.first]
    return Value(read.kind, first.start, tokens[read.end - 1].end, first.sentence, read.measure)


def _join_range(tokens: Sequence[Token], left: Value, right: Value, index: int) -> tuple[Value, Value] | None:
    """Both values with the range that they are the ends of ("from 1939 to 1945", "5–10 km"), or None."""
    sign_index = index - 1 - (tokens[index - 1].text in CURRENCY_SIGNS)
    range_sign = tokens[sign_index]
    if sign_index < 1 or range_sign.lower not in _RANGE_SIGNS or tokens[sign_index - 1].end != left.end:
        return None
    if range_sign.lower == "and" and not any(
        token.lower == "between" for token in tokens[max(0, sign_index - 8) : sign_index]
    ):
        return None
    low, high = left.content, right.content
    days = _join_days(tokens, left, right, range_sign)
    if days is not None:
        return days
    if isinstance(low, Measure) and isinstance(high, Measure):
        if low.measure == "count" and not low.nouns and high.measure != "rank":
            factor = high.factor
            low = low._replace(
                measure=high.measure,
                amount=low.amount * factor,
                step=low.step * factor,
                nouns=high.nouns,
                factor=factor,
            )
            left = left._replace(kind=right.kind)
        if low.measure != high.measure or low.amount >= high.amount:
            return None
        span = (low.amount, high.amount)
        # "Within 3 to 5 days" ends at 5, and "from 3 to 5 days" limits nothing.
        low, high = low._replace(span=span, limit="none"), high._replace(span=span, limit=low.limit)
        if high.limit == "lower":
            high = high._replace(limit="none")
        return left._replace(content=low), right._replace(content=high)
    if isinstance(low, Date) and isinstance(high, Measure) and high.measure == "count" and low.first is not None:
        # 1939–45
        year = low.first - low.first % 100 + int(high.amount)
        if not (range_sign.text in "-–" and right.end - right.start == 2 and year > low.first and low.month is None):
            return None
        right, high = right._replace(kind="date"), Date(year, year)
    if isinstance(low, Date) and isinstance(high, Date) and low.first is not None and high.last is not None:
        if low.first > high.last:
            return None
        years = (low.first, high.last)
        return left._replace(content=low._replace(span=years)), right._replace(content=high._replace(span=years))
    return None


def _join_compound(tokens: Sequence[Token], left: Value, right: Value, index: int) -> tuple[Value] | None:
    """An amount in two units as one ("1 hour 20 minutes", "6 feet 2 inches"), or None."""
    high, low = left.content, right.content
    first = index - 1 - (tokens[index - 1].lower == "and")
    if not isinstance(high, Measure) or not isinstance(low, Measure) or tokens[first].end != left.end or first < 0:
        return None
    if high.measure != low.measure or high.measure not in ("duration", "length", "mass") or high.span is not None:
        return None
    if high.factor <= low.factor or low.amount >= high.factor or left.sentence != right.sentence:
        return None
    whole = low._replace(amount=high.amount + low.amount, hedge=high.hedge, limit=high.limit)
    return (right._replace(start=left.start, content=whole),)


def _join_days(tokens: Sequence[Token], left: Value, right: Value, dash: Token) -> tuple[Value, Value] | None:
    """Both days of a period: "5–8 November", "Nov 5-8", "3 March to 7 April"; or None."""
    low, high = left.content, right.content
    if isinstance(high, Date) and isinstance(low, Measure):
        low = _make_day(low, high)
        left = left._replace(kind="date")
    elif isinstance(low, Date) and isinstance(high, Measure) and dash.text in "-–":
        high = _make_day(high, low)
        right = right._replace(kind="date")
    if not isinstance(low, Date) or not isinstance(high, Date):
        return None
    if low.first is None and high.first is not None:
        low = low._replace(first=high.first, last=high.last)
    if low.month and high.month and low.day is None and high.day is None and low.first == high.first is None:
        months = (low.month * 32 + 1, high.month * 32 + 31)  # "from late June to August"
        return left._replace(content=low._replace(days=months)), right._replace(content=high._replace(days=months))
    if low.month is None or low.day is None or high.month is None or high.day is None:
        return None
    first, last = low.month * 32 + low.day, high.month * 32 + high.day
    if low.first != high.first or (first >= last and low.first is not None) or low.either or high.either:
        return None
    days = (first, last)
    return left._replace(content=low._replace(days=days)), right._replace(content=high._replace(days=days))


def _make_day(number: Measure, date: Date) -> Content:
    """A bare number or an ordinal as a day of a date's month, if it may be one."""
    if number.measure not in ("count", "rank") or number.nouns or number.amount not in range(1, 32):
        return number
    return date._replace(day=int(number.amount)) if date.month is not None and date.day is not None else number


SentenceKey: TypeAlias = tuple[int, int]
"""Numbers of a passage and of a sentence in it."""
RESPONSE, HISTORY = -1, -2
"""The passages of sentences that are not of the knowledge."""
_GENERIC = PLACES | ORGANISATIONS
_IN_ACRONYMS = frozenset({"of", "the", "and", "for", "&"})
"""Words that an acronym leaves out."""
_NO_CONTENT = FUNCTION_WORDS | {"within", "least", "less", "fewer"}
_PRONOUNS = frozenset(load_table("pronouns"))


class Location(NamedTuple):
    """Characters ``start`` to ``end`` of a passage, in one of its sentences."""

    passage: int
    start: int
    end: int
    sentence: int

    @property
    def key(self) -> SentenceKey:
        """Its sentence."""
        return self.passage, self.sentence


class Knowledge:
    """What the passages state, and where. Words and names are read when they are first asked for."""

    def __init__(self, texts: Sequence[ValueText], capitalised: Set[str], lower: Set[str]) -> None:
        """Read the amounts and dates of each passage; ``capitalised`` and ``lower`` as for ``find_values``."""
        self._passages = passages = [text.tokens for text in texts]
        self._texts = [text.text for text in texts]
        self._capitalised, self._lower = capitalised, lower
        self._amounts = [text.amounts for text in texts]
        self.values = [
            (Location(passage, value.start, value.end, value.sentence), value)
            for passage, (amounts, _) in enumerate(self._amounts)
            for value in amounts
        ]
        """All values but names."""
        self.sentences = sum(tokens[-1].sentence + 1 for tokens in passages if tokens)
        """How many sentences there are."""
        self.opens_without_name = any(map(_opens_without_name, passages))
        """Whether a passage begins with whom it speaks of, but not by name: "she", "the film"."""

    def list_tokens(self, key: SentenceKey) -> Sequence[Token]:
        """The tokens of a sentence."""
        tokens, sentence = self._passages[key[0]], attrgetter("sentence")
        return tokens[bisect_left(tokens, key[1], key=sentence) : bisect_right(tokens, key[1], key=sentence)]

    @cached_property
    def by_sentence(self) -> Mapping[SentenceKey, Sequence[Value]]:
        """All values but names, by their sentence."""
        values: dict[SentenceKey, list[Value]] = {}
        for location, value in self.values:
            values.setdefault(location.key, []).append(value)
        return values

    @cached_property
    def names(self) -> list[tuple[Location, Name]]:
        """All names, and the nationality that one begins with: "Chinese BAFTA nominee"."""
        names: list[tuple[Location, Name]] = []
        for passage, values in enumerate(self._named):
            for value in values:
                location, name = Location(passage, value.start, value.end, value.sentence), value.content
                assert isinstance(name, Name)
                names.append((location, name))
                if len(name.words) > 1 and name.words[0] in COUNTRY_OF:
                    names.append((location, name._replace(words=name.words[:1], type="nationality")))
        return names

    @cached_property
    def _named(self) -> list[list[Value]]:
        """The names of each passage."""
        return [
            find_names(tokens, taken, self._capitalised, self._lower)
            for tokens, (_, taken) in zip(self._passages, self._amounts, strict=True)
        ]

    @cached_property
    def content(self) -> dict[SentenceKey, Set[str]]:
        """Stems of the content words of each sentence."""
        return {
            (passage, sentence): words
            for passage, (tokens, (amounts, _)) in enumerate(zip(self._passages, self._amounts, strict=True))
            for sentence, words in list_content(tokens, amounts).items()
        }

    @cached_property
    def _index(self) -> tuple[dict[str, dict[SentenceKey, Token]], dict[str, Location]]:
        """Folded words, each with its first token in every sentence; and the acronyms of runs of capitals."""
        words: dict[str, dict[SentenceKey, Token]] = {}
        acronyms: dict[str, Location] = {}
        for passage, tokens in enumerate(self._passages):
            _index_words(passage, tokens, words, acronyms)
        return words, acronyms

    def find_words(self, words: Set[str], passages: Set[int]) -> dict[str, Set[SentenceKey]]:
        """The folded words that some passages have, each with its sentences there."""
        index = self._index[0]
        sentences = {word: {key for key in index[word] if key[0] in passages} for word in index.keys() & words}
        return {word: keys for word, keys in sentences.items() if keys}

    def find_source_name(self, key: str) -> Location | None:
        """Where a passage has the name of source code, whatever is beside it; capitals do not count."""
        pattern = re.compile(
            rf"(?<![\w-]){re.escape(key)}(?![\w-])" if key[0] == "-" else rf"(?<!\w){re.escape(key)}(?!\w)"
        )
        for passage, text in enumerate(self._texts):
            match = pattern.search(text.lower())
            if match is not None and len(text.lower()) == len(text):
                sentence = next((t.sentence for t in self._passages[passage] if t.end > match.start()), 0)
                return Location(passage, *match.span(), sentence)
        return None

    def find_name(self, words: Sequence[str]) -> Location | None:
        """Where a sentence has all words of a name, or its acronym, or the name that it abbreviates.

        Words that only say of what kind something is are left out: Yale University is Yale.
        """
        specific = [word for word in words if word not in _GENERIC]
        by_word = [self._look_up(word) for word in specific or words]
        if by_word and all(by_word):
            for key in min(by_word, key=len):
                if all(key in tokens for tokens in by_word):
                    return _locate_all(key, [tokens[key] for tokens in by_word])
        if len(words) == 1:
            return self._index[1].get(words[0])
        acronym = self._index[0].get("".join(word[:1] for word in words), {})
        return next((_locate(key, token) for key, token in acronym.items()), None)

    def _look_up(self, word: str) -> Mapping[SentenceKey, Token]:
        words = self._index[0]
        return words.get(word) or words.get(word.removesuffix("s")) or words.get(f"{word}s") or {}


def _index_words(
    passage: int,
    tokens: Sequence[Token],
    words: dict[str, dict[SentenceKey, Token]],
    acronyms: dict[str, Location],
) -> None:
    previous = initials = ""
    key = (passage, 0)
    for token in tokens:
        first = token.text[0]
        if key[1] != token.sentence:
            key = (passage, token.sentence)
        if starts_upper(first) and token.lower not in FUNCTION_WORDS:
            initials += first.lower()
            if 1 < len(initials) < 8 and initials not in acronyms:
                acronyms[initials] = _locate(key, token)
        elif initials and token.lower not in _IN_ACRONYMS:
            initials = ""
        if is_alphanumeric(first):
            word = fold_name(token.text)
            words.setdefault(word, {}).setdefault(key, token)
            for part in PHRASES.get((previous, word), ()):
                words.setdefault(part, {}).setdefault(key, token)
            previous = word


def _locate_all(key: SentenceKey, tokens: Sequence[Token]) -> Location:
    """The words of a name that are next to each other, else the last of them."""
    start, end = min(token.start for token in tokens), max(token.end for token in tokens)
    together = end - start <= sum(len(token.text) + 4 for token in tokens)
    return Location(key[0], start, end, key[1]) if together else _locate(key, tokens[-1])


def _locate(key: SentenceKey, token: Token) -> Location:
    return Location(key[0], token.start, token.end, key[1])


def list_content(tokens: Sequence[Token], values: Sequence[Value]) -> Mapping[int, Set[str]]:
    """Stems of the content words of each sentence, without its amounts and dates."""
    content: dict[int, set[str]] = defaultdict(set)
    bounds = iter([(value.start, value.end) for value in values if not isinstance(value.content, Name)])
    start, end = next(bounds, (inf, inf))
    for token in tokens:
        while end <= token.start:
            start, end = next(bounds, (inf, inf))
        words = content[token.sentence]
        lower = token.lower
        if token.start < start and len(lower) > 2 and is_letters(lower[0]) and lower not in _NO_CONTENT:
            words.add(stem(COUNTRY_OF.get(lower, lower)))
    return content


def _opens_without_name(tokens: Sequence[Token]) -> bool:
    if not tokens:
        return False
    described = tokens[0].lower == "the" and len(tokens) > 1 and starts_lower(tokens[1].text)
    return described or tokens[0].lower in _PRONOUNS
