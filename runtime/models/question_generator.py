"""Question generation: an encoder graph and a decoder step graph, driven by beam search, greedy search or sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort

from ..bundle import Bundle
from ..calls import Decoding, GeneratedQuestion, GenerateQuestions
from ..decoding.search import (
    StepHistory,
    TokenCandidates,
    Vocabulary,
    check_decoding,
    count_parallel_sequences,
    decode,
    run_to_end,
)
from ..decoding.step_graph import StepGraph, load_decoder
from ..errors import GroundwireError, ModelError
from ..manifest import QuestionGeneratorRole
from ..ort.forward import forward_values
from ..ort.remote import open_graph
from ..ort.session import Array, DeviceProfile, ValueGraph
from ..tokenization import TextEncoder, Window

ScoredIds = tuple[list[int], float]
"""Generated ids after the start token, and their score."""


def decoding_width(role: QuestionGeneratorRole, profile: DeviceProfile) -> int:
    """The number of sources times beams that decode together: twice as many with a shortlist, whose steps are small
    enough for the processor's cache."""
    return profile.max_beams * (1 if role.shortlist is None else 2)


class QuestionGenerator:
    """An encoder-decoder in two graphs, with its tokenizer and template."""

    def __init__(
        self,
        role: QuestionGeneratorRole,
        encoder: ValueGraph,
        decoder: ValueGraph,
        text: TextEncoder,
        profile: DeviceProfile,
    ) -> None:
        self._role = role
        self._encoder = encoder
        self._decoder = decoder
        self._text = text
        self._profile = profile
        self._vocabulary = Vocabulary(role.start_id, role.eos_ids, role.pad_id, role.vocabulary)

    @classmethod
    def load(cls, bundle: Bundle, role: QuestionGeneratorRole, profile: DeviceProfile) -> QuestionGenerator:
        """Open the role's graphs and tokenizer."""
        text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        encoder = open_graph(bundle, role.encoder, profile)
        decoder = load_decoder(bundle, role.decoder, profile)
        return cls(role, encoder, decoder, text, profile)

    def run(
        self, calls: Sequence[GenerateQuestions], max_windows: int
    ) -> list[tuple[GeneratedQuestion, ...] | GroundwireError]:
        """The generated questions of each call, best first; a call with an unusable text or decoding gets its error.

        A source longer than the model's window is an error: a question about a cut context would be another question.
        """
        out: dict[int, tuple[GeneratedQuestion, ...] | GroundwireError] = {}
        groups: dict[Decoding, list[tuple[int, Window]]] = {}
        for index, call in enumerate(calls):
            try:
                check_decoding(call.decoding)
                fields = {"answer": call.answer, "context": call.context}
                first, second = self._text.render(self._role.template, fields)
                window = self._text.encode(first) if second is None else self._text.encode_pair(first, second)
            except GroundwireError as error:
                out[index] = error
                continue
            groups.setdefault(call.decoding, []).append((index, window))
        for decoding, members in groups.items():
            sequences = self.generate([window for _, window in members], decoding)
            for (index, _), scored in zip(members, sequences, strict=True):
                out[index] = tuple(GeneratedQuestion(self._decode_text(ids), score) for ids, score in scored)
        return [out[index] for index in range(len(calls))]

    def generate(self, windows: Sequence[Window], decoding: Decoding) -> list[list[ScoredIds]]:
        """Token sequences after the start token (with the end token) and their scores, best first, per window."""
        check_decoding(decoding)
        out: list[list[ScoredIds]] = [[] for _ in windows]
        rows_at_once = max(1, decoding_width(self._role, self._profile) // count_parallel_sequences(decoding))
        for rows, mask, states in forward_values(self._encoder, windows, self._role.pad_id, self._profile):
            for start in range(0, len(rows), rows_at_once):
                part = np.arange(start, min(start + rows_at_once, len(rows)))
                cross = states if len(part) == len(rows) else self._encoder.take_rows(states, part)
                step = _QuestionStep(self._decoder, self._role, cross, mask[part])
                sources = [windows[row].ids for row in rows[part]]
                decoded = run_to_end(decode(step, sources, decoding, self._vocabulary))
                for row, sequences in zip(rows[part], decoded, strict=True):
                    out[row] = [(sequence.ids, sequence.score) for sequence in sequences]
        return out

    def _decode_text(self, ids: Sequence[int]) -> str:
        return self._text.decode(ids).removeprefix(self._role.strip_prefix).strip()


class _QuestionStep(StepGraph):
    """Log-probabilities of the next tokens; the search rules out the tokens that would repeat an n-gram."""

    uses_history = False

    def __init__(
        self, session: ValueGraph, role: QuestionGeneratorRole, cross: Mapping[str, ort.OrtValue], mask: Array
    ) -> None:
        super().__init__(session, cross, mask, layers=role.layers, heads=role.heads, head_dim=role.head_dim)

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        scores, candidates = self.step(tokens, parents, count, ("scores", "candidates"))
        if np.isnan(scores).any():
            raise ModelError("The question generator gave numbers that are not finite; its graph is broken.")
        return TokenCandidates(scores, candidates)
