"""Makes rows as the engine reads them: an excerpt of long knowledge, and a part of a long response.

Both answers of a group are cut alike, so that they still differ in little; each has an excerpt of its own, with the
selection's faults.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from groundwire.engine.metrics.reader import ANSWER_SIZE, BETWEEN, CONTEXT
from groundwire.engine.text.reading import group_texts
from groundwire.engine.text.retrieval import NEAR, Excerpt, KnowledgeIndex
from groundwire.evaluate.twins.edits import EditedSpan
from groundwire.metrics import Sentence, sentences

from ..common.corpus import word_coverage
from ..compact.multitask_model import IGNORED
from ..synthesis.pairs import NEAR as SAME
from .rows import AnswerRow, LabelledRange

STREAM_SIZE = 24
"""Size of a window of a stream, which has a sentence or two and those before them."""
LEAST_SENTENCES = 3
"""Sentences of a response that is cut."""
Group: TypeAlias = tuple[AnswerRow, AnswerRow]


def select_excerpts(group: Group, others: Sequence[str], rng: random.Random) -> Group:
    """Put the knowledge among ``others``, and give each answer the excerpt of all that the engine would read.

    The group stays as it is where the knowledge is not too long to be read whole, where another passage says what an
    answer says, where an excerpt has nothing of the own knowledge ("It is €19 then."), and for single texts.
    """
    claims = [answer.example.second or "" for answer in group]
    if not all(claims) or any(word_coverage(claim, passage) >= SAME for claim in claims for passage in others):
        return group
    position = rng.randint(0, len(others))
    excerpts = [_find_excerpt(answer, others, position) for answer in group]
    if not all(any(part.passage == position for part in excerpt.ranges) for excerpt in excerpts):
        return group
    first, second = (
        replace(answer, example=replace(answer.example, first="\n".join(excerpt.passages)))
        for answer, excerpt in zip(group, excerpts, strict=True)
    )
    return first, second


def _find_excerpt(answer: AnswerRow, others: Sequence[str], position: int) -> Excerpt:
    passages = (*others[:position], answer.example.first, *others[position:])
    if sum(map(len, passages)) <= NEAR.whole:
        return Excerpt((), ())
    index = KnowledgeIndex(passages)
    for _ in index.read():
        pass
    return index.find([part.text for part in sentences(answer.example.second or "")], NEAR.excerpt)


def cut_responses(group: Group, rng: random.Random) -> Group:
    """Cut both responses to the window of sentences that has their difference, as a long response or a stream has it.

    Sentences before the window are read and have no label. The group stays as it is where the responses have other
    than one sentence of difference, or less than ``LEAST_SENTENCES`` sentences.
    """
    pairs = [sentences(answer.example.second or "") for answer in group]
    if len(pairs[0]) != len(pairs[1]) or len(pairs[0]) < LEAST_SENTENCES:
        return group
    changed = [index for index, (first, second) in enumerate(zip(*pairs, strict=True)) if first.text != second.text]
    if len(changed) != 1:
        return group
    size = rng.choice((STREAM_SIZE, ANSWER_SIZE))
    windows = group_texts([part.text for part in pairs[0]], size, CONTEXT)
    window = next(window for window in windows if window.end > changed[0])
    first, second = (
        _cut(answer, parts[window.context : window.end], window.start - window.context)
        for answer, parts in zip(group, pairs, strict=True)
    )
    return first, second


def _cut(answer: AnswerRow, parts: Sequence[Sentence], unlabelled: int) -> AnswerRow:
    example = answer.example
    text = ""
    ranges: list[LabelledRange] = []
    spans: list[EditedSpan] = []
    for number, part in enumerate(parts):
        shift = len(text) + (len(BETWEEN) if text else 0) - part.start
        text = f"{text}{BETWEEN}{part.text}" if text else part.text
        for old in answer.ranges:
            if part.start < old.end and old.start < part.end:
                label = IGNORED if number < unlabelled else old.label
                start, end = max(old.start, part.start), min(old.end, part.end)
                ranges.append(LabelledRange(start + shift, end + shift, label))
        for span in example.spans or ():
            if part.start < span.end and span.start < part.end:
                start, end = max(span.start, part.start), min(span.end, part.end)
                spans.append(EditedSpan(start + shift, end + shift, span.reason))
    cut = replace(example, second=text, spans=None if example.spans is None else tuple(spans))
    return replace(answer, example=cut, ranges=tuple(ranges))
