"""Extractive question answering over passages of any length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..bundles.bundle import Bundle
from ..bundles.manifest import ExtractiveQARole
from ..calls import Answer, Answered, AnswerRule, Read
from ..errors import GroundwireError, ModelError
from ..ort.session import Array, DeviceProfile, Graph, forward
from ..texts.characters import is_space
from ..texts.tokenization import TextEncoder, Window
from ..texts.unread import NOTHING_UNREAD, check_readable
from .graphs import load_graph, prepare_graph

MAX_ANSWER_TOKENS = 32
"""Longest answer of the joint rule."""

Status: TypeAlias = Literal["answered", "none", "empty"]


class PassageWindow(NamedTuple):
    """A window of one passage of a question."""

    question: int
    """Index of the question with its passages, which several calls may share."""
    passage: int
    window: Window


class WindowAnswer(NamedTuple):
    """The answer of one window: token positions, and the answer's logits minus the logits of "no answer"."""

    status: Status
    start: int
    end: int
    score: float


class ExtractiveQA:
    """An extractive QA graph with its tokenizer."""

    def __init__(self, role: ExtractiveQARole, session: Graph, encoder: TextEncoder, profile: DeviceProfile) -> None:
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile

    @classmethod
    def load(cls, bundle: Bundle, role: ExtractiveQARole, profile: DeviceProfile) -> ExtractiveQA:
        """Open the role's graph and tokenizer."""
        session = load_graph(bundle, role, profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        prepare_graph(self._session)

    def run(self, calls: Sequence[Answer], max_windows: int) -> list[Answered | GroundwireError]:
        """One answer per call; a call whose texts cannot be read gets its error instead.

        Calls that differ in their rule alone share the runs of the graph.
        """
        by_question: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for index, call in enumerate(calls):
            by_question.setdefault((call.question, call.passages), []).append(index)
        out: dict[int, Answered | GroundwireError] = {}
        windows: list[PassageWindow] = []
        questions = list(by_question.values())
        rules = [{calls[index].rule for index in indices} for indices in questions]
        for question, indices in enumerate(questions):
            try:
                windows += self._split_passages(question, calls[indices[0]], max_windows)
            except GroundwireError as error:
                out |= dict.fromkeys(indices, error)
        answers: list[dict[AnswerRule, list[tuple[PassageWindow, WindowAnswer]]]] = [
            {rule: [] for rule in question_rules} for question_rules in rules
        ]
        inputs = [window.window for window in windows]
        for rows, lengths, (start, end) in forward(self._session, inputs, self._role.pad_id, self._profile):
            batch = [windows[row] for row in rows]
            for row in _find_broken(start, end, lengths):
                broken = ModelError("The extractive QA model gave numbers that are not finite; its graph is broken.")
                out |= dict.fromkeys(questions[batch[row].question], broken)
            for rule, choose in _RULES.items():
                if any(rule in rules[window.question] for window in batch):
                    for window, answer in zip(batch, choose(start, end, lengths, batch), strict=True):
                        if rule in rules[window.question]:
                            answers[window.question][rule].append((window, answer))
        for indices, by_rule in zip(questions, answers, strict=True):
            for index in indices:
                if index not in out:
                    out[index] = choose_answer(calls[index], by_rule[calls[index].rule])
        return [out[index] for index in range(len(calls))]

    def _split_passages(self, question: int, call: Answer, max_windows: int) -> list[PassageWindow]:
        windows: list[PassageWindow] = []
        unread = NOTHING_UNREAD
        for passage_index, passage in enumerate(call.passages):
            encoded = self._encoder.encode_windows(
                call.question, passage, 1, self._role.stride, max_windows, len(windows)
            )
            windows += [PassageWindow(question, passage_index, window) for window in encoded]
            unread = unread.join(windows[-1].window.unread[1])
        check_readable("passages", unread, sum(map(len, call.passages)))
        return windows


def _find_broken(start: Array, end: Array, lengths: NDArray[np.int64]) -> Sequence[int]:
    """The rows with a number that is not finite, padding left out."""
    if np.isfinite(start).all() and np.isfinite(end).all():
        return ()
    padding = np.arange(start.shape[1]) >= lengths[:, None]
    finite = ((np.isfinite(start) & np.isfinite(end)) | padding).all(axis=1)
    return np.flatnonzero(~finite).tolist()


def choose_answer(call: Answer, answers: Sequence[tuple[PassageWindow, WindowAnswer]]) -> Answered:
    """The best answer of all windows by score; "none" only when every window has no answer."""
    total = sum(len(passage) for passage in call.passages)
    unread = {source.passage: source.window.unread[1].characters for source, _ in answers}
    read = Read(windows=len(answers), characters=total - sum(unread.values()), total=total)
    texts = [
        (source, answer, _get_text(call, source, answer)) for source, answer in answers if answer.status == "answered"
    ]
    # Windows come back in batch order; ties go to the earlier passage and position.
    ranked = sorted(
        ((source, answer, text) for source, answer, text in texts if text),
        key=lambda item: (-item[1].score, item[0].passage, item[0].window.offsets[item[1].start]),
    )
    if not ranked:
        status: Status = "none" if all(answer.status == "none" for _, answer in answers) else "empty"
        score = max((answer.score for _, answer in answers), default=0.0)
        return Answered(status, "", -1, -1, -1, score, read)
    source, answer, text = ranked[0]
    window, passage = source.window, call.passages[source.passage]
    if window.sequence_ids[answer.start] == 1:
        begin, stop = _trim(passage, window.offsets[answer.start][0], window.offsets[answer.end][1])
        return Answered("answered", passage[begin:stop], source.passage, begin, stop, answer.score, read)
    return Answered("answered", text, source.passage, -1, -1, answer.score, read)


def _get_text(call: Answer, source: PassageWindow, answer: WindowAnswer) -> str:
    """The words of a range; none when it touches a special token, as such a range does not answer."""
    if None in source.window.sequence_ids[answer.start : answer.end + 1]:
        return ""
    return source.window.text(answer.start, answer.end, (call.question, call.passages[source.passage]))


def _choose_independent(
    start: Array, end: Array, lengths: NDArray[np.int64], batch: Sequence[PassageWindow]
) -> list[WindowAnswer]:
    starts, ends, scores, nulls = _native.argmax_spans(start, end, lengths)
    out = []
    for a, b, score in zip(starts.tolist(), ends.tolist(), (scores - nulls).tolist(), strict=True):
        status: Status = "none" if a == b == 0 else "empty" if b < a else "answered"
        out.append(WindowAnswer(status, a, b, score))
    return out


def _choose_joint(
    start: Array, end: Array, lengths: NDArray[np.int64], batch: Sequence[PassageWindow]
) -> list[WindowAnswer]:
    limits = np.array([source.window.tokens_of(1) for source in batch], dtype=np.int64)
    first, last = np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])
    starts, ends, scores, nulls = _native.best_spans(start, end, first, last, MAX_ANSWER_TOKENS, 1)
    out = []
    for a, b, score in zip(starts[:, 0].tolist(), ends[:, 0].tolist(), (scores[:, 0] - nulls).tolist(), strict=True):
        out.append(WindowAnswer("answered" if a >= 0 and score > 0 else "none", a, b, score))
    return out


_RULES: Mapping[
    AnswerRule, Callable[[Array, Array, NDArray[np.int64], Sequence[PassageWindow]], list[WindowAnswer]]
] = {
    "independent": _choose_independent,
    "joint": _choose_joint,
}


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    # Some tokenizers count the space before a word as part of it.
    while start < end and is_space(text[start]):
        start += 1
    while start < end and is_space(text[end - 1]):
        end -= 1
    return start, end
