"""Splits a response into sentences by spaCy's rules: no model, the same for every bundle.

A full stop after an abbreviation ends a sentence only if what follows says so. spaCy's tokenizer knows "Dr.", "Ltd.",
"e.g." and "a.m." as words with a full stop. Of these, titles and "e.g." never end a sentence; the others do before a
word with a capital that opens sentences ("The", "It"). A lower-case letter alone says nothing: people write whole
messages without capitals.

Markdown decides where sentences may end: in code and tables they do not, and a heading belongs to the line after it.
The kind of a line depends on the lines before it and on the line itself, never on later lines, so that a stream reads
the same structure as the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import (
    classify_character,
    is_alphanumeric,
    is_letters,
    is_lower_case,
    is_numeric,
    is_space,
    is_title_case,
    is_upper_case,
    starts_lower,
    starts_upper,
)

from .calendar import MONTHS, SHORT_DAYS, SHORT_MONTHS
from .words import read_tokens, settle_tokens

if TYPE_CHECKING:
    from spacy.tokens import Token


LineKind: TypeAlias = Literal["blank", "text", "item", "heading", "fence", "code", "table"]
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_CODE = re.compile(r"(?P<fence>```|~~~)(?s:.*?)(?:(?P=fence)|\Z)|(?P<tick>`+)(?!`)[^\n]+?(?<!`)(?P=tick)(?!`)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•–·]|\d{1,3}[.)]|[a-z]\))[ \t]+(?=\S)")
_HEADING = re.compile(
    r"[ ]{0,3}#{1,6}[ \t]+\S|[ \t]*(\*\*|__)(?!(?i:(?:correct )?(?:answer|solution)): )[^*_\n]*[^*_\n.!:]\1[ \t]*$"
)
_UNDECIDED = re.compile(r"[ \t]*(?:`{0,2}|~{0,2}|\d{1,3}[.)]?|[a-z]\)?|(?:\d{1,3}[.)]|[a-z]\))[ \t]+)\Z")
_LEAD_IN = re.compile(r":[ \t*_]*\Z")
_PROSE = re.compile(r"(?:[^\W\d_]|[ ,.'’!?-]|\d(?=[\d\s.,%]))*\Z")
_PROSE_WORDS = 5
"""Words from which a line between fences may be prose."""


class MarkdownLine(NamedTuple):
    """What a line is."""

    kind: LineKind
    marker: int = 0
    """Where the text of a list item begins."""
    carries: bool = False
    """Whether it belongs to the sentence that begins in the next line: a heading, a lead-in, the header of a table."""

    @property
    def is_split(self) -> bool:
        """Whether full stops end sentences in it."""
        return self.kind not in ("fence", "code", "table")


class LineReader:
    """The state between two lines of a text."""

    def __init__(self) -> None:
        self._fence = ""
        self._in_table = False
        self._carrying = False

    def is_unsplit(self, line: str) -> bool:
        """Whether what is there of an unfinished line says that no sentence ends in it."""
        return bool(self._fence or _FENCE.match(line) or line.lstrip().startswith("|"))

    def find_marker(self, line: str) -> int:
        """Where the text of an unfinished line begins whose kind is decided; 0 if it is not a list item."""
        match = _ITEM.match(line)
        return 0 if match is None else match.end()

    def read(self, line: str) -> MarkdownLine:
        """What a complete line is; its line break may be part of it."""
        line = line.rstrip()
        structure = self._find(line)
        self._in_table = structure.kind == "table"
        self._carrying = structure.carries
        return structure

    def _find(self, line: str) -> MarkdownLine:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[1] == self._fence:
                self._fence = ""
                return MarkdownLine("fence")
            if not line:
                return MarkdownLine("blank", carries=self._carrying)
            return MarkdownLine("text" if _looks_like_prose(line) else "code")
        if not line:
            return MarkdownLine("blank", carries=self._carrying)
        if fence:
            self._fence = fence[1]
            return MarkdownLine("fence", carries=True)
        if line.lstrip().startswith("|"):
            separator = not any(map(is_alphanumeric, line))
            return MarkdownLine("table", carries=self._carrying if separator else not self._in_table)
        item = _ITEM.match(line)
        marker = item.end() if item else 0
        if _HEADING.match(line):
            return MarkdownLine("heading", carries=True)
        return MarkdownLine("item" if item else "text", marker, bool(_LEAD_IN.search(line)))


def _looks_like_prose(line: str) -> bool:
    """Whether a line between fences is a sentence rather than code: fences do not hide statements."""
    words = line.split()
    return len(words) >= _PROSE_WORDS and starts_upper(line.lstrip()) and _PROSE.match(line.strip()) is not None


class Sentence(NamedTuple):
    """A sentence of a text: ``text == whole[start:end]``, without spaces at its ends."""

    text: str
    start: int
    end: int


def find_code(text: str) -> list[tuple[int, int]]:
    """Return the ranges of code in a text, with its marks: between fences, or between backticks in a line.

    >>> find_code("Use `--all`, as in: ~~~ run")
    [(4, 11), (20, 27)]

    Args:
        text: A text; an open fence lasts until its end.

    Returns:
        The first and the following character of each range, in order and disjoint.
    """
    return [match.span() for match in _CODE.finditer(text)]


def sentences(text: str) -> tuple[Sentence, ...]:
    """Split a text into sentences; parts without a letter or digit are left out.

    A line break ends a sentence, unless the line is a heading, a lead-in that ends with a colon, the header of a table
    or the beginning of a code block, which belong to the sentence after them. The marker of a list item belongs to the
    item; rows of tables and lines of code are not split. The full stop of an abbreviation ends a sentence if
    what follows begins one. A text without any word is one sentence, so every response has at least one.

    >>> [sentence.text for sentence in sentences("me too! it’s by Dr. Dre, no?")]
    ['me too!', 'it’s by Dr. Dre, no?']

    Args:
        text: The text, in English.

    Returns:
        The sentences with their ranges of characters, in order and disjoint. A text without any word is one sentence,
        so
        every response has at least one.
    """
    return tuple(_read(text))


def read_sentences(text: str) -> Iterator[Sentence]:
    """Yield what ``sentences`` returns, reading a long text as far as somebody asks."""
    return _read(text)


def _read(text: str) -> Iterator[Sentence]:
    any_word = False
    for start, end in _find_bounds(text):
        if any(map(is_alphanumeric, text[start:end])):
            any_word = True
            yield _strip(text, start, end)
    if not any_word:
        yield _strip(text, 0, len(text))


class SentenceReader:
    """The sentences of a text that is still being written, each as soon as no continuation can change it.

    ``sentences`` looks ahead without a bound: to the first token after a full stop that is not punctuation, and as far
    as the exceptions of the tokenizer join tokens. So a sentence is complete here when its tokens are settled
    (``LinearTokenizer.settle``), what begins another sentence follows it, and a letter or digit follows. Then it is a
    sentence of every continuation, and not the only one. The last sentence is complete when the text is.

    >>> reader = SentenceReader()
    >>> for part in ("It is by Dr", ". Dre. Is", " it so? Yes"):
    ...     print([sentence.text for sentence in reader.feed(part)])
    []
    ['It is by Dr. Dre.']
    ['Is it so?']
    """

    def __init__(self) -> None:
        self.text = ""
        """All that was fed."""
        self._settled = 0
        """How many characters of ``text`` have been read into ``_bounds``."""
        self._begin = 0
        """Where the line begins that is not complete."""
        self._seen = 0
        """How many of the others begin no chunk that settles what is before it."""
        self._bounds = _Bounds(0)
        self._lines = LineReader()
        self._marker = -1
        """Where the text of a list item begins in the unfinished line; -1 before the line says that."""
        self._is_unsplit = False
        """Whether the unfinished line has begun as one in which no sentence ends, which more text does not change."""
        self._last: Sentence | None = None
        """A sentence that has ended, and after which no letter or digit follows so far."""
        self._last_word = -1
        """Where the last letter or digit is."""
        self._last_sign = -1
        """Where the last character is that is not a space."""

    @property
    def candidate(self) -> Sentence | None:
        """The sentence that the text ends with, if it has its full stop; what follows may change it."""
        begin = self._bounds.begin
        if min(self._last_sign, self._last_word) < begin or self.text[self._last_sign] not in _stops():
            return None
        return _strip(self.text, begin, self._last_sign + 1)

    def feed(self, text: str) -> list[Sentence]:
        """Append ``text``; returns the sentences that are complete now and were not before, in order."""
        for index in reversed(range(len(text))):
            if self._last_sign < len(self.text) and not is_space(text[index]):
                self._last_sign = len(self.text) + index
            if is_alphanumeric(text[index]):
                self._last_word = len(self.text) + index
                break
        begin = len(self.text)
        self.text += text
        complete: list[Sentence] = []
        # Only new text is searched for line breaks: a line may come character by character.
        for line in text.splitlines(keepends=True):
            end = begin + len(line)
            if len(line.splitlines()[0]) < len(line):
                self._read_line(self.text[self._settled : end], complete)
            elif self._marker >= 0 or self._is_decided(begin):
                line = self.text[self._settled :]
                if self._marker < 0:
                    self._marker = self._settled + self._lines.find_marker(line)
                self._read_settled(line, complete)
            begin = end
        if self._last is not None and self._last_word >= self._last.end:
            complete.append(self._last)
            self._last = None
        return complete

    def _is_decided(self, begin: int) -> bool:
        """Whether the unfinished line says where its sentences end, with what was fed from ``begin`` on."""
        if self._is_unsplit or self._last_sign < self._settled:
            return False
        if begin > self._settled and not self.text[begin - 1 :].strip(" \t"):
            return False  # it was undecided, and more spaces after a space decide nothing
        line = self.text[self._settled :]
        self._is_unsplit = self._lines.is_unsplit(line)
        return not self._is_unsplit and not _UNDECIDED.match(line)

    def _read_line(self, line: str, complete: list[Sentence]) -> None:
        """Read the rest of a line that has ended."""
        kind = self._lines.read(self.text[self._begin : self._settled] + line)
        if self._marker < 0:
            self._marker = self._begin + kind.marker
        if kind.is_split:
            self._read(line, complete)
        else:
            self._settled += len(line)
            self._bounds.end = self._settled
        if kind.carries:
            self._bounds.go_on()
        else:
            self._end_sentence(self._bounds.begin, self._bounds.end, complete)
            self._bounds = _Bounds(self._settled)
        self._begin, self._seen, self._marker, self._is_unsplit = self._settled, 0, -1, False

    def _read_settled(self, line: str, complete: list[Sentence]) -> None:
        """Read the tokens of an unfinished line that are settled."""
        settled = settle_tokens(line, self._seen)
        if settled:
            self._read(line[:settled], complete)
            # A token that begins with a letter or digit is not punctuation, however long it becomes.
            # After an abbreviation the whole token decides.
            is_decided = self._bounds.abbreviation is None and not self._bounds.is_citing
            if self._bounds.after_stop and is_decided and is_alphanumeric(line[settled]):
                self._end_sentence(*self._bounds.split(self._settled, self._bounds.end), complete)
        left = line[settled:]
        self._seen = len(left) if is_space(left[-1:]) else len(left) - len(left.rsplit(None, 1)[-1])

    def _read(self, part: str, complete: list[Sentence]) -> None:
        for mark in _read_marks(part, self._settled):
            bounds = self._bounds.read(mark, self._marker)
            if bounds is not None:
                self._end_sentence(*bounds, complete)
        self._settled += len(part)

    def _end_sentence(self, start: int, end: int, complete: list[Sentence]) -> None:
        if any(map(is_alphanumeric, self.text[start:end])):
            if self._last is not None:
                complete.append(self._last)
            self._last = _strip(self.text, start, end)


def _find_bounds(text: str) -> Iterator[tuple[int, int]]:
    """The sentences of a text. Unlike a pipeline, this reads a long line part by part."""
    lines = LineReader()
    bounds = _Bounds(0)
    offset = 0
    for line in text.splitlines(keepends=True):
        kind = lines.read(line)
        if kind.is_split:
            for mark in _read_marks(line, offset):
                ended = bounds.read(mark, offset + kind.marker)
                if ended is not None:
                    yield ended
        else:
            bounds.end = offset + len(line)
        offset += len(line)
        if kind.carries:
            bounds.go_on()
        else:
            yield bounds.begin, bounds.end
            bounds = _Bounds(offset)
    yield bounds.begin, bounds.end


class _Bounds:
    """The rule of spaCy's sentencizer: a sentence begins with the first token that is not punctuation after a full
    stop. None begins if the full stop is an abbreviation's and that token goes on, or if a comma follows at once. The
    words of a citation ("[2]", "[^2]", "[a]", "【2†source】") count as punctuation in "It closed. [2] The bar is new.",
    and begin the next sentence in "It closed. [2] says so."

    Between two tokens: where the sentence begins, where its last token ends, and whether it has had its full stop.
    """

    def __init__(self, begin: int) -> None:
        self.begin = self.end = begin
        self.after_stop = False
        self.abbreviation: Abbreviation | None = None
        """Whose full stop it was, and nothing else's."""
        self._bracket: tuple[int, int] | None = None
        """Where a bracket begins that is open after the full stop, and where what is before it ends."""
        self._cited: tuple[int, int] | None = None
        """The same of the numbers in it."""
        self._citation: tuple[int, int] | None = None
        """The same of the first citation after the full stop."""
        self._word = self._before = ""
        """The last two tokens of the sentence."""

    def read(self, mark: _Mark, marker: int) -> tuple[int, int] | None:
        """Take the next token; returns the sentence that it ends by beginning another.

        A full stop before ``marker`` belongs to a list item's number.
        """
        ended = None
        if self._cited is not None and not _IN_MARK.fullmatch(mark.text):
            ended = self.split(*self._cited)  # it was no citation
        if mark.stop:
            if mark.end > marker:
                self._stop(mark)
        elif not self.after_stop:
            pass
        elif self._bracket is not None and _IN_MARK.fullmatch(mark.text):
            self._read_mark(mark)
        elif self.abbreviation is None and _MARK_START.fullmatch(mark.text):
            self._bracket = self._cited = mark.start, self.end
        elif not mark.silent:
            if self.abbreviation is None or not goes_on(self.abbreviation, mark.text):
                citation = self._citation if starts_lower(mark.text) else None
                ended = self.split(*(citation or (mark.start, self.end)))
            self.go_on()
        elif mark.text in ("[", "【") and self.abbreviation is None:
            self._bracket = mark.start, self.end
        elif self._goes_on(mark):
            self.go_on()
        if not mark.stop and mark.text[-1] == "." and (closing := find_closing(mark.text)) is not None:
            self.after_stop, self.abbreviation = True, closing
        if mark.end > marker:
            self._before, self._word = self._word, mark.text
        self.end = mark.end
        return ended

    @property
    def is_citing(self) -> bool:
        """Whether a citation, or the beginning of one, is the last of the sentence."""
        return self._bracket is not None or self._citation is not None

    def _read_mark(self, mark: _Mark) -> None:
        """Take a part of a citation, or its end."""
        if mark.text in ("]", "】"):
            self._citation = self._citation or (self._cited and self._bracket)
            self._bracket = self._cited = None
        elif self._cited is None and not mark.silent:
            self._cited = mark.start, self.end

    def _goes_on(self, mark: _Mark) -> bool:
        """Whether punctuation after a full stop says that it ended nothing: "Inc., a", "GmbH. & Co.", "a.m. (CET)"."""
        at_once = self._word[-1:] == "." and mark.start == self.end
        if self.abbreviation is not None and mark.text[0] == "&":
            return True
        return (at_once and mark.text[0] in ",;:") or (self.abbreviation == "closing" and mark.text[0] == "(")

    def _stop(self, mark: _Mark) -> None:
        alone = mark.text == "." and mark.start == self.end and not self.after_stop
        self.abbreviation = find_abbreviation(self._word, self._before) if alone and self._word else None
        self.after_stop = True
        self._bracket = self._citation = None

    def split(self, begin: int, end: int) -> tuple[int, int]:
        """Begin another sentence; returns the one before, up to its end."""
        ended = self.begin, end
        self.begin = begin
        self.go_on()
        self._word = self._before = ""
        return ended

    def go_on(self) -> None:
        """Forget the full stop: it has ended a sentence, or none."""
        self.after_stop, self.abbreviation = False, None
        self._bracket = self._cited = self._citation = None


