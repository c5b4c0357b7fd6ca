"""Negation of a text by rules: "not" or "n't" put in or taken out after one of ``VERBS`` (Kryscinski et al. 2020)."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from .edits import ClaimEdit

VERBS = (
    *("are", "is", "was", "were", "have", "has", "had", "do", "does", "did", "can", "ca", "could"),
    *("may", "might", "must", "shall", "should", "will", "would"),
)
"""Footnote 3 of the paper."""
_NEVER_CONTRACTED = {"may", "might", "must", "shall", "will"}

_NEGATION = r"n['’]t|not"
_BARE = "|".join(sorted(set(VERBS) - {"ca"}, key=len, reverse=True))
_NEGATABLE = re.compile(
    rf"(?<![\w'’])(?:(?P<cannot>cannot)|(?P<verb>ca(?=\s?n['’]t)|{_BARE})"
    rf"(?P<negation>\s?n['’]t|\s+not)?)(?![\w'’])(?!\s+no\b)"
)
_AFTER_VERB = re.compile(rf"(?<![\w'’])(?:ca|{_BARE})\s*(?:{_NEGATION})?\s+$")


@dataclass(frozen=True, slots=True)
class NegatableVerb:
    """A verb of ``VERBS`` in a text that can be negated, or whose negation can be taken out."""

    start: int
    verb: str
    end: int
    """One past the verb and its negation."""
    negated: bool


def find_negatable_verbs(text: str) -> list[NegatableVerb]:
    """The verbs of ``text`` that can be negated, or whose negation can be taken out.

    >>> [(verb.verb, verb.negated) for verb in find_negatable_verbs("It could have been, but it wasn't and cannot be.")]
    [('could', False), ('was', True), ('can', True)]
    """
    verbs = []
    for match in _NEGATABLE.finditer(text):
        # After another verb this is its infinitive or participle: "could have" is negated once, as "could not have".
        if _AFTER_VERB.search(text, max(0, match.start() - 20), match.start()):
            continue
        verb = "can" if match["cannot"] or match["verb"] == "ca" else match["verb"]
        verbs.append(NegatableVerb(match.start(), verb, match.end(), bool(match["cannot"] or match["negation"])))
    return verbs


def negate_at(text: str, verb: NegatableVerb, contracted: bool) -> str:
    """``text`` with the negation at ``verb`` taken out, or one put in: "n't" when ``contracted``, else "not".

    >>> verb = find_negatable_verbs("he can swim")[0]
    >>> negate_at("he can swim", verb, contracted=True), negate_at("he can swim", verb, contracted=False)
    ("he can't swim", 'he can not swim')
    """
    if verb.negated:
        replacement = verb.verb
    elif contracted and verb.verb not in _NEVER_CONTRACTED:
        replacement = "can't" if verb.verb == "can" else f"{verb.verb}n't"
    else:
        replacement = f"{verb.verb} not"
    return text[: verb.start] + replacement + text[verb.end :]


def negate(text: str, rng: random.Random) -> str | None:
    """``text`` with one negation more or less; None when no verb of ``VERBS`` allows it."""
    verbs = find_negatable_verbs(text)
    return negate_at(text, rng.choice(verbs), rng.random() < 0.5) if verbs else None


def edit_by_negation(claim: str, rng: random.Random) -> ClaimEdit | None:
    """One negation more or less, at a verb of the first clause if there is one; None when no verb allows it."""
    verbs = find_negatable_verbs(claim)
    if not verbs:
        return None
    negated = [verb for verb in verbs if verb.negated]
    verb = rng.choice(negated or verbs[:2])
    # Only the verb and its negation differ, and the rest of the claim begins with the next word.
    text = negate_at(claim, verb, rng.random() < 0.5)
    return ClaimEdit(
        "negation", "negation", ((verb.start, verb.end, text[verb.start : len(text) - len(claim) + verb.end]),)
    )
