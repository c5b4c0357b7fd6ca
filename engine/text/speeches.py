"""Who says what in the texts of a knowledge: by their labels, their own quotations, bylines and titles."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from .citation_marks import find_title
from .quotations import Quotation, find_quotations
from .speakers import PROPER, find_subject, name_words

MAX_READ = 1_000
"""Quotations of the knowledge whose speakers are read: half a second."""
_PARAGRAPH = 400
"""Characters before a quotation that may say who "she" is."""
_TIME = r"\[?\d{1,2}:\d\d(?::\d\d)?\]?[ \t]*"
_LABEL = re.compile(
    rf"(?m)^[ \t]*(?:(?:{_TIME})?(?P<name>[A-Z][\w .'’()-]{{0,40}}?)[ \t]*:|{_TIME}(?P<chatter>[a-z][\w.-]{{0,40}}):"
    r"|(?P<letter>[QA])\.)(?=[ \t]|$)"
)
_TIMED = re.compile(rf"[ \t]*{_TIME}")
_BYLINE = re.compile(
    r"(?m)^[^\w\n]*(?:From: *(?P<sender>[^<\n@]{2,60})"
    rf"|On [^\n]{{3,60}}?, (?P<writer>{PROPER})(?: <[^>\n]*>)? wrote:"
    rf"|(?i:letter|e-?mail|message|note|memo|reply|statement|review) (?:from|by) (?P<signer>{PROPER})"
    rf"|(?:[Pp]osted |[Ww]ritten )?[Bb]y (?P<author>{PROPER}|@?\w+)$)"
)
"""Lines that say who has written what follows: of e-mails, posts and reviews."""
_PERSON = re.compile(
    rf"(?P<name>{PROPER})(?: \((?P<role>[a-z][^()\n]{{1,40}})\)|, the (?P<other>[a-z][\w ]{{2,40}})|: ?(?=[“\"«]))"
)
"""A name with a role, or before what its owner says."""
_RELATIVE = re.compile(rf"(?:\b(?:[Hh]er|[Hh]is|[Tt]heir|[Mm]y|[Oo]ur)|['’]s?) (?P<role>[a-z]+),? (?P<name>{PROPER})")
"""Somebody else's brother, coach or partner by name."""
_BREAK = re.compile(r"\n[ \t]*\n|[.!?:][\"”’)]*[ \t]*\n[ \t]*(?=[^\sa-z])")
"""Where a paragraph ends: an empty line, or a line after a sentence."""


_WRITING_WORDS = (
    "report article piece paper newspaper letter email e-mail message reply review court transcript minutes thread "
    "post website site manual guide speech statement judgment judgement"  # terms: literal
)
_ANYBODY_WORDS = (
    "author writer speaker reporter journalist reviewer critic critics expert experts guest host caller moderator "
    "interviewer buyer customer client brother sister mother father son daughter husband wife friend neighbour "
    "user reader visitor member colleague side opponent rival person people man woman interviewee spokesman "
    "spokeswoman spokesperson official officials"
)
_WRITINGS = frozenset(_WRITING_WORDS.split())
_ANYBODY = _WRITINGS | frozenset(_ANYBODY_WORDS.split())
"""Words for somebody or something that the knowledge may not call so."""


LETTERS = {"Q": "interviewer", "A": "interviewee"}
"""Whom the labels of an interview mean."""


class Speech(NamedTuple):
    """What one speaker says in one place."""

    name: str
    """The speaker, or all names that may be the speaker's; empty where the text says none."""
    is_named: bool
    """Whether the text says who speaks in so many words."""
    place: int
    """Different for what is said in different places of a text."""
    is_label: bool = False
    """Whether a label says who speaks, so that the title does not."""


