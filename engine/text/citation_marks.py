"""Finds what an answer itself cites: ``[2]``, "(source: …)", footnotes and links, and which passage each names.

A number is the passage's own ("[2] …", "Document 2: …") where all passages begin with one, and otherwise its place,
from 1. A list of sources at the end of the answer says what numbers mean. A name means the passage with such a title,
an address the passage that has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from groundwire.runtime.texts.characters import is_alphanumeric, starts_lower

from .normalization import FUNCTION_WORDS, fold_word
from .sentences import Sentence, find_code
from .words import RangeIndex, starting_in

MAX_RANGE = 20
"""Numbers that a range such as [1-3] has, at most."""
MAX_TITLE = 15
"""Words of the first line of a passage, at most, where it is the title."""
_RANGE = r"\d{1,3}(?:\s?[–-]\s?\d{1,3})?"
_NUMBERS = rf"{_RANGE}(?:\s?[,;]\s?{_RANGE})*"
_RAISED_NUMBER = r"(?<![⁰¹²³⁴-⁹])[¹²³⁴-⁹][⁰¹²³⁴-⁹]{0,2}(?![⁰¹²³⁴-⁹])"
_MARK = re.compile(
    rf"\[(?:(?:doc(?:ument)?|source|passage|ref(?:erence)?|item|\^)s?\s?#?)?(?P<numbers>{_NUMBERS})\](?!\()"
    rf"|【(?P<lenticular>{_NUMBERS})(?:†[^】]*)?】"
    rf"|\((?:see )?(?:doc(?:ument)?|source|passage|ref(?:erence)?|item)s?\s#?(?P<named>{_NUMBERS})\)"
    rf"|(?<=[^\W\d]{{3}})(?P<raised>{_RAISED_NUMBER})|(?<=[.,;:!?”\"’)])(?P<raised_after>{_RAISED_NUMBER})"
    r"|[(\[](?:sources?|see|from|ref(?:erence)?|according to|cf\.?)\s?:?\s(?P<name>[^()\[\]\n]{2,120})[)\]]"
    r"|\[(?P<label>[^\[\]\n]+)\]\((?P<url>https?://[^)\s]+)(?:\s+\"[^\"\n]*\")?\)"
    r"|(?P<bare><?https?://[^\s<>()\[\]]+[^\s<>()\[\].,;:!?'\"”]>?)",
    re.IGNORECASE,
)
_RAISED = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹⁰", "1234567890")
_LIST = re.compile(
    r"(?m)^[ \t]*(?:[-*]\s+)?(?:\[\^?(?P<number>\d{1,3})\][:.]?"
    rf"|(?P<raised>{_RAISED_NUMBER}))[ \t]+(?P<entry>[^\n]+)$"
)
_LIST_HEADING = re.compile(r"(?mi)^[ \t#*_]*(?:sources?|references?|citations?|notes|footnotes)[*_]*:?[*_]*[ \t]*$")
_OWN_NUMBER = re.compile(
    r"\s*(?:\[(?P<number>\d{1,3})\]|(?:document|doc|passage|source|item)\s#?(?P<named>\d{1,3})\s?[:.)\]-])",
    re.IGNORECASE,
)
_TITLE_KEY = re.compile(r"(?mi)^\s*(?:title|source|url|name|document|file)\s?:\s*(?P<title>[^\n]+)$")
_LABEL = re.compile(r"(?P<title>[A-Z][^:\n]{2,80}):\s")
_LABELLED = re.compile(r"\n[ \t]*[A-Z][\w ]{0,40}:\s")
_URL = re.compile(r"https?://[^\s<>\"')\]]+")
_WORD = re.compile(r"[^\W_]+")
_STOP = re.compile(r"[.!?…][\"”’')*_]*\s*\Z")
_NEARBY = 20
"""Characters before marks in which a full stop may be."""


class CitationMark(NamedTuple):
    """A place of an answer that cites."""

    start: int
    end: int
    passages: tuple[int | None, ...]
    """Indices of the passages that it cites; None for an item that the knowledge does not have."""


class Statement(NamedTuple):
    """A sentence of an answer, with spaces in the place of its marks, and the marks that cite for it."""

    sentence: Sentence
    marks: tuple[CitationMark, ...]


class Items:
    """The passages of the knowledge by their numbers, titles and addresses."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._titles = [frozenset(_list_names(find_title(passage))) for passage in passages]
        self._urls = [tuple(_trim_url(match[0]) for match in _URL.finditer(passage)) for passage in passages]
        numbers = [match and int(match["number"] or match["named"]) for match in map(_OWN_NUMBER.match, passages)]
        self._numbers = {number: index for index, number in enumerate(numbers) if number is not None}
        if len(self._numbers) < len(passages):
            self._numbers = {index + 1: index for index in range(len(passages))}

    @property
    def has_urls(self) -> bool:
        """Whether a passage has an address, so that links can be citations."""
        return any(self._urls)

    def find_number(self, number: int) -> int | None:
        """Return the passage of a number."""
        return self._numbers.get(number)

    def find_url(self, url: str) -> int | None:
        """Return the passage that has an address."""
        wanted = _trim_url(url)
        return next((index for index, urls in enumerate(self._urls) if wanted in urls), None)

    def find_name(self, name: str) -> int | None:
        """Return the passage whose title shares most words with a name, and at least half of either's."""
        if (url := _URL.search(name)) and (index := self.find_url(url[0])) is not None:
            return index
        words = set(_list_names(name))
        shares = [
            max(len(words & title) / len(title), len(words & title) / len(words)) if words and title else 0.0
            for title in self._titles
        ]
        best = max(shares, default=0.0)
        return shares.index(best) if best >= 0.5 else None


