"""Finds knowledge for responses: the passages of a corpus that are nearest to a text.

Two ways, as in "Rome was built in 1776" (Santhanam et al. 2021), which gives generated responses knowledge by nearest
neighbours and by a dense retriever: by words (BM25, of the library ``bm25s``) and by meaning (mean token vector of the
bundle's ``embedder``, cosine).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from groundwire.engine.text.words import words
from groundwire.runtime.calls import Embed, Embedded
from groundwire.runtime.errors import GroundwireError, InvalidRequest, ModelError
from groundwire.runtime.protocol import Runtime

Vectors = NDArray[np.float32]
ROLE = "embedder"
MAX_WINDOWS = 512
"""Windows of a passage that are read, at most, as for a metric."""


class Retrieved(NamedTuple):
    """A passage of the corpus."""

    position: int
    """In the corpus, from 0."""
    score: float
    """Of BM25, above 0; or the cosine, -1 to 1. Higher is nearer."""


class Index(Protocol):
    """A corpus that can be searched."""

    def search(self, query: str, top: int) -> list[Retrieved]:
        """The nearest passages, nearest first, ``top`` at most; equal ones in their order."""
        ...


class WordIndex:
    """BM25 over content words (Robertson and Zaragoza 2009), in the variant of Lucene: k1 1.5, b 0.75."""

    def __init__(self, passages: Sequence[str]) -> None:
        """InvalidRequest where ``bm25s`` is not installed, or no passage has a content word."""
        if importlib.util.find_spec("bm25s") is None:
            raise InvalidRequest("Retrieval by words needs bm25s; run: pip install 'groundwire[retrieval]'")
        import bm25s

        tokens = [_list_words(passage) for passage in passages]
        self._vocabulary: dict[str, int] = {}
        for passage in tokens:
            for word in passage:
                self._vocabulary.setdefault(word, len(self._vocabulary))
        if not self._vocabulary:
            raise InvalidRequest("No passage of the corpus has a word that could be searched for.")
        numbered = [[self._vocabulary[word] for word in passage] for passage in tokens]
        self._scorer: Any = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self._scorer.index((numbered, self._vocabulary), show_progress=False)

    def search(self, query: str, top: int) -> list[Retrieved]:
        """Passages that share a content word with the query."""
        known = [self._vocabulary[word] for word in _list_words(query) if word in self._vocabulary]
        if not known:
            return []
        return [passage for passage in _choose(self._scorer.get_scores(known), top) if passage.score > 0]


class MeaningIndex:
    """Cosine of mean token vectors."""

    def __init__(self, passages: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> None:
        """``embed`` gives the vectors [N, D] of N texts, each of length 1."""
        self._embed = embed
        self._vectors = embed(passages)

    def search(self, query: str, top: int) -> list[Retrieved]:
        """The passages with the largest cosine."""
        return _choose(self._vectors @ self._embed([query])[0], top)


def make_embedder(runtime: Runtime) -> Callable[[Sequence[str]], Vectors]:
    """A function from texts to their mean token vectors [N, D], each of length 1, by the role ``embedder``.

    InvalidRequest where the bundle lacks the role. What the function raises: the error of a text that the model cannot
    read.
    """
    if ROLE not in runtime.roles:
        raise InvalidRequest(f"The bundle has no role {ROLE!r}; it has {', '.join(sorted(runtime.roles))}.")
    batch = runtime.batch(ROLE)

    def embed(texts: Sequence[str]) -> Vectors:
        outcomes = [
            outcome
            for start in range(0, len(texts), batch)
            for outcome in runtime.run(ROLE, [Embed(text) for text in texts[start : start + batch]], MAX_WINDOWS)
        ]
        return np.stack([_average(outcome) for outcome in outcomes])

    return embed


def _average(outcome: object) -> Vectors:
    if isinstance(outcome, GroundwireError):
        raise outcome
    assert isinstance(outcome, Embedded)
    mean = outcome.vectors[~np.array(outcome.special)].sum(axis=0)
    length = float(np.linalg.norm(mean))
    if not length > 0:
        raise ModelError("The embedder gives a text no direction: it has no token, or its vectors cancel out.")
    return np.asarray(mean / length, dtype=np.float32)


def _choose(scores: NDArray[np.float32], top: int) -> list[Retrieved]:
    order = np.argsort(-scores, kind="stable")[:top]
    return [Retrieved(int(index), float(scores[index])) for index in order]


def _list_words(text: str) -> list[str]:
    return [word.lower for word in words(text) if word.content]
