"""Readers for the training sets, and the text windows the recipes cut from them.

The data directory holds JSON Lines, gzipped where large: SQuAD paragraphs as ``{"title", "context", "qas":
[{"question", "answers", "answerable"}]}``, single reading questions as ``{"id", "title", "context", "question",
"answers", "unanswerable"}``, inference pairs as ``{"premise", "hypothesis", "label"}``, dialogues as ``{"turns",
"split"}``.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_WORD = re.compile(r"\w+")


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON Lines file, gzipped or plain."""
    yield from _read_json_lines(path)


def read_triple_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the triples of a JSON Lines file of arrays ``[subject, relation, object]``, gzipped or plain."""
    for row in _read_json_lines(path):
        subject, relation, thing = row
        yield subject, relation, thing


def _read_json_lines(path: Path) -> Iterator[Any]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_topical_chat(path: Path, held_out: str = "test_freq") -> Iterator[tuple[str, ...]]:
    """Yield the turns of each dialogue of Topical-Chat that is not in the split ``held_out``.

    Labelled responses of other studies continue dialogues of the test split, so nothing is trained on it.
    """
    for row in read_rows(path):
        if row["split"] != held_out:
            yield tuple(row["turns"])


def is_held_out(title: str) -> bool:
    """Whether an article belongs to the development set: two in a hundred, by a hash of the title."""
    return zlib.crc32(title.encode()) % 50 == 0


def find_sentence_bounds(text: str) -> list[tuple[int, int]]:
    """Character ranges of the sentences of ``text``, split at punctuation: good enough to cut training windows."""
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [(a, b) for a, b in pairwise(cuts) if text[a:b].strip()]


def word_set(text: str) -> set[str]:
    """The set of lower-cased words of ``text``."""
    return set(_WORD.findall(text.lower()))


def word_coverage(text: str, other: str) -> float:
    """The share of the words of ``text`` that ``other`` contains."""
    text_words = word_set(text)
    return len(text_words & word_set(other)) / max(1, len(text_words))


@dataclass(frozen=True, slots=True)
class Question:
    """A reading question, its gold answers and the index of its paragraph."""

    text: str
    answers: tuple[str, ...]
    paragraph: int
    start: int
    """Character offset of the first gold answer in the paragraph; -1 when the question is unanswerable."""
    anchor: int
    """Character offset that a window contains: ``start``, or where an unanswerable question seems to be answered."""

    @property
    def answer(self) -> str:
        """The first gold answer; empty when there is none."""
        return self.answers[0] if self.answers else ""


@dataclass(frozen=True)
class Squad:
    """SQuAD paragraphs and questions; ``articles`` maps a title to the indices of its paragraphs."""

    contexts: tuple[str, ...]
    bounds: tuple[tuple[tuple[int, int], ...], ...]
    titles: tuple[str, ...]
    articles: dict[str, tuple[int, ...]]
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, path: Path) -> Squad:
        """Read a SQuAD file; an answer starts in the sentence that has it and shares most words with the question."""
        contexts, bounds, titles, questions = [], [], [], []
        articles: dict[str, list[int]] = {}
        for index, row in enumerate(read_rows(path)):
            context = row["context"]
            sentences = tuple(find_sentence_bounds(context))
            contexts.append(context)
            bounds.append(sentences)
            titles.append(row["title"])
            articles.setdefault(row["title"], []).append(index)
            for qa in row["qas"]:
                answers = tuple(qa["answers"]) if qa["answerable"] else ()
                question = _make_question(qa["question"], answers, "", index, context, sentences)
                if question is not None:
                    questions.append(question)
        frozen = {title: tuple(members) for title, members in articles.items()}
        return cls(tuple(contexts), tuple(bounds), tuple(titles), frozen, tuple(questions))

    def add_questions(self, rows: Iterable[Mapping[str, Any]]) -> Squad:
        """These paragraphs and questions with ``rows``, each a single question with its context.

        A row whose context is known joins its paragraph. The gold answer of a row is the answer that shares most
        words with its other answers. Rows whose answer does not occur in their context are left out.
        """
        contexts, bounds, titles = list(self.contexts), list(self.bounds), list(self.titles)
        questions = list(self.questions)
        articles = {title: list(members) for title, members in self.articles.items()}
        paragraphs = {context: index for index, context in enumerate(contexts)}
        for row in rows:
            context = row["context"]
            index = paragraphs.setdefault(context, len(contexts))
            if index == len(contexts):
                title = row.get("title") or _get_document(row["id"])
                contexts.append(context)
                bounds.append(tuple(find_sentence_bounds(context)))
                titles.append(title)
                articles.setdefault(title, []).append(index)
            answers = () if row["unanswerable"] else _sort_by_agreement(row["answers"])
            plausible = row.get("plausible_answer") or ""
            question = _make_question(row["question"], answers, plausible, index, context, bounds[index])
            if question is not None:
                questions.append(question)
        frozen = {title: tuple(members) for title, members in articles.items()}
        return Squad(tuple(contexts), tuple(bounds), tuple(titles), frozen, tuple(questions))

    def cut_window(self, question: Question, sentences: int, rng: random.Random) -> tuple[str, int]:
        """A run of ``sentences`` sentences around the question's anchor, and the anchor's offset in it.

        It is longer where the answer covers more sentences.
        """
        bounds = self.bounds[question.paragraph]
        end = question.anchor + max(1, len(question.answer))
        first = max(i for i, (a, _) in enumerate(bounds) if a <= question.anchor)
        last = max(i for i, (a, _) in enumerate(bounds) if a < end)
        extra = max(0, sentences - (last - first + 1))
        before = min(first, rng.randint(0, extra))
        after = min(len(bounds) - 1 - last, extra - before)
        a, b = bounds[first - before][0], bounds[last + after][1]
        return self.contexts[question.paragraph][a:b], question.anchor - a

    def find_distractor(self, question: Question, sentences: int, rng: random.Random) -> str | None:
        """A run of sentences of the same article that lacks the answer and shares many words with the question."""
        question_words, target = word_set(question.text), question.answer.lower()
        others = self.articles[self.titles[question.paragraph]]
        pool = [question.paragraph, *rng.sample(others, min(3, len(others)))]
        best: tuple[float, str] | None = None
        for index in pool:
            bounds = self.bounds[index]
            for first in range(0, len(bounds), max(1, sentences)):
                chunk = bounds[first : first + sentences]
                text = self.contexts[index][chunk[0][0] : chunk[-1][1]]
                if target in text.lower():
                    continue
                rank = len(question_words & word_set(text)) + rng.random()
                if best is None or rank > best[0]:
                    best = (rank, text)
        return best[1] if best else None


def _make_question(
    text: str, answers: tuple[str, ...], plausible: str, paragraph: int, context: str, bounds: Sequence[tuple[int, int]]
) -> Question | None:
    """The question with its answer located; None when the answer does not occur in the context.

    The anchor of an unanswerable question is its plausible answer, or else the sentence that shares most words with it.
    """
    if answers:
        start = _locate(context, bounds, text, answers[0])
        return Question(text.strip(), answers, paragraph, start, start) if start >= 0 else None
    anchor = _locate(context, bounds, text, plausible) if plausible else -1
    if anchor < 0:
        question_words = word_set(text)
        anchor = max(bounds, key=lambda bound: len(question_words & word_set(context[slice(*bound)])))[0]
    return Question(text.strip(), (), paragraph, -1, anchor)


def _sort_by_agreement(answers: Sequence[str]) -> tuple[str, ...]:
    """The answers in the order of how many words each shares with all of them, the most typical first."""
    return tuple(
        sorted(answers, key=lambda answer: -sum(word_coverage(answer, o) + word_coverage(o, answer) for o in answers))
    )


def _get_document(identifier: str) -> str:
    """The document of a QAMR id, ``qamr-dev-Wiki1k:wikipedia:16016:90:8-…``: its first three parts."""
    return ":".join(identifier.split(":")[:3])


def _locate(context: str, sentences: Sequence[tuple[int, int]], question: str, answer: str) -> int:
    question_words = word_set(question)
    most_shared, best_start = -1, -1
    start = context.find(answer)
    while start >= 0:
        sentence = next((context[a:b] for a, b in sentences if a <= start < b), "")
        shared = len(question_words & word_set(sentence))
        if shared > most_shared:
            most_shared, best_start = shared, start
        start = context.find(answer, start + 1)
    return best_start