_CITED = r"(?:\^?\d{1,3}|[a-z]|\d{1,3}(?::\d{1,3})?†\w{1,20})"
_IN_MARK = re.compile(rf"[\]】]|[,;–-]|L\d{{1,5}}|{_CITED}(?:(?:\]\[|】【|[,;–-]){_CITED})*", re.ASCII)
"""A token of a citation after its bracket, as spaCy cuts them: "2", "2][3", "1-3", "^1", "a", "1†source"."""
_MARK_START = re.compile(rf"【{_CITED}(?:】【{_CITED})*", re.ASCII)
"""A token that is a bracket with a citation: "【4:0†source"."""


class _Mark(NamedTuple):
    text: str
    start: int
    end: int
    stop: bool
    """Whether it ends a sentence."""
    silent: bool
    """Whether it is punctuation or a line break, which begins no sentence."""


def _read_marks(part: str, begin: int) -> Iterator[_Mark]:
    """The tokens of a part of a text that begins at ``begin``."""
    return chain.from_iterable(read_tokens(part, partial(_mark_token, begin)))


def _mark_token(begin: int, token: Token, offset: int) -> _Mark:
    start = begin + offset + token.idx
    text = token.text
    return _Mark(text, start, start + len(token), text in _stops(), token.is_punct or _is_break(text))


