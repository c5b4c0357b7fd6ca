"""Finds sentences that promise or require something: what a classifier of small talk may take for mere chat.

"You can return it within 30 days", "If you cancel, you pay half": such sentences address the reader as chat does, and
state what knowledge can confirm.
"""

from __future__ import annotations

import re

from .policies import states_policy
from .small_talk import is_small_talk

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_FIRST_PERSON = frozenset({"i", "i'm", "i've", "i'd", "i'll", "my", "me", "mine", "myself"})
_ABSTAINING = re.compile(
    r"\b(?:don't|do not|doesn't|does not|didn't|couldn't|could not|can't|cannot|can not|unable to|not able to)\s+"
    r"(?:\w+\s+)?(?:know|find|have (?:\w+ )?(?:information|details|data)|see (?:any|that)|help|answer|say"
    r"|tell|share|provide|confirm|check|access|mention|specify)\b"
    r"|\b(?:not sure|no information|no idea|sorry|apologi[sz]e|unfortunately i|afraid i)\b"
)
_OFFER = re.compile(
    r"\byou(?:'ll| will| can| may| must| could| need to| have to| are entitled to| are eligible| get| receive"
    r"| pay| qualify| won't| cannot| can't| don't (?:need|have) to|'re (?:entitled|eligible)) \w+"
)
_CONTACT = re.compile(
    r"\b(?:contact|reach|call|ask|email|e-mail|write|visit|tell|let|say|imagine|see|bet|guess|feel|try|enjoy|love|like|think"
    r"|believe|want|count on|do it)\b"
)
_CONDITION = re.compile(r"\b(?:if|unless|provided|as long as|only when|in case|until|before|after|within|without)\b")
_POLITE = re.compile(
    r"\b(?:any (?:other |more |further )?(?:questions?|help|problems?)|let me know|feel free|anything else)\b"
)


def states_terms(sentence: str, *, amounts: bool) -> bool:
    """Whether a sentence states a value, a condition, an offer or a policy; no question, refusal or own story.

    ``amounts``: whether it has a number, a date, a time or a code.

    >>> states_terms("You can return it if it is unopened.", amounts=False)
    True
    >>> states_terms("It's 20 euros, I think.", amounts=True), states_terms("I have 2 dogs!", amounts=True)
    (True, False)
    >>> states_terms("I don't know, please call 0124 556677.", amounts=True), states_terms("At 9?", amounts=True)
    (False, False)
    """
    if states_policy(sentence):
        return True
    if abstains(sentence):
        return False
    lower = _fold(sentence)
    words = _WORD.findall(lower)
    is_personal = any(word in _FIRST_PERSON for word in words)
    if amounts:
        return not is_personal or any(word in ("you", "your") for word in words) or _HEDGE.search(lower) is not None
    offer = _OFFER.search(lower)
    if offer is None or is_personal or lower.endswith("!"):
        return False
    return _CONTACT.search(lower) is None and (_CONDITION.search(lower) is not None or len(words) > _SHORT)


def asserts(sentence: str) -> bool:
    """Whether a sentence says something of others than its speaker, and does not abstain or exclaim.

    >>> asserts("You withdrew from the course."), asserts("I love soy."), asserts("Poor birds!")
    (True, False, False)
    """
    lower = _fold(sentence)
    return not (abstains(sentence) or lower.endswith("!") or _FIRST_PERSON.intersection(_WORD.findall(lower)))


def abstains(sentence: str) -> bool:
    """Whether a sentence asks, says that its speaker does not know, apologises, greets, or offers help.

    >>> abstains("Sorry, I couldn't find that."), abstains("What is your order number?"), abstains("It costs 20 euros.")
    (True, True, False)
    """
    lower = _fold(sentence)
    asks = lower.rstrip("\"')*_ ").endswith("?")
    is_polite = _POLITE.search(lower) is not None or is_small_talk(sentence)
    return asks or is_polite or _ABSTAINING.search(lower) is not None


def _fold(sentence: str) -> str:
    return sentence.lower().replace("’", "'").strip()


_HEDGE = re.compile(r"\bi (?:think|believe|guess|would say)\b|\bi'm (?:fairly |pretty |quite )?(?:sure|certain)\b")
_SHORT = 4
"""Words of a sentence at most that offers nothing: "You can do it."."""
