"""Finds whom a text names as the speaker or source of words beside it: "Vik wrote", "said the owner", "She adds".

A pronoun, and a verb without a subject ("and adds"), mean the speaker before it; the subject of the last sentence is
named, but less surely than the subject of "said".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .normalization import FUNCTION_WORDS, fold_word

VERB = (
    r"(?:sa(?:id|ys?)|wr(?:ote|ites?)|states?d?|t(?:old|ells?)|explain(?:s|ed)?|add(?:s|ed)?|not(?:es?|ed)|claim(?:s|ed)?"
    r"|announce[sd]?|insist(?:s|ed)?|asks?|asked|repl(?:y|ies|ied)|answer(?:s|ed)?|reads?|puts? it|warn(?:s|ed)?"
    r"|remark(?:s|ed)?|recall(?:s|ed)?|argue[sd]?|conclude[sd]?|promise[sd]?|quote[sd]?|confirm(?:s|ed)?|admit(?:s|ted)?"
    r"|report(?:s|ed)?|declare[sd]?|specif(?:y|ies|ied)|mention(?:s|ed)?|comment(?:s|ed)?|observe[sd]?|complain(?:s|ed)?"
    r"|h(?:eld|olds)|rule[sd]?|testif(?:y|ies|ied)|respond(?:s|ed)?|stress(?:es|ed)?|urge[sd]?|point(?:s|ed)? out"
    r"|emphasi[sz]e[sd]?|suggest(?:s|ed)?|object(?:s|ed)?|predict(?:s|ed)?|joke[sd]?|disagree[sd]?|agree[sd]?"
    r"|continue[sd]?|th(?:inks|ought)|believe[sd]?|dissent(?:s|ed)?|describe[sd]?|post(?:s|ed)|lament(?:s|ed)?)"
)
_CAPITAL = r"(?:(?:[A-Z]\w?|Mrs|Prof|Rev|Hon|Gov|Sen|Rep|Capt|Sgt)\.|[A-Z][\w’'\-]*)"
PROPER = rf"{_CAPITAL}(?: (?:{_CAPITAL}|of|de|van|von)){{0,6}}"
"""A name."""
_LOWER = rf"(?!(?:{'|'.join(sorted(FUNCTION_WORDS))})\b)[a-z][\w’'\-]*"
_TITLED = rf"{PROPER}(?:(?: {_LOWER}){{1,3}} {PROPER})?"
"""A name, with a role in it or not: "Vik", "Rovers manager Pat Connolly"."""
_ROLE_WORD = r"(?!(?:is|are|was|were|be|has|have|had|and|or|that|she|he|they|you|we|it|i)\b)[\w’'\-]+"
_ROLE = rf"(?:[Tt]he|[Oo]ur|[Yy]our|[Tt]heir|[Hh]is|[Hh]er|[Aa]n?) (?:{_ROLE_WORD} ){{0,3}}?{_ROLE_WORD}"
_HANDLE = r"@\w+|[a-z]\w*\d\w*"
_NO_CONJUNCTION = (
    r"(?<![\w’'\-])(?!(?i:while|and|but|whereas|although|though|so|because|if|when|then|that|which|where|or|as) )"
)
_OTHERS = r"(?: and (?:\w+ )?\w+| et al\.?)?"
_NAMED = rf"{_NO_CONJUNCTION}(?:(?:{_LOWER} ){{0,3}}{_TITLED}|{_ROLE}|{_HANDLE}){_OTHERS}"
_SPEAKER = rf"(?:{_NO_CONJUNCTION}{PROPER}['’]s? (?:{_LOWER} ){{0,2}}{_LOWER}{_OTHERS}|{_NAMED})"
"""Who or what speaks: "Vik", "the museum’s curator Hanne Vik", "Okello’s review", "hoverfan88"."""
_BEFORE = (
    re.compile(
        rf"(?<!\bin )(?<!\bat )(?<!\bfrom )(?P<speaker>{_SPEAKER}(?: \([^()]*\))?(?:,[^,.;:]*,)?)"
        r"(?: (?:also|once|then|later|has|had|clearly|further))*"
        rf" {VERB}(?: [\w’' ]{{1,40}})?(?: that)?[,:]? ?$"
    ),
    re.compile(
        rf"(?:[Aa]ccording to|[Ii]n the words of|[Qq]uoting|[Pp]er|[Ff]rom|[Ii]n) (?P<speaker>{_NAMED})[,:]? ?$"
    ),
    re.compile(rf"\b[Ii]n (?P<speaker>{_SPEAKER}) words[,:]? ?$"),
    re.compile(rf"\b{VERB} (?P<speaker>{_SPEAKER})[,:] ?$"),
    re.compile(rf"(?:^|\n)[*_\- ]*(?P<speaker>{PROPER})[*_]*:[*_]* ?$"),
)
_AFTER = (
    re.compile(rf"[,.]? ?{VERB} (?P<speaker>{_SPEAKER})(?=[\s,.;:!?]|$)"),
    re.compile(
        rf",? (?:as |is what |is how )?(?P<speaker>{_SPEAKER})(?:,[^,.;:]*,)? {VERB}\b"
        r"(?![^.;!?\n“\"]{0,60}[:,]\s*[“\"‘«])"  # names the speaker of the next quotation
        r"(?=(?P<stop>\s*[.,;!?)]|\s*$|\s+(?:in|on|at|to|of)\b)?)"
    ),
    re.compile(rf",? ?(?:—|–|--) ?(?P<speaker>{_SPEAKER})(?=[\s,.;:!?]|$)"),
    re.compile(rf"[,.]? ?\((?:[Ss]ource: )?(?P<speaker>{_SPEAKER})(?:, [^()]*)?\)"),
    re.compile(rf",? ?[Aa]ccording to (?P<speaker>{_SPEAKER})(?=[\s,.;:!?]|$)"),
)
_PRONOUN = r"(?:[Hh]e|[Ss]he|[Tt]hey)"
_BEFORE_PRONOUN = re.compile(rf"(?:^|[\s,;]){_PRONOUN}(?: \w+){{0,2}} {VERB}(?: [\w’' ]{{1,40}})?(?: that)?[,:]?\s*$")
_AFTER_PRONOUN = re.compile(rf"[,.]? ?(?:{VERB} {_PRONOUN}\b|{_PRONOUN}(?: \w+)? {VERB}\b)")
_GOES_ON = re.compile(
    rf"[,;.!?]?\s*(?:(?:and|but|or|then|also|later|further)[,\s]+)*(?:{VERB}(?: [a-z ]{{1,25}})?(?: that)?[,:]?)?\s*"
)
"""What is between two quotations of one speaker: "“…” and adds “…”", "“…”, “…”"."""
_SENTENCE = re.compile(r"(?:^\W*|(?<=[.!?])[\"”’)]*\s+|(?<=;)\s+|\n)(?=[“\"]?[A-Za-z])")
_THE = rf"[Tt]he {_LOWER}(?: {_LOWER}){{0,2}}"
_SUBJECT = re.compile(
    r"(?:(?:On|In|About|At|For|After|Before|Asked) [^,.:;\n]{1,60}?,? )?"
    rf"(?P<speaker>(?:(?:{_THE}(?: (?:of|at|from|for) {PROPER})?|(?:[Hh]er|[Hh]is|[Tt]heir|[Oo]ur|[Mm]y) {_LOWER}), )?"
    rf"{_TITLED}|{_THE})(?:['’]s?)?[ ,]"
)
_OPENINGS = re.compile(
    r"\w+(?:ed|ing|ly)|asked|on|in|at|after|before|here|there|yet|still|meanwhile|then|so|instead|today|yesterday|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    re.IGNORECASE,
)
"""First words of sentences that are no subject."""
_COLON = re.compile(r":[*_]*\s*$")
_NOT_NAMES = FUNCTION_WORDS | {
    *("document", "documents", "text", "passage", "page", "source", "sources", "knowledge", "line", "sentence"),
    *("note", "quote", "quotation", "answer", "example", "excerpt", "summary", "short", "wording", "words"),
    *("mr", "mrs", "ms", "miss", "dr"),
}
"""Words that name no speaker."""


class NamedSpeaker(NamedTuple):
    """The speaker or source that a text names for a quotation."""

    name: str = ""
    """Empty where it names none."""
    is_sure: bool = True
    """Whether a word says that the speaker speaks; otherwise the sentence is only about the speaker."""
    end: int = 0
    """Characters after the quotation that name the speaker."""


def find_speaker(before: str, after: str, *, is_closed: bool = False) -> NamedSpeaker:
    """Return the speaker or source that the words before or after a quotation name.

    >>> find_speaker("In short: Vik wrote: ", "").name, find_speaker("", ", said the owner.").name
    ('Vik', 'the owner')

    Args:
        before: The text before the quotation and its mark, or the end of it.
        after: The text after it.
        is_closed: Whether the quotation ends with a full stop, so that another sentence may begin after it.
    """
    clause = re.split(r"[.!?”\"]\s+(?=[A-Z“\"])|\n", before)[-1]
    for pattern in _BEFORE:
        if (match := pattern.search(clause)) and (name := clean_name(match["speaker"])):
            return NamedSpeaker(name)
    for pattern in _AFTER:
        match = pattern.match(after)
        if not match or (is_closed and "stop" in pattern.groupindex and match["stop"] is None):
            continue
        if name := clean_name(match["speaker"]):
            return NamedSpeaker(name, end=match.end())
    if _COLON.search(clause) and (name := find_subject(re.split(r"[”\"»]", clause)[-1])):
        return NamedSpeaker(name, is_sure=False)
    return NamedSpeaker()


def follow_speaker(last: NamedSpeaker, between: str, after: str) -> NamedSpeaker:
    """Return the speaker of a quotation that names none itself, by the quotation before it.

    >>> [follow_speaker(NamedSpeaker("Vik"), between, "").name for between in (" and adds ", ". She says: ", ". Ole: ")]
    ['Vik', 'Vik', '']

    Args:
        last: The speaker of the quotation before.
        between: The text between the two quotations, without their marks and without what names the first speaker.
        after: The text after the quotation.
    """
    if _GOES_ON.fullmatch(between):
        return NamedSpeaker(last.name, last.is_sure)
    said = _AFTER_PRONOUN.match(after)
    if said or _BEFORE_PRONOUN.search(between):
        return NamedSpeaker(find_subject(between) or last.name, end=said.end() if said else 0)
    return NamedSpeaker()


def find_subject(text: str) -> str:
    """Return the name or role that the last sentence with one begins with; empty without one.

    >>> find_subject("Vik was pleased. She went home."), find_subject("Asked about it, she smiled.")
    ('Vik', '')
    """
    for start in reversed([match.end() for match in _SENTENCE.finditer(text)]):
        match = _SUBJECT.match(text, start)
        if match and not _OPENINGS.fullmatch(match["speaker"].split()[0]) and (name := clean_name(match["speaker"])):
            return name
    return ""


def clean_name(name: str) -> str:
    """Return a name without the signs around it; empty where it says nothing, as "it" and "the document"."""
    name = re.sub(r"['’]s?$", "", name.strip(" *_.,:;()[]"))
    return name if any(name_words(name)) else ""


_LETTERS = re.compile(r"[^\W\d_](?:[^\W_]|['’.\-](?=[^\W_]))*")


def name_words(name: str) -> list[str]:
    """Return the words of a speaker's name that say who it is, as they are compared; no titles and initials.

    >>> name_words("the museum’s curator"), name_words("Mr. P. Lund"), name_words("The document")
    (['museum', 'curator'], ['lund'], [])
    """
    parts = (re.sub(r"['’]s?$", "", match[0]) for match in _LETTERS.finditer(name))
    return [fold_word(part) for part in parts if len(part) > 1 and part.lower() not in _NOT_NAMES]
