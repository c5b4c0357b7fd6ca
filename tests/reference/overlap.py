"""Word overlap as the Q² authors compute it (their ``baselines.py``), on the rules of spaCy's tokenizer alone."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import spacy


@cache
def _nlp() -> Any:
    return spacy.blank("en")


def tokens(text: str) -> list[str]:
    return [token.text.lower() for token in _nlp()(text) if not token.is_stop and not token.is_punct]


def overlap(response: str, knowledge: str) -> float:
    """F1 of ``response`` with the lower-cased knowledge; 0 when they share no word."""
    predicted, gold = tokens(response), tokens(knowledge.lower())
    same = sum((Counter(gold) & Counter(predicted)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)
