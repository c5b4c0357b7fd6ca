"""Classification of texts and of their tokens, given premises of any length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import ClassifierRole, TokenClassifierRole
from ..calls import Classified, ClassifiedToken, ClassifiedTokens, Classify, ClassifyTokens, Read
from ..errors import BundleError, GroundwireError, ModelError
from ..ort.session import DeviceProfile, Graph, softmax
from ..protocol import Outcome
from ..texts.tokenization import TextEncoder, Window
from ..texts.unread import NOTHING_UNREAD, read_pair
from .graphs import SplitCall, find_output, load_graph, prepare_graph, run_heads

_INFERENCE = ("entailment", "contradiction", "neutral")


class Classifier:
    """A classifier graph with its tokenizer and label map."""

    def __init__(self, role: ClassifierRole, session: Graph, encoder: TextEncoder, profile: DeviceProfile) -> None:
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile
        self.output = find_output(session.outputs, role.output, role.graph)
        inference = _INFERENCE if set(role.labels) == set(_INFERENCE) else role.labels
        self._order = role.window_order or inference
        for name, labels in (("window_order", self._order), ("supported", role.supported)):
            if set(labels) - set(role.labels):
                raise BundleError(f"{name} {labels} names labels that the role lacks; it has {role.labels}.")

    @classmethod
    def load(
        cls, bundle: Bundle, role: ClassifierRole, profile: DeviceProfile, session: Graph | None = None
    ) -> Classifier:
        """Open the role's tokenizer, and its graph unless another role has opened it."""
        session = session or load_graph(bundle, role, profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    @property
    def pad_id(self) -> int:
        """From the role."""
        return self._role.pad_id

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        prepare_graph(self._session)

    def run(self, calls: Sequence[Classify], max_windows: int) -> list[Outcome]:
        """One label per call; a call whose texts cannot be read gets its error instead."""
        return run_heads(self._session, [(self, call) for call in calls], max_windows, self._profile)

    def conclude(self, call: Classify, split: SplitCall, logits: Sequence[NDArray[Any]]) -> Outcome:
        """``choose_label`` of the probabilities of all windows."""
        table = softmax(np.stack(logits)) if logits else np.zeros((0, len(self._role.labels)))
        return self.choose_label(call, table, split.read)

    def choose_label(self, call: Classify, table: NDArray[np.float64], read: Read) -> Classified | GroundwireError:
        """The label and probabilities of the decisive window, from the probabilities [windows, labels] of all.

        The decisive window of a detector is the window that supports the hypothesis most. Otherwise the first label in
        window order that any window has decides, in the window where it is most probable: one entailing passage
        supports a hypothesis, even if the others do not.
        """
        if not np.isfinite(table).all():
            return ModelError(f"The classifier of {call.role!r} gave numbers that are not finite; its graph is broken.")
        labels = self._role.labels
        winners = table.argmax(axis=1)
        supported = None
        if self._role.supported:
            support = table[:, [labels.index(label) for label in self._role.supported]].sum(axis=1)
            window = int(support.argmax())
            supported = min(1.0, float(support[window]))
        else:
            column = next(labels.index(label) for label in self._order if (winners == labels.index(label)).any())
            window = int(np.where(winners == column, table[:, column], -1.0).argmax())
        return Classified(
            labels[winners[window]],
            dict(zip(labels, table[window].tolist(), strict=True)),
            window,
            read,
            supported,
        )

    def split(self, call: Classify, max_windows: int) -> SplitCall:
        """One window or more for each premise; TooLong when they are more than ``max_windows``."""
        template = self._role.template
        windows: list[Window] = []
        response = knowledge = NOTHING_UNREAD
        windowed = 0 if "{premise}" in template.first else 1
        # A model of the hypothesis alone reads it once, however many passages there are.
        alone = "{premise}" not in f"{template.first}{template.second}"
        for premise in ("",) if alone else call.premises:
            first, second = self._encoder.render(template, {"premise": premise, "hypothesis": call.hypothesis})
            if second is None:
                encoded = [self._encoder.encode(first)]
                response = encoded[0].unread[0]
            else:
                encoded = self._encoder.encode_windows(
                    first, second, windowed, self._role.stride, max_windows, len(windows)
                )
                response, knowledge = encoded[0].unread[1 - windowed], knowledge.join(encoded[0].unread[windowed])
            windows += encoded
            self._encoder.check_windows(len(windows), max_windows)
        length = len(call.hypothesis)
        if template.second is None and not alone:
            length += max(map(len, call.premises))  # both are in one text
        return SplitCall(windows, read_pair(response, length, knowledge, sum(map(len, call.premises)), len(windows)))


class TokenClassifier:
    """A token classifier with its tokenizer and label map."""

    def __init__(self, role: TokenClassifierRole, session: Graph, encoder: TextEncoder, profile: DeviceProfile) -> None:
        if role.supported not in role.labels:
            raise BundleError(f"supported is {role.supported!r}, a label the role lacks; it has {role.labels}.")
        self._role = role
        self._session = session
        self._encoder = encoder
        self._profile = profile
        self.output = find_output(session.outputs, role.output, role.graph)

    @classmethod
    def load(
        cls, bundle: Bundle, role: TokenClassifierRole, profile: DeviceProfile, session: Graph | None = None
    ) -> TokenClassifier:
        """Open the role's tokenizer, and its graph unless another role has opened it."""
        session = session or load_graph(bundle, role, profile)
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile)

    @property
    def pad_id(self) -> int:
        """From the role."""
        return self._role.pad_id

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        prepare_graph(self._session)

    def run(self, calls: Sequence[ClassifyTokens], max_windows: int) -> list[Outcome]:
        """The labelled tokens of each call's text; a call whose texts cannot be read gets its error instead."""
        return run_heads(self._session, [(self, call) for call in calls], max_windows, self._profile)

    def conclude(self, call: ClassifyTokens, split: SplitCall, logits: Sequence[NDArray[Any]]) -> Outcome:
        """``choose_labels`` of the probabilities in all windows."""
        tables = [
            (window, softmax(table[: len(window.ids)])) for window, table in zip(split.windows, logits, strict=True)
        ]
        return self.choose_labels(call, tables, split.read)

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

    def split(self, call: ClassifyTokens, max_windows: int) -> SplitCall:
        """One window or more for each premise; TooLong when they are more than ``max_windows``."""
        windows: list[Window] = []
        response = knowledge = NOTHING_UNREAD
        for premise in call.premises:
            fields = {"premise": premise, "hypothesis": call.text}
            first, second = self._encoder.render(self._role.template, fields)
            if second != call.text:
                raise BundleError(
                    f"The template of {call.role!r} must have the classified text alone as its second text: "
                    "{hypothesis}."
                )
            encoded = self._encoder.encode_windows(first, second, 0, self._role.stride, max_windows, len(windows))
            windows += encoded
            response, knowledge = encoded[0].unread[1], knowledge.join(encoded[0].unread[0])
        length = sum(map(len, call.premises))
        return SplitCall(windows, read_pair(response, len(call.text), knowledge, length, len(windows)))
