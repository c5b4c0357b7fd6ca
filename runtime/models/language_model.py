"""Causal language models: the log-probability of every token of a text, given a prefix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import Head, LanguageModelRole
from ..calls import MeasureTexts, Read, ScoreText, TextLengths, TextScored
from ..capture.scorer import CapturedScorer
from ..decoding.scoring import ScoringInput, TextScorer
from ..errors import GroundwireError, InvalidRequest, ModelError, TooLong
from ..ort.chunked_head import ChunkedHead
from ..ort.remote import open_graph
from ..ort.session import DeviceProfile
from ..texts.tokenization import TextEncoder, Window
from ..texts.unread import check_readable
from .graphs import captures_graphs
from .session_scorer import SessionScorer


class LanguageModel:
    """A causal language model with its tokenizer."""

    def __init__(self, role: LanguageModelRole, scorer: TextScorer, encoder: TextEncoder) -> None:
        self._role = role
        self._scorer = scorer
        self._encoder = encoder

    @classmethod
    def load(cls, bundle: Bundle, role: LanguageModelRole, profile: DeviceProfile) -> LanguageModel:
        """Open the role's graphs and tokenizer."""
        encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        head = ChunkedHead.load(bundle, role.head, profile) if isinstance(role.head, Head) else None
        scorer: TextScorer | None = None
        if head is None and captures_graphs(profile):
            scorer = CapturedScorer.load(bundle, role, encoder.vocabulary_size, profile)
        if scorer is None:
            scorer = SessionScorer(role, open_graph(bundle, role.graph, profile), profile, head)
        return cls(role, scorer, encoder)

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        if isinstance(self._scorer, CapturedScorer):
            self._scorer.prepare()

    def run(
        self, calls: Sequence[ScoreText | MeasureTexts], max_windows: int
    ) -> list[TextScored | TextLengths | GroundwireError]:
        """The log-probabilities of each call's text, or its texts' lengths; a call that fails gets its error instead.

        TooLong when prefix and text do not fit the model's window together: they are never cut, whatever
        ``max_windows``. InvalidRequest when no token is to be predicted. ModelError when the graph's numbers are not
        finite.
        """
        out: dict[int, TextScored | TextLengths | GroundwireError] = {}
        inputs: dict[int, ScoringInput] = {}
        windows: dict[str, Window] = {}
        for index, call in enumerate(calls):
            if isinstance(call, MeasureTexts):
                out[index] = self._measure(call)
                continue
            try:
                inputs[index] = self._tokenize(call, windows)
            except GroundwireError as error:
                out[index] = error
        for index, values in self._scorer.score(inputs):
            out[index] = self._build_result(inputs[index], values)
        return [out[index] for index in range(len(calls))]

    def _measure(self, call: MeasureTexts) -> TextLengths:
        lengths = tuple(len(self._encoder.encode_plain(text).ids) for text in call.texts)
        return TextLengths(lengths, self._encoder.max_tokens)

    def _tokenize(self, call: ScoreText, windows: dict[str, Window]) -> ScoringInput:
        """The ids of a call; ``windows`` keeps texts that several calls share."""
        parts = []
        for part in (*call.prefix, call.text):
            if part not in windows:
                windows[part] = self._encode(part)
            parts.append(windows[part])
            check_readable("text", windows[part].unread[0], len(part))
        text = parts.pop()
        prefix = [index for part in parts for index in part.ids]
        total = sum(map(len, call.prefix))
        read = Read(1, total - sum(part.unread[0].characters for part in parts), total)
        if len(text.ids) < (1 if prefix else 2):
            raise InvalidRequest(
                f"A text of {len(text.ids)} tokens after a prefix of {len(prefix)} has no token to predict; give a "
                "text of words, and of two tokens or more when there is no prefix."
            )
        length = len(prefix) + len(text.ids)
        if length > self._encoder.max_tokens:
            raise TooLong(
                f"Prefix and text make {length} tokens ({len(prefix)} and {len(text.ids)}); this model reads "
                f"{self._encoder.max_tokens} at once. Give less of the document or of the history."
            )
        if prefix:
            return ScoringInput(tuple(prefix[:-1]), [prefix[-1], *text.ids[:-1]], text.ids, text, read)
        return ScoringInput((), text.ids[:-1], text.ids[1:], text, read)

    def _encode(self, text: str) -> Window:
        try:
            return self._encoder.encode_plain(text, must_fit=True)
        except TooLong:
            check_readable("text", self._encoder.find_foreign(text), len(text))
            raise

    def _build_result(self, scored: ScoringInput, values: NDArray[np.float32]) -> TextScored | GroundwireError:
        if not np.isfinite(values).all():
            return ModelError(
                f"The language model {self._role.source!r} gave a log-probability of "
                f"{values[~np.isfinite(values)][0]}; verify the bundle, or export it at a higher precision."
            )
        first = len(scored.text.ids) - len(scored.targets)
        return TextScored(tuple(scored.text.offsets), tuple(values.tolist()), first, scored.read)
