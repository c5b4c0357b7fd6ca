"""Response generation with PMI-Decode (Nandwani et al. 2023, §4.2) on the graphs of role ``generator``.

Two prompts are read for every response, with the knowledge and without. One decoding step continues both with the same
tokens and computes, inside its graph, which tokens the knowledge makes more probable (docs/architecture.md). At
``alpha`` 0 nothing is compared, and the second prompt is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..bundles.bundle import Bundle
from ..bundles.manifest import ResponseGeneratorRole
from ..calls import (
    FAITHFUL,
    Decoding,
    Generate,
    GeneratedSequence,
    Greedy,
    Sampling,
    SequencePart,
    SequenceToken,
)
from ..capture.decoder import CapturedSteps
from ..capture.response import CapturedResponseDecoder
from ..decoding.search import (
    DecodedSequence,
    DecodingRun,
    StepHistory,
    TokenCandidates,
    Vocabulary,
    check_decoding,
    decode,
    find_banned_tokens,
    run_to_end,
)
from ..decoding.step_graph import TABLES, StepGraph, load_decoder
from ..decoding.whole_search import search_vocabulary
from ..errors import GroundwireError, InvalidRequest, ModelError, TooLong
from ..ort.remote import open_graph
from ..ort.session import Array, DeviceProfile, ValueGraph
from ..texts.tokenization import TextEncoder, pad
from .graphs import captures_graphs
from .prompt import fill_prompt

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_NO_START = -1
"""The start token of a causal model, which has none: no token of any vocabulary, so it repeats nothing."""


class TokenizedPrompts(NamedTuple):
    """A call and its prompts as ids: with the knowledge, and without it unless ``alpha`` is 0."""

    call: Generate
    prompts: tuple[list[int], ...]


class DecodingGroup(NamedTuple):
    """What calls must share to be decoded together; all of it depends on the call alone."""

    decoding: Decoding
    contexts: int
    width: int
    """Tokens of each padded prompt."""


class ResponseGenerator:
    """A response generator in two graphs, with its tokenizer and prompt."""

    def __init__(
        self,
        role: ResponseGeneratorRole,
        encoder: ValueGraph,
        decoder: ValueGraph,
        text: TextEncoder,
        profile: DeviceProfile,
        captured: CapturedResponseDecoder | None = None,
    ) -> None:
        """``captured`` runs batches on a GPU; the other graphs then run those it is too small for, and streams."""
        self._captured = captured
        self._role = role
        self._encoder = encoder
        self._decoder = decoder
        self._text = text
        self._profile = profile
        start = 0 if role.start_id is None else role.start_id
        self._vocabulary = Vocabulary(start, role.eos_ids, role.pad_id, role.vocabulary)

    @classmethod
    def load(cls, bundle: Bundle, role: ResponseGeneratorRole, profile: DeviceProfile) -> ResponseGenerator:
        """Open the role's graphs and tokenizer."""
        text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        encoder = open_graph(bundle, role.encoder, profile)
        decoder = load_decoder(bundle, role.decoder, profile)
        captured = CapturedResponseDecoder.load(bundle, role, profile) if captures_graphs(profile) else None
        return cls(role, encoder, decoder, text, profile, captured)

    def prepare(self) -> None:
        """Capture the steps of the default decoding, on a GPU."""
        if self._captured is not None:
            self._captured.prepare(FAITHFUL.num_beams, 2)

    def run(self, calls: Sequence[Generate], max_windows: int) -> list[tuple[GeneratedSequence, ...] | GroundwireError]:
        """The responses of each call, best first; a call that cannot be answered gets its error instead.

        InvalidRequest for settings out of range, or no knowledge at an ``alpha`` above 0. TooLong when a prompt
        does not fit the model's window: neither knowledge nor history is ever cut, whatever ``max_windows``.
        ModelError when the graph's numbers are not finite. Fewer responses than ``num_return_sequences`` are returned
        when the top-p sets leave no other.
        """
        out: dict[int, tuple[GeneratedSequence, ...] | GroundwireError] = {}
        groups: dict[DecodingGroup, list[tuple[int, TokenizedPrompts]]] = {}
        for index, call in enumerate(calls):
            try:
                prompts = self._tokenize(call)
            except GroundwireError as error:
                out[index] = error
                continue
            groups.setdefault(self._choose_group(prompts, self._captured), []).append((index, prompts))
        for group, members in groups.items():
            captured, rows = self._choose_rows(group)
            for start in range(0, len(members), rows):
                batch = members[start : start + rows]
                with nullcontext() if captured is None else captured.lock:
                    step, decoding_run = self._start_decoding(group, [prompts for _, prompts in batch], captured)
                    sequences = run_to_end(decoding_run)
                for source, (index, _) in enumerate(batch):
                    out[index] = self._build_result(step, source, sequences[source])
        return [out[index] for index in range(len(calls))]

    def _choose_rows(self, group: DecodingGroup) -> tuple[CapturedResponseDecoder | None, int]:
        """What decodes a group, and the calls of a batch."""
        beams = group.decoding.parallel_sequences
        if self._captured is not None:
            rows = self._captured.count_sources(beams, group.contexts, group.width)
            if rows:
                return self._captured, rows
        most = min(self._profile.max_beams // beams, self._profile.max_tokens // group.width)
        return None, max(1, most // group.contexts)

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """The best response of ``call``, part by part as it is decoded; the last part has the complete response.

        Every step gives a part, so that the caller can stop early; with beams all but the last are empty, because no
        word is certain before that. Raises the errors that ``run`` returns, and errors of the call itself at
        once; InvalidRequest when several sequences are to be drawn, as the best is not known until all are complete.
        May be called from any thread.
        """
        if isinstance(call.decoding, Sampling) and call.decoding.num_return_sequences > 1:
            raise InvalidRequest(
                f"Sampling: num_return_sequences={call.decoding.num_return_sequences}; a streamed response is one "
                "sequence. Use num_return_sequences=1."
            )
        prompts = self._tokenize(call)
        return self._stream_parts(self._choose_group(prompts), prompts)

    def _stream_parts(self, group: DecodingGroup, prompts: TokenizedPrompts) -> Iterator[SequencePart]:
        step, decoding_run = self._start_decoding(group, [prompts])
        single = isinstance(group.decoding, Greedy | Sampling)
        streamed = ""
        while True:
            try:
                ((path, *_), *_) = next(decoding_run)
            except StopIteration as stop:
                result = self._build_result(step, 0, stop.value[0])
                break
            text = self._decode_text(path.ids) if single and not step.broken else streamed
            if not text.startswith(streamed):
                text = streamed
            yield SequencePart(text[len(streamed) :])
            streamed = text
        if isinstance(result, GroundwireError):
            raise result
        yield SequencePart(result[0].text.removeprefix(streamed), result[0])

    def _tokenize(self, call: Generate) -> TokenizedPrompts:
        check_decoding(call.decoding)
        if not 0 <= call.alpha <= 1:
            raise InvalidRequest(f"alpha={call.alpha}; allowed are 0 (plain decoding) to 1 (CPMI alone).")
        if not 0 < call.pmi_top_p <= 1:
            raise InvalidRequest(f"pmi_top_p={call.pmi_top_p}; allowed is above 0 up to 1 (all tokens).")
        if call.alpha and not any(passage.strip() for passage in call.knowledge):
            raise InvalidRequest(
                f"alpha={call.alpha} without knowledge: there is nothing for the response to rest on. "
                "Give at least one passage, or alpha=0 for plain decoding."
            )
        if self._role.positions is not None and call.decoding.max_new_tokens > self._role.positions:
            raise InvalidRequest(
                f"{type(call.decoding).__name__}: max_new_tokens={call.decoding.max_new_tokens}; this model has "
                f"positions for {self._role.positions} at most."
            )
        contexts = fill_prompt(self._role.prompt, call.knowledge, call.history)
        used = contexts if call.alpha else contexts[:1]
        return TokenizedPrompts(
            call, tuple(self._tokenize_prompt(pieces, call.decoding.max_new_tokens) for pieces in used)
        )

    def _tokenize_prompt(self, pieces: Sequence[str], max_new_tokens: int) -> list[int]:
        if not self._role.causal:
            return self._text.encode("".join(pieces)).ids
        ids = [index for piece in pieces for index in self._text.encode_plain(piece, must_fit=True).ids]
        if not ids:
            raise InvalidRequest("The prompt has no tokens: give a history, or export the model with a longer prompt.")
        limit = self._text.max_tokens
        # The last token of a response is never read again.
        if len(ids) + max_new_tokens - 1 > limit:
            raise TooLong(
                f"A prompt of {len(ids)} tokens and a response of up to {max_new_tokens} do not fit the {limit} that "
                "this model reads. Give less of the knowledge or of the history, or a smaller max_new_tokens."
            )
        return ids

    def _choose_group(
        self, tokenized: TokenizedPrompts, captured: CapturedResponseDecoder | None = None
    ) -> DecodingGroup:
        # The last token of a causal model's prompt is read by the first step.
        longest = max(map(len, tokenized.prompts)) - self._role.causal
        width = _native.bucket_width(longest) if captured is None else captured.find_width(longest)
        return DecodingGroup(tokenized.call.decoding, len(tokenized.prompts), width)

    def _start_decoding(
        self, group: DecodingGroup, batch: Sequence[TokenizedPrompts], captured: CapturedResponseDecoder | None = None
    ) -> tuple[_PMIDecodeStep, DecodingRun]:
        """Encode the prompts of one group; return the decoder step over them, and the decoding that runs it."""
        rows = [tokenized.prompts[context] for context in range(group.contexts) for tokenized in batch]
        first = np.full((len(rows), 1), self._vocabulary.start, dtype=np.int64)
        if self._role.causal:
            first = np.array([[row[-1]] for row in rows], dtype=np.int64)
            rows = [row[:-1] for row in rows]
        ids, mask = pad(rows, group.width, self._role.pad_id)
        feeds: dict[str, Array] = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._encoder.inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        steps: StepGraph | CapturedSteps
        if captured is not None:
            steps = captured.start(feeds, group.decoding.parallel_sequences, group.contexts)
        else:
            cross = self._encoder.run_to_values(feeds)
            steps = StepGraph(
                self._decoder,
                cross,
                mask,
                layers=self._role.layers,
                heads=self._role.heads,
                head_dim=self._role.head_dim,
                contexts=group.contexts,
            )
        step = _PMIDecodeStep(steps, self._role, first, batch)
        sources = [tokenized.prompts[0] for tokenized in batch]
        return step, decode(step, sources, group.decoding, self._vocabulary)

    def _build_result(
        self, step: _PMIDecodeStep, source: int, decoded: Sequence[DecodedSequence]
    ) -> tuple[GeneratedSequence, ...] | GroundwireError:
        if source in step.broken:
            return ModelError(
                f"The response generator {self._role.source!r} gave numbers that are not finite; verify the bundle, or "
                "export it at a higher precision."
            )
        if not decoded:
            return InvalidRequest(
                "No token was left to generate: min_new_tokens and no_repeat_ngram_size block all of them. Loosen them."
            )
        return tuple(self._build_sequence(sequence) for sequence in decoded)

    def _build_sequence(self, decoded: DecodedSequence) -> GeneratedSequence:
        text = self._decode_text(decoded.ids)
        texts = self._split_text(decoded.ids, text)
        tokens = tuple(
            SequenceToken(index, piece, values[0], values[1] if len(values) > 1 else None)
            for index, piece, values in zip(decoded.ids, texts, decoded.values, strict=True)
        )
        return GeneratedSequence(text, decoded.score, tokens, decoded.ids[-1] in self._role.eos_ids)

    def _split_text(self, ids: Sequence[int], text: str) -> list[str]:
        """The text that each token adds to ``text``; the last adds all of it where later tokens change earlier text."""
        prefixes = ["", *(self._decode_text(ids[: end + 1]) for end in range(len(ids) - 1)), text]
        if not all(text.startswith(prefix) for prefix in prefixes):
            return [""] * (len(ids) - 1) + [text]
        lengths = list(accumulate((len(prefix) for prefix in prefixes), max))
        return [text[start:end] for start, end in pairwise(lengths)]

    def _decode_text(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without spaces around it, and without an incomplete character at its end."""
        return self._text.decode(ids).rstrip(_UNKNOWN).rstrip()


class _PMIDecodeStep:
    """PMI-Decode's scores of the next tokens; values are log-probability and, with two contexts, CPMI."""

    uses_history = True

    def __init__(
        self,
        steps: StepGraph | CapturedSteps,
        role: ResponseGeneratorRole,
        first: NDArray[np.int64],
        batch: Sequence[TokenizedPrompts],
    ) -> None:
        # Any: both kinds of steps take the values that they make.
        self._steps: Any = steps
        self._first: NDArray[np.int64] | None = first
        self._role = role
        self._decoding = batch[0].call.decoding
        self._alpha = np.array([tokenized.call.alpha for tokenized in batch], dtype=np.float32)
        self._pmi_top_p = np.array([tokenized.call.pmi_top_p for tokenized in batch], dtype=np.float32)
        self._settings = self._upload_settings()
        self._outputs = ("scores", "candidates", *("log_probs", "cpmi")[: len(batch[0].prompts)])
        self._sources = np.arange(len(batch))
        self.broken: set[int] = set()
        """Sources whose numbers are not finite."""

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        tokens = self._steps.repeat_for_contexts(tokens) if self._first is None else self._first
        self._first = None
        extra = {**self._settings, "banned": self._steps.host_value(self._find_banned(history))}
        scores, candidates, *values = self._run_step(tokens, parents, count, extra)
        # -inf is a valid score here: a token that is ruled out has it.
        broken = np.any([~(array < np.inf).all(axis=(1, 2)) for array in (scores, *values)], axis=0)
        if broken.any():
            # The search ends for this source, and goes on for the others.
            self.broken.update(self._sources[broken].tolist())
            scores[broken] = -np.inf
        return TokenCandidates(scores, candidates, tuple(values))

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """As ``DecoderStep``."""
        self._steps.keep_sources(rows)
        if len(rows) < len(self._sources):
            self._alpha, self._pmi_top_p, self._sources = self._alpha[rows], self._pmi_top_p[rows], self._sources[rows]
            self._settings = self._upload_settings()

    def _run_step(self, tokens: Array, parents: Array, count: int, extra: Mapping[str, Any]) -> list[Array]:
        """The outputs of a step; where a GPU ended the search of a source too early, they are completed here."""
        if "unsettled" not in self._steps.outputs:
            outputs: list[Array] = self._steps.step(tokens, parents, count, self._outputs, extra)
            return outputs
        *outputs, unsettled = self._steps.step(tokens, parents, count, (*self._outputs, "unsettled"), extra)
        for source in np.flatnonzero(unsettled.any(axis=(1, 2))).tolist():
            likely, difference = (self._steps.read_row(name, source) for name in TABLES)
            rule = float(self._alpha[source]), float(self._pmi_top_p[source])
            searched = search_vocabulary(likely, difference, *rule, outputs[0].shape[-1])
            for output, values in zip(outputs, searched, strict=False):
                output[source] = values
        return outputs

    def _upload_settings(self) -> dict[str, Any]:
        """The inputs that stay the same from step to step; ``top_p`` is what exported graphs call ``pmi_top_p``."""
        return {"alpha": self._steps.value(self._alpha), "top_p": self._steps.value(self._pmi_top_p)}

    def _find_banned(self, history: StepHistory) -> NDArray[np.int64]:
        if not self._decoding.min_new_tokens and not self._decoding.no_repeat_ngram_size:
            return np.full((len(history), len(history[0]), 1), -1, dtype=np.int64)
        start = _NO_START if self._role.start_id is None else self._role.start_id
        banned = [
            [sorted(find_banned_tokens((start, *path.ids), self._decoding, self._role.eos_ids)) for path in paths]
            for paths in history
        ]
        most = max(1, max(len(tokens) for row in banned for tokens in row))
        return np.array([[[*tokens, *[-1] * (most - len(tokens))] for tokens in row] for row in banned], dtype=np.int64)