def _is_break(text: str) -> bool:
    return is_space(text) and text.splitlines()[0] != text


@cache
def _stops() -> frozenset[str]:
    from spacy.pipeline import Sentencizer  # on first use, as in ``words``

    return frozenset(Sentencizer.default_punct_chars)


def _strip(text: str, start: int, end: int) -> Sentence:
    while start < end and is_space(text[start]):
        start += 1
    while start < end and is_space(text[end - 1]):
        end -= 1
    return Sentence(text[start:end], start, end)


Abbreviation: TypeAlias = Literal["number", "leading", "trailing", "unit", "day", "closing"]
"""What goes on after it: a number; whatever it announces; a number or a word in lower case; only such a word, after the
unit of a number; a number, such a word or a date, after the day of a week; whatever does not open sentences, after one
that its full stop is a part of."""

_NUMBER = frozenset((
    "no", "nos", "nr", "nrs", "fig", "figs", "vol", "vols", "ch", "chap", "sect", "para", "paras", "eq", "eqs",
    "ext", "rm", "ver", "pp", "pg", "pgs", "tel", "fax", "pos", "apt", "bldg",
))  # fmt: skip
_LEADING = frozenset((
    "approx", "aprox", "appr", "ca", "incl", "excl", "exc", "esp", "cf", "viz", "eg", "ie", "misc",
))  # fmt: skip
_DAYS = frozenset(SHORT_DAYS) - {"wed"}
_MONTHS = frozenset(SHORT_MONTHS) - {"may"}
_TRAILING = _MONTHS | frozenset((
    "min", "mins", "sec", "secs", "hr", "hrs", "yr", "yrs", "wk", "wks", "mos", "ft", "yd", "yds", "lb", "lbs",
    "oz", "tsp", "tsps", "tbsp", "tbsps", "pt", "pts", "qt", "qts", "gal", "gals", "doz", "pkg", "pkgs", "pkt",
    "pkts", "pcs", "mph", "rpm", "kmh", "kph", "sq", "cu", "max", "avg", "etc", "dept", "depts", "govt", "univ",
    "assn", "assoc", "temp", "temps", "mtg", "appt", "appts", "adv", "ave", "blvd", "hwy", "rd", "arr", "dep",
    "cert", "std", "est", "orig", "intl", "natl", "inc", "corp", "ltd", "bros", "jr", "sr", "prof", "ref",
    "refs", "reg", "cont", "contd", "ed", "eds",
))  # fmt: skip
_ANY = _NUMBER | _LEADING | _TRAILING | _DAYS
_MEASURED = re.compile(
    r"(?!(?:st|nd|rd|th|tvs?|cds?|dvds?|pc)\Z)(?:in|mi|ea|am|doz|gals?|mins?|secs?|[b-df-hj-np-tv-xz]{2,4})\Z"
)
"""What is a unit after a number: "12 in. wide", "3 pkts. of seeds"; not the end of "15th", nor "2 tvs"."""
_DIVIDED = frozenset({"hr", "hrs", "ft", "lb", "lbs", "yr", "yrs"})
"""Units after which a number of smaller ones may follow: "2 hrs. 30 min."."""
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_LAST_LETTERS = re.compile(r"[^\W\d_]+\Z")
_OPENERS = frozenset((
    "i", "it", "he", "she", "we", "they", "you", "this", "there", "these", "those", "the", "what", "why", "how",
    "do", "did", "does", "yes", "yeah", "yep", "my", "his", "its", "our", "your", "their", "ok", "okay", "hi",
    "oh", "lol", "maybe", "thanks", "thank", "so", "also", "when", "where", "who", "which", "can", "could",
    "would", "should",
))  # fmt: skip
"""Words that begin a sentence rather than go on with one, also without a capital."""
_CAPITAL_OPENERS = _OPENERS | frozenset((
    "a", "an", "her", "if", "in", "on", "at", "for", "from", "after", "before", "please", "each", "all", "no", "not",
    "then", "but", "and", "as", "to", "with", "until", "is", "are", "however", "otherwise", "your",
))  # fmt: skip
"""Words that begin a sentence where they have a capital."""
_DATED = _DAYS | _MONTHS | frozenset(MONTHS)
"""Words of a date that may follow a day."""
_CLOSING = _MONTHS | frozenset(("inc", "ltd", "co", "corp", "bros", "jr", "°c", "°f"))
"""Words with a full stop of their own that may be the last of a sentence."""
_DOTTED_CLOSING = re.compile(r"(?:\d*[ap]\.m|ph\.d|(?!e\.g|i\.e|v\.s)(?:[^\W\d_]\.)+[^\W\d_])\Z")
"""Others of their kind: "9 a.m.", "U.S."."""


