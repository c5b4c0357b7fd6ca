"""Extractive question answering over passages of any length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime import _native
from groundwire.runtime.bundle import Bundle, ExtractiveQARole
from groundwire.runtime.calls import Answer, Answered, AnswerRule, Read
from groundwire.runtime.errors import GroundwireError, ModelError, TooLong
from groundwire.runtime.ort.forward import forward
from groundwire.runtime.ort.session import Array, DeviceProfile, Session
from groundwire.runtime.tokenization import TextEncoder, Window

MAX_ANSWER_TOKENS = 32
"""Longest answer of the joint rule."""

Status: TypeAlias = Literal["answered", "none", "empty"]


class Piece(NamedTuple):
    """A window of one passage of a text."""

    text: int
    """Which of the texts: a question and its passages, however many calls ask it."""
    passage: int
    window: Window


class Found(NamedTuple):
    """What one window says: token positions, and the answer's logits minus those of "no answer"."""

    status: Status
    start: int
    end: int
    score: float


class ExtractiveQA:
    """A reader graph with its tokenizer."""

    def __init__(self, role: ExtractiveQARole, session: Session, encoder: TextEncoder, profile: DeviceProfile) -> None:
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile

    @classmethod
    def load(cls, bundle: Bundle, role: ExtractiveQARole, profile: DeviceProfile) -> ExtractiveQA:
        """Open the role's graph and tokenizer."""
        session = Session.load(bundle.file(role.graph), profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    def run(self, calls: Sequence[Answer], max_windows: int) -> list[Answered | GroundwireError]:
        """One answer per call; a call whose texts cannot be read gets its error instead.

        Calls that differ in their rule alone share what the graph says.
        """
        asked: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for index, call in enumerate(calls):
            asked.setdefault((call.question, call.passages), []).append(index)
        out: dict[int, Answered | GroundwireError] = {}
        pieces: list[Piece] = []
        texts = list(asked.values())
        rules = [{calls[index].rule for index in text} for text in texts]
        for number, text in enumerate(texts):
            try:
                pieces += self._pieces(number, calls[text[0]], max_windows)
            except GroundwireError as error:
                out |= dict.fromkeys(text, error)
        found: list[dict[AnswerRule, list[tuple[Piece, Found]]]] = [{rule: [] for rule in each} for each in rules]
        windows = [piece.window for piece in pieces]
        for rows, lengths, (start, end) in forward(self._session, windows, self._role.pad_id, self._profile):
            batch = [pieces[row] for row in rows]
            for piece, length, *logits in zip(batch, lengths, start, end, strict=True):
                if not all(np.isfinite(row[:length]).all() for row in logits):
                    broken = ModelError("The reader gave numbers that are not finite; its graph is broken.")
                    out |= dict.fromkeys(texts[piece.text], broken)
            for rule, decide in _RULES.items():
                if any(rule in rules[piece.text] for piece in batch):
                    for piece, one in zip(batch, decide(start, end, lengths, batch), strict=True):
                        if rule in rules[piece.text]:
                            found[piece.text][rule].append((piece, one))
        for text, own in zip(texts, found, strict=True):
            for index in text:
                if index not in out:
                    out[index] = fold(calls[index], own[calls[index].rule])
        return [out[index] for index in range(len(calls))]

    def _pieces(self, text: int, call: Answer, max_windows: int) -> list[Piece]:
        pieces: list[Piece] = []
        for number, passage in enumerate(call.passages):
            for window in self._encoder.windows(call.question, passage, 1, self._role.stride):
                pieces.append(Piece(text, number, window))
            if len(pieces) > max_windows:
                raise TooLong(
                    f"The knowledge makes more than {max_windows} windows of {self._encoder.max_tokens} tokens. "
                    "Retrieve fewer passages, or raise Options.max_windows."
                )
        return pieces


def fold(call: Answer, found: Sequence[tuple[Piece, Found]]) -> Answered:
    """The best answer over all windows by score; "none" only when every window says so."""
    total = sum(len(passage) for passage in call.passages)
    read = Read(windows=len(found), characters=total, total=total)
    # A range over special tokens or blanks alone says nothing, so it must not outdo the words of another window.
    worded = [(piece, one, _words(call, piece, one)) for piece, one in found if one.status == "answered"]
    # Windows come back in batch order; ties go to the earlier passage and place.
    answers = sorted(
        ((piece, one, text) for piece, one, text in worded if text),
        key=lambda item: (-item[1].score, item[0].passage, item[0].window.offsets[item[1].start]),
    )
    if not answers:
        status: Status = "none" if all(one.status == "none" for _, one in found) else "empty"
        score = max((one.score for _, one in found), default=0.0)
        return Answered(status, "", -1, -1, -1, score, read)
    piece, one, text = answers[0]
    window, passage = piece.window, call.passages[piece.passage]
    first, last = window.tokens_of(1)
    if first <= one.start <= one.end <= last:
        begin, stop = _trim(passage, window.offsets[one.start][0], window.offsets[one.end][1])
        return Answered("answered", passage[begin:stop], piece.passage, begin, stop, one.score, read)
    return Answered("answered", text, piece.passage, -1, -1, one.score, read)


def _words(call: Answer, piece: Piece, one: Found) -> str:
    return piece.window.text(one.start, one.end, (call.question, call.passages[piece.passage]))


def _independent(start: Array, end: Array, lengths: NDArray[np.int64], batch: Sequence[Piece]) -> list[Found]:
    starts, ends, scores, nulls = _native.argmax_spans(start, end, lengths)
    out = []
    for a, b, score in zip(starts.tolist(), ends.tolist(), (scores - nulls).tolist(), strict=True):
        status: Status = "none" if a == b == 0 else "empty" if b < a else "answered"
        out.append(Found(status, a, b, score))
    return out


def _joint(start: Array, end: Array, lengths: NDArray[np.int64], batch: Sequence[Piece]) -> list[Found]:
    limits = np.array([piece.window.tokens_of(1) for piece in batch], dtype=np.int64)
    first, last = np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])
    starts, ends, scores, nulls = _native.best_spans(start, end, first, last, MAX_ANSWER_TOKENS, 1)
    out = []
    for a, b, score in zip(starts[:, 0].tolist(), ends[:, 0].tolist(), (scores[:, 0] - nulls).tolist(), strict=True):
        out.append(Found("answered" if a >= 0 and score > 0 else "none", a, b, score))
    return out


_RULES: Mapping[AnswerRule, Callable[[Array, Array, NDArray[np.int64], Sequence[Piece]], list[Found]]] = {
    "independent": _independent,
    "joint": _joint,
}


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    # Some tokenizers count the blank before a word as part of it.
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
