"""Question generation: an encoder graph and a decoder step graph, driven by beam search, greedy search or sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import QuestionGeneratorRole
from ..calls import BeamSearch, Decoding, GeneratedQuestion, GenerateQuestions
from ..capture.decoder import CapturedSteps
from ..capture.question import CapturedQuestionDecoder
from ..capture.shapes import plan_sources
from ..decoding.fused_step import FusedStepGraph, is_fused
from ..decoding.search import (
    DecoderStep,
    StepHistory,
    TokenCandidates,
    Vocabulary,
    check_decoding,
    decode,
    run_to_end,
)
from ..decoding.step_graph import StepGraph, load_decoder
from ..errors import GroundwireError, ModelError
from ..ort.remote import open_graph
from ..ort.session import Array, DeviceProfile, ValueGraph, forward_values
from ..texts.tokenization import TextEncoder, Window
from .graphs import captures_graphs

Steps: TypeAlias = StepGraph | FusedStepGraph | CapturedSteps
"""What runs the steps over a batch of sources."""
ScoredIds = tuple[list[int], float]
"""Generated ids after the start token, and their score."""


def decoding_width(role: QuestionGeneratorRole, profile: DeviceProfile) -> int:
    """The number of sources times beams that decode together: twice as many with a shortlist, whose steps are small
    enough for the processor's cache."""
    return profile.max_beams * (1 if role.shortlist is None else 2)


class QuestionGenerator:
    """An encoder-decoder in two graphs, with its tokenizer and template."""

    def __init__(
        self, role: QuestionGeneratorRole, decoder: PlainDecoder | CapturedQuestionDecoder, text: TextEncoder
    ) -> None:
        self._role = role
        self._decoder = decoder
        self._text = text
        self._vocabulary = Vocabulary(role.start_id, role.eos_ids, role.pad_id, role.vocabulary)

    @classmethod
    def load(cls, bundle: Bundle, role: QuestionGeneratorRole, profile: DeviceProfile) -> QuestionGenerator:
        """Open the role's graphs and tokenizer."""
        text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        captured = CapturedQuestionDecoder.load(bundle, role, profile) if captures_graphs(profile) else None
        return cls(role, captured or PlainDecoder.load(bundle, role, profile), text)

    def prepare(self) -> None:
        """Capture the encoder and the steps of a search with default options, on a GPU."""
        if isinstance(self._decoder, CapturedQuestionDecoder):
            self._decoder.prepare(BeamSearch().num_beams)

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
        for rows, step in self._decoder.start_batches(windows, decoding.parallel_sequences):
            sources = [windows[row].ids for row in rows]
            decoded = run_to_end(decode(CheckedStep(QuestionStep(step)), sources, decoding, self._vocabulary))
            for row, sequences in zip(rows, decoded, strict=True):
                out[row] = [(sequence.ids, sequence.score) for sequence in sequences]
        return out

    def _decode_text(self, ids: Sequence[int]) -> str:
        return self._text.decode(ids).removeprefix(self._role.strip_prefix).strip()


class CheckedStep:
    """A step whose numbers are finite; ModelError for a step with other numbers."""

    uses_history = False

    def __init__(self, step: DecoderStep) -> None:
        self._step = step
        self.keep_sources = step.keep_sources

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        """As the step gives them."""
        candidates = self._step(tokens, parents, count, history)
        if np.isnan(candidates.scores).any():
            raise ModelError("The question generator gave numbers that are not finite; its graph is broken.")
        return candidates


class PlainDecoder:
    """An encoder and a decoder step for batches of any shape."""

    def __init__(
        self, encoder: ValueGraph, decoder: ValueGraph, role: QuestionGeneratorRole, profile: DeviceProfile
    ) -> None:
        self._encoder = encoder
        self._decoder = decoder
        self._role = role
        self._profile = profile
        self._fused = is_fused(decoder.inputs)
        # The fused attention over a source reads its mask in aligned blocks.
        self._plan = plan_sources(role.max_tokens) if self._fused else None

    @classmethod
    def load(cls, bundle: Bundle, role: QuestionGeneratorRole, profile: DeviceProfile) -> PlainDecoder:
        """Open both graphs."""
        encoder = open_graph(bundle, role.encoder, profile)
        return cls(encoder, load_decoder(bundle, role.decoder, profile), role, profile)

    def start_batches(self, windows: Sequence[Window], beams: int) -> Iterator[tuple[NDArray[np.int64], Steps]]:
        """Encode sources that will decode with so many beams, batch by batch: their indices and steps."""
        rows_at_once = max(1, decoding_width(self._role, self._profile) // beams)
        role = self._role
        for rows, mask, states in forward_values(self._encoder, windows, role.pad_id, self._profile, self._plan):
            for start in range(0, len(rows), rows_at_once):
                part = np.arange(start, min(start + rows_at_once, len(rows)))
                cross = states if len(part) == len(rows) else self._encoder.take_rows(states, part)
                graph: Steps
                if self._fused:
                    graph = FusedStepGraph(self._decoder, cross, mask[part], role, beams)
                else:
                    graph = StepGraph(
                        self._decoder, cross, mask[part], layers=role.layers, heads=role.heads, head_dim=role.head_dim
                    )
                yield rows[part], graph


class QuestionStep:
    """Log-probabilities of the next tokens; the search rules out the tokens that would repeat an n-gram."""

    uses_history = False

    def __init__(self, graph: Steps) -> None:
        self._graph = graph
        self.keep_sources = graph.keep_sources

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        """As ``DecoderStep``."""
        scores, candidates = self._graph.step(tokens, parents, count, ("scores", "candidates"))
        return TokenCandidates(scores, candidates)
