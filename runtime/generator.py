"""Question generation: an encoder graph and a decoder step graph, driven by beam search, greedy search or sampling."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from . import _native
from .bundle import Bundle, GeneratorRole
from .calls import Beam, Decoding, Generated, GenerateQuestions, Greedy, Sampling
from .classifier import softmax
from .errors import GroundwireError, InvalidRequest, ModelError
from .forward import forward
from .session import Array, Profile, Session
from .text import TextEncoder, Window

Scored = tuple[list[int], float]
"""Generated ids after the start token, and their score."""


class Generator:
    """An encoder-decoder in two graphs, with its tokenizer and template."""

    def __init__(
        self, role: GeneratorRole, encoder: Session, decoder: Session, text: TextEncoder, profile: Profile
    ) -> None:
        self._role = role
        self._encoder = encoder
        self._decoder = decoder
        self._text = text
        self._profile = profile

    @classmethod
    def load(cls, bundle: Bundle, role: GeneratorRole, profile: Profile) -> Generator:
        """Open the role's graphs and tokenizer."""
        text = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        encoder = Session.load(bundle.file(role.encoder), profile)
        decoder = Session.load(bundle.file(role.decoder), profile)
        return cls(role, encoder, decoder, text, profile)

    def run(
        self, calls: Sequence[GenerateQuestions], max_windows: int
    ) -> list[tuple[Generated, ...] | GroundwireError]:
        """The generated texts of each call, best first; an unreadable text or decoding gets its error instead.

        A source longer than the model's window is an error: a question about a cut context would be another question.
        """
        out: dict[int, tuple[Generated, ...] | GroundwireError] = {}
        groups: dict[Decoding, list[tuple[int, Window]]] = {}
        for index, call in enumerate(calls):
            try:
                check(call.decoding)
                fields = {"answer": call.answer, "context": call.context}
                first, second = self._text.render(self._role.template, fields)
                window = self._text.single(first) if second is None else self._text.pair(first, second)
            except GroundwireError as error:
                out[index] = error
                continue
            groups.setdefault(call.decoding, []).append((index, window))
        for decoding, members in groups.items():
            sequences = self.generate([window for _, window in members], decoding)
            for (index, _), found in zip(members, sequences, strict=True):
                out[index] = tuple(Generated(self._clean(ids), score) for ids, score in found)
        return [out[index] for index in range(len(calls))]

    def generate(self, windows: Sequence[Window], decoding: Decoding) -> list[list[Scored]]:
        """Token sequences after the start token (with the end token) and their scores, best first, per window."""
        check(decoding)
        out: list[list[Scored]] = [[] for _ in windows]
        width = decoding.beams if isinstance(decoding, Beam) else 1
        width = decoding.returned if isinstance(decoding, Sampling) else width
        rows_at_once = max(1, self._profile.max_beams // width)
        for rows, _, outputs in forward(self._encoder, windows, self._role.pad_id, self._profile):
            keys = dict(zip(self._encoder.outputs, outputs, strict=True))
            longest = keys[self._encoder.outputs[0]].shape[2]
            mask = np.zeros((len(rows), longest), dtype=np.int64)
            for place, row in enumerate(rows):
                mask[place, : len(windows[row].ids)] = 1
            for at in range(0, len(rows), rows_at_once):
                part = slice(at, at + rows_at_once)
                step = _Decoder(self._decoder, self._role, {k: v[part] for k, v in keys.items()}, mask[part])
                if isinstance(decoding, Sampling):
                    found = self._sample(step, [windows[row] for row in rows[part]], decoding)
                else:
                    found = self._search(step, len(rows[part]), decoding)
                for row, sequences in zip(rows[part], found, strict=True):
                    out[row] = sequences
        return out

    def _search(self, step: _Decoder, sources: int, decoding: Beam | Greedy) -> list[list[Scored]]:
        beam = decoding if isinstance(decoding, Beam) else Beam(beams=1, returned=1)
        search = _native.BeamSearch(
            sources=sources,
            beams=beam.beams,
            returned=beam.returned,
            start=self._role.start_id,
            eos=list(self._role.eos_ids),
            vocabulary=self._role.vocabulary,
            max_length=decoding.max_length,
            min_length=decoding.min_length,
            no_repeat_ngram=decoding.no_repeat_ngram,
            length_penalty=beam.length_penalty,
            early_stopping=beam.early_stopping,
        )
        closed = False
        while not closed:
            scores, candidates = step(search.tokens(), search.parents(), search.wanted())
            closed = search.advance(scores, candidates)
            if not closed:
                step.keep(search.open())
        return search.results()

    def _sample(self, step: _Decoder, windows: Sequence[Window], decoding: Sampling) -> list[list[Scored]]:
        draws = [[_stream(window, decoding.seed, k) for k in range(decoding.returned)] for window in windows]
        width = decoding.returned
        sequences: list[list[list[int]]] = [[[] for _ in range(width)] for _ in windows]
        totals = np.zeros((len(windows), width))
        count = decoding.top_k or self._role.vocabulary
        tokens = np.full((len(windows), 1), self._role.start_id, dtype=np.int64)
        parents = np.zeros((len(windows), 1), dtype=np.int64)
        for length in range(1, decoding.max_length):
            # Banned tokens are removed before the warpers, so ask for as many more.
            extra = (length if decoding.no_repeat_ngram else 0) + len(self._role.eos_ids)
            scores, candidates = step(tokens, parents, min(count + extra, self._role.vocabulary))
            tokens = np.full((len(windows), width), self._role.pad_id, dtype=np.int64)
            parents = np.broadcast_to(np.arange(width) if length > 1 else 0, tokens.shape).astype(np.int64)
            for row, streams in enumerate(draws):
                for k, stream in enumerate(streams):
                    so_far = sequences[row][k]
                    if so_far and so_far[-1] in self._role.eos_ids:
                        continue
                    place = k if length > 1 else 0
                    banned = _banned([self._role.start_id, *so_far], decoding.no_repeat_ngram)
                    if length < decoding.min_length:
                        banned |= set(self._role.eos_ids)
                    token, value = _draw(scores[row, place], candidates[row, place], banned, decoding, stream.random())
                    so_far.append(token)
                    totals[row, k] += value
                    tokens[row, k] = token
            if all(one[-1] in self._role.eos_ids for row in sequences for one in row):
                break
        return [
            sorted(
                ((ids, float(total) / max(1, len(ids))) for ids, total in zip(found, totals[row], strict=True)),
                key=lambda item: -item[1],
            )
            for row, found in enumerate(sequences)
        ]

    def _clean(self, ids: Sequence[int]) -> str:
        return self._text.decode(ids).removeprefix(self._role.strip_prefix).strip()


class _Decoder:
    """The decoder step graph over a batch of sources, with its keys and values left where the graph put them."""

    def __init__(self, session: Session, role: GeneratorRole, cross: dict[str, Array], mask: Array) -> None:
        self._session = session
        self._cross = {name: session.value(value) for name, value in cross.items()}
        self._mask = session.value(mask)
        self._layers = range(role.layers)
        half = session.input_types.get("past.key.0") == "tensor(float16)"
        empty = np.zeros((len(mask), 1, role.heads, 0, role.head_dim), dtype=np.float16 if half else np.float32)
        self._past = {f"{part}.{i}": session.value(empty) for part in ("key", "value") for i in self._layers}

    def __call__(self, tokens: Array, parents: Array, count: int) -> tuple[Array, Array]:
        feeds = {
            "tokens": self._session.value(tokens),
            "parents": self._session.value(parents),
            "cross_mask": self._mask,
            "count": self._session.value(np.array([count], dtype=np.int64)),
            **self._cross,
            **{f"past.{name}": value for name, value in self._past.items()},
        }
        out = self._session.run_values(feeds, host=("scores", "candidates"))
        self._past = {name: out[f"present.{name}"] for name in self._past}
        scores = out["scores"].numpy()
        if np.isnan(scores).any():
            raise ModelError("The generator gave numbers that are not finite; its graph is broken.")
        return scores, out["candidates"].numpy()

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        if len(rows) == self._mask.shape()[0]:
            return
        value = self._session.value
        self._cross = {name: value(held.numpy()[rows]) for name, held in self._cross.items()}
        self._past = {name: value(held.numpy()[rows]) for name, held in self._past.items()}
        self._mask = value(self._mask.numpy()[rows])


def check(decoding: Decoding) -> None:
    """Raise InvalidRequest for settings outside their range."""
    rules: list[tuple[bool, str]] = []
    if isinstance(decoding, Beam):
        rules = [
            (1 <= decoding.beams <= 64, f"beams={decoding.beams}; allowed are 1 to 64"),
            (1 <= decoding.returned <= decoding.beams, f"returned={decoding.returned}; allowed are 1 to beams"),
            (math.isfinite(decoding.length_penalty), f"length_penalty={decoding.length_penalty}; it must be finite"),
        ]
    elif isinstance(decoding, Sampling):
        rules = [
            (1 <= decoding.returned <= 64, f"returned={decoding.returned}; allowed are 1 to 64"),
            (decoding.top_k >= 0, f"top_k={decoding.top_k}; allowed are 0 (all) and above"),
            (0 < decoding.top_p <= 1, f"top_p={decoding.top_p}; allowed is above 0 up to 1"),
            (decoding.temperature > 0, f"temperature={decoding.temperature}; allowed is above 0"),
            (decoding.seed >= 0, f"seed={decoding.seed}; allowed are 0 and above"),
        ]
    rules += [
        (2 <= decoding.max_length <= 1024, f"max_length={decoding.max_length}; allowed are 2 to 1024"),
        (
            0 <= decoding.min_length <= decoding.max_length,
            f"min_length={decoding.min_length}; allowed are 0 to max_length",
        ),
        (decoding.no_repeat_ngram >= 0, f"no_repeat_ngram={decoding.no_repeat_ngram}; allowed are 0 (off) and above"),
    ]
    for fine, message in rules:
        if not fine:
            raise InvalidRequest(f"{type(decoding).__name__}: {message}.")


def _stream(window: Window, seed: int, number: int) -> np.random.Generator:
    # The draws depend on the source and the seed, not on the batch or the order of requests.
    digest = hashlib.sha256(np.asarray(window.ids, dtype=np.int64).tobytes()).digest()
    return np.random.default_rng([seed, number, int.from_bytes(digest[:8], "little")])


def _banned(sequence: list[int], size: int) -> set[int]:
    if size <= 0 or len(sequence) < size:
        return set()
    tail = sequence[len(sequence) - size + 1 :] if size > 1 else []
    return {sequence[i + size - 1] for i in range(len(sequence) - size + 1) if sequence[i : i + size - 1] == tail}


def _draw(scores: Array, candidates: Array, banned: set[int], decoding: Sampling, uniform: float) -> tuple[int, float]:
    allowed = np.array([token not in banned for token in candidates.tolist()])
    scores, candidates = scores[allowed], candidates[allowed]
    if decoding.top_k:
        scores, candidates = scores[: decoding.top_k], candidates[: decoding.top_k]
    weights = softmax(scores / decoding.temperature)
    mass = np.cumsum(weights)
    kept = int(np.searchsorted(mass, decoding.top_p, side="left")) + 1
    place = int(np.searchsorted(mass[:kept], uniform * mass[min(kept, len(mass)) - 1], side="right"))
    place = min(place, len(mass[:kept]) - 1)
    return int(candidates[place]), float(scores[place])
