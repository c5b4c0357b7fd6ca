"""Finds what a text quotes: words in quotation marks and block quotes, and whom it names as their speaker or source.

Scare quotes, titles, single words, code, wordings that somebody may use and words that a text says are *not* there
are no quotations. The rules look at the words around the marks, a line before and a line after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from groundwire.runtime.texts.characters import starts_upper

from .normalization import FUNCTION_WORDS
from .sentences import find_code
from .speakers import VERB, NamedSpeaker, clean_name, find_speaker, follow_speaker
from .words import RangeIndex

MIN_WORDS = 3
"""Words of a quotation, at least: fewer are a term, a name or a scare quote."""
MAX_TERM = 5
"""Words of a term after an article ("their “pay what you want” days"), at most, which need not be a quotation."""
_NEARBY = 120
"""Characters before and after a quotation that may name its speaker."""
_BETWEEN = 160
"""Characters between two quotations of which the first may name the speaker of both."""
_CUE = 60
"""Characters before a quotation that may say that it is none."""
_WORD_START = re.compile(r"\A|\b")
_CITED = re.compile(r"\s?\[\d{1,3}\]")
_LETTERS = re.compile(r"[^\W\d_](?:[^\W_]|['’.\-](?=[^\W_]))*")
_INSIDE = r"(?:[^{marks}\n]|\n(?![ \t]*\n))"
"""Characters of a quotation, which no empty line divides."""
_MARKED = re.compile(
    rf"[“„](?P<curly>{_INSIDE.format(marks='“”„')}+)(?:[”“]|(?=\n[ \t]*\n\s*“))"
    rf"|«\s?(?P<angle>{_INSIDE.format(marks='«»')}+?)\s?»"
    rf"|(?<![\w\"])\"(?=\S)(?P<straight>{_INSIDE.format(marks=chr(34))}+)(?<=\S)\"(?!\w)"
    rf"|(?<!\w)‘(?=\S)(?P<single>(?:{_INSIDE.format(marks='‘’')}|(?<=\w)’(?=\w))+)’(?!\w)"
    rf"|(?<![\w'])'(?=\w)(?P<plain>(?:[^'\n]|(?<=\w)'(?=\w))+)(?<=[\w.,!?…])'(?!\w)"
)
_BLOCK = re.compile(r"(?m)^[ ]{0,3}>[^\n]*(?:\n[ ]{0,3}>[^\n]*)*")
_BLOCK_MARK = re.compile(r"(?m)^[ ]{0,3}(?:>[ ]?)+[ \t]*")
_BLOCK_SIGNATURE = re.compile(r"(?:\n[ ]{0,3}(?:>[ ]?)+[ \t]*|[\"”][ \t]*)(?:—|–|--?)[ \t]*(?P<speaker>[^\n]+)\s*\Z")
_DRAFT = re.compile(
    r"\b(?:drafts?|drafted|how about|what about|suggest(?:ions?|ed)?|versions?|templates?|rewritten|reworded|shortened"
    r"|here (?:you go|it is)|here['’]s (?:a|an|one|my|your)|try this|something like|could (?:say|write|read))\b"
    r"[^.!?\n]*[:.!?]\W*$",
    re.IGNORECASE,
)
"""What is before a block quote of an answer's own words."""
_EDGES = " \t\n*_\"“”'‘’"

_THINGS = (
    "songs? films? movies? books? novels? albums? articles? papers? poems? episodes? chapters? sections? pages? shows? "
    "plays? paintings? courses? talks? titled entitled called named nicknamed dubbed known_as headings? buttons? "
    "menus? options? tabs? links? labels? labell?ed fields? settings? checkbox folders? files? subject_line keywords? "
    "passwords? marked term word expression so-called message error prompt slogan tagline motto"
)
"""What has a title or a name."""
_MEANS = (
    "means? meaning translates?_(?:as|to|into) short_for stands_for "  # terms: literal
    "Latin_for French_for German_for in_other_words i\\.e\\."
)
_BEFORE_ADVICE = (
    "you we they one who can could may might should would will must please simply just to try or and don['’]t not then"
)
"""Words before what somebody may do."""
_ADVICE = (
    "say ask type enter search search_for write (?:reply|respond|answer)(?:_to(?:_\\w+){1,4}?)?(?:_with)? click "
    "click_on press select choose tap tell_(?:them|him|her|\\w+) call_it try think_of_it_as"
)


