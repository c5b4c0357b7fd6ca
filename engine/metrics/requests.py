"""A request whose texts are read once: its metrics, its verdict and its marks share what one of them has read.

Metrics read all of its knowledge, or of long knowledge the parts that a sentence is about.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from ..schema.explanations import PassageRange
from ..schema.results import Request
from ..schema.steps import Steps
from ..text.answers import state_answer
from ..text.normalization import spell_out
from ..text.reading import (
    WINDOW_SIZE,
    ReadText,
    cut_reading,
    follow_question,
    is_verbatim,
    join_readings,
    read_sentences_of,
)
from ..text.rendering import RenderedPart, RenderedText, UnreadNumber, find_unread_numbers, render_text, says_anything
from ..text.retrieval import FAR, NEAR, KnowledgeIndex, Reach
from ..text.sentences import Sentence, sentences
from ..text.words import SHORT, RangeIndex, Word, read_words, words
from ..values.knowledge import ValueText


class OutOfTime(Exception):
    """The time in which a score is to be drawn from results has passed."""


class ReadKnowledge:
    """Knowledge that is read once: by one request, or by all requests about it that are made together."""

    def __init__(self, passages: tuple[str, ...]) -> None:
        self.passages = passages
        self._words: dict[int, tuple[Word, ...]] = {}

    def read_words(self) -> Iterator[Word]:
        """Yield the words of all passages, in order; long passages are read as far as somebody asks, each time."""
        return chain.from_iterable(map(self._read_passage, range(len(self.passages))))

    def _read_passage(self, index: int) -> Iterable[Word]:
        passage = self.passages[index]
        if len(passage) > SHORT:
            return read_words(passage)
        if index not in self._words:
            self._words[index] = words(passage)
        return self._words[index]

    @cached_property
    def values(self) -> tuple[ValueText, ...]:
        """The passages, and the values that they state."""
        return tuple(map(ValueText, self.passages))

    @cached_property
    def index(self) -> KnowledgeIndex:
        """What finds the parts of long knowledge that a text is about."""
        return KnowledgeIndex(self.passages)


class ReadRequest(Request, frozen=True, dict=True):
    """A request whose texts are as people understand them, and what was read of them; it ends with the request.

    Texts are as they are shown (``render_text``), and "Yes." after a question is what it states (``state_answer``).

    A copy with another response (``ask``) shares what was read of the knowledge.
    """

    @classmethod
    def of(cls, request: Request) -> ReadRequest:
        """Return the request with what is read of it; the request itself if it already is a ``ReadRequest``.

        Args:
            request: The texts.

        Returns:
            A request with the same texts, as they are shown.
        """
        if isinstance(request, ReadRequest):
            return request
        passages = tuple(map(render_text, request.knowledge))
        return cls._render(request, passages)

    @classmethod
    def _render(cls, request: Request, passages: tuple[RenderedText, ...]) -> ReadRequest:
        response = render_text(request.response)
        history = tuple(render_text(turn).text for turn in request.history)
        answer = state_answer(response.text, history[-1]) if history else None
        if answer is not None and answer.statement:
            if not response.text[answer.end :].strip():
                history = history[:-1]  # its words would support the statement
            response.edit([RenderedPart(answer.start, answer.end, answer.statement)])
        knowledge = tuple(passage.text for passage in passages)
        if not any(map(says_anything, knowledge)):
            knowledge = ()
        rendered = cls(response.text, knowledge, history, request.triples)
        rendered.__dict__.update(original=request, rendered_response=response, rendered_knowledge=passages)
        if answer is not None:
            rendered.__dict__["bare_answer"] = answer.start, answer.start + len(answer.statement or "?")
            rendered.__dict__["denied"] = answer.denied
        return rendered

    @cached_property
    def bare_answer(self) -> tuple[int, int] | None:
        """The characters of a yes or no that answers a question which states something; None without one.

        They are the statement that it makes, where the question's words make one.
        """
        return None

    @cached_property
    def denied(self) -> str:
        """What a bare "no" says is not so; empty without one."""
        return ""

    @cached_property
    def unread_numbers(self) -> RangeIndex[UnreadNumber]:
        """The numbers of the response that people see and nothing here reads."""
        return RangeIndex(find_unread_numbers(self.response))

    @cached_property
    def original(self) -> Request:
        """The request with its texts as they were written."""
        return self

    @cached_property
    def rendered_response(self) -> RenderedText:
        """The response, and where its characters are in the original."""
        return RenderedText(self.response)

    @cached_property
    def rendered_knowledge(self) -> tuple[RenderedText, ...]:
        """The passages, and where their characters are in the original."""
        return tuple(map(RenderedText, self.knowledge))

    @property
    def is_verbatim(self) -> bool:
        """Whether response and knowledge are shown as they were written."""
        return all(text.is_verbatim for text in (self.rendered_response, *self.rendered_knowledge))

    def ask(self, response: str, history: Sequence[str] | None = None) -> ReadRequest:
        """Return a request about another response to the same knowledge.

        Args:
            response: The response.
            history: The utterances before it; None keeps this request's.

        Returns:
            A request that shares what is read of the knowledge.
        """
        original = self.original
        turns = original.history if history is None else tuple(history)
        request = Request(response, original.knowledge, turns, self.triples)
        asked = self._render(request, self.rendered_knowledge)
        asked.__dict__["read_knowledge"] = self.read_knowledge
        return asked

    @cached_property
    def read_knowledge(self) -> ReadKnowledge:
        """The knowledge, and what was read of it."""
        return ReadKnowledge(self.knowledge)

    @cached_property
    def values(self) -> ValueText:
        """The response, and the values that it states."""
        return ValueText(self.response)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the response."""
        return words(self.response)

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """The words of the response without stop words and punctuation."""
        return tuple(word for word in self.words if word.content)

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences of the response, at least one."""
        return sentences(self.response)

    @cached_property
    def readings(self) -> tuple[ReadText, ...]:
        """What models read of each sentence of the response (``read_response``)."""
        return read_sentences_of(self.response, self.sentences)

    @cached_property
    def answer(self) -> tuple[ReadText, ...]:
        """What classifiers read of each sentence: the first one after the question, where it needs it."""
        return follow_question(self.readings, self.history)

    @cached_property
    def whole(self) -> ReadText:
        """What models read of the response as a whole."""
        return self.join(self.readings)

    def join(self, readings: Sequence[ReadText]) -> ReadText:
        """Return readings of sentences of the response as one.

        Args:
            readings: Some of ``readings`` or ``answer``, in order.

        Returns:
            What models read of them together; the response itself if they are all that it has.
        """
        return join_readings(self.response, readings, len(self.sentences))

    @property
    def is_plain(self) -> bool:
        """Whether models read the response as it is."""
        return all(is_verbatim(self.response, reading) for reading in self.readings)

    @cached_property
    def end(self) -> float | None:
        """When ``check_time`` begins to raise, in seconds of ``time.monotonic``; None for never."""
        return None

    def end_at(self, end: float | None) -> ReadRequest:
        """Set when the time ends in which the score of this request is to be drawn.

        Args:
            end: A moment of ``time.monotonic``; None for no end.

        Returns:
            This request.
        """
        self.__dict__["end"] = end
        return self

    def check_time(self) -> None:
        """Raise OutOfTime after the end; the verdict's loops over sentences call it, which no batch of models ends."""
        if self.end is not None and time.monotonic() > self.end:
            raise OutOfTime(
                "The request was not finished in time; raise Options.deadline_ms, or score the text in parts."
            )


