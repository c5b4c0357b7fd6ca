"""Responses that rest on their knowledge: PMI-Decode (Nandwani et al. 2023, §4.2) on the graphs of role ``generator``.

Two prompts are read for every response, with the knowledge and without. One decoding step continues both with the same
tokens and judges, inside its graph, which tokens the knowledge makes more probable (docs/architecture.md). At ``alpha``
0 nothing is to be compared, and the second prompt is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime import _native
from groundwire.runtime.bundle import Bundle, ResponseGeneratorRole
from groundwire.runtime.calls import (
    Decoding,
    Generate,
    GeneratedSequence,
    Greedy,
    Sampling,
    SequencePart,
    SequenceToken,
)
from groundwire.runtime.decoding.search import (
    Candidates,
    Decoded,
    Language,
    Path,
    Steps,
    blocked,
    check,
    decode,
    drain,
    width,
)
from groundwire.runtime.decoding.step_graph import StepGraph
from groundwire.runtime.errors import GroundwireError, InvalidRequest, ModelError, TooLong
from groundwire.runtime.ort.session import Array, DeviceProfile, Session
from groundwire.runtime.tokenization import TextEncoder, padded

from .prompt import contexts

_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_NO_START = -1
"""Stands where a causal model has no start token: no token of any vocabulary, so it repeats nothing."""


class Entry(NamedTuple):
    """A call's prompts as ids: with the knowledge, and without it unless ``alpha`` is 0."""

    call: Generate
    prompts: tuple[list[int], ...]


class Group(NamedTuple):
    """What calls must share to be decoded together; all of it depends on the call alone."""

    decoding: Decoding
    contexts: int
    width: int
    """Of the padded prompts."""


