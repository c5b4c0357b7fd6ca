"""The text that models read of a response, and where its characters are in the response.

Models read plain sentences: without list markers, emphasis, link targets and table lines. An item of a list is read
after the lead-in of the list, a row of a table with the table's header, and a statement that is called false as what is
not true. A response without such marks is read as it is.

Items of a quiz and myths are called false. Such a statement is no claim of the response; that it is false is one.
Structure alone says which they are: a label before a statement, or an answer after it.

Sentences are read in windows that a model can read, and a sentence that is longer is cut.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from groundwire.runtime.texts.characters import is_numeric, is_space

from .normalization import FUNCTION_WORDS
from .sentences import LineReader, MarkdownLine, Sentence, sentences

WINDOW_SIZE = 128
"""Size of a window in units (``count_pieces``): about 100 words, half of what the embedded models read at once."""
LEAST_SIZE = 8
"""The smallest window that is tried when a model cannot read a larger one."""
_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_LETTERS, _DIGITS = 6, 3
"""Letters and digits that count as one unit, at most: vocabularies have few longer tokens."""
_UNIT = re.compile(rf"[^\W\d_]{{1,{_LETTERS}}}|\d{{1,{_DIGITS}}}|[^\w\s]|_")
_CLAUSE = re.compile(r"(?<=[,;:.!?)\]—–])\s+|\s+(?=[(\[—–])")
_SPACE = re.compile(r"\s+")


class TextWindow(NamedTuple):
    """Some of a sequence of texts: those from ``start`` to ``end`` are reported on, those from ``context`` on read."""

    context: int
    start: int
    end: int


def count_pieces(text: str) -> int:
    """Estimate the tokens of a text from its letters, digits and signs, for any vocabulary.

    >>> count_pieces("It opens at 19:00.")
    7
    """
    return len(_UNIT.findall(text))


def group_texts(texts: Sequence[str], size: int = WINDOW_SIZE, context: int = 0) -> list[TextWindow]:
    """Group texts, the sentences of a response, into windows; the time grows with their length.

    Args:
        texts: Texts in order.
        size: Pieces of a window at most; a longer text is a window of its own.
        context: Texts before a window that are read with it, as far as they leave it half of ``size``.

    >>> group_texts(["It is old.", "It is long.", "It ends here."], size=8, context=1)
    [TextWindow(context=0, start=0, end=2), TextWindow(context=1, start=2, end=3)]
    """
    sizes = [count_pieces(text) for text in texts]
    windows: list[TextWindow] = []
    start = 0
    while start < len(texts):
        first, read = start, 0
        while first > max(0, start - context) and read + sizes[first - 1] <= size // 2:
            first -= 1
            read += sizes[first]
        end = start
        while end < len(texts) and (end == start or read + sizes[end] <= size):
            read += sizes[end]
            end += 1
        windows.append(TextWindow(first, start, end))
        start = end
    return windows


def cut_text(text: str, size: int = WINDOW_SIZE) -> list[tuple[int, int]]:
    """Cut a text at the ends of clauses, else of words, else anywhere: ranges of ``size`` units at most, in order.

    >>> text = "It opens at nine, and it closes at five."
    >>> [text[start:end] for start, end in cut_text(text, 6)]
    ['It opens at nine,', 'and it closes at five.']
    """
    ranges: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = _find_end(text, start, size)
        if end < len(text):
            end = _find_boundary(text, start, end)
        part = text[start:end]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            ranges.append((begin, start + len(part.rstrip())))
        start = end
    return ranges


def _find_end(text: str, start: int, size: int) -> int:
    """Where a part from ``start`` on must end: the end of its last unit that fits."""
    read, end = 0, start
    for match in _PIECE.finditer(text, start):
        count = count_pieces(match[0])
        if read + count > size:
            if end == start:  # a single run of letters or digits
                end = match.start() + max(1, size) * (_DIGITS if is_numeric(match[0][0]) else _LETTERS)
            return end
        read, end = read + count, match.end()
    return len(text)


def _find_boundary(text: str, start: int, end: int) -> int:
    """The last end of a clause in the second half of a part, else the last end of a word, else the part's end."""
    if is_space(text[end]):
        return end if _CLAUSE.match(text, end) else _last(_CLAUSE, text, (start + end) // 2, end) or end
    return _last(_CLAUSE, text, (start + end) // 2, end) or _last(_SPACE, text, start + 1, end) or end


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    last = None
    for match in pattern.finditer(text, start, end):
        last = match.start()
    return last


Run: TypeAlias = tuple[int, int, int]
"""Characters of the response in a reading: where they are in the reading, where in the response, and how many."""
_MARKS = re.compile(
    r"(?P<code>`+)(?P<inner>[^`\n]+)(?P=code)"
    r"|!?\[(?P<label>[^\]\n]+)\]\([^)\s]*(?:\s+\"[^\"\n]*\")?\)"
    r"|(?<![\w*])(?P<strong>\*{1,3}|~~)(?=\S)(?P<stressed>[^*~\n]*[^*~\s])(?P=strong)(?![\w*])"
    r"|(?<!\w)(?P<under>_{1,3})(?=\S)(?P<underlined>[^_\n]*[^_\s])(?P=under)(?!\w)"
)
_INNER = ("inner", "label", "stressed", "underlined")
_LINE_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)*(?:#{1,6}[ \t]+|[ \t]*)")
_MARKED = re.compile(r"[`*_~|#\n]|\]\(|^[ \t]*>")
_STOP = re.compile(r"[.!?:;,]\s*\Z")
_LAST_SENTENCE = re.compile(r".*[.!?]\s+", re.DOTALL)
ELLIPSIS = 4
"""Words of an answer that says nothing without its question: "In 1988." """
LONGEST_QUESTION = 48
"""Pieces of a question that is read before an answer."""
_REFERS = re.compile(
    r"(?:yes|yeah|yep|no|nope|he|she|they|it|his|her|their|its|that|those|this|these|both|neither)\b", re.IGNORECASE
)


class ReadText(NamedTuple):
    """What models read of a part of the response."""

    text: str
    start: int
    end: int
    """The characters of the response that it is about."""
    runs: tuple[Run, ...]
    """In order. Other characters of ``text`` are context, or join its parts."""
    stance: Stance = ""
    """What it is, if it is no statement of its own."""

    @property
    def unread(self) -> bool:
        """Whether models do not read it."""
        return self.stance in ("code", "answer")

    def locate(self, start: int, end: int) -> tuple[int, int] | None:
        """The characters of the response that ``start`` to ``end`` of the text are; None for context alone.

        >>> read_response("Mind the **gap**!")[0].locate(9, 13)
        (11, 17)
        """
        if self.runs[:1] == ((0, self.start, len(self.text)),):
            return self.start + start, self.start + end
        first = max(0, bisect_right(self.runs, start, key=_begin) - 1)
        begin = stop = None
        for read, source, length in self.runs[first:]:
            if read >= end and not (start == end == read):
                break
            if read + length > start or start == end == read + length:
                begin = source + max(0, start - read) if begin is None else begin
                stop = source + min(length, end - read)
        return None if begin is None or stop is None else (begin, stop)

    def slice(self, start: int, end: int) -> ReadText:
        """The characters ``start`` to ``end`` of the text, as a reading of their own."""
        runs = tuple(
            (max(read - start, 0), source + max(start - read, 0), min(read + length, end) - max(read, start))
            for read, source, length in self.runs
            if read < end and read + length > start
        )
        begin, stop = (runs[0][1], runs[-1][1] + runs[-1][2]) if runs else (self.start, self.end)
        return ReadText(self.text[start:end], begin, stop, runs, self.stance)

    def follow(self, context: str) -> ReadText:
        """The reading after a text that is none of the response."""
        shift = len(context) + 1
        runs = tuple((read + shift, source, length) for read, source, length in self.runs)
        return self._replace(text=f"{context} {self.text}", runs=runs)


def _begin(run: Run) -> int:
    return run[0]


def read_response(response: str) -> tuple[ReadText, ...]:
    """What models read of each sentence of a response, in order.

    >>> [reading.text for reading in read_response("We open:\\n- on **Monday** at 9\\n- on Friday at 10")]
    ['We open: on Monday at 9', 'We open: on Friday at 10']
    """
    return read_sentences_of(response, sentences(response))


def read_sentences_of(response: str, parts: Sequence[Sentence]) -> tuple[ReadText, ...]:
    """What models read of some sentences of a response (``read_response``)."""
    lines = list(_read_lines(response))
    starts = [line.start for line in lines]
    readings = []
    for part in parts:
        first, last = (max(0, bisect_right(starts, offset) - 1) for offset in (part.start, part.end - 1))
        readings.append(_read(response, part, lines, first, last))
    for index, denial in find_denials([reading.text for reading in readings]):
        if not readings[index].unread:
            readings[index] = _deny(readings[index], denial)
    return tuple(readings)


def _deny(whole: ReadText, denial: Denial) -> ReadText:
    reading = whole if denial.stance == "answer" else whole.slice(denial.start, denial.end)
    if denial.stance == "denied":
        first, rest = reading.text[:1], reading.text[1:]
        if reading.text.partition(" ")[0].lower() in FUNCTION_WORDS and len(first.lower()) == 1:
            reading = reading._replace(text=first.lower() + rest)
        reading = reading.follow(DENIED)
    return reading._replace(start=whole.start, end=whole.end, stance=denial.stance)


def is_plain(response: str) -> bool:
    """Whether models read a response as it is."""
    return all(is_verbatim(response, reading) for reading in read_response(response))


def is_verbatim(response: str, reading: ReadText) -> bool:
    """Whether a part of a response is read as it is."""
    return not reading.unread and reading.text == response[reading.start : reading.end]


def follow_question(readings: Sequence[ReadText], history: Sequence[str]) -> tuple[ReadText, ...]:
    """What classifiers read of each sentence of a response: the first one after the question, where it needs it.

    A sentence needs it if it has at most ``ELLIPSIS`` words, or one more after a pronoun, yes or no, and the last turn
    of the history asks a question. Longer sentences that begin with a pronoun are not read better after the question.

    >>> readings = read_response("Yes, until 8. Do come!")
    >>> [reading.text for reading in follow_question(readings, ["Is the shop open today?"])]
    ['Is the shop open today? Yes, until 8.', 'Do come!']
    """
    first, *others = readings
    if not history or first.unread or len(first.text.split()) > ELLIPSIS + bool(_REFERS.match(first.text)):
        return (first, *others)
    questions = [sentence.text for sentence in sentences(history[-1]) if sentence.text.endswith("?")]
    if not questions or count_pieces(questions[-1]) > LONGEST_QUESTION:
        return (first, *others)
    return (first.follow(questions[-1]), *others)


def join_readings(response: str, readings: Sequence[ReadText], count: int) -> ReadText:
    """The readings that are read as one; the response itself if they are its ``count`` sentences, read as they are."""
    if len(readings) == count and all(is_verbatim(response, reading) for reading in readings):
        return ReadText(response, 0, len(response), ((0, 0, len(response)),))
    joined = _Text()
    for reading in [reading for reading in readings if not reading.unread] or readings:
        if joined.text:
            joined.text += " " if _STOP.search(joined.text) else "\n"
        joined.runs += [(len(joined.text) + read, source, length) for read, source, length in reading.runs]
        joined.text += reading.text
    return ReadText(joined.text, readings[0].start, readings[-1].end, tuple(joined.runs))


def cut_reading(reading: ReadText, size: int) -> list[ReadText]:
    """Windows of the sentences of a reading, of at most ``size`` units; a longer sentence is cut."""
    ranges: list[tuple[int, int]] = []
    for sentence in sentences(reading.text):
        ranges += [(sentence.start + start, sentence.start + end) for start, end in cut_text(sentence.text, size)]
    windows = group_texts([reading.text[start:end] for start, end in ranges], size)
    return [reading.slice(ranges[window.start][0], ranges[window.end - 1][1]) for window in windows]


class _TextLine(NamedTuple):
    """A line of the response."""

    start: int
    end: int
    line: MarkdownLine
    lead_in: int | None
    """The line that an item belongs to, or the header of a table's row."""


def _read_lines(response: str) -> Iterator[_TextLine]:
    reader = LineReader()
    lead_ins: list[tuple[int, int]] = []
    header: int | None = None
    offset = 0
    for index, content in enumerate(response.splitlines(keepends=True)):
        line = reader.read(content)
        lead_in = None
        if line.kind == "table":
            header = index if header is None else header
            lead_in = header
        elif line.kind != "blank":
            header = None
            indent = len(content) - len(content.lstrip()) if line.kind == "item" else -1
            lead_ins = [item for item in lead_ins if item[0] < indent]
            lead_in = lead_ins[-1][1] if lead_ins else None
            if line.carries and line.kind != "fence":
                lead_ins.append((indent, index))
        yield _TextLine(offset, offset + len(content.rstrip()), line, lead_in)
        offset += len(content)


def _read(response: str, part: Sentence, lines: Sequence[_TextLine], first: int, last: int) -> ReadText:
    part_lines, body = lines[first : last + 1], lines[last]
    plain = ReadText(
        part.text, part.start, part.end, ((0, part.start, len(part.text)),), "code" if body.line.kind == "code" else ""
    )
    begins_item = lines[first].line.kind == "item" and part.start <= lines[first].start + lines[first].line.marker
    if plain.unread or not (begins_item or _MARKED.search(part.text)):
        return plain
    text = _Text()
    context = lines[first].lead_in
    if begins_item and context is not None:
        lead_in = _Text()
        lead_in.add_line(response, lines[context], lines[context].start, lines[context].end)
        text.text = _LAST_SENTENCE.sub("", lead_in.text)
    for line in part_lines:
        if line.line.kind == "table" and (line is body or line.lead_in is None):
            header = None if line.lead_in is None or lines[line.lead_in] is line else lines[line.lead_in]
            text.add_row(response, line, header)
        elif line.line.kind not in ("table", "fence"):
            text.add_line(response, line, max(line.start, part.start), min(line.end, part.end))
    if not text.text.strip():
        return plain
    reading = ReadText(text.text, part.start, part.end, tuple(text.runs))
    stripped = reading.slice(len(text.text) - len(text.text.lstrip()), len(text.text.rstrip()))
    return stripped._replace(start=part.start, end=part.end)


class _Text:
    """A reading that is being written."""

    def __init__(self) -> None:
        self.text = ""
        self.runs: list[Run] = []

    def add(self, response: str, start: int, end: int) -> None:
        """Append characters of the response."""
        if start < end:
            self.runs.append((len(self.text), start, end - start))
            self.text += response[start:end]

    def add_line(self, response: str, line: _TextLine, start: int, end: int) -> None:
        """Append a line, or a part of it, without its marks."""
        if start == line.start or start <= line.start + line.line.marker:
            marks = _LINE_MARKS.match(response, max(start, line.start + line.line.marker), max(start, end))
            start = marks.end() if marks else start
        if self.text and start < end:
            self.text += " " if _STOP.search(self.text) else ": "
        # Marks may begin in one sentence and end in the next.
        for begin, stop in _find_unmarked(response, line.start, line.end):
            self.add(response, max(begin, start), min(stop, end))

    def add_row(self, response: str, line: _TextLine, header: _TextLine | None) -> None:
        """Append the cells of a table's row, each after its header."""
        names = [] if header is None else [response[start:end] for start, end in _split_row(response, header)]
        for index, (start, end) in enumerate(_split_row(response, line)):
            if self.text and start < end:
                self.text += "; "
            if start < end and index < len(names) and names[index]:
                name = _Text()
                for begin, stop in _find_unmarked(names[index], 0, len(names[index])):
                    name.add(names[index], begin, stop)
                self.text += f"{name.text}: "
            for begin, stop in _find_unmarked(response, start, end):
                self.add(response, begin, stop)


def _find_unmarked(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges of a text that are not marks of emphasis, code or links."""
    for match in _MARKS.finditer(text, start, end):
        yield start, match.start()
        name = next(name for name in _INNER if match[name] is not None)
        if name == "inner":
            yield match.span(name)
        else:
            yield from _find_unmarked(text, *match.span(name))
        start = match.end()
    yield start, end


def _split_row(response: str, line: _TextLine) -> list[tuple[int, int]]:
    """The cells of a table's row, without spaces at their ends."""
    start = response.index("|", line.start) + 1
    cells = []
    while start < line.end:
        end = response.find("|", start, line.end)
        end = line.end if end < 0 else end
        cell = response[start:end]
        begin = start + len(cell) - len(cell.lstrip())
        cells.append((begin, max(begin, start + len(cell.rstrip()))))
        start = end + 1
    return cells


DENIED = "It is not true that"
"""What models read before a statement that is called false."""
Stance: TypeAlias = Literal["", "code", "answer", "denied"]
"""What a sentence is: a statement; code, which models of English do not read; the answer of a quiz, which is read with
its statement; or a statement that is called false."""

_CUE = re.compile(r"\b(?:false|wrong|incorrect|untrue|not true|myths?|misconceptions?|rumou?rs?)\b", re.IGNORECASE)
_MYTH = r"(?:(?:common|popular|widespread|frequent) )?(?:myth|misconception|rumou?r)"
_BEFORE = re.compile(
    rf"\s*(?:{_MYTH}s?(?: (?:no\. ?|#)?\d+)?\s*:"
    rf"|it(?: is|['’]s) (?:(?:simply|just|plainly) )?(?:false|wrong|untrue|incorrect|an? {_MYTH})"
    r"(?: to (?:say|think|believe|claim))? that)\s+(?=\S)",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?<=\w)\s*(?:[—–→]|\s-)\s*\W*(?:false|wrong|incorrect|untrue|not true|a myth)\W*\Z", re.IGNORECASE
)
_ANSWER = re.compile(
    r"\W*(?:(?:the )?(?:correct |right )?(?:answer|solution)(?: is|:)\W*(?P<named>true|false)\b[\W]*"
    r"|(?:false|incorrect|untrue|not true)\W*\Z)",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"(?:is (?:it|this|that) )?true or false\s*(?P<end>[:?])\s*", re.IGNORECASE)


class Denial(NamedTuple):
    """Which characters of a sentence are read, and how."""

    stance: Stance
    start: int
    end: int


def may_deny(text: str) -> bool:
    """Whether a text has a word that calls something false."""
    return _CUE.search(text) is not None


def find_denials(texts: Sequence[str]) -> Iterator[tuple[int, Denial]]:
    """Yield the sentences that are quoted and called false, and the answers that say so, by their index.

    >>> list(find_denials(["The bar is open.", "Answer: false"]))
    [(0, Denial(stance='denied', start=0, end=16)), (1, Denial(stance='answer', start=13, end=13))]

    Args:
        texts: The sentences of a response, in order, without marks.

    Yields:
        Index of a sentence and what is read of it; nothing for sentences that are read as they are.
    """
    if not any(map(may_deny, texts)):
        return
    for index, text in enumerate(texts):
        answer = _ANSWER.match(text)
        if answer is None:
            before, after = _BEFORE.match(text), _AFTER.search(text)
            if before or after:
                yield index, Denial("denied", before.end() if before else 0, after.start() if after else len(text))
            continue
        statement = _find_statement(texts, index)
        if statement is None:
            continue
        where, start = statement
        is_false = (answer["named"] or "false").lower() == "false"
        yield where, Denial("denied" if is_false else "", start, len(texts[where]))
        rest = text[answer.end() :].strip()
        yield index, Denial("" if rest else "answer", answer.end(), len(text))


def _find_statement(texts: Sequence[str], answer: int) -> tuple[int, int] | None:
    """The sentence that an answer is about, and where its statement begins; None for a question."""
    index = answer - 1
    if index > 0 and (choice := _CHOICE.match(texts[index])) and choice["end"] == "?":
        index -= 1
    if index < 0:
        return None
    choice = _CHOICE.match(texts[index])
    start = choice.end() if choice else 0
    statement = texts[index][start:].strip()
    return None if not statement or statement.endswith("?") else (index, start)
