"""Compares answers as the authors of Q² do: without case, punctuation, articles and, optionally, accents."""

from __future__ import annotations

import unicodedata

from groundwire.runtime import _native


def fold_accents(text: str) -> str:
    """``text`` without accents: compatibility decomposition, then no combining marks.

    The tokenizer of the authors' QA model (ALBERT) does the same, so that their answers have no accents.

    >>> fold_accents("Haṭha yoga, São Paulo")
    'Hatha yoga, Sao Paulo'
    """
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def match_answers(answer: str, expected: str, folded: bool = True) -> bool:
    """Whether two answers are equal; ``folded`` compares them without their accents."""
    return _native.exact_match(*_fold(answer, expected, folded))


def answer_f1(answer: str, expected: str, folded: bool = True) -> float:
    """Bag-of-words F1 of two answers, 0–1; 0 without a common word. ``folded`` as in ``match_answers``."""
    return _native.token_f1(*_fold(answer, expected, folded))


def _fold(answer: str, expected: str, folded: bool) -> tuple[str, str]:
    return (fold_accents(answer), fold_accents(expected)) if folded else (answer, expected)
