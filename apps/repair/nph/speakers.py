"""Which names belong to what a response says about its speakers: "I saw it with my sister Anna."

No graph of the world has who was with whom, so such a name is neither supported nor wrong. A speaker in a sentence is
not enough: "I heard that NAME wrote it", "We owe it to NAME", "NAME gave us Dracula", "In my view NAME invented it" are
statements about the world. So a name counts that is somebody or something of the speaker's ("my sister NAME"), that is
with "I" in one subject, or that says where, when or with whom "I" or "we" did something.
"""

from __future__ import annotations

import re

from .relations import PREPOSITIONS, word_set
from .statements import Text
from .tokens import ARTICLES, BE, BREAKS, JOINS, POSSESSIVE_MARKS, PRONOUNS

_OWN = word_set("my our your")
_SUBJECTS = word_set("i we")
_SPEAKERS = _OWN | _SUBJECTS | word_set("me us mine ours you yours myself ourselves")
_PEOPLE = word_set(
    "mother father mum mom dad parents sister brother son daughter wife husband partner child children kid kids uncle "
    "aunt cousin niece nephew grandmother grandma granny grandfather grandpa friend friends mate neighbour neighbor "
    "colleague teacher boss girlfriend boyfriend roommate flatmate cat dog"
)
_TIMES = word_set("christmas easter hanukkah diwali ramadan eid thanksgiving halloween")
_CIRCUMSTANCES = word_set("with at in on from by")
_CLAUSES = word_set("that what who which how where when whether why whose whom his its their")
"""Words that begin another clause, or what somebody else has."""
_REACH = 4
"""Words between "my" and the name, at most."""
_HEARSAY = re.compile(
    r"\b(?:think|thought|believe|guess|hear|heard|know|knew|read|remember|recall|say|said|learned|learnt|sure|"
    r"told|"  # terms: literal
    r"suppose|bet|mean|certain|convinced)\s+(?:(?:me|us|you)\s+)?(?:that|the|a|an|it|its|he|she|they|his|their|\0)\b",
    re.IGNORECASE,
)
"""What the speakers think or heard of the world; NUL is a name."""


def speaks_of_speakers(text: Text, name: int) -> bool:
    """Whether a clause with a name is about its speakers, and states nothing else about the name."""
    index = text.index_of[name]
    first = last = index
    while first and not _ends_clause(text, first - 1, index):
        first -= 1
    while last + 1 < len(text.tokens) and not _ends_clause(text, last + 1, index):
        last += 1
    words = [token.text for token in text.tokens[first : last + 1]]
    before, after = words[: index - first], words[index - first + 1 :]
    if not _SPEAKERS.intersection(words) or _HEARSAY.search(" ".join(word or "\0" for word in words)):
        return False
    following = next((word for word in after if word != ","), "")
    if following in BE | POSSESSIVE_MARKS or following in _CLAUSES:
        return False
    if after[:2] == ["and", "i"] or text.name_text(name).lower() in _TIMES:
        return True
    return _is_own(before) or _is_circumstance(text, first, before)


def _is_own(before: list[str]) -> bool:
    """Whether the name is somebody of the speaker's: "my old friend NAME"."""
    return before[-1:] != [] and before[-1] in _PEOPLE and not _OWN.isdisjoint(before[-_REACH:-1])


def _is_circumstance(text: Text, first: int, before: list[str]) -> bool:
    """Whether the name ends "I …" or "we … with", in a clause without another subject; "you …" where it only asks."""
    subjects = _SUBJECTS if text.states(text.tokens[first].start) else _SUBJECTS | {"you"}
    subject = max((position for position, word in enumerate(before) if word in subjects), default=-1)
    end = len(before)
    while end and (before[end - 1] in ARTICLES | JOINS or before[end - 1] == ""):
        end -= 1
    if subject < 0 or end <= subject + 1:
        return False
    if before[-1] in _OWN:  # "I lost my NAME"
        return before[-2] not in BE
    between = before[subject + 1 : end]
    if between[-1] not in _CIRCUMSTANCES or _CLAUSES.intersection(between):
        return False
    acting = [
        position
        for position, word in enumerate(between[:-1])
        if (word in PRONOUNS or not word) and between[position + 1] not in PREPOSITIONS
    ]
    # A verb of the graph's relations that is not what the speaker did: "I like the film set in NAME"
    related = any(text.cue(first + subject + 1 + position) for position in range(2, len(between)))
    return not acting and not related


def _ends_clause(text: Text, position: int, index: int) -> bool:
    token = text.tokens[position]
    return token.sentence != text.tokens[index].sentence or token.text in BREAKS
