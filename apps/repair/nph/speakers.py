"""Which names belong to what a response says about its speakers: "I saw it with my sister Anna."

No graph of the world has who was with whom, so such a name is neither supported nor wrong. What only begins with a
speaker is a statement about the world: "I heard that NAME wrote it", "My guess is NAME", "I loved her novel NAME".
"""

from __future__ import annotations

import re

from .relations import word_set
from .statements import Text
from .tokens import ARTICLES, BE, BREAKS, CLASSES, POSSESSIVE

_OWN = word_set("my our your")
_SPEAKERS = _OWN | word_set("i me mine myself we us ours ourselves you yours")
_HEARSAY = re.compile(
    r"\b(?:think|thought|believe|guess|hear|heard|know|knew|read|remember|recall|say|said|learned|learnt|sure|"
    r"told|"  # terms: literal
    r"suppose|bet|mean|certain|convinced)\s+(?:(?:me|us|you)\s+)?(?:that|the|a|an|it|its|he|she|they|his|their|\0)\b",
    re.IGNORECASE,
)
"""What the speakers think or heard of the world; NUL is a name."""
_PLAIN_ARTICLES = ARTICLES - POSSESSIVE
_NOUN_REACH = 3
"""Words between "my" and the noun that it belongs to, at most."""


def speaks_of_speakers(text: Text, name: int) -> bool:
    """Whether a clause with a name is about its speakers, and states nothing else about the name."""
    index = text.index_of[name]
    first = last = index
    while first and not _ends_clause(text, first - 1, index):
        first -= 1
    while last + 1 < len(text.tokens) and not _ends_clause(text, last + 1, index):
        last += 1
    words = [token.text for token in text.tokens[first : last + 1]]
    if not _SPEAKERS.intersection(words) or _HEARSAY.search(" ".join(word or "\0" for word in words)):
        return False
    position = index - 1
    while position >= first and text.tokens[position].text in _PLAIN_ARTICLES:
        position -= 1
    if position < first:
        return True
    word = text.tokens[position].text
    if word in CLASSES or any(kind == "noun" for _, kind in text.cue(position)):
        return not _OWN.isdisjoint(words[max(0, position - first - _NOUN_REACH) : position - first])
    return word not in BE | POSSESSIVE


def _ends_clause(text: Text, position: int, index: int) -> bool:
    token = text.tokens[position]
    return token.sentence != text.tokens[index].sentence or token.text in BREAKS
