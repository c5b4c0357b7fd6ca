"""What metrics read of the knowledge: all of it, or of long knowledge the parts that a sentence is about."""

from __future__ import annotations

from ..scheduling.steps import Steps
from ..schema.explanations import PassageRange
from ..text.reading import WINDOW_SIZE, ReadText, cut_reading
from ..text.retrieval import FAR, KnowledgeIndex, Reach
from ..text.sentences import sentences
from .requests import ReadRequest


class SelectedKnowledge:
    """The knowledge of a request, and what was read of it."""

    def __init__(self, knowledge: tuple[str, ...], index: KnowledgeIndex | None, reach: Reach) -> None:
        """``index`` is None for knowledge that is read whole."""
        self._knowledge = knowledge
        self._reach = reach
        self._index = index
        self._read: dict[int, set[tuple[int, int]]] = {}
        self._selected: dict[str, tuple[str, ...]] = {}

    def select(self, reading: ReadText) -> tuple[str, ...]:
        """The passages to compare a reading with: all, or the parts of long knowledge that its sentences are about."""
        return self.select_for(reading.text)

    def select_for(self, text: str) -> tuple[str, ...]:
        """``select`` for a text of one or more sentences."""
        if self._index is None:
            return self._knowledge
        if text not in self._selected:
            excerpt = self._index.find([sentence.text for sentence in sentences(text)], self._reach.excerpt)
            for part in excerpt.ranges:
                self._read.setdefault(part.passage, set()).add((part.start, part.end))
            self._selected[text] = excerpt.passages
        return self._selected[text]

    def select_all(self, whole: ReadText) -> tuple[str, ...]:
        """The parts of long knowledge that a response is about, window by window; each once."""
        if self._index is None:
            return self._knowledge
        for part in cut_reading(whole, WINDOW_SIZE):
            self.select(part)
        return tuple(self._knowledge[part.passage][part.start : part.end] for part in self.ranges)

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