class Speeches:
    """Who says what in one text."""

    def __init__(self, text: str, limit: int) -> None:
        """Take a text, and how many of its quotations are read."""
        self._text = text
        self._limit = limit

    @cached_property
    def title(self) -> str:
        """The title or source that the text begins with; a name before the first speech is none."""
        title = find_title(self._text)
        is_name = self._are_speakers and not self._text[: self._labels[0][0]].strip()
        return "" if is_name or re.search(rf"{re.escape(title)}:\s*[“„«\"‘']", self._text) else title

    @cached_property
    def title_words(self) -> frozenset[str]:
        """The words of the title that say what it is."""
        return frozenset(name_words(self.title))

    @cached_property
    def source_words(self) -> frozenset[str]:
        """The words of the title or of the name that the text begins with."""
        return frozenset(name_words(find_title(self._text)))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the text that may be names."""
        return frozenset(name_words(self._text))

    @cached_property
    def people(self) -> frozenset[frozenset[str]]:
        """The words of the name, and of the role, of each who speaks or has a role."""
        names = list(self._list_label_names())
        names += [name for item in self._quotations if (name := item.speaker or self._find_subject(item))]
        named = (match for pattern in (_PERSON, _RELATIVE) for match in pattern.finditer(self._text))
        names += [" ".join(filter(None, match.groups())) for match in named]
        return frozenset(frozenset(words) for name in names[: self._limit] if (words := name_words(name)))

    @cached_property
    def _quotations(self) -> tuple[Quotation, ...]:
        return find_quotations(self._text, self._limit)

    @cached_property
    def _spoken(self) -> list[Speech]:
        """Who speaks each quotation of the text."""
        spoken: list[Speech] = []
        for number, item in enumerate(self._quotations):
            last = spoken[-1] if spoken else None
            if last and "\n" in self._text[self._quotations[number - 1].end : item.start]:
                last = None
            subject = "" if item.speaker else self._find_subject(item)
            names = [item.speaker or subject, last.name if last and not item.speaker else ""]
            goes_on = last is not None and bool(last.name) and (last.name in (item.speaker, *names[1:]) and not subject)
            is_named = bool(item.speaker) and item.is_sure
            spoken.append(Speech(" ".join(filter(None, names)), is_named, last.place if last and goes_on else number))
        return spoken

    def _find_subject(self, item: Quotation) -> str:
        """Whom the sentences before a quotation are about."""
        index = bisect_right(self._quotations, item.start - 1, key=lambda other: other.start) - 1
        begin = max(0, item.start - _PARAGRAPH, self._quotations[index].end if index >= 0 else 0)
        return find_subject(self._text[begin : item.start].rpartition("\n")[2])

    @cached_property
    def _labels(self) -> list[tuple[int, str]]:
        """The first characters of what labels and bylines say who says it, and the names; none of other texts."""
        bylines = [
            (match.start(), next(filter(None, match.groups())).strip()) for match in _BYLINE.finditer(self._text)
        ]
        if bylines:
            return bylines
        labels = [
            (match.start(), (match["name"] or match["chatter"] or match["letter"]).strip())
            for match in _LABEL.finditer(self._text)
        ]
        if any(label == "Q" for _, label in labels):
            labels = [(start, LETTERS.get(label, label)) for start, label in labels]
        return labels if len(labels) > 1 else []

    def _list_label_names(self) -> Iterator[str]:
        """The names of labels with what else they are called: who answers in an interview is named by its title."""
        for label in dict.fromkeys(label for _, label in self._labels):
            yield f"{label} {self.title}" if label == LETTERS["A"] else label

    @cached_property
    def _are_speakers(self) -> bool:
        """Whether labels name speakers: bylines, labels with a time, and repeated ones, as in transcripts."""
        names = [name.partition("(")[0] for _, name in self._labels]
        is_signed = bool(_BYLINE.search(self._text) or _TIMED.match(self._text, self._labels[0][0] if names else 0))
        return is_signed or LETTERS["Q"] in names or len(set(names)) < len(names)

    def find(self, start: int, end: int) -> Speech:
        """Return who says the characters ``start`` to ``end``."""
        index = bisect_right(self._quotations, start, key=lambda item: item.start) - 1
        is_inside = index >= 0 and end <= self._quotations[index].end + 1 and not self._quotations[index].is_term
        if is_inside and (self._spoken[index].name or not self._labels):
            return self._spoken[index]
        label = bisect_right(self._labels, start, key=lambda item: item[0]) - 1
        if label >= 0:
            name, is_label = self._labels[label][1], self._are_speakers
            return Speech(name, is_label, -2 - label if is_label else -1, is_label)
        return Speech("", is_named=False, place=-1)

    def are_one(self, first: Sequence[int], second: Sequence[int]) -> bool:
        """Return whether one speaker says two parts of the text in one place, so that "…" may join them."""
        between = self._text[first[1] : second[0] + 1]
        return (
            self.find(first[0], first[1]).place == self.find(second[0], second[1]).place
            and _BREAK.search(between) is None
        )


_POSSESSIVE = re.compile(r"(?P<owner>.+?)['’]s? (?P<thing>(?:[a-z][\w-]* ){0,2}[a-z][\w-]*)")
_NAME = re.compile(r"(?:.*\W)?(?P<last>[A-Z][\w’'-]+|@?\w*\d\w*)\W*")
_GROUPS = re.compile(r"(?:[A-Z][a-z]+s|Police|Staff|People|Management|Everybody|Somebody)\W*")


def _read_name(speaker: str) -> tuple[list[str], bool]:
    """The words that say who a speaker is, and whether they end with a name: "Okello’s review" means Okello, "Ost’s
    coach" a coach."""
    possessive = _POSSESSIVE.fullmatch(speaker)
    if possessive and (things := name_words(possessive["thing"])):
        speaker = possessive["owner"] if things[-1] in _WRITINGS else possessive["thing"]
    return name_words(speaker), _NAME.fullmatch(speaker) is not None and _GROUPS.fullmatch(speaker) is None