def get_original(request: Request) -> Request:
    """Return a request with its texts as they were written."""
    return request.original if isinstance(request, ReadRequest) else request


def read_together(requests: Iterable[Request]) -> list[ReadRequest]:
    """Return requests that share what is read of equal knowledge."""
    by_knowledge: dict[tuple[str, ...], ReadRequest] = {}
    together = []
    for request in map(ReadRequest.of, requests):
        first = by_knowledge.setdefault(request.knowledge, request)
        if first is not request:
            request.__dict__["read_knowledge"] = first.read_knowledge
        together.append(request)
    return together


class SelectedKnowledge:
    """What one metric reads of the knowledge of a request: all, or the parts that it selects."""

    def __init__(self, knowledge: tuple[str, ...], index: KnowledgeIndex | None, reach: Reach) -> None:
        """``index`` is None for knowledge that is read whole."""
        self._knowledge = knowledge
        self._reach = reach
        self._index = index
        self._read: dict[int, set[tuple[int, int]]] = {}
        self._selected: dict[str, tuple[str, ...]] = {}
        self._written = self._write(knowledge) if index is None else ()

    def select(self, reading: ReadText) -> tuple[str, ...]:
        """The passages to compare a reading with: all, or the parts of long knowledge that its sentences are about."""
        return self.select_for(reading.text)

    def select_for(self, text: str) -> tuple[str, ...]:
        """``select`` for a text of one or more sentences."""
        if self._index is None:
            return self._written
        if text not in self._selected:
            excerpt = self._index.find([sentence.text for sentence in sentences(text)], self._reach.excerpt)
            for part in excerpt.ranges:
                self._read.setdefault(part.passage, set()).add((part.start, part.end))
            self._selected[text] = self._write(excerpt.passages)
        return self._selected[text]

    def select_all(self, whole: ReadText) -> tuple[str, ...]:
        """The parts of long knowledge that a response is about, window by window; each once."""
        if self._index is None:
            return self._written
        for part in cut_reading(whole, WINDOW_SIZE):
            self.select(part)
        return self._write([self._knowledge[part.passage][part.start : part.end] for part in self.ranges])

    def _write(self, passages: Iterable[str]) -> tuple[str, ...]:
        """Passages as they are read: by classifiers, which point at no words of them, with some words spelled out."""
        return tuple(map(spell_out, passages) if self._reach is NEAR else passages)

    @property
    def share(self) -> float:
        """The share of the knowledge's characters that was selected, 0–1."""
        if self._index is None:
            return 1.0
        return sum(part.end - part.start for part in self.ranges) / sum(map(len, self._knowledge))

    @property
    def ranges(self) -> list[PassageRange]:
        """What was selected, in order and disjoint; of knowledge that is read whole, nothing."""
        joined: list[PassageRange] = []
        for passage, parts in sorted(self._read.items()):
            for start, end in sorted(parts):
                if joined and joined[-1].passage == passage and start <= joined[-1].end:
                    start, end = joined[-1].start, max(end, joined.pop().end)
                joined.append(PassageRange(passage, start, end))
        return joined

    @property
    def is_excerpt(self) -> bool:
        """Whether only parts of the knowledge are selected."""
        return self._index is not None

    @property
    def message(self) -> str:
        """What models read of long knowledge; empty where it was all."""
        return self.explain("models")

    def explain(self, readers: str) -> str:
        """What ``readers`` read of long knowledge; empty where it was all."""
        if self._index is None:
            return ""
        total = sum(map(len, self._knowledge))
        read = sum(part.end - part.start for part in self.ranges)
        return (
            f"The knowledge has {total} characters, and {readers} read {read} of them: the parts that share the rarest "
            f"words with each sentence. Knowledge of up to {self._reach.whole} characters is read whole."
        )


def open_knowledge(request: ReadRequest, reach: Reach = FAR) -> Steps[SelectedKnowledge]:
    """The knowledge of a request, indexed if it is longer than what is read whole."""
    knowledge = request.knowledge
    if sum(map(len, knowledge)) <= reach.whole:
        return SelectedKnowledge(knowledge, None, reach)
    index = request.read_knowledge.index
    for _ in index.read():
        yield []  # others have a turn, and a request that was stopped ends here
    return SelectedKnowledge(knowledge, index, reach)
