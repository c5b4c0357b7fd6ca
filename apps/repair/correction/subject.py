"""Whether an edit exchanges what a clause speaks of.

"Delivery to Italy takes 5 days" is true where the reader asked about France, but it answers another question: an edit
corrects what is said of a subject, and the subject stays.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from groundwire.engine.extend import WORD
from groundwire.engine.values import Name, read_values

from .keeping import Kept, find_clause, list_heads

_AUXILIARY = r"(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|shall|should|may|might|must)(?:n['’]t)?"
_VERB = re.compile(rf"\b(?:{_AUXILIARY}|[a-z]{{3,}}ed)\b")
_PREDICATE = re.compile(
    rf"\s*(?P<noun>[a-z]+\s+)??(?:{_AUXILIARY}|(?:cost|take|get|open|close|last|include|start|end|sleep)s?)\b"
)
"""What follows a subject for sure; with the noun that the subject qualifies, "[Leeds] shop is"."""
_LINKS = frozenset(
    {"in", "on", "at", "for", "from", "to", "of", "with", "by", "until", "since", "about", "around", "before", "after"}
    | {"the", "a", "an", "only", "just"}
)
"""Words between a part of a predicate and the value after it: "[London] in 1889"."""


class SubjectChange(NamedTuple):
    """An edit of the subject of a clause."""

    lost: frozenset[str]
    """Words of the subject that are given up, as ``list_heads`` gives them."""
    is_name: bool
    qualifies: bool
    """Whether they tell one of a kind from the others: "delivery to [France]", "the [Leeds] shop"."""
    has_amount: bool
    """Whether the clause has a number, time or date after it."""


def find_subject_change(response: str, start: int, end: int, new: str) -> SubjectChange | None:
    """How ``new`` for characters ``start`` to ``end`` exchanges a subject; None if it changes something else.

    A guess by the words around: no verb is before a subject, and one is after it.

    >>> find_subject_change("Delivery to France takes 5 days.", 12, 18, "Italy").qualifies
    True
    >>> find_subject_change("It opened in London in 1889.", 13, 19, "Paris") is None
    True
    """
    old = response[start:end]
    lost = list_heads(old) - list_heads(new)
    parts = read_values(old)
    if not lost or any(part.is_amount for part in parts):
        return None
    clause = find_clause(response, start, end)
    before, after = response[clause.start : start], response[end : clause.end]
    if _VERB.search(before):
        return None
    amount = next((part.start for part in read_values(after) if part.is_amount), None)
    predicate = _PREDICATE.match(after)
    said = {word.lower() for word in WORD.findall(after[:amount])} - _LINKS
    opens = not list_heads(before)
    if not said or (amount is None and predicate is None and not opens):
        return None
    is_name = any(isinstance(part.content, Name) for part in parts)
    is_same = is_name and not list_heads(old).isdisjoint(list_heads(new))  # a name in other words
    qualifies = not opens or (predicate is not None and predicate["noun"] is not None)
    return None if is_same else SubjectChange(frozenset(lost), is_name, qualifies, amount is not None)


def exchanges_subject(change: SubjectChange, untouched: Kept) -> bool:
    """Whether another subject is put in the place of one that is not shown to be wrong.

    Another name is right for who did something, as in "Ann Lee sang the old song". It is not where words tell one of a
    kind from the others, where a number or date is what fits, or where the dialogue or the knowledge has the subject.
    """
    is_known = change.lost <= untouched.known_heads or not change.lost.isdisjoint(untouched.history_heads)
    return change.qualifies or change.has_amount or is_known
