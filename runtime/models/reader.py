"""Reads an answer against premises of any length: one pass labels the whole, its sentences and its tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import ReaderHead, ReaderRole
from ..calls import AnswerRead, ClassifiedToken, Read, ReadAnswer
from ..errors import GroundwireError, InvalidRequest, ModelError
from ..ort.session import Array, DeviceProfile, Graph, softmax
from ..protocol import Outcome
from ..texts.tokenization import TextEncoder, Window
from ..texts.unread import read_pair
from .graphs import find_output, load_graph, prepare_graph, run_windows

PREMISE_END = "\n"
"""Between passages that are read together."""
HISTORY_SHARE = 4
"""The history takes at most this part of the window, 1 / 4."""


class AnswerWindows(NamedTuple):
    """A call as model inputs, whose type ids number the sentences from 1."""

    windows: list[Window]
    answer_start: int
    """Where the answer begins in the second text of a window."""
    read: Read


class AnswerReader:
    """A reader graph with its tokenizer and heads."""

    def __init__(self, role: ReaderRole, session: Graph, encoder: TextEncoder, profile: DeviceProfile) -> None:
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile
        self._outputs = {name: find_output(session.outputs, name, role.graph) for name in role.heads}
        self._of_unit = {head.unit: name for name, head in role.heads.items() if head.unit != "answer"}

    @classmethod
    def load(cls, bundle: Bundle, role: ReaderRole, profile: DeviceProfile) -> AnswerReader:
        """Open the role's graph and tokenizer."""
        session = load_graph(bundle, role, profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        prepare_graph(self._session)

    def run(self, calls: Sequence[ReadAnswer], max_windows: int) -> list[Outcome]:
        """One record per call; a call whose texts cannot be read gets its error instead."""
        splits: list[AnswerWindows | GroundwireError] = []
        for call in calls:
            try:
                splits.append(self.split(call, max_windows))
            except GroundwireError as error:
                splits.append(error)
        windows = [[] if isinstance(split, GroundwireError) else split.windows for split in splits]
        outputs = run_windows(self._session, windows, self._role.pad_id, self._profile)
        return [
            split if isinstance(split, GroundwireError) else self.conclude(call, split, of_call)
            for call, split, of_call in zip(calls, splits, outputs, strict=True)
        ]

    def split(self, call: ReadAnswer, max_windows: int) -> AnswerWindows:
        """The windows of a call, one where premises, history and answer fit; TooLong for more than ``max_windows``."""
        for (start, end), following in zip(call.sentences, (*call.sentences[1:], (len(call.answer),) * 2), strict=True):
            if not 0 <= start < end <= following[0]:
                raise InvalidRequest(
                    f"The sentence {start}–{end} is not a range of an answer of {len(call.answer)} characters, or it "
                    f"overlaps the range {following[0]}–{following[1]}; give disjoint ranges in the order of the text."
                )
        history = "".join(f"{turn}{self._role.turn_end}" for turn in self._choose_turns(call.history))
        fields = {"premise": PREMISE_END.join(call.premises), "history": history, "hypothesis": call.answer}
        first, second = self._encoder.render(self._role.template, fields)
        assert second is not None
        start = len(second) - len(call.answer)
        encoded = self._encoder.encode_windows(first, second, 0, self._role.stride, max_windows)
        knowledge, response = encoded[0].unread
        numbered = [window._replace(type_ids=_number_sentences(window, start, call.sentences)) for window in encoded]
        total = sum(map(len, call.premises))
        return AnswerWindows(numbered, start, read_pair(response, len(second), knowledge, total, len(encoded)))

    def conclude(self, call: ReadAnswer, split: AnswerWindows, outputs: Sequence[Sequence[Array]]) -> Outcome:
        """The record of a call, from the outputs of the graph for each of its windows, padding included."""
        tables = {
            name: [
                softmax(of_window[output][: len(window.ids)] if head.unit != "answer" else of_window[output])
                for window, of_window in zip(split.windows, outputs, strict=True)
            ]
            for name, head in self._role.heads.items()
            for output in (self._outputs[name],)
        }
        if not all(np.isfinite(table).all() for of_head in tables.values() for table in of_head):
            return ModelError(f"The reader {call.role!r} gave numbers that are not finite; its graph is broken.")
        heads = self._role.heads
        sentence_head, token_head = self._of_unit["sentence"], self._of_unit["token"]
        positions = [_find_answer(window, split.answer_start) for window in split.windows]
        tokens = choose_supporting(
            heads[token_head],
            [table[of_answer] for table, of_answer in zip(tables[token_head], positions, strict=True)],
        )
        offsets = [split.windows[0].offsets[index] for index in positions[0]]
        firsts = [_find_firsts(window) for window in split.windows]
        present = sorted(firsts[0])
        by_window = [
            table[[first[number] for number in present]]
            for table, first in zip(tables[sentence_head], firsts, strict=True)
        ]
        chosen = dict(zip(present, choose_supporting(heads[sentence_head], by_window), strict=True))
        return AnswerRead(
            {
                name: tuple(choose_supporting(head, [table[None] for table in tables[name]])[0].tolist())
                for name, head in heads.items()
                if head.unit == "answer"
            },
            tuple(tuple(chosen[number].tolist()) if number in chosen else () for number in range(len(call.sentences))),
            tuple(
                ClassifiedToken(start - split.answer_start, end - split.answer_start, tuple(row.tolist()))
                for (start, end), row in zip(offsets, tokens, strict=True)
            ),
            split.read,
        )

    def _choose_turns(self, history: Sequence[str]) -> Sequence[str]:
        """The last turns that take no more than their part of the window."""
        room = self._encoder.max_tokens // HISTORY_SHARE
        for count, turn in enumerate(reversed(history)):
            # A character is a token at most.
            room -= len(self._encoder.encode_plain(turn[: 8 * self._encoder.max_tokens]).ids) + 1
            if room < 0:
                return history[len(history) - count :]
        return history


def _number_sentences(window: Window, answer_start: int, sentences: Sequence[tuple[int, int]]) -> list[int]:
    """For each token the number of the sentence that it begins in, from 1; 0 for tokens in none."""
    starts = [start for start, _ in sentences]
    numbers = [0] * len(window.ids)
    for index in _find_answer(window, answer_start):
        begin = window.offsets[index][0] - answer_start
        number = bisect_right(starts, begin)
        if number and begin < sentences[number - 1][1]:
            numbers[index] = number
    return numbers


def _find_answer(window: Window, answer_start: int) -> list[int]:
    """The positions of the answer's tokens."""
    first, last = window.tokens_of(1)
    return [index for index in range(first, last + 1) if window.offsets[index][0] >= answer_start]


def _find_firsts(window: Window) -> dict[int, int]:
    """The position of the first token of each sentence, by the sentence's number from 0, for sentences with tokens."""
    positions = range(len(window.ids) - 1, -1, -1)
    return {window.type_ids[index] - 1: index for index in positions if window.type_ids[index]}


def choose_supporting(head: ReaderHead, tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The probabilities [N, L] of each row in the window that supports it most, of those in all windows."""
    if len(tables) == 1:
        return tables[0]
    stacked = np.stack(tables)
    supported = [head.labels.index(label) for label in head.supported]
    best = stacked[:, :, supported].sum(axis=2).argmax(axis=0)
    chosen: NDArray[np.float64] = stacked[best, np.arange(stacked.shape[1])]
    return chosen
