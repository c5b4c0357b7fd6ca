"""Contextual token vectors of texts of any length, and the matches between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime.bundle import Bundle, EmbedderRole
from groundwire.runtime.calls import CountTokens, Embed, Embedded, Read, TokenCounts
from groundwire.runtime.errors import GroundwireError, ModelError, TooLong
from groundwire.runtime.ort.forward import forward
from groundwire.runtime.ort.session import DeviceProfile, Session
from groundwire.runtime.tokenization import Part, TextEncoder

BLOCK = 4096
"""Columns of a similarity table that are held at once: 16 KiB per token of the other side."""


class Piece(NamedTuple):
    """A window of the text of one call."""

    call: int
    part: Part


class Embedder:
    """An encoder graph with its tokenizer."""

    def __init__(self, role: EmbedderRole, session: Session, encoder: TextEncoder, profile: DeviceProfile) -> None:
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile

    @classmethod
    def load(cls, bundle: Bundle, role: EmbedderRole, profile: DeviceProfile) -> Embedder:
        """Open the role's graph and tokenizer."""
        session = Session.load(bundle.file(role.graph), profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    def run(
        self, calls: Sequence[Embed | CountTokens], max_windows: int
    ) -> list[Embedded | TokenCounts | GroundwireError]:
        """One result per call; a call whose text cannot be read gets its error instead."""
        out: dict[int, Embedded | TokenCounts | GroundwireError] = {}
        pieces: list[Piece] = []
        for index, call in enumerate(calls):
            try:
                if isinstance(call, CountTokens):
                    out[index] = self.count(call)
                else:
                    pieces += [Piece(index, part) for part in self._parts(call, max_windows)]
            except GroundwireError as error:
                out[index] = error
        vectors: dict[int, NDArray[np.float32]] = {}
        windows = [piece.part.window for piece in pieces]
        for rows, _, (hidden,) in forward(self._session, windows, self._role.pad_id, self._profile):
            for row, states in zip(rows.tolist(), hidden, strict=True):
                begin, end = pieces[row].part.own
                vectors[row] = unit(states[begin:end])
        of_call: dict[int, list[int]] = {}
        for row, piece in enumerate(pieces):
            of_call.setdefault(piece.call, []).append(row)
        for index, own in of_call.items():
            call = calls[index]
            assert isinstance(call, Embed)
            out[index] = join(call, [pieces[row].part for row in own], [vectors[row] for row in own])
        return [out[index] for index in range(len(calls))]

    def count(self, call: CountTokens) -> TokenCounts:
        """Document frequencies; texts longer than a window are counted whole."""
        counts: Counter[int] = Counter()
        for text in call.texts:
            counts.update(set(self._encoder.ids(text)))
        return TokenCounts(len(call.texts), dict(counts))

    def _parts(self, call: Embed, max_windows: int) -> list[Part]:
        parts = self._encoder.parts(call.text, self._role.stride)
        if len(parts) > max_windows:
            raise TooLong(
                f"A text of {len(call.text)} characters makes {len(parts)} windows of {self._encoder.max_tokens} "
                f"tokens; allowed are {max_windows}. Retrieve fewer or shorter passages, or raise Options.max_windows."
            )
        return parts


def join(call: Embed, parts: Sequence[Part], vectors: Sequence[NDArray[np.float32]]) -> Embedded | GroundwireError:
    """The stretches that the windows own, in the order of the text."""
    whole = np.concatenate(vectors)
    if not np.isfinite(whole).all():
        return ModelError("The embedder gave vectors without a direction (not finite, or zero); its graph is broken.")
    whole.setflags(write=False)  # requests share it through the cache
    columns = [(part.window, range(*part.own)) for part in parts]
    return Embedded(
        vectors=whole,
        ids=tuple(window.ids[i] for window, own in columns for i in own),
        offsets=tuple(window.offsets[i] for window, own in columns for i in own),
        special=tuple(window.sequence_ids[i] is None for window, own in columns for i in own),
        read=Read(windows=len(parts), characters=len(call.text), total=len(call.text)),
    )


def unit(states: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """The rows of ``states`` [T, D] at length 1; NaN for a row that has no direction."""
    rows = states.astype(np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def best_matches(
    left: NDArray[np.float32], right: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine of each row's best match on the other side: (of ``left`` [L, D] → [L], of ``right`` [R, D] → [R]).

    The greedy matching of BERTScore (Zhang et al. 2020, section 3). Rows are of length 1; neither side may be empty.
    """
    ours = np.full(len(left), -1.0, dtype=np.float32)
    theirs = np.empty(len(right), dtype=np.float32)
    for start in range(0, len(right), BLOCK):
        table = left @ right[start : start + BLOCK].T
        np.maximum(ours, table.max(axis=1), out=ours)
        theirs[start : start + BLOCK] = table.max(axis=0)
    # Rounding may carry the product of a vector with itself past 1.
    return np.minimum(ours, 1.0, out=ours), np.minimum(theirs, 1.0, out=theirs)
