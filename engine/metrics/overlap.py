"""Word overlap of response and knowledge: no model, and baselines that are hard to beat.

``overlap`` is the baseline of the Q² paper, which the PMI-Faith authors compare with too; ``overlap_precision`` asks
only how much of the response the knowledge has; ``unigram_f1`` is the F1 that dialogue papers report. Several passages
count as one text: their words are put together.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import partial
from typing import Literal, NamedTuple

from groundwire.runtime.texts.linear_tokenizer import cut_parts

from ..schema.explanations import ContentWord, OverlapExplanation, UnsupportedSpan
from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.words import Word, check_words, find_overlaps, within
from .base import Metric, MetricNumber, RoleInfos, WordEvidence
from .requests import ReadRequest

MAX_WORDS = 250_000
"""Overlap: words of response and knowledge, which spaCy splits in four seconds."""
WORDS_AT_ONCE = 5_000
"""Words of long knowledge that are read in one go: about 100 ms."""
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def overlap(
    request: ReadRequest, options: Options, role_info: RoleInfos, name: Literal["overlap", "overlap_precision"]
) -> Steps[MetricResult]:
    """Bag-of-words F1 of the content words, or the share of the response's that the knowledge has; both 0–1.

    Words are spaCy's English tokens, lower-cased, without stop words and punctuation, as in the Q² authors' code. Two
    things differ from that code, which moves scores on the papers' sets by 0.0005 on average (docs/adr, nr 19): a run
    of spaces is not a word, and both texts are split before they are lower-cased, so that equal texts have equal words.

    A response without content words has nothing to verify; knowledge without any supports nothing, a score of 0. Texts
    beyond ``MAX_WORDS`` are ``truncated``.
    """
    check_words((request.response, *request.knowledge), MAX_WORDS, "Word overlap")
    content = list(request.content)
    knowledge_words: list[str] = []
    for count, word in enumerate(request.read_knowledge.read_words(), 1):
        if word.content:
            knowledge_words.append(word.lower)
        if count % WORDS_AT_ONCE == 0:
            yield []  # others have a turn, and a request that was stopped ends here
    content = list(leave_marks_out(request, content, frozenset(knowledge_words)))
    if not content:
        return _nothing(name, "content words (words other than stop words and punctuation)")
    return _compare_content(name, content, knowledge_words)


def leave_marks_out(request: ReadRequest, content: Sequence[Word], knowledge_words: Set[str]) -> Sequence[Word]:
    """The words, except words of code, list markers and link targets that the knowledge lacks."""
    if request.is_plain:
        return content
    runs = request.whole.runs
    ranges = [ReadRange(source, source + length) for _, source, length in runs]
    overlaps = find_overlaps([(word.start, word.end) for word in content], sorted(ranges))
    return [word for word, of_word in zip(content, overlaps, strict=True) if of_word or word.lower in knowledge_words]


class ReadRange(NamedTuple):
    """Characters of the response that models read."""

    start: int
    end: int


def unigram_f1(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """Bag-of-words F1, 0–1, of the words that ``split_words`` gives: function words count, articles do not.

    A response without words has nothing to verify.
    """
    response = split_words(request.response)
    if not response:
        return _nothing("unigram_f1", "words (articles and punctuation do not count)")
    knowledge: Counter[str] = Counter()
    for passage in request.knowledge:
        for index, part in enumerate(cut_parts(passage)):
            if index:
                yield []  # as in ``overlap``
            knowledge.update(split_words(part))
    return MetricResult("unigram_f1", "scored", bag_f1(response, knowledge))


def split_words(text: str) -> list[str]:
    """Words as ParlAI's F1 has them, with which Wizard of Wikipedia and the papers after it report theirs.

    Lower-case, ASCII punctuation to spaces, the words a, an and the to spaces, split at spaces. SQuAD's F1, its model,
    deletes punctuation instead, which glues "well-known" together.

    >>> split_words("The well-known painter's show.")
    ['well', 'known', 'painter', 's', 'show']
    """
    return _ARTICLES.sub(" ", _PUNCTUATION.sub(" ", text.lower())).split()


def bag_f1(response: Iterable[str], knowledge: Iterable[str]) -> float:
    """F1 of two bags of words, 0–1; 0 when they share none."""
    ours, theirs = Counter(response), Counter(knowledge)
    common = (ours & theirs).total()
    return 2 * common / (ours.total() + theirs.total()) if common else 0.0


def _compare_content(name: str, content: Sequence[Word], knowledge_words: Sequence[str]) -> MetricResult:
    known_words = frozenset(knowledge_words)
    marked = tuple(ContentWord(word.text, word.start, word.end, word.lower in known_words) for word in content)
    explanation = OverlapExplanation(
        precision=sum(word.in_knowledge for word in marked) / len(marked),
        f1=bag_f1((word.lower for word in content), knowledge_words),
        words=marked,
        unsupported=tuple(
            UnsupportedSpan(word.text, word.start, word.end, "not_in_knowledge", "", name)
            for word in marked
            if not word.in_knowledge
        ),
    )
    value = explanation.f1 if name == "overlap" else explanation.precision
    return MetricResult(name, "scored", value, explanation=explanation)


def _nothing(name: str, kind: str) -> MetricResult:
    return MetricResult(name, "nothing_to_verify", message=f"The response has no {kind} to look for in the knowledge.")


def _features(explanation: OverlapExplanation) -> dict[str, float]:
    return {"missing": float(sum(not word.in_knowledge for word in explanation.words))}


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, OverlapExplanation):
        return {}
    inside = within(result.explanation.words, start, end)
    missing = sum(not word.in_knowledge for word in inside)
    numbers = {"missing": float(missing)}
    if inside and result.name == "overlap_precision":
        numbers[""] = 1 - missing / len(inside)
    return numbers


def _spans(result: MetricResult) -> tuple[UnsupportedSpan, ...]:
    explanation = result.explanation
    return explanation.unsupported if isinstance(explanation, OverlapExplanation) else result.unsupported


METRICS = (
    Metric(
        name="overlap",
        title="Overlap F1",
        description="content words that response and knowledge share (F1)",
        compute=partial(overlap, name="overlap"),
        groups=frozenset({"paper", "fast"}),
        order=6,
        words=WordEvidence(0.5, precision=1, family="overlap", spans=_spans),
        features=_features,
        part=_part,
        numbers=(MetricNumber("missing", is_evidence=True, is_lower_better=True),),
    ),
    Metric(
        name="overlap_precision",
        title="Overlap precision",
        description="share of the response’s content words that the knowledge has",
        compute=partial(overlap, name="overlap_precision"),
        groups=frozenset({"fast"}),
        order=7,
        words=WordEvidence(0.5, family="overlap", spans=_spans),
        features=_features,
        part=_part,
        numbers=(MetricNumber(is_evidence=True), MetricNumber("missing", is_lower_better=True)),
    ),
    Metric(
        name="unigram_f1",
        title="Unigram F1",
        description="words that response and knowledge share (F1)",
        compute=unigram_f1,
        groups=frozenset({"fast"}),
        order=8,
    ),
)
