"""The training examples of the reader: groups of two rows that differ in little, from every source."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

from ..common.corpus import word_coverage
from ..common.loop import Row
from ..compact.multitask_examples import ATTEMPTS, CLAIM_TOKENS, WORDS_PER_TOKEN, MultitaskExample, MultitaskExamples
from ..synthesis.pairs import NEAR
from ..tools import ToolPairs, read_turns
from ..worlds import Worlds
from ..written import WrittenPairs
from .as_used import cut_responses, select_excerpts
from .composition import surround
from .contrasts import SETS, ContrastRows, read_contrasts
from .rows import AnswerRow, encode_answer, label_ranges
from .tools_source import draw_tool_pair
from .worlds_source import draw_world_pair, load_worlds
from .written_source import draw_written_pair

SHARES = {
    "worlds": 0.4,
    "written": 0.55,
    "tools": 0.25,
    **{name: definition.share for name, definition in SETS.items()},
    **{"minimal": 0.16, "questions": 0.09, "facts": 0.07, "public": 0.32},
    **{"harmless": 0.025, "made": 0.01, "comparison": 0.01, "verifiability": 0.025},
}
"""Shares of the groups, by source; they are divided by their sum over the sources that are there."""
WINDOWS = {80: 0.35, 128: 0.3, 192: 0.15, 320: 0.2}
"""Tokens of the rows of a group at most, and the share of the groups."""
LONGER_WINDOWS = {160: 0.4, 224: 0.3, 320: 0.3}
"""Those of the groups of written documents and of tools' results, which are longer."""
LONGER = frozenset({"written", "tools"})
LONG_TOKENS = max(WINDOWS)
EXCERPTED, EXCERPT_TOKENS = 0.12, 448
"""Share of the groups that read an excerpt of long knowledge, and the tokens of their rows at most."""
OTHER_PASSAGES = (3, 9)
"""Fewest and most passages of other documents in such knowledge, beside that of another group of the source."""
CUT = 0.25
"""Share of the groups whose long responses are cut as a window or a stream has them."""
SURROUNDED = 0.4
"""Share of the groups whose answers get sentences around them."""
SURROUNDING_TOKENS = 48
"""Tokens that such sentences take, about."""
WORLD_WORDS_PER_TOKEN, WORLD_WORDS = 0.56, 40
"""Words of the worlds, which are full of numbers, and the fewest that they are drawn with."""
WRITTEN_WORDS_PER_TOKEN = 0.62
"""Words of the written documents."""
DISTRACTED = 0.6
"""Share of the groups with long windows that get another passage beside their knowledge."""
ASIDE_WORDS = 6
"""Words of a sentence of chat beside an answer."""
SPARE_WORDS = 30
"""Words of the shortest other passage."""


@dataclass(frozen=True, slots=True)
class _Sources:
    contrasts: dict[str, ContrastRows]
    worlds: Worlds
    written: WrittenPairs
    tools: ToolPairs | None
    asides: frozenset[str]


