"""Word overlap of response and knowledge: no model, and baselines that are hard to beat.

``overlap`` is the baseline of the Q² paper, which the PMI-Faith authors compare with too; ``overlap_precision`` asks
only how much of the response the knowledge has; ``unigram_f1`` is the F1 that dialogue papers report. Several passages
count as one text: their words are put together.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Literal

from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.explanations import ContentWord, OverlapExplanation, UnsupportedSpan
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import MetricResult, Request
from groundwire.engine.text.words import words

from .base import Metric, at_once

_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def overlap(request: Request, options: Options, name: Literal["overlap", "overlap_precision"]) -> Steps[MetricResult]:
    """Bag-of-words F1 of the content words, or the share of the response's that the knowledge has; both 0–1.

    Words are spaCy's English tokens, lower-cased, without stop words and punctuation, as in the Q² authors' code. Two
    things differ from that code, which moves scores on the papers' sets by 0.0005 on average (docs/decisions.md): a run
    of blanks is no word, and both texts are split before they are lower-cased, so that equal texts have equal words.

    A response without content words has nothing to verify; knowledge without any supports nothing, a score of 0.
    """
    return at_once(partial(_overlap, request, name))


def unigram_f1(request: Request, options: Options) -> Steps[MetricResult]:
    """Bag-of-words F1, 0–1, of the words that ``normalized`` gives: function words count, articles do not.

    A response without words has nothing to verify.
    """
    return at_once(partial(_unigram_f1, request))


def normalized(text: str) -> list[str]:
    """Words as ParlAI's F1 has them, with which Wizard of Wikipedia and the papers after it report theirs.

    Lower-case, ASCII punctuation to blanks, the words a, an and the to blanks, split at blanks. SQuAD's F1, its model,
    deletes punctuation instead, which glues "well-known" together.

    >>> normalized("The well-known painter's show.")
    ['well', 'known', 'painter', 's', 'show']
    """
    return _ARTICLES.sub(" ", _PUNCTUATION.sub(" ", text.lower())).split()


def f1(response: Iterable[str], knowledge: Iterable[str]) -> float:
    """F1 of two bags of words, 0–1; 0 when they share none."""
    ours, theirs = Counter(response), Counter(knowledge)
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def _overlap(request: Request, name: str) -> MetricResult:
    content = [word for word in words(request.response) if word.content]
    if not content:
        return _nothing(name, "content words (words other than stop words and punctuation)")
    known = [word.lower for passage in request.knowledge for word in words(passage) if word.content]
    there = frozenset(known)
    found = tuple(ContentWord(word.text, word.start, word.end, word.lower in there) for word in content)
    explanation = OverlapExplanation(
        precision=sum(word.in_knowledge for word in found) / len(found),
        f1=f1((word.lower for word in content), known),
        words=found,
        unsupported=tuple(
            UnsupportedSpan(word.text, word.start, word.end, "not_in_knowledge", "", name)
            for word in found
            if not word.in_knowledge
        ),
    )
    value = explanation.f1 if name == "overlap" else explanation.precision
    return MetricResult(name, "scored", value, explanation=explanation)


def _unigram_f1(request: Request) -> MetricResult:
    response = normalized(request.response)
    if not response:
        return _nothing("unigram_f1", "words (articles and punctuation do not count)")
    knowledge = (word for passage in request.knowledge for word in normalized(passage))
    return MetricResult("unigram_f1", "scored", f1(response, knowledge))


def _nothing(name: str, kind: str) -> MetricResult:
    return MetricResult(name, "nothing_to_verify", message=f"The response has no {kind} to look for in the knowledge.")


METRICS = (
    Metric("overlap", "Overlap F1", frozenset(), partial(overlap, name="overlap")),
    Metric("overlap_precision", "Overlap precision", frozenset(), partial(overlap, name="overlap_precision")),
    Metric("unigram_f1", "Unigram F1", frozenset(), unigram_f1),
)
