"""How near each sentence of the knowledge is to a sentence of the response, by their token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime.calls import Embedded

from ..text.retrieval import PassageSentence
from ..text.sentences import Sentence
from ..text.words import words

Vectors: TypeAlias = NDArray[np.float32]


class TokenTable(NamedTuple):
    """The token vectors of several passages, and where the vectors of each sentence are."""

    vectors: Vectors
    """[T, D], each of length 1."""
    bounds: tuple[tuple[int, int], ...]
    """First token of each sentence, and the one after its last; equal for a sentence without a token."""

    @classmethod
    def join(
        cls, passages: Sequence[Embedded], indents: Sequence[int], sentences: Sequence[PassageSentence]
    ) -> TokenTable:
        """The tokens of ``passages``; each was embedded without the first ``indents`` characters."""
        starts = [_find_starts(passage, indent) for passage, indent in zip(passages, indents, strict=True)]
        firsts = np.cumsum([0, *(len(passage.special) for passage in passages)])
        bounds = []
        for passage, sentence in sentences:
            tokens, offsets = starts[passage]
            first, last = np.searchsorted(offsets, (sentence.start, sentence.end))
            if first < last:
                bounds.append((int(firsts[passage] + tokens[first]), int(firsts[passage] + tokens[last - 1] + 1)))
            else:
                bounds.append((0, 0))
        return cls(np.concatenate([passage.vectors for passage in passages]), tuple(bounds))


def find_content_tokens(response: Embedded, sentence: Sentence, indent: int = 0) -> NDArray[np.intp]:
    """The tokens of a sentence's content words; all of its tokens if none of them touches a content word.

    ``indent`` is how many characters of the response were left out before it was embedded.
    """
    tokens, starts = _find_starts(response, indent)
    first, last = np.searchsorted(starts, (sentence.start, sentence.end))
    content_words = [word for word in words(sentence.text) if word.content]
    begins = np.array([sentence.start + word.start for word in content_words])
    ends = np.array([sentence.start + word.end for word in content_words])
    word = np.searchsorted(begins, starts[first:last], side="right") - 1
    inside = (
        (word >= 0) & (starts[first:last] < ends[word]) if len(content_words) else np.zeros(last - first, dtype=bool)
    )
    content_tokens: NDArray[np.intp] = tokens[first:last][inside] if inside.any() else tokens[first:last]
    return content_tokens


def align(vectors: Vectors, table: TokenTable) -> NDArray[np.float64]:
    """Mean cosine [S] of ``vectors`` [T, D] with their best matches in each of the table's sentences, 0–1.

    A sentence without a token, and any sentence where there are no ``vectors``, has 0.
    """
    if not len(vectors):
        return np.zeros(len(table.bounds))
    cosines = vectors @ table.vectors.T
    best = [cosines[:, first:last].max(axis=1).mean() if first < last else 0.0 for first, last in table.bounds]
    return np.clip(np.array(best, dtype=np.float64), 0.0, 1.0)


def _find_starts(embedded: Embedded, indent: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The tokens of the text itself, and the character of the whole text at which each begins; both ascending."""
    tokens = np.flatnonzero(~np.array(embedded.special, dtype=bool))
    return tokens, np.array(embedded.offsets, dtype=np.intp).reshape(-1, 2)[tokens, 0] + indent