def find_abbreviation(word: str, before: str) -> Abbreviation | None:
    """What abbreviation ``word`` is, without its full stop; ``before`` is the token before it in the sentence, or "".

    >>> find_abbreviation("min", "45"), find_abbreviation("Sat", "on"), find_abbreviation("sweet", "is")
    ('unit', 'day', None)
    """
    if _DOTTED.match(word):
        return "trailing"
    match = _LAST_LETTERS.search(word)
    if match is None:
        return None
    letters = match[0]
    name = letters.lower()
    if (is_numeric(word[0]) or is_numeric(before[-1:])) and _MEASURED.match(letters):
        return "trailing" if name in _DIVIDED else "unit"
    if name == letters or is_title_case(letters):
        return None if is_numeric(word[0]) else _find_known(name, is_title_case(letters), before)
    return "number" if name in _ANY else None  # the SAT is a test, but "SAT. 10–5" is a day


def find_closing(word: str) -> Abbreviation | None:
    """What a word is whose full stop is a part of it, and may end a sentence; None for one that never does.

    A word with capitals inside, such as "GmbH", has no full stop of its own: it ends its sentence as any other does.

    >>> find_closing("Ltd."), find_closing("a.m."), find_closing("GmbH."), find_closing("Dr.")
    ('closing', 'closing', 'trailing', None)
    """
    stem, name = word[:-1], word[:-1].lower()
    if name in _CLOSING or _DOTTED_CLOSING.match(name):
        return "closing"
    has_one_case = is_title_case(stem) or is_lower_case(stem) or is_upper_case(stem)
    return "trailing" if is_letters(stem) and len(stem) > _TITLE and not has_one_case else None