def find_title(passage: str) -> str:
    """Return the title or source that a passage begins with; empty where it has none.

    >>> find_title("# Hours\\nThe bar closes at one."), find_title("The lease, 4: No pets."), find_title("No pets.")
    ('Hours', 'The lease, 4', '')
    """
    keyed = _TITLE_KEY.search(passage[:500])
    first, _, rest = passage.strip().partition("\n")
    number = _OWN_NUMBER.match(first)
    line = (first[number.end() :] if number else first).strip("#*_ \t")
    if keyed:
        return keyed["title"].strip()
    labelled = _LABEL.match(line)
    if labelled and len(labelled["title"].split()) <= MAX_TITLE and not _LABELLED.search(passage):
        return labelled["title"]
    is_title = bool(rest.strip()) and len(line.split()) <= MAX_TITLE and not line.endswith((".", "!", "?", ",", ";"))
    return line.rstrip(":") if is_title else ""


def _list_names(text: str) -> Iterator[str]:
    return (fold_word(match[0]) for match in _WORD.finditer(text) if match[0].lower() not in FUNCTION_WORDS)


def _trim_url(url: str) -> str:
    return url.lower().partition("#")[0].rstrip("/.,;:!?>").removeprefix("<")


def find_citation_marks(text: str, passages: Sequence[str]) -> tuple[tuple[CitationMark, ...], int]:
    """Return the citation marks of an answer, and where its list of sources begins.

    >>> marks, end = find_citation_marks("We lend 300 works [2]. See [4].", ["The bar.", "300 works are lent."])
    >>> [mark.passages for mark in marks]
    [(1,), (None,)]

    Args:
        text: An answer, as it is shown.
        passages: The passages of the knowledge.

    Returns:
        The marks in order and disjoint, without the list of sources; and the list's first character, the length of the
        text where it has none.
    """
    if not any(mark in text for mark in ("[", "【", "(", "://", *"¹²³⁴⁵⁶⁷⁸⁹")):
        return (), len(text)
    items = Items(passages)
    end, listed = _read_list(text, items)
    code = RangeIndex(CitationMark(*span, ()) for span in find_code(text))
    marks = []
    for match in _MARK.finditer(text, 0, end):
        cited = _resolve(match, items, listed)
        if cited and not code.overlaps(mark := CitationMark(*match.span(), tuple(dict.fromkeys(cited)))):
            marks.append(mark)
    return tuple(marks), end


def _resolve(match: re.Match[str], items: Items, listed: dict[int, int | None]) -> list[int | None]:
    raised = match["raised"] or match["raised_after"]
    numbers = match["numbers"] or match["lenticular"] or match["named"] or (raised or "").translate(_RAISED)
    if numbers:
        return [listed.get(number, items.find_number(number)) for number in _read_numbers(numbers)]
    if match["name"]:
        parts = [items.find_name(part) for part in re.split(r"\s*;\s*", match["name"])]
        return parts if match[0][1:].lower().startswith(("source", "ref")) else [p for p in parts if p is not None]
    passage = items.find_url(match["url"] or match["bare"])
    if passage is None and match["label"]:
        passage = items.find_name(match["label"])
    return [passage] if passage is not None or items.has_urls else []


