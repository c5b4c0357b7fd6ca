"""Token classification: a label for every token of a text, given premises of any length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..bundle import Bundle
from ..calls import ClassifiedToken, ClassifiedTokens, ClassifyTokens, Read
from ..errors import BundleError, GroundwireError, ModelError
from ..manifest import TokenClassifierRole
from ..numerics import softmax
from ..ort.forward import forward
from ..ort.session import DeviceProfile, Session
from ..tokenization import TextEncoder, Window
from ..unread import NOTHING, read_pair
from .classifier import PremiseWindow


class TokenClassifier:
    """A token classifier with its tokenizer and label map."""

    def __init__(
        self, role: TokenClassifierRole, session: Session, encoder: TextEncoder, profile: DeviceProfile
    ) -> None:
        if role.supported not in role.labels:
            raise BundleError(f"supported is {role.supported!r}, a label the role lacks; it has {role.labels}.")
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile

    @classmethod
    def load(cls, bundle: Bundle, role: TokenClassifierRole, profile: DeviceProfile) -> TokenClassifier:
        """Open the role's graph and tokenizer."""
        session = Session.load(bundle.file(role.graph), profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    def run(self, calls: Sequence[ClassifyTokens], max_windows: int) -> list[ClassifiedTokens | GroundwireError]:
        """The labelled tokens of each call's text; a call whose texts cannot be read gets its error instead."""
        out: dict[int, ClassifiedTokens | GroundwireError] = {}
        windows: list[PremiseWindow] = []
        reads: dict[int, Read] = {}
        for index, call in enumerate(calls):
            try:
                of_call, reads[index] = self._split_premises(index, call, max_windows)
                windows += of_call
            except GroundwireError as error:
                out[index] = error
        tables: list[list[tuple[Window, NDArray[np.float64]]]] = [[] for _ in calls]
        for rows, lengths, (logits,) in forward(
            self._session, [window.window for window in windows], self._role.pad_id, self._profile
        ):
            for row, length, table in zip(rows, lengths, logits, strict=True):
                tables[windows[row].call].append((windows[row].window, softmax(table[:length])))
        for index, call in enumerate(calls):
            if index not in out:
                out[index] = self.choose_labels(call, tables[index], reads[index])
        return [out[index] for index in range(len(calls))]

    def choose_labels(
        self, call: ClassifyTokens, windows: Sequence[tuple[Window, NDArray[np.float64]]], read: Read
    ) -> ClassifiedTokens | GroundwireError:
        """The probabilities of each token in the window that supports it most: one supporting passage is enough.

        ``windows`` are the call's windows with their probabilities [tokens, labels].
        """
        tables, offsets = [], None
        for window, table in windows:
            first, last = window.tokens_of(1)
            tables.append(table[first : last + 1])
            offsets = window.offsets[first : last + 1]
        if offsets is None or not offsets:
            return ModelError(f"The text {call.text[:40]!r} makes no tokens for {call.role!r}; pass a text with words.")
        stacked = np.stack(tables)
        if not np.isfinite(stacked).all():
            return ModelError(
                f"The token classifier of {call.role!r} gave numbers that are not finite; its graph is broken."
            )
        best = stacked[:, :, self._role.labels.index(self._role.supported)].argmax(axis=0)
        chosen = stacked[best, np.arange(stacked.shape[1])]
        tokens = tuple(
            ClassifiedToken(start, end, tuple(row.tolist())) for (start, end), row in zip(offsets, chosen, strict=True)
        )
        return ClassifiedTokens(self._role.labels, tokens, read)

    def _split_premises(self, index: int, call: ClassifyTokens, max_windows: int) -> tuple[list[PremiseWindow], Read]:
        windows: list[PremiseWindow] = []
        response = knowledge = NOTHING
        for premise in call.premises:
            fields = {"premise": premise, "hypothesis": call.text}
            first, second = self._encoder.render(self._role.template, fields)
            if second != call.text:
                raise BundleError(
                    f"The template of {call.role!r} must have the classified text alone as its second text: "
                    "{hypothesis}."
                )
            encoded = self._encoder.encode_windows(first, second, 0, self._role.stride, max_windows, len(windows))
            windows += [PremiseWindow(index, window) for window in encoded]
            response, knowledge = encoded[0].unread[1], knowledge.join(encoded[0].unread[0])
        length = sum(map(len, call.premises))
        return windows, read_pair(response, len(call.text), knowledge, length, len(windows))