_TITLE = 3
"""Letters of a title with a full stop, at most: "PhD."."""


def _find_known(name: str, titled: bool, before: str) -> Abbreviation | None:
    if name in _DAYS:
        if name == "sun" and before.lower() == "the":
            return None
        return "day" if titled else "number"  # "sat" is a verb as well
    if name == "no" and not before:
        return None  # an answer: "No. 20 minutes are enough."
    if name == "al" and before.lower() == "et":
        return "trailing"
    if name in _NUMBER or (name in ("art", "arts") and titled):  # not "I love art. 5 years ago I …"
        return "number"
    if name in _LEADING:
        return "leading"
    return "trailing" if name in _TRAILING else None


def goes_on(abbreviation: Abbreviation, following: str) -> bool:
    """Whether the sentence goes on after the abbreviation with the token ``following``, which is not punctuation.

    >>> goes_on("trailing", "in"), goes_on("trailing", "Then"), goes_on("trailing", "it")
    (True, False, False)
    """
    first, name = following[0], following.lower()
    if abbreviation == "number" or not is_letters(first):
        if abbreviation == "unit" or (abbreviation == "day" and any(map(is_letters, following))):
            return False
        numbered = any(map(is_numeric, following))
        return numbered or classify_character(first) == "currency" or first in "~≈±+−≤≥"
    if abbreviation == "leading":
        return name not in _OPENERS or starts_lower(first)
    if abbreviation == "closing":
        return name not in _CAPITAL_OPENERS or not starts_upper(first)
    if abbreviation == "day":
        return starts_lower(first) or name.rstrip(".") in _DATED
    return starts_lower(first) and name not in _OPENERS