class ReaderExamples(MultitaskExamples):
    """Draws the reader's rows: the sources of the multi-task NLI model, public contrasts, worlds and
    written documents."""

    _sources: _Sources

    @classmethod
    def read(cls, data: Path, split: str = "train") -> ReaderExamples:
        """From a directory of training sets; ``split`` is train, or dev for unseen articles, triples and worlds."""
        examples = super().read(data, split)
        assert isinstance(examples, ReaderExamples)
        chat = examples._sentences.non_verifiable
        asides = frozenset(text.rstrip(".! ").lower() for text in chat)
        contrasts = read_contrasts(data) if split == "train" else {}
        turns = read_turns(data, split)
        tools = ToolPairs(turns) if turns else None
        examples._sources = _Sources(contrasts, load_worlds(split), WrittenPairs.read(split), tools, asides)
        return examples

    @property
    def shares(self) -> dict[str, float]:
        """The share of the groups, by source that is there; they need not add up to 1."""
        tools = ("tools",) if self._sources.tools is not None else ()
        present = {*self._draws, *self._sources.contrasts, *tools, "worlds", "written"}
        return {name: share for name, share in SHARES.items() if name in present}

    def make(self, _: int, rng: random.Random) -> tuple[Row, Row]:
        """The rows of a group of a source drawn by its share; it depends on ``rng`` alone."""
        shares = self.shares
        return self.draw(rng.choices(list(shares), list(shares.values()))[0], rng)

    def draw(self, source: str, rng: random.Random) -> tuple[Row, Row]:
        """The rows of a group of ``source``, as long as the window that is drawn for it, or shorter."""
        windows = LONGER_WINDOWS if source in LONGER else WINDOWS
        limit = rng.choices(list(windows), list(windows.values()))[0]
        excerpted = rng.random() < EXCERPTED
        for attempt in range(ATTEMPTS):
            group = self.draw_answers(source, limit, rng)
            if rng.random() < CUT:
                group = cut_responses(group, rng)
            if excerpted:
                limit = EXCERPT_TOKENS
                group = select_excerpts(group, self._draw_others(source, rng), rng)
            last = attempt == ATTEMPTS - 1
            first, second = (encode_answer(self._tokens, answer, limit, cut=last) for answer in group)
            if first is not None and second is not None:
                return first, second
        raise AssertionError("the last attempt is cut to the window")

    def draw_answers(self, source: str, limit: int, rng: random.Random) -> tuple[AnswerRow, AnswerRow]:
        """Draw the answers of a group of ``source`` for windows of ``limit`` tokens, which they may exceed."""
        sources = self._sources
        if source == "worlds":
            return draw_world_pair(sources.worlds, max(WORLD_WORDS, int(limit * WORLD_WORDS_PER_TOKEN)), rng)
        if source == "written":
            return draw_written_pair(sources.written, int(limit * WRITTEN_WORDS_PER_TOKEN), rng)
        if source == "tools" and sources.tools is not None:
            return draw_tool_pair(sources.tools, limit, rng)
        surrounded = rng.random() < SURROUNDED
        room = limit - CLAIM_TOKENS - (SURROUNDING_TOKENS if surrounded else 0)
        words = int(max(room, CLAIM_TOKENS) * WORDS_PER_TOKEN)
        if source in sources.contrasts:
            group = sources.contrasts[source].draw(rng)
        else:
            first, second = self._draws[source](words, rng)
            group = self.make_answer(first), self.make_answer(second)
        if limit == LONG_TOKENS and rng.random() < DISTRACTED:
            group = self._add_passage(group, words, rng)
        return surround(group, self._draw_aside, rng) if surrounded else group

    def _draw_others(self, source: str, rng: random.Random) -> list[str]:
        """Draw passages to find knowledge among: that of another group, and written ones."""
        passages = [self.draw_answers(source, LONG_TOKENS, rng)[0].example.first]
        for _ in range(rng.randint(*OTHER_PASSAGES)):
            passages.append(rng.choice(rng.choice(self._sources.written.documents).passages))
        rng.shuffle(passages)
        return passages

    def make_answer(self, example: MultitaskExample) -> AnswerRow:
        """The answer of an example, with the sentence labels that follow from its own."""
        return AnswerRow(example, label_ranges(example, self._sources.asides))

    def _draw_aside(self, rng: random.Random) -> str:
        """Draw a response that states nothing; longer sentences of chat may state a fact of the speaker."""
        while True:
            text, kind = self._harmless.draw("", rng)
            if kind != "chat" or len(text.split()) <= ASIDE_WORDS:
                return text

    def _add_passage(
        self, group: tuple[AnswerRow, AnswerRow], words: int, rng: random.Random
    ) -> tuple[AnswerRow, AnswerRow]:
        """Put the same other passage before or after the knowledge of both, if there is room for one."""
        if any(answer.example.second is None for answer in group):
            return group
        spare = words - max(len(answer.example.first.split()) for answer in group)
        if spare < SPARE_WORDS:
            return group
        passage, _ = self._minimal.draw_knowledge(spare, rng)
        claims = (answer.example.second or "" for answer in group)
        if len(passage.split()) > spare or any(word_coverage(claim, passage) >= NEAR for claim in claims):
            return group
        form = "{0} {1}" if rng.random() < 0.5 else "{1} {0}"
        first, second = (
            replace(answer, example=replace(answer.example, first=form.format(passage, answer.example.first)))
            for answer in group
        )
        return first, second
