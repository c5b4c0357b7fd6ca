"""The definition of answer matching, in regular expressions."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter


def clean(text: str) -> str:
    """Lower-case, delete ASCII punctuation, put a space for the words a, an, the, in, our, squeeze and strip."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    text = re.sub(r"\b(a|an|the|in|our)\b", " ", text)
    return re.sub(r"\s+", " ", text).strip()


def fold_accents(text: str) -> str:
    """Decompose each character, and keep what is not a combining mark."""
    return "".join(part for part in unicodedata.normalize("NFKD", text) if unicodedata.combining(part) == 0)


def exact_match(a: str, b: str) -> bool:
    """Tell whether two texts are equal once cleaned."""
    return clean(a) == clean(b)


def token_f1(prediction: str, reference: str) -> float:
    """Bag-of-words F1 of the cleaned texts; 0 without a common token."""
    predicted, expected = clean(prediction).split(), clean(reference).split()
    common = (Counter(predicted) & Counter(expected)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)
