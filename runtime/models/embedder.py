"""Contextual token vectors of texts of any length, and the matches between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import EmbedderRole
from ..calls import CountTokens, Embed, Embedded, Read, TokenCounts
from ..errors import GroundwireError, ModelError
from ..ort.session import DeviceProfile, Graph, forward
from ..texts.tokenization import OwnedWindow, TextEncoder
from ..texts.unread import check_readable
from .graphs import load_graph, prepare_graph

BLOCK_COLUMNS = 4096
"""Columns of a similarity table that are held at once: 16 KiB per token of the other side."""


class EmbedWindow(NamedTuple):
    """A window of the text of one call."""

    call: int
    part: OwnedWindow


class Embedder:
    """An encoder graph with its tokenizer."""

    def __init__(self, role: EmbedderRole, session: Graph, encoder: TextEncoder, profile: DeviceProfile) -> None:
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile

    @classmethod
    def load(cls, bundle: Bundle, role: EmbedderRole, profile: DeviceProfile) -> Embedder:
        """Open the role's graph and tokenizer."""
        session = load_graph(bundle, role, profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        prepare_graph(self._session)

    def run(
        self, calls: Sequence[Embed | CountTokens], max_windows: int
    ) -> list[Embedded | TokenCounts | GroundwireError]:
        """One result per call; a call whose text cannot be read gets its error instead."""
        out: dict[int, Embedded | TokenCounts | GroundwireError] = {}
        windows: list[EmbedWindow] = []
        for index, call in enumerate(calls):
            try:
                if isinstance(call, CountTokens):
                    out[index] = self.count_tokens(call)
                else:
                    windows += [EmbedWindow(index, part) for part in self._split_text(call, max_windows)]
            except GroundwireError as error:
                out[index] = error
        vectors: dict[int, NDArray[np.float32]] = {}
        inputs = [window.part.window for window in windows]
        for rows, _, (hidden,) in forward(self._session, inputs, self._role.pad_id, self._profile):
            for row, states in zip(rows.tolist(), hidden, strict=True):
                begin, end = windows[row].part.owned
                vectors[row] = unit(states[begin:end])
        rows_of: dict[int, list[int]] = {}
        for row, window in enumerate(windows):
            rows_of.setdefault(window.call, []).append(row)
        for index, call_rows in rows_of.items():
            call = calls[index]
            assert isinstance(call, Embed)
            out[index] = join_windows(
                call, [windows[row].part for row in call_rows], [vectors[row] for row in call_rows]
            )
        return [out[index] for index in range(len(calls))]

    def count_tokens(self, call: CountTokens) -> TokenCounts:
        """Document frequencies; texts longer than a window are counted in full."""
        counts: Counter[int] = Counter()
        for text in call.texts:
            counts.update(set(self._encoder.encode_ids(text)))
        return TokenCounts(len(call.texts), dict(counts))

    def _split_text(self, call: Embed, max_windows: int) -> list[OwnedWindow]:
        parts = self._encoder.encode_parts(call.text, self._role.stride, max_windows)
        check_readable("text", parts[0].window.unread[0], len(call.text))
        return parts


def join_windows(
    call: Embed, parts: Sequence[OwnedWindow], vectors: Sequence[NDArray[np.float32]]
) -> Embedded | GroundwireError:
    """Join the tokens that each window owns, in the order of the text; ``vectors`` are theirs alone."""
    joined = np.concatenate(vectors)
    if not np.isfinite(joined).all():
        return ModelError("The embedder gave vectors without a direction (not finite, or zero); its graph is broken.")
    joined.setflags(write=False)  # requests share it through the cache
    columns = [(part.window, range(*part.owned)) for part in parts]
    return Embedded(
        vectors=joined,
        ids=tuple(window.ids[i] for window, owned in columns for i in owned),
        offsets=tuple(window.offsets[i] for window, owned in columns for i in owned),
        special=tuple(window.sequence_ids[i] is None for window, owned in columns for i in owned),
        read=Read(len(parts), len(call.text) - parts[0].window.unread[0].characters, len(call.text)),
    )


def unit(states: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """The rows of ``states`` [T, D] scaled to length 1; NaN for a row that has no direction."""
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
    left_best = np.full(len(left), -1.0, dtype=np.float32)
    right_best = np.empty(len(right), dtype=np.float32)
    for start in range(0, len(right), BLOCK_COLUMNS):
        table = left @ right[start : start + BLOCK_COLUMNS].T
        np.maximum(left_best, table.max(axis=1), out=left_best)
        right_best[start : start + BLOCK_COLUMNS] = table.max(axis=0)
    # Rounding may carry the product of a vector with itself past 1.
    return np.minimum(left_best, 1.0, out=left_best), np.minimum(right_best, 1.0, out=right_best)
