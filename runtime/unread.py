"""What a tokenizer does not read: words that become "unknown", and letters of scripts that it has no words of.

A model answers all the same, from what is left. WordPiece makes one unknown token of a word of more than a hundred
letters and of signs that it lacks; and it spells other scripts letter by letter without ever having learned a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from .calls import Read
from .errors import Unreadable

MAX_UNREAD = 0.3
"""Share of a text's characters. English sets with many foreign names stay below 0.11, and sentences in another script
are about 0.8."""
WORDS_OF_A_SCRIPT = 100
"""Vocabulary entries of several letters from which a script is read: an English BERT has 8 of its second script."""
LETTERS_OF_A_SCRIPT = 2000
"""Entries of one letter from which it is read too, for scripts whose letters are words: an English BERT has 488."""

_NEUTRAL = frozenset({"COMBINING", "MODIFIER", "VARIATION"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


class Unread(NamedTuple):
    """What is not read of one text."""

    characters: int = 0
    words: frozenset[str] = frozenset()
    """The words that became unknown tokens, lower-cased; without signs such as emoji."""

    def join(self, other: Unread) -> Unread:
        """What is not read of two texts."""
        return Unread(self.characters + other.characters, self.words | other.words)


NOTHING = Unread()


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The first word of a letter's Unicode name, its script; empty for what is no letter or belongs to every script.

    >>> script_of("é"), script_of("도"), script_of("١"), script_of("—")
    ('LATIN', 'HANGUL', '', '')
    """
    plain = unicodedata.normalize("NFKD", character)[0]
    if unicodedata.category(plain)[0] not in "LM":
        return ""
    script = unicodedata.name(plain, "").partition(" ")[0]
    return "" if script in _NEUTRAL else script


def find_scripts(entries: Iterable[str]) -> frozenset[str] | None:
    """The scripts that a vocabulary has words of; None when it has no words of Latin either.

    Such a vocabulary is one of bytes or characters, and its model has learned to read whatever they spell.
    """
    words: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for entry in entries:
        if entry.isascii():  # nearly all of an English vocabulary
            word = entry.strip("# ")
            words["LATIN"] += len(word) > 1 and word.isalpha()
            continue
        scripts = [script for character in entry if (script := script_of(character))]
        if scripts:
            (words if len(scripts) > 1 else letters)[scripts[-1]] += 1
    if words["LATIN"] < WORDS_OF_A_SCRIPT:
        return None
    by_letters = {script for script, count in letters.items() if count >= LETTERS_OF_A_SCRIPT}
    return frozenset(by_letters | {script for script, count in words.items() if count >= WORDS_OF_A_SCRIPT})


def find_unread(text: str, unknown: Sequence[tuple[int, int]], scripts: frozenset[str] | None) -> Unread:
    """What is not read of ``text``, whose ranges ``unknown`` became unknown tokens; ``scripts`` None reads all."""
    foreign = {
        index
        for run in (() if scripts is None else _NOT_ASCII.finditer(text))
        for index in range(*run.span())
        if (script := script_of(text[index])) and scripts is not None and script not in scripts
    }
    for start, end in unknown:
        foreign.update(range(start, end))
    words = {text[start:end].lower() for start, end in unknown}
    return Unread(len(foreign), frozenset(word for word in words if any(map(str.isalnum, word))))


def check_readable(what: str, unread: Unread, total: int) -> None:
    """Raise Unreadable when too much of ``what``, ``total`` characters long, is not read."""
    if unread.characters > MAX_UNREAD * total:
        raise Unreadable(
            f"{unread.characters} of the {total} characters of the {what} are unknown to the model's tokenizer: words "
            "of more than a hundred letters, or a script that it has no words of. Use a bundle for their language."
        )


def read_pair(response: Unread, response_length: int, knowledge: Unread, knowledge_length: int, windows: int) -> Read:
    """How much of the knowledge was read, for a model that compares the two.

    Raises Unreadable when too much of either is not read, or when both have unknown words and not the same: one token
    replaces all of them, so the model takes "SHA-512 A" for "SHA-512 B".
    """
    check_readable("response", response, response_length)
    check_readable("knowledge", knowledge, knowledge_length)
    if knowledge.words and (other := response.words - knowledge.words):
        word = min(other)
        raise Unreadable(
            f"The word {word[:40]!r} of the response and words of the knowledge are unknown to the model's tokenizer, "
            "which makes one token of them all. Shorten them, or leave them out on both sides."
        )
    return Read(windows, knowledge_length - knowledge.characters, knowledge_length)
