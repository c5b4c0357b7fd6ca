"""Triples of a knowledge graph, and the text that a model reads for them.

>>> linearise([Triple("Alien", "/film/film/directed_by", "Ridley Scott"), Triple("Alien", "release_year", "1979")])
'Alien directed by Ridley Scott | Alien release year 1979'
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

SEPARATOR = " | "
"""Between two linearised triples."""


class Triple(msgspec.Struct, frozen=True, order=True, gc=False):
    """A fact: subject and object are entities by name, the predicate is as its source writes it."""

    subject: str
    predicate: str
    object: str


def linearise(triples: Iterable[Triple]) -> str:
    """The triples as one text, in their order, joined by ``" | "``; empty for no triples.

    Each is flattened to ``subject predicate object`` as in Neural Path Hunter (its appendix E), with the predicate made
    readable. Critic, retriever and FeQA read the same text.
    """
    return SEPARATOR.join(map(sentence, triples))


def sentence(triple: Triple) -> str:
    """``subject predicate object`` with a readable predicate; an inverse triple swaps subject and object.

    Runs of spaces and line breaks become one space; entities are not changed otherwise.
    """
    triple = upright(triple)
    return " ".join(f"{triple.subject} {readable(triple.predicate)} {triple.object}".split())


def upright(triple: Triple) -> Triple:
    """The same fact without a leading ``~``, which marks an inverse predicate in OpenDialKG.

    >>> upright(Triple("Ridley Scott", "~directed_by", "Alien"))
    Triple(subject='Alien', predicate='directed_by', object='Ridley Scott')
    """
    plain = triple.predicate.strip()
    predicate = plain.lstrip("~ ")
    if predicate == plain or not predicate:
        return triple
    inverse = plain[: len(plain) - len(predicate)].count("~") % 2
    ends = (triple.object, triple.subject) if inverse else (triple.subject, triple.object)
    return Triple(ends[0], predicate, ends[1])


def readable(predicate: str) -> str:
    """The words of a predicate.

    - A Freebase path gives its last part, and two joined paths the last part of each, without the words that the first
      has already. Freebase's ``_s`` means "(s)" and is left out.
    - An IRI gives the part after its last ``/`` or ``#``, a prefixed name the part after the colon.
    - Underscores become spaces, and camelCase is split.
    - Anything else is a predicate in words already; where no word would be left, it stays as it is.

    >>> readable("/award/award_nominee/award_nominations./award/award_nomination/award_nominee")
    'award nominations nominee'
    >>> readable("/people/person/spouse_s./people/marriage/spouse"), readable("http://dbpedia.org/ontology/birthPlace")
    ('spouse', 'birth place')
    >>> readable("starred_actors"), readable("Country of nationality")
    ('starred actors', 'Country of nationality')
    """
    plain = predicate.strip()
    if len(plain.split()) > 1:
        words = plain.replace("_", " ").split()
    elif plain.startswith("/"):
        words = []
        for path in plain.split("./"):
            part = path.rstrip("/").rpartition("/")[2].removesuffix("_s").replace("_", " ").split()
            words = [*words, *(word for word in part if word not in words)]
    else:
        name = re.split(r"[/#]", plain.strip("<>").rstrip("/#"))[-1] if "://" in plain else _PREFIX.sub("", plain)
        words = _CAMEL.sub(lambda match: " " + match[0].lower(), name).replace("_", " ").split()
    return " ".join(words) or plain


_PREFIX = re.compile(r"^\w+:(?=\w)")
_CAMEL = re.compile(r"(?<=[a-z])[A-Z](?=[a-z])")