def _read_numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in re.split(r"\s?[,;]\s?", text):
        first, _, last = re.sub(r"\s?[–-]\s?", "-", part).partition("-")
        begin, stop = int(first), int(last or first)
        numbers += range(begin, stop + 1) if begin <= stop <= begin + MAX_RANGE else (begin, stop)
    return numbers


def _read_list(text: str, items: Items) -> tuple[int, dict[int, int | None]]:
    """Where the list of sources begins at the end of an answer, and what its numbers mean."""
    entries = list(_LIST.finditer(text))
    end = len(text)
    listed: dict[int, int | None] = {}
    for match in reversed(entries):
        if text[match.end() : end].strip():
            break
        number = int(match["number"] or match["raised"].translate(_RAISED))
        end = match.start()
        named = items.find_name(match["entry"])
        listed[number] = items.find_number(number) if named is None and not _URL.search(match["entry"]) else named
    if end == len(text):
        return end, {}
    heading = [match for match in _LIST_HEADING.finditer(text, 0, end) if not text[match.end() : end].strip()]
    return (heading[-1].start() if heading else end), listed


def divide_statements(
    text: str, parts: Sequence[Sentence], marks: Sequence[CitationMark], end: int
) -> tuple[Statement, ...]:
    """Return the sentences of an answer with their marks; a mark after a full stop cites for the sentence before it.

    >>> text = "We lend 300 works.[2] The bar is open."
    >>> marks = [CitationMark(18, 21, (1,))]
    >>> for statement in divide_statements(text, [Sentence(text, 0, len(text))], marks, len(text)):
    ...     print(repr(statement.sentence.text), len(statement.marks))
    'We lend 300 works.' 1
    'The bar is open.' 0

    Args:
        text: The answer.
        parts: Its sentences.
        marks: Its marks, in order.
        end: Where its list of sources begins.
    """
    masked = _mask(text, marks)
    groups = [CitationMark(group[0].start, group[-1].end, ()) for group in _group(text, marks)]
    closing = {
        group
        for group in groups
        if _STOP.search(text, max(0, group.start - _NEARBY), group.start) and _opens(text, group.end)
    }
    cuts, marked = {0, end, *(group.end for group in closing)}, RangeIndex(groups)
    for part in parts:
        group = next(marked.find_overlapping(part.start, part.start + 1), None)
        if group is None or group not in closing:
            cuts.add(part.start if group is None else group.start)  # no sentence begins within a mark
    statements: list[Statement] = []
    for start, stop in pairwise(sorted(cut for cut in cuts if cut <= end)):
        its_marks = starting_in(marks, start, stop)
        body = masked[start:stop]
        begin, last = start + len(body) - len(body.lstrip()), start + len(body.rstrip())
        if any(map(is_alphanumeric, body)):
            statements.append(Statement(Sentence(masked[begin:last], begin, last), tuple(its_marks)))
        elif its_marks and statements:
            statements[-1] = statements[-1]._replace(marks=(*statements[-1].marks, *its_marks))
    return tuple(statements)


def _mask(text: str, marks: Sequence[CitationMark]) -> str:
    """A text with spaces in the place of its marks; the words of a link are words of its sentence."""
    parts, last = [], 0
    for mark in marks:
        match = _MARK.fullmatch(text, mark.start, mark.end)
        start, end = match.span("label") if match and match["label"] else (mark.start, mark.start)
        parts += [text[last : mark.start], " " * (start - mark.start), text[start:end], " " * (mark.end - end)]
        last = mark.end
    return "".join((*parts, text[last:]))


def _group(text: str, marks: Sequence[CitationMark]) -> Iterator[list[CitationMark]]:
    """Marks with nothing but spaces and commas between them."""
    group: list[CitationMark] = []
    for mark in marks:
        if group and text[group[-1].end : mark.start].strip(" ,"):
            yield group
            group = []
        group.append(mark)
    if group:
        yield group


def _opens(text: str, end: int) -> bool:
    """Whether a sentence may begin at a character: with a capital, or in another line, or it is the end."""
    rest = text[end : end + 80].lstrip(" \t*_\"“'‘")
    return not rest or rest[0] == "\n" or not starts_lower(rest)