class ResponseGenerator:
    """A generating model in two graphs, with its tokenizer and prompt."""

    def __init__(
        self, role: ResponseGeneratorRole, encoder: Session, decoder: Session, text: TextEncoder, profile: DeviceProfile
    ) -> None:
        self._role = role
        self._encoder = encoder
        self._decoder = decoder
        self._text = text
        self._profile = profile
        start = 0 if role.start_id is None else role.start_id
        self._language = Language(start, role.eos_ids, role.pad_id, role.vocabulary)

    @classmethod
    def load(cls, bundle: Bundle, role: ResponseGeneratorRole, profile: DeviceProfile) -> ResponseGenerator:
        """Open the role's graphs and tokenizer."""
        text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        encoder = Session.load(bundle.file(role.encoder), profile)
        decoder = Session.load(bundle.file(role.decoder), profile)
        return cls(role, encoder, decoder, text, profile)

    def run(self, calls: Sequence[Generate], max_windows: int) -> list[tuple[GeneratedSequence, ...] | GroundwireError]:
        """The responses of each call, best first; a call that cannot be answered gets its error instead.

        InvalidRequest for settings out of range, or nothing to rest on. TooLong when a prompt does not fit the model's
        window: neither knowledge nor history is ever cut, whatever ``max_windows``. ModelError when the graph's
        numbers are not finite. Fewer responses than asked for come back when the top-p sets leave no other.
        """
        out: dict[int, tuple[GeneratedSequence, ...] | GroundwireError] = {}
        groups: dict[Group, list[tuple[int, Entry]]] = {}
        for index, call in enumerate(calls):
            try:
                entry = self._entry(call)
            except GroundwireError as error:
                out[index] = error
                continue
            groups.setdefault(self._group(entry), []).append((index, entry))
        for group, members in groups.items():
            rows = max(
                1,
                min(
                    self._profile.max_beams // (width(group.decoding) * group.contexts),
                    self._profile.max_tokens // (group.width * group.contexts),
                ),
            )
            for at in range(0, len(members), rows):
                part = members[at : at + rows]
                step, steps = self._start(group, [entry for _, entry in part])
                found = drain(steps)
                for source, (index, _) in enumerate(part):
                    out[index] = self._result(step, source, found[source])
        return [out[index] for index in range(len(calls))]

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """The best response of ``call``, part by part as it is decoded; the last part has the whole of it.

        Every step gives a part, so that whoever reads them may stop; with beams all but the last are empty, because no
        word is certain before that. Raises as ``run`` returns, at once for what is wrong with the call; InvalidRequest
        when several sequences are to be drawn, of which the best is not known until all are complete. May be called
        from any thread.
        """
        if isinstance(call.decoding, Sampling) and call.decoding.num_return_sequences > 1:
            raise InvalidRequest(
                f"Sampling: num_return_sequences={call.decoding.num_return_sequences}; a streamed response is one "
                "sequence. Use num_return_sequences=1."
            )
        entry = self._entry(call)
        return self._parts(self._group(entry), entry)

    def _parts(self, group: Group, entry: Entry) -> Iterator[SequencePart]:
        step, steps = self._start(group, [entry])
        single = isinstance(group.decoding, Greedy | Sampling)
        said = ""
        while True:
            try:
                ((path, *_), *_) = next(steps)
            except StopIteration as stop:
                result = self._result(step, 0, stop.value[0])
                break
            text = self._spelled(path.ids) if single and not step.broken else said
            if not text.startswith(said):
                text = said
            yield SequencePart(text[len(said) :])
            said = text
        if isinstance(result, GroundwireError):
            raise result
        yield SequencePart(result[0].text.removeprefix(said), result[0])

    def _entry(self, call: Generate) -> Entry:
        check(call.decoding)
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
        texts = contexts(self._role.prompt, call.knowledge, call.history)
        chosen = texts if call.alpha else texts[:1]
        return Entry(call, tuple(self._ids(pieces, call.decoding.max_new_tokens) for pieces in chosen))

    def _ids(self, pieces: Sequence[str], max_new_tokens: int) -> list[int]:
        if not self._role.causal:
            return self._text.single("".join(pieces)).ids
        ids = [index for piece in pieces for index in self._text.plain(piece).ids]
        if not ids:
            raise InvalidRequest("The prompt has no tokens: give a history, or export the model with a longer prompt.")
        most = self._text.max_tokens
        # The last token of a response is never read again.
        if len(ids) + max_new_tokens - 1 > most:
            raise TooLong(
                f"A prompt of {len(ids)} tokens and a response of up to {max_new_tokens} do not fit the {most} that "
                "this model reads. Give less of the knowledge or of the history, or a smaller max_new_tokens."
            )
        return ids

    def _group(self, entry: Entry) -> Group:
        # The last token of a causal model's prompt is read by the first step.
        longest = max(map(len, entry.prompts)) - self._role.causal
        return Group(entry.call.decoding, len(entry.prompts), _native.bucket_width(longest))

    def _start(self, group: Group, entries: Sequence[Entry]) -> tuple[_Step, Steps]:
        """The step over ``entries`` of one group, and their decoding with it."""
        rows = [entry.prompts[context] for context in range(group.contexts) for entry in entries]
        first = np.full((len(rows), 1), self._language.start, dtype=np.int64)
        if self._role.causal:
            first = np.array([[row[-1]] for row in rows], dtype=np.int64)
            rows = [row[:-1] for row in rows]
        ids, mask = padded(rows, group.width, self._role.pad_id)
        feeds: dict[str, Array] = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._encoder.inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        cross = dict(zip(self._encoder.outputs, self._encoder.run(feeds), strict=True))
        step = _Step(self._decoder, self._role, cross, mask, first, entries)
        sources = [entry.prompts[0] for entry in entries]
        return step, decode(step, sources, group.decoding, self._language)

    def _result(
        self, step: _Step, source: int, found: Sequence[Decoded]
    ) -> tuple[GeneratedSequence, ...] | GroundwireError:
        if source in step.broken:
            return ModelError(
                f"The generator {self._role.source!r} gave numbers that are not finite; verify the bundle, or export "
                "it at a higher precision."
            )
        if not found:
            return InvalidRequest(
                "No token was left to write with: min_new_tokens and no_repeat_ngram_size block all of them. "
                "Loosen them."
            )
        return tuple(self._written(one) for one in found)

    def _written(self, one: Decoded) -> GeneratedSequence:
        text = self._spelled(one.ids)
        texts = self._texts(one.ids, text)
        tokens = tuple(
            SequenceToken(index, piece, values[0], values[1] if len(values) > 1 else None)
            for index, piece, values in zip(one.ids, texts, one.values, strict=True)
        )
        return GeneratedSequence(text, one.score, tokens, one.ids[-1] in self._role.eos_ids)

    def _texts(self, ids: Sequence[int], text: str) -> list[str]:
        """What each token adds to ``text``; the last one adds all of it where a decoder rewrites what it said."""
        spelled = ["", *(self._spelled(ids[: end + 1]) for end in range(len(ids) - 1)), text]
        if not all(text.startswith(so_far) for so_far in spelled):
            return [""] * (len(ids) - 1) + [text]
        lengths = list(accumulate((len(so_far) for so_far in spelled), max))
        return [text[start:end] for start, end in pairwise(lengths)]

    def _spelled(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without blanks around it, nor a character that is not complete."""
        return self._text.decode(ids).rstrip(_UNKNOWN).rstrip()


class _Step(StepGraph):
    """PMI-Decode's judgement of the next tokens; values are log-probability and, with two contexts, CPMI."""

    follows = True

    def __init__(
        self,
        session: Session,
        role: ResponseGeneratorRole,
        cross: Mapping[str, Array],
        mask: Array,
        first: NDArray[np.int64],
        entries: Sequence[Entry],
    ) -> None:
        count = len(entries[0].prompts)
        super().__init__(
            session, cross, mask, layers=role.layers, heads=role.heads, head_dim=role.head_dim, contexts=count
        )
        self._first: NDArray[np.int64] | None = first
        self._role = role
        self._decoding = entries[0].call.decoding
        self._alpha = np.array([entry.call.alpha for entry in entries], dtype=np.float32)
        self._pmi_top_p = np.array([entry.call.pmi_top_p for entry in entries], dtype=np.float32)
        self._values = ("log_probs", "cpmi")[:count]
        self._sources = np.arange(len(entries))
        self.broken: set[int] = set()
        """Sources whose numbers are not finite."""

    def __call__(self, tokens: Array, parents: Array, count: int, written: Sequence[Sequence[Path]]) -> Candidates:
        tokens = self.in_all(tokens) if self._first is None else self._first
        self._first = None
        # "top_p" is the input's name in exported graphs.
        extra: dict[str, Array] = {"alpha": self._alpha, "top_p": self._pmi_top_p, "banned": self._banned(written)}
        scores, candidates, *values = self.step(tokens, parents, count, ("scores", "candidates", *self._values), extra)
        # -inf is a number here: that of a token which is ruled out.
        broken = np.any([~(array < np.inf).all(axis=(1, 2)) for array in (scores, *values)], axis=0)
        if broken.any():
            # The search ends for this source, and goes on for the others.
            self.broken.update(self._sources[broken].tolist())
            scores[broken] = -np.inf
        return Candidates(scores, candidates, tuple(values))

    def keep(self, rows: NDArray[np.int64]) -> None:
        super().keep(rows)
        self._alpha, self._pmi_top_p, self._sources = self._alpha[rows], self._pmi_top_p[rows], self._sources[rows]

    def _banned(self, written: Sequence[Sequence[Path]]) -> NDArray[np.int64]:
        if not self._decoding.min_new_tokens and not self._decoding.no_repeat_ngram_size:
            return np.full((len(written), len(written[0]), 1), -1, dtype=np.int64)
        start = _NO_START if self._role.start_id is None else self._role.start_id
        found = [
            [sorted(blocked((start, *path.ids), self._decoding, self._role.eos_ids)) for path in paths]
            for paths in written
        ]
        most = max(1, max(len(tokens) for row in found for tokens in row))
        return np.array([[[*tokens, *[-1] * (most - len(tokens))] for tokens in row] for row in found], dtype=np.int64)