def _any_of(words: str) -> str:
    return "|".join(words.split()).replace("_", " ")


_NO_QUOTATION = re.compile(
    rf"\b(?:{_any_of(_THINGS)}|{_any_of(_MEANS)})[,:]? ?$"
    rf"|(?:\b(?:{_any_of(_BEFORE_ADVICE)})\s+|(?:^|[.!?:;\n]|\d[.)])[ \t*_\-]*)(?:{_any_of(_ADVICE)})"
    r"(?: something like| for example| e\.g\.)?[,:…]? ?$"
    r"|\b(?:questions?|phrases?|something|things?) (?:such as|like)[,:]? ?$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\b(?:went|goes|go|going) on to \w+[,:]? ?$|\bcontinue[sd]? to \w+[,:]? ?$", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:(?:does|did|do|has|have|is|was)(?:n['’]t| not)|never|nowhere|neither|nor|no|den(?:y|ies|ied))\b"
    r"[^.!?\n“\"]{0,30}\b(?:sa(?:y|ys|id|ying)|states?|stated|mention(?:s|ed)?|used?|contain|include|read|write|written"
    r"|quote|phrase|wording|words?|find)\b[^.!?\n“\"]{0,20}$|(?:\bnot|n['’]t) $",
    re.IGNORECASE,
)
_DETERMINER = re.compile(
    r"\b(?:an?|the|this|that|these|those|your|our|my|their|its|his|her|no|some|any|such|of|with|as|each|every|more|less)"
    r" (?:\w+ )?$",
    re.IGNORECASE,
)
_CODE_BEFORE = re.compile(r"(?:=|\{|\[|[\"'}\]]\s*[:,])\s*$")
_CODE_AFTER = re.compile(r"\s*(?::\s|=|\]|\}|,\s*\"\w+\"\s*:)")
_CODE_INSIDE = re.compile(r"[{}=<>\\|]|\(\)|^\s*--?\w|^\s*https?://\S+\s*$|^[\w./\\-]+$")
_STATED = re.compile(
    rf"\b(?:{VERB}|guarantee[sd]?|offer(?:s|ed)?|require[sd]?|grants?|granted|provide[sd]?|allow(?:s|ed)?|forbids?"
    r"|prohibits?|limits?|limited to|lists?|listed as|includes?|covers?|excludes?|describe[sd]? (?:\w+ ){0,3}as"
    r"|calls? for)(?: that)?[,:]? ?$|[,:] ?$"
    rf"|\b{VERB}(?: that)? (?:he|she|they|it|we|I|you)\b(?: [\w’']+){{0,3}} ?$",
    re.IGNORECASE,
)


class Quotation(NamedTuple):
    """Words that a text quotes: ``whole[start:end]``, without the marks."""

    start: int
    end: int
    speaker: str = ""
    """The speaker or source that the text names; empty where it names none."""
    is_sure: bool = True
    """Whether a word says that the speaker speaks; ``speakers.NamedSpeaker``."""
    is_term: bool = False
    """Whether the words may be a term or a scare quote: a few after an article, without a word that says they are
    quoted. They are a quotation if the knowledge has them."""
    is_block: bool = False
    """Whether it is a block quote of Markdown."""


def find_quotations(text: str, limit: int | None = None) -> tuple[Quotation, ...]:
    """Return the quotations of a text, in order and disjoint.

    >>> text = 'Vik wrote: “We lend 300 works a year.” Their “small fund” is called "The Little House of Art".'
    >>> [(text[item.start : item.end], item.speaker) for item in find_quotations(text)]
    [('We lend 300 works a year.', 'Vik')]

    Args:
        text: A text, as it is shown.
        limit: Quotations between marks that are read, and block quotes, the first ones of each; None reads all.

    Returns:
        The quotations, at least ``MIN_WORDS`` words each.
    """
    blocks = list(islice(_find_blocks(text), limit))
    taken = RangeIndex([*blocks, *(Quotation(*span) for span in find_code(text))])
    marked = (quotation for quotation in _find_marked(text) if not taken.overlaps(quotation))
    return tuple(sorted((*blocks, *islice(marked, limit))))


def count_words(text: str) -> int:
    """Return how many words of letters a text has."""
    return sum(1 for _ in _LETTERS.finditer(text))


def _find_blocks(text: str) -> Iterator[Quotation]:
    if ">" not in text:
        return
    for match in _BLOCK.finditer(text):
        start = match.start() + _BLOCK_MARK.match(match[0]).end()  # type: ignore[union-attr]
        signature = _BLOCK_SIGNATURE.search(match[0], max(0, match[0].rfind("\n")))  # in the last line alone
        end = match.start() + signature.start() if signature else match.end()
        start, end = _trim(text, start, end)
        if count_words(text[start:end]) < MIN_WORDS or _CODE_INSIDE.search(_BLOCK_MARK.sub("", text[start:end])):
            continue
        before = text[max(0, match.start() - _NEARBY) : match.start()].rstrip()
        if _DRAFT.search(before):
            continue
        signed = clean_name(signature["speaker"].partition(",")[0]) if signature else ""
        speaker = NamedSpeaker(signed) if signed else find_speaker(before, "")
        yield Quotation(start, end, speaker.name, speaker.is_sure, is_block=True)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    inner = text[start:end]
    return start + len(inner) - len(inner.lstrip(_EDGES)), start + max(len(inner.rstrip(_EDGES)), 0)


def _find_marked(text: str) -> Iterator[Quotation]:
    if not any(mark in text for mark in "\"“„«‘'"):
        return
    last, last_end = NamedSpeaker(), 0
    for match in _MARKED.finditer(text):
        kind = match.lastgroup
        assert kind is not None
        inner = match[kind]
        if count_words(inner) < MIN_WORDS or _CODE_INSIDE.search(inner):
            continue
        word = _WORD_START.search(text, max(0, match.start() - _NEARBY))
        assert word is not None  # the quotation has words
        near = word.start()
        line = max(near, text.rfind("\n\n", near, match.start()))
        before, after = text[line : match.start()], text[match.end() : match.end() + _NEARBY].partition("\n\n")[0]
        if before.endswith("=") or (_CODE_BEFORE.search(before[-8:]) and _CODE_AFTER.match(after)):
            continue
        speaker = find_speaker(before, after, is_closed=inner.rstrip().endswith("."))
        if not (speaker.name and speaker.is_sure):
            is_next = match.start() - last_end <= _BETWEEN and "\n\n" not in text[last_end : match.start()]
            between = _CITED.sub("", text[last_end : match.start()]) if is_next else before
            followed = follow_speaker(last if is_next else NamedSpeaker(), between, after)
            speaker = followed if followed.name else speaker
        is_said = bool(speaker.name) and speaker.is_sure
        if not is_said and _is_mentioned(before):
            continue
        if _DENIED.search(_cut(before)) or _is_title(inner):
            continue
        is_term = count_words(inner) <= MAX_TERM and not is_said and not _is_statement(before, inner)
        last, last_end = speaker, match.end() + speaker.end
        yield Quotation(*match.span(kind), speaker.name, speaker.is_sure, is_term)


def _is_mentioned(before: str) -> bool:
    """Whether the words before a quotation say that it is a title, a term, a meaning, or what somebody may say."""
    return _NO_QUOTATION.search(_cut(before)) is not None and not _GOES_ON.search(_cut(before))


def _cut(before: str) -> str:
    """The last words before a quotation; no line begins where a longer text is cut."""
    return before if len(before) <= _CUE else f"… {before[-_CUE:]}"


def _is_title(inner: str) -> bool:
    """Whether words are written as a title is: with capitals, and without a stop at the end."""
    if inner.rstrip()[-1:] in ".!?…,;:" or not starts_upper(inner):
        return False
    words = [match[0] for match in _LETTERS.finditer(inner)]
    names = [word for word in words if word.lower() not in FUNCTION_WORDS and (starts_upper(word) or len(word) > 5)]
    return len(names) > 1 and all(map(starts_upper, (*names, words[-1])))


def _is_statement(before: str, inner: str) -> bool:
    """Whether the words before a quotation introduce it, or it is a sentence."""
    if _DETERMINER.search(_cut(before)):
        return False
    return bool(_STATED.search(_cut(before))) or (starts_upper(inner) and inner.rstrip()[-1:] in ".!?")
