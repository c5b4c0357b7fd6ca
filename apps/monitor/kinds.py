"""By what responses are grouped: the kinds of their sentences, their language, and their length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from groundwire.engine.extend import WORD
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_numeric, starts_upper
from groundwire.runtime.texts.unread import looks_foreign


def list_kinds(response: str) -> tuple[str, ...]:
    """The kinds of the sentences of a response, each once.

    A name is a word that begins with a capital letter and does not begin the sentence.

    >>> list_kinds("Who was it? It was Bob Ross. He began in 1983. He loved trees. He loved Bob.")
    ('question', 'with a name', 'with a number', 'other statement')
    """
    return tuple(dict.fromkeys(_find_kind(response[part.start : part.end]) for part in sentences(response)))


def _find_kind(sentence: str) -> str:
    if sentence.rstrip().endswith("?"):
        return "question"
    if any(is_numeric(character) for character in sentence):
        return "with a number"
    names = (word for word in WORD.findall(sentence)[1:] if starts_upper(word) and word.replace("’", "'")[:2] not in _I)
    return "with a name" if any(names) else "other statement"


_I = ("I", "I'")
"""How the one English word begins that always has a capital letter."""


def find_language(response: str) -> str:
    """What is known of the language of a response: the embedded bundles read English.

    >>> find_language("Der Hund schläft nicht, und die Katze ist auch noch wach.")
    'not English'
    """
    return "not English" if looks_foreign(response) else "English"


def name_lengths(lengths: Sequence[float | None], bins: int) -> list[str]:
    """The range of lengths that each length belongs to, of at most ``bins`` of about equal frequency; empty for None.

    >>> name_lengths([3, 4, None, 20, 25, 90, 91], 3)
    ['3–4 words', '3–4 words', '', '20–25 words', '20–25 words', '90–91 words', '90–91 words']
    """
    numbers = np.array([length for length in lengths if length is not None])
    if not len(numbers):
        return [""] * len(lengths)
    inner = np.unique(np.quantile(numbers, np.arange(1, bins) / bins, method="higher"))
    inner = inner[inner > numbers.min()]
    of_length = np.searchsorted(inner, numbers, side="right")
    names = {}
    for index in np.unique(of_length):
        low, high = numbers[of_length == index].min(), numbers[of_length == index].max()
        names[index] = f"{low:.0f} words" if low == high else f"{low:.0f}–{high:.0f} words"
    of_lengths = iter(names[index] for index in of_length)
    return ["" if length is None else next(of_lengths) for length in lengths]
