"""The words of a response that are not supported, from what all metrics say about its parts.

Evidence differs in how sharply it points. A question that the knowledge answers otherwise names the very words; a
contradicted sentence says only that something in it is wrong; a word that the knowledge lacks may paraphrase it. So
evidence is added up word by word: sharp evidence marks a word by itself, blunt evidence where metrics agree. A word
that the knowledge lacks is less likely with it, too, so those two alone do not mark it. A stop word makes no claim of
its own: it is marked by sharp evidence, or with the other words of a sentence. A metric that is asked alone is reported
as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from groundwire.engine.schema.explanations import OverlapExplanation, UnsupportedSpan
from groundwire.engine.schema.results import MetricResult
from groundwire.engine.text.words import words as split

MARKED = 1.0
"""Weight from which a word is marked."""
_SHARP = {
    "q2": 1.0,
    "q2_no_nli": 1.0,
    "token_classifier": 1.0,
    "critic": 1.0,
    "feqa": 0.5,
    "pmi": 0.4,
    "upmi": 0.4,
    "overlap": 0.5,
}
"""Weight of a metric that points at words. The two forms of Q², of PMI and of overlap count once: they agree by
construction."""
_BLUNT = {"contradiction": 0.6, "not_entailed": 0.4, "detected": 0.4}
"""Weight of a sentence, by reason."""
_OF_WORDS = {"not_in_knowledge", "less_likely"}
_FAMILY = {"q2_no_nli": "q2", "upmi": "pmi", "overlap_precision": "overlap"}
_WORD = re.compile(r"\w+(?:['’.,\-]\w+)*")


class _Word(NamedTuple):
    """A word of the response and the evidence on it, strongest first."""

    start: int
    end: int
    content: bool
    """Not a stop word."""
    evidence: tuple[UnsupportedSpan, ...]

    @property
    def weight(self) -> float:
        best: dict[str, float] = {}
        for span in self.evidence:
            family = _FAMILY.get(span.metric, span.metric)
            best[family] = max(best.get(family, 0.0), _weight(span))
        return sum(best.values())

    @property
    def marked(self) -> bool:
        if self.content:
            return self.weight >= MARKED
        return any(_weight(span) >= MARKED for span in self.evidence)

    @property
    def sharp(self) -> bool:
        return any(span.metric in _SHARP for span in self.evidence)


def fuse(response: str, results: Iterable[MetricResult]) -> tuple[UnsupportedSpan, ...]:
    """Disjoint ranges of ``response``, in order, each with its strongest evidence and the metrics that agree."""
    scored = [result for result in results if result.status == "scored"]
    evidence = sorted((span for result in scored for span in _spans(result)), key=lambda span: -_weight(span))
    said = [word for word in split(response) if word.content] if evidence else []
    words = [
        _Word(
            *match.span(),
            any(word.start < match.end() and match.start() < word.end for word in said),
            tuple(span for span in evidence if span.start < match.end() and match.start() < span.end),
        )
        for match in _WORD.finditer(response)
    ]
    alone = len({_FAMILY.get(result.name, result.name) for result in scored}) == 1
    marked = [word for word in words if word.evidence and (alone or word.marked)]
    kept = [word for word in marked if word.sharp or not _sharper(word, marked)]
    if not alone:
        whole = [word.evidence[0] for word in kept if not word.sharp]
        filled = [word for word in words if not word.content and word.weight >= MARKED and word.evidence[0] in whole]
        kept = sorted({*kept, *filled})
    return tuple(_merged(response, words, kept))


def _spans(result: MetricResult) -> tuple[UnsupportedSpan, ...]:
    explanation = result.explanation
    return explanation.unsupported if isinstance(explanation, OverlapExplanation) else result.unsupported


def _weight(span: UnsupportedSpan) -> float:
    family = _FAMILY.get(span.metric, span.metric)
    return _SHARP[family] if family in _SHARP else _BLUNT[span.reason]


def _sharper(word: _Word, marked: Sequence[_Word]) -> bool:
    """Whether a sentence that marks ``word`` has a marked word to which other evidence points."""
    return any(other.sharp and any(span.start <= other.start < span.end for span in word.evidence) for other in marked)


def _alike(one: UnsupportedSpan, other: UnsupportedSpan) -> bool:
    if one == other:
        return True
    return one.reason in _OF_WORDS and (one.metric, one.reason) == (other.metric, other.reason)


def _merged(response: str, words: Sequence[_Word], kept: Sequence[_Word]) -> list[UnsupportedSpan]:
    """Neighbouring words with the same strongest evidence as one range, out to where that evidence ends.

    Evidence that is about single words (overlap, PMI) is the same where it gives the same reason.
    """
    order = {word.start: index for index, word in enumerate(words)}
    groups: list[list[_Word]] = []
    for word in kept:
        last = groups[-1][-1] if groups else None
        if last and order[word.start] == order[last.start] + 1 and _alike(word.evidence[0], last.evidence[0]):
            groups[-1].append(word)
        else:
            groups.append([word])
    out: list[UnsupportedSpan] = []
    for group in groups:
        top, start, end = group[0].evidence[0], group[0].start, group[-1].end
        covers = all(word.evidence[0] == top for word in group)
        if covers and sum(word.start < top.end and top.start < word.end for word in words) == len(group):
            # The evidence covers these words and no other, so what it covers beside them may be marked too: a currency
            # sign, quotation marks.
            start, end = max(min(start, top.start), out[-1].end if out else 0), max(end, top.end)
        metrics = tuple(dict.fromkeys(span.metric for word in group for span in word.evidence))
        out.append(msgspec.structs.replace(top, text=response[start:end], start=start, end=end, metrics=metrics))
    return out
