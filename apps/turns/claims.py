"""What the assistant says that it has done.

A clause claims an action if it says that something is done: "I've booked it", "Moved to Friday", "it is cancelled".
Questions, offers, intentions and negations claim nothing. Each verb of a clause is a claim of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from groundwire.engine.values import stem
from groundwire.metrics import sentences

from .mentions import split_words
from .words import GENERIC, KIND_OF, PARTICIPLES, READS

_HEAD = r"(?:i['’]?ve|i have|we['’]?ve|we have|you['’]?ve|you have)"
_ADVERB = r"(?:\s+(?:now|just|already|also|both|all|successfully|been|gone|ahead|and|got|to|too|safely|duly))*"
STATE_WORD = re.compile(PARTICIPLES)
STATE_WORDS = 3
"""Words of a state, at most."""
_THING = (
    "table|booking|room|tickets?|seats?|flight|order|refund|payment|transfer|appointment|reservation|membership"
    "|subscription|account|viewing|lesson|delivery|pickup|taxi|car|e?mail|message|invitation|invite|reminder|event"
    "|meeting"
)
"""What is done about in a headline: "Table booked"."""
_DONE = (
    r"\b(?:all done|that['’]s done|off the books|void|(?:is|are) dead"
    r"|(?:set|put) in motion|has said yes|all set|['’]s sorted)\b"
)
_GOT = r"\b(?:i|we)(?:['’]ve| have) (?:got|put) you (?:down|in)\b"
_STATE = (
    r"\byou['’]re (?:now )?on\b(?! (?:the right|track|your way))"
    r"|\b(?:is|are) (?:back in|on (?:its|the|their) way|live|set|up and running|gone)\b"
    r"|\b(?:is|are) (?:now )?(?:off|on)(?=\s*(?:[,.;:!]|now\b|again\b|$))"
    r"|['’]s (?:gone|done)\b"
    r"|\byou['’]ve got (?:an? |the |your )?(?:seats?|tables?|rooms?|booking|tickets?|spots?|places?|slots?)"
    r"|\b(?:has|have) (?:his|her|their|its|your) (?:answer|reply|invite|invitation)"
    r"|\bnow (?:expects?|has|knows?|runs?|shows?)|\b(?:office|team|host|they|he|she|everyone|everybody|others) knows?\b"
    r"|\b(?:is|are) (?:now )?(?:refunding|paying|crediting|sending|going out|(?:up|down) (?:from|to))\b"
)
_SIGN = (
    r"\byou['’]re (?:now )?(?:all set|in\b(?! (?:luck|the|a|an|good|safe)\b))|\b(?:is|are|['’]s) yours\b"
    r"|\byou have (?:seats?|a (?:table|room|booking))\b"
)
"""A state that a booking alone brings about."""
_MESSAGE = (
    r"(?:e-?mail|text(?: message)?|sms|message|letter|confirmation|receipt|invitation|invite|itinerary|reminder)s?"
)
_SENT = (
    rf"\b{_MESSAGE}\b(?: (?!is\b|are\b|has\b|have\b)\w+){{0,3}} (?:(?:is|are|has been|have been) sent"
    r"|(?:is|are) (?:now )?(?:on (?:its|the|their) way(?! back)|in (?:your|his|her|their) inbox|in the post)"
    rf"|(?:has|have) (?:just )?gone out)\b|\byou['’]ll find (?:the |an? |your )?(?:\w+ )?{_MESSAGE} in your inbox\b"
)
"""A message that was sent: "the confirmation is on its way"."""
_OUTCOME = (
    r"\b(?:reservation|booking|payment|transfer|purchase|rental|order|appointment|cancellation|refund|transaction)\s+"
    r"(?:(?:(?:was|is|has been|went)\s+)?(?:an?\s+)?"
    r"(?P<verb>success(?:ful)?|made|completed?|confirmed|processed|through)|(?:is|are)\s+in(?=\s*(?:[:,.!]|$)))"
)
_REQUESTS = frozenset({"asked", "requested", "submitted"})
"""What is true of a pending call too."""
_PUT_IN = re.compile(r"\bput in (?:the|an?|your) (?:request|order|application|claim)\b", re.IGNORECASE)
_NO_CLAIM = re.compile(
    r"\b(?:if|once|when|unless|until|as soon as|would you|shall i|should i|could you|let me|i c(?:an|ould)|i['’]ll"
    r"|i will|we['’]ll|(?:going|about) to|will be|can be|to be|would|might|may|want(?:s|ed)?"
    r"|need(?:s|ed)? to|(?:before|after) i|please)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|cannot|never|no longer|unable|fail(?:ed|s|ing)?|unsuccessful|sorry|unfortunately|error|problem|refused"
    r"|rejected|declined|without success)\b|n['’]t\b",
    re.IGNORECASE,
)
_OUTCOMES = frozenset(
    ("refund", "payment", "transfer", "booking", "reservation", "order", "appointment", "cancellation")
)
"""What is made, issued or put in by an action of its own kind."""
_CARRIED = frozenset(("noted", "included", "recorded", "mentioned", "kept", "used"))
"""Verbs of what a call carries with it: "booked it and noted your allergy"."""
PENDING = re.compile(
    r"\b(?:pending|waiting|await\w*|yet to|not yet|still (?:to|has|have|needs?)|request(?:ed)?|asked|put it to"
    r"|submitted|queued|under review|in (?:the )?queue|(?:being )?process(?:ing|ed)|in progress|subject to"
    r"|provisional\w*|once (?:they|it|he|she)|as soon as|until (?:they|it)|hear back"
    r"|confirm(?:ation)? (?:is|to)|for now|should|expected|in hand|on its way|under ?way)\b|(?:have|has)n['’]t\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[;:–—]\s+|,\s+(?=(?:and|but|so|then|it|i|we|you|the|they|which)\b)"
    r"|\s+(?=and (?:the|i|i['’]ve|we|it|your)\b)|\s+but\s+"
    rf"|\s+(?=and an? (?:\w+ )?{_MESSAGE}\b (?:is|are|has|have)\b)",
    re.IGNORECASE,
)


ClaimForm: TypeAlias = Literal["own", "passive", "state", "sign", "done", "request"]
"""What the assistant says that it did itself, so that a call must have; what was done; how something is now, and how it
is by a booking alone; a state that only an action brings about; and what was asked for."""
_SHORT = 2
"""Letters of a word that is no verb, at most."""


@lru_cache(maxsize=256)
def _make_forms(participles: str) -> tuple[tuple[re.Pattern[str], ClaimForm], ...]:
    """Patterns of claims, the first of which counts; with further participles, as alternatives of a pattern."""
    verb = rf"(?P<verb>{participles})\b"
    first = rf"\b{_HEAD}{_ADVERB}\s+{verb}"
    past = rf"\b(?:i|we)\s+(?:just\s+|also\s+|already\s+)?{verb}"
    passive = (
        r"(?<!fully)(?:\b(?:has|have|is|are)|['’]s|['’]ve|['’]re)\s+"
        rf"(?:(?:now|just|already|also|both|all|successfully|been|safely|duly)\s+)*{verb}(?!\s+(?:already|up|out|solid)\b)"
    )
    opening = (
        r"^\W*(?:(?:all|both|everything|great|good|perfect|ok|okay|right|sure|yes|done)\W+)*"
        rf"(?P<verb>done|sorted|all set|{participles})\b"
        r"(?=\s*[:,.!–—-]|\s+(?:for|to|as|on|in|with|from|and|until|at|your|the)\b|$)"
    )
    headline = (
        rf"^\W*(?:(?:your|the|all|both)\s+)?(?:\w+\s+){{0,2}}?(?:{_THING})\s+{verb}"
        r"(?=\s*(?:[:,.!;–—-]|[^\w\s]|$)|\s+(?:for|to|on|at|under)\b)(?!.*\b(?:is|are|costs?|can|will|has|have|takes?)\b)"
    )
    patterns: tuple[tuple[str, ClaimForm], ...] = (
        (_DONE, "done"),
        (_SENT, "own"),
        (_GOT, "own"),
        (first, "own"),
        (opening, "own"),
        (past, "own"),
        (_STATE, "state"),
        (_SIGN, "sign"),
        (passive, "passive"),
        (_OUTCOME, "passive"),
        (headline, "passive"),
    )
    return tuple((re.compile(pattern, re.IGNORECASE), form) for pattern, form in patterns)


@lru_cache(maxsize=256)
def _join_participles(verbs: frozenset[str]) -> str:
    """The participles of all verbs that are known, and of others, as alternatives of a pattern."""
    others = [
        rf"{re.escape(verb.removesuffix('e').removesuffix('y'))}(?:{re.escape(verb[-1])})?i?e?d"
        for verb in sorted(verbs)
    ]
    return "|".join((*others, PARTICIPLES))


class ActionClaim(NamedTuple):
    """Words that say that something was done."""

    start: int
    end: int
    text: str
    kinds: frozenset[str]
    """Of the action, and the stem of its verb; empty if the words do not say ("All done")."""
    form: ClaimForm
    sentence: str
    details: str
    """The words, with those after a colon."""


def list_claims(text: str, tools: frozenset[str] = frozenset()) -> Iterator[ActionClaim]:
    """Yield the clauses of a text that say that something was done, one for each verb.

    Args:
        text: The text.
        tools: Names of tools, whose verbs may be claimed beside those that are known.
    """
    verbs = {word.lower() for name in tools for word in split_words(name)[:1] if len(word) > _SHORT}
    participles = _join_participles(frozenset(verbs - READS - KIND_OF.keys()))
    for sentence in sentences(text):
        if sentence.text.rstrip().endswith("?"):
            continue
        start = 0
        bounds = [
            *(match.span() for match in _CLAUSE.finditer(sentence.text)),
            (len(sentence.text), len(sentence.text)),
        ]
        for end, following in bounds:
            for begin, stop, kinds, form in _read_clause(sentence.text[start:end], participles):
                begin, stop = start + begin, start + stop
                words = sentence.text[begin:stop]
                is_listed = stop == end and sentence.text[end : end + 1] == ":"
                details = sentence.text[begin:] if is_listed else words
                yield ActionClaim(
                    sentence.start + begin, sentence.start + stop, words, kinds, form, sentence.text, details
                )
            start = following


def _read_clause(clause: str, participles: str) -> Iterator[tuple[int, int, frozenset[str], ClaimForm]]:
    """The claims of a clause: "I've booked it and emailed you" has two."""
    matches = ((match, form) for pattern, form in _make_forms(participles) if (match := pattern.search(clause)))
    match, form = next(matches, (None, None))
    if match is None or form is None:
        return
    before = clause[: match.end()]
    if _NO_CLAIM.search(before) or _DENIAL.search(before):
        return
    start, following = 0, match
    further = (
        rf"(?:,|\s+and|,\s+and)(?:\s+(?:also|then|have|already|i['’]ve))*\s+(?P<verb>{participles})\s+(?=[^\s.,!;:])"
    )
    if form == "own" and "verb" in match.groupdict():
        for other in re.finditer(further, clause[match.end() :], re.IGNORECASE):
            has_object = re.search(r"\w", clause[following.end() : match.end() + other.start()]) is not None
            if not has_object or other["verb"].lower() in _CARRIED:
                continue  # of one object, "updated and saved your preferences", or with the call
            stop = match.end() + other.start()
            yield start, stop, *_read_verb(following, form, clause[start:stop])
            start, following = match.end() + other.start("verb"), other
    yield start, len(clause), *_read_verb(following, form, clause[start:])


def _read_verb(match: re.Match[str], form: ClaimForm, clause: str) -> tuple[frozenset[str], ClaimForm]:
    verb = (match.groupdict().get("verb") or "").lower()
    if verb in _REQUESTS or _PUT_IN.search(clause):
        return frozenset(), "request"
    if form in ("state", "sign"):
        return frozenset(), form
    words = [verb]
    if match.re.pattern == _GOT:
        words = ["booked"]
    elif match.re.pattern == _SENT:
        words = ["emailed"]
    elif verb in GENERIC or (not verb and form == "passive"):
        words = split_words(clause.lower())
    kinds = {kind for word in words if word not in GENERIC for kind in KIND_OF.get(word, ())}
    if "create" in kinds:  # "issued a refund"
        nouns = _OUTCOMES.intersection(split_words(clause.lower()))
        kinds |= {kind for noun in nouns for kind in KIND_OF.get(noun, ())}
    return frozenset(kinds | ({stem(verb)} if verb and verb not in GENERIC else set())), form