class SpeakerIndex:
    """Who speaks in the passages of a knowledge."""

    def __init__(self, passages: Sequence[str]) -> None:
        """Take the passages; they are read when they are asked about."""
        limit = 1 + MAX_READ // max(1, len(passages))
        self.texts = [Speeches(passage, limit) for passage in passages]
        self._others: dict[tuple[str, bool, int, Speech], str] = {}

    @cached_property
    def _people(self) -> dict[str, set[frozenset[str]]]:
        """All who speak or have a role, a set of words each, by each of their words."""
        people: dict[str, set[frozenset[str]]] = {}
        for person in frozenset().union(*(text.people for text in self.texts)):
            for word in person:
                people.setdefault(word, set()).add(person)
        return people

    @cached_property
    def _titles(self) -> dict[str, list[Speeches]]:
        """The texts by the words of their titles."""
        titles: dict[str, list[Speeches]] = {}
        for text in self.texts:
            for word in text.source_words:
                titles.setdefault(word, []).append(text)
        return titles

    def find_other(self, speaker: str, is_sure: bool, source: int, start: int, end: int) -> str:
        """Return who says something, if it is another speaker or source than the named one; empty otherwise.

        Args:
            speaker: The name that a response has.
            is_sure: Whether the response says that the speaker speaks.
            source: Index of the passage.
            start: Its characters that are quoted.
            end: The character after them.
        """
        if not speaker:
            return ""
        speech = self.texts[source].find(start, end)
        key = speaker, is_sure, source, speech
        if key not in self._others:
            self._others[key] = self._compare(*key)
        return self._others[key]

    def _compare(self, speaker: str, is_sure: bool, source: int, speech: Speech) -> str:
        """Who speaks, if the named speaker is another one."""
        text = self.texts[source]
        names, is_name = _read_name(speaker)
        asked = frozenset(names)
        theirs = self._describe(frozenset(name_words(speech.name.partition(", who ")[0])))
        fallback = text.title or f"passage {source + 1}"
        rest = asked - theirs - (frozenset() if speech.is_label else text.title_words)
        if rest < asked:
            is_other = bool(rest) and any(rest <= other for other in self._list_others(rest, text, theirs))
            return (speech.name or fallback) if is_other else ""
        if theirs:
            is_other = any(is_name or asked <= other for other in self._list_others(asked, text, theirs))
            is_unknown = (
                is_name and is_sure and speech.is_named and names[-1] not in text.words and not theirs <= _ANYBODY
            )
            return speech.name if is_other or is_unknown else ""
        is_titled = any(other is not text for word in asked - _ANYBODY for other in self._titles.get(word, ()))
        return fallback if is_titled and not asked & text.words else ""

    def _describe(self, words: frozenset[str]) -> frozenset[str]:
        """The words of a name with those of the same person's other names and roles."""
        similar = [person for word in words for person in self._people.get(word, ())]
        return words.union(*(person for person in similar if person <= words or words <= person))

    def _list_others(self, words: frozenset[str], text: Speeches, theirs: frozenset[str]) -> Iterator[frozenset[str]]:
        """The people that ``theirs`` does not describe, and the titles of other texts, that have one of the words."""
        for word in words:
            yield from (person for person in self._people.get(word, ()) if not person <= theirs)
            titled = () if words <= _ANYBODY else self._titles.get(word, ())
            yield from (other.source_words for other in titled if other is not text)
