"""Beam search, greedy search, sampling and their mixtures over a decoder step, whatever graph computes it.

``beam_search`` and ``sample`` are generators: they yield the paths of the beams after every step, and return the
finished sequences. So the same loop serves a complete response and a streamed response.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..calls import BeamSampling, BeamSearch, Decoding, DelayedBeamSearch, Greedy, Sampling
from ..errors import InvalidRequest
from ..ort.session import Array, softmax

T = TypeVar("T")
Ids = tuple[int, ...]
Values = tuple[float, ...]


class TokenCandidates(NamedTuple):
    """The next tokens that a step proposes for every beam, the best first."""

    scores: Array
    """[A, K, C]: of a log-probability's kind, so that sums over a sequence rank it; -inf rules a token out."""
    tokens: Array
    """[A, K, C]"""
    values: tuple[Array, ...] = ()
    """Further numbers to report with a chosen token, [A, K, C] each."""


class BeamPath(NamedTuple):
    """The tokens that a beam has generated after the start token."""

    ids: Ids = ()
    total: float = 0.0
    """Sum of scores."""
    values: tuple[Values, ...] = ()
    """``TokenCandidates.values`` of each token."""


class DecodedSequence(NamedTuple):
    """A finished sequence."""

    ids: list[int]
    """After the start token, with the end token."""
    score: float
    """transformers' ``sequences_scores`` for beams, the mean of a token's score otherwise."""
    values: tuple[Values, ...] = ()
    """``TokenCandidates.values`` of each token, when the step uses the paths."""


StepHistory = Sequence[Sequence[BeamPath]]
"""The paths of the beams of each open source, up to the current step."""
DecodingRun = Generator[StepHistory, None, list[list[DecodedSequence]]]
"""Decoding as a generator: yields the history after every step, and returns each source's sequences, best first."""


class DecoderStep(Protocol):
    """A decoder over the open sources of a batch."""

    uses_history: bool
    """Whether it needs the history, and itself rules out tokens that would repeat an n-gram or end too early."""

    def __call__(self, tokens: Array, parents: Array, count: int, history: StepHistory) -> TokenCandidates:
        """The ``count`` best continuations of every beam; ``tokens`` and ``parents`` [A, K]."""
        ...

    def keep_sources(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        ...


class Vocabulary(NamedTuple):
    """A model's special tokens and the number of all its tokens."""

    start: int
    eos: tuple[int, ...]
    pad: int
    size: int


def run_to_end(generator: Generator[object, None, T]) -> T:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            result: T = stop.value
            return result


def decode(
    step: DecoderStep, windows: Sequence[Sequence[int]], decoding: Decoding, vocabulary: Vocabulary
) -> DecodingRun:
    """Decode every source, best sequence first; ``windows`` are their ids, which seed the random numbers."""
    if isinstance(decoding, Sampling):
        return sample(step, windows, decoding, vocabulary)
    return beam_search(step, windows, decoding, vocabulary)


def beam_search(
    step: DecoderStep,
    windows: Sequence[Sequence[int]],
    decoding: BeamSearch | Greedy | BeamSampling | DelayedBeamSearch,
    vocabulary: Vocabulary,
) -> DecodingRun:
    """Run beam search; one beam is greedy search. BeamSampling draws the continuations of the beams at every step,
    DelayedBeamSearch the only one at its first steps.
    """
    beam = BeamSearch(num_beams=1, num_return_sequences=1) if isinstance(decoding, Greedy) else decoding
    search = _native.BeamSearch(
        sources=len(windows),
        num_beams=beam.num_beams,
        num_return_sequences=beam.num_return_sequences,
        start=vocabulary.start,
        eos=list(vocabulary.eos),
        vocabulary=vocabulary.size,
        max_length=decoding.max_new_tokens + 1,  # the native search counts the start token
        min_length=0 if step.uses_history else _min_length(decoding),
        no_repeat_ngram_size=0 if step.uses_history else decoding.no_repeat_ngram_size,
        length_penalty=beam.length_penalty,
        early_stopping=beam.early_stopping,
    )
    sampling = decoding if isinstance(decoding, BeamSampling | DelayedBeamSearch) else None
    rngs = [create_rng(window, sampling.seed, 0) for window in windows] if sampling else []
    tracker = _PathTracker(len(windows), vocabulary, decoding.max_new_tokens) if step.uses_history or sampling else None
    closed = False
    while not closed:
        count = search.wanted()
        if sampling:
            # Tokens that may not be used come on top where the step does not rule them out; wanted() counts them too.
            count = min(count + (sampling.top_k or vocabulary.size), vocabulary.size)
        candidates = step(search.tokens(), search.parents(), count, tracker.history if tracker else ())
        if tracker and sampling:
            candidates = _draw_candidates(
                candidates, tracker, rngs, sampling, None if step.uses_history else vocabulary
            )
            if isinstance(sampling, DelayedBeamSearch) and tracker.length + 1 >= sampling.delay_steps:
                sampling = None
        closed = search.advance(candidates.scores, candidates.tokens)
        if tracker:
            tracker.advance(candidates, search)
        if not closed:
            step.keep_sources(search.open())
            yield tracker.history if tracker else ()
    return [
        [DecodedSequence(ids, score, tracker.get_values(source, tuple(ids)) if tracker else ()) for ids, score in pairs]
        for source, pairs in enumerate(search.results())
    ]


def sample(
    step: DecoderStep, windows: Sequence[Sequence[int]], decoding: Sampling, vocabulary: Vocabulary
) -> DecodingRun:
    """Draw ``decoding.num_return_sequences`` sequences per source; the most probable comes first."""
    rngs = [[create_rng(window, decoding.seed, k) for k in range(decoding.num_return_sequences)] for window in windows]
    paths: list[list[BeamPath]] = [[BeamPath()] * decoding.num_return_sequences for _ in windows]
    shape = (len(windows), decoding.num_return_sequences)
    count = decoding.top_k or vocabulary.size
    tokens = np.full((len(windows), 1), vocabulary.start, dtype=np.int64)
    parents = np.zeros_like(tokens)
    for length in range(1, decoding.max_new_tokens + 1):  # the length after this step
        # A step that does not use the history rules nothing out, so ask for as many more as may be banned.
        extra = 0 if step.uses_history else (length if decoding.no_repeat_ngram_size else 0) + len(vocabulary.eos)
        history = paths if length > 1 else [row[:1] for row in paths]
        candidates = step(tokens, parents, min(count + extra, vocabulary.size), history)
        tokens = np.full(shape, vocabulary.pad, dtype=np.int64)
        parents = np.broadcast_to(np.arange(decoding.num_return_sequences) if length > 1 else 0, shape).astype(np.int64)
        for row, row_rngs in enumerate(rngs):
            for k, rng in enumerate(row_rngs):
                path = paths[row][k]
                if _has_ended(path, length - 1, vocabulary):
                    continue
                beam = k if length > 1 else 0
                banned = (
                    set()
                    if step.uses_history
                    else find_banned_tokens((vocabulary.start, *path.ids), decoding, vocabulary.eos)
                )
                scores, row_tokens = candidates.scores[row, beam], candidates.tokens[row, beam]
                chosen = _draw_token(scores, row_tokens, banned, decoding, rng.random())
                if chosen is None:
                    continue
                tokens[row, k] = row_tokens[chosen]
                paths[row][k] = _extend_path(path, candidates, row, beam, chosen)
        if all(_has_ended(path, length, vocabulary) for row in paths for path in row):
            break
        yield paths
    return [
        sorted(
            (DecodedSequence(list(path.ids), path.total / max(1, len(path.ids)), path.values) for path in row),
            key=lambda sequence: -sequence.score,
        )
        for row in paths
    ]


def find_banned_tokens(prefix: Ids, decoding: Decoding, eos: Sequence[int]) -> set[int]:
    """The tokens that may not follow ``prefix``, which has the start token where there is one."""
    banned = set(eos) if len(prefix) < _min_length(decoding) else set()
    size = decoding.no_repeat_ngram_size
    if size > 0:
        tail = prefix[len(prefix) - size + 1 :] if size > 1 else ()
        starts = range(len(prefix) - size + 1)
        banned |= {prefix[i + size - 1] for i in starts if prefix[i : i + size - 1] == tail}
    return banned


def _min_length(decoding: Decoding) -> int:
    """The tokens that a sequence must have before it may end, the start token included; 0 for any."""
    return decoding.min_new_tokens + 1 if decoding.min_new_tokens else 0


def check_decoding(decoding: Decoding) -> None:
    """Raise InvalidRequest for settings outside their range."""
    rules: list[tuple[bool, str]] = []
    if isinstance(decoding, BeamSearch | BeamSampling | DelayedBeamSearch):
        rules += [
            (1 <= decoding.num_beams <= 64, f"num_beams={decoding.num_beams}; allowed are 1 to 64"),
            (
                1 <= decoding.num_return_sequences <= decoding.num_beams,
                f"num_return_sequences={decoding.num_return_sequences}; allowed are 1 to num_beams",
            ),
            (math.isfinite(decoding.length_penalty), f"length_penalty={decoding.length_penalty}; it must be finite"),
        ]
    if isinstance(decoding, Sampling):
        rules += [
            (
                1 <= decoding.num_return_sequences <= 64,
                f"num_return_sequences={decoding.num_return_sequences}; allowed are 1 to 64",
            )
        ]
    if isinstance(decoding, Sampling | BeamSampling | DelayedBeamSearch):
        rules += [
            (decoding.top_k >= 0, f"top_k={decoding.top_k}; allowed are 0 (all) and above"),
            (decoding.seed >= 0, f"seed={decoding.seed}; allowed are 0 and above"),
        ]
    if isinstance(decoding, Sampling | BeamSampling):
        rules += [
            (0 < decoding.top_p <= 1, f"top_p={decoding.top_p}; allowed is above 0 up to 1"),
            (decoding.temperature > 0, f"temperature={decoding.temperature}; allowed is above 0"),
        ]
    if isinstance(decoding, DelayedBeamSearch):
        rules += [(decoding.delay_steps >= 1, f"delay_steps={decoding.delay_steps}; allowed are 1 and above")]
    rules += [
        (1 <= decoding.max_new_tokens <= 1023, f"max_new_tokens={decoding.max_new_tokens}; allowed are 1 to 1023"),
        (
            0 <= decoding.min_new_tokens <= decoding.max_new_tokens,
            f"min_new_tokens={decoding.min_new_tokens}; allowed are 0 to max_new_tokens",
        ),
        (
            decoding.no_repeat_ngram_size >= 0,
            f"no_repeat_ngram_size={decoding.no_repeat_ngram_size}; allowed are 0 (off) and above",
        ),
    ]
    for holds, message in rules:
        if not holds:
            raise InvalidRequest(f"{type(decoding).__name__}: {message}.")


def create_rng(ids: Sequence[int], seed: int, number: int) -> np.random.Generator:
    """Random numbers that depend on the source and the seed, not on the batch or the order of requests."""
    digest = hashlib.sha256(np.asarray(ids, dtype=np.int64).tobytes()).digest()
    return np.random.default_rng([seed, number, int.from_bytes(digest[:8], "little")])


class _PathTracker:
    """The paths of a search's beams with the values of every token; the search itself keeps ids and scores."""

    def __init__(self, sources: int, vocabulary: Vocabulary, max_new_tokens: int) -> None:
        self.history: list[list[BeamPath]] = [[BeamPath()] for _ in range(sources)]
        self.sources = list(range(sources))
        """Which source each row of ``history`` belongs to."""
        self._eos = np.array(vocabulary.eos, dtype=np.int64)
        self._last = max_new_tokens
        self._ended: dict[tuple[int, Ids], tuple[Values, ...]] = {}

    def advance(self, candidates: TokenCandidates, search: _native.BeamSearch) -> None:
        """Record the paths that may have ended with the last step of ``search``, and extend the other paths."""
        length = self.length + 1
        ends = np.isfinite(candidates.scores)
        if length < self._last:
            ends &= np.isin(candidates.tokens, self._eos)
        for row, beam, candidate in np.argwhere(ends).tolist():
            path = _extend_path(self.history[row][beam], candidates, row, beam, candidate)
            self._ended[self.sources[row], path.ids] = path.values
        rows = search.open().tolist()
        beams = zip(rows, search.parents().tolist(), search.tokens().tolist(), strict=True)
        self.history = [self._extend_row(candidates, row, parents, tokens) for row, parents, tokens in beams]
        self.sources = [self.sources[row] for row in rows]

    @property
    def length(self) -> int:
        """Tokens of every path."""
        return len(self.history[0][0].ids)

    def get_values(self, source: int, ids: Ids) -> tuple[Values, ...]:
        """``BeamPath.values`` of a sequence that ended."""
        return self._ended[source, ids]

    def _extend_row(
        self, candidates: TokenCandidates, row: int, parents: list[int], tokens: list[int]
    ) -> list[BeamPath]:
        paths: list[BeamPath] = []
        for parent, token in zip(parents, tokens, strict=True):
            matches = np.flatnonzero(candidates.tokens[row, parent] == token)
            path = BeamPath((*self.history[row][parent].ids, token), -math.inf)
            # A beam that no continuation was left for carries a token that ends, is ruled out or is a repetition.
            if len(matches) and token not in self._eos and all(path.ids != other.ids for other in paths):
                path = _extend_path(self.history[row][parent], candidates, row, parent, int(matches[0]))
            paths.append(path)
        return paths


def _has_ended(path: BeamPath, length: int, vocabulary: Vocabulary) -> bool:
    """Whether a path ended, or was left without a token to go on with, before ``length`` tokens."""
    return len(path.ids) < length or (length > 0 and path.ids[-1] in vocabulary.eos)


def _extend_path(path: BeamPath, candidates: TokenCandidates, row: int, beam: int, candidate: int) -> BeamPath:
    return BeamPath(
        (*path.ids, int(candidates.tokens[row, beam, candidate])),
        path.total + float(candidates.scores[row, beam, candidate]),
        (*path.values, tuple(float(value[row, beam, candidate]) for value in candidates.values)),
    )


def _draw_candidates(
    candidates: TokenCandidates,
    tracker: _PathTracker,
    rngs: Sequence[np.random.Generator],
    decoding: BeamSampling | DelayedBeamSearch,
    vocabulary: Vocabulary | None,
) -> TokenCandidates:
    """Draw continuations of each source, and rule out all others.

    BeamSampling draws twice as many as there are beams, without replacement: it takes the largest sums of log-weight
    and Gumbel noise. A drawn continuation keeps its score divided by the temperature, as in transformers, where beams
    sum the scores that the warpers leave. DelayedBeamSearch draws one, of the first beam, so that no other beam has a
    continuation; it keeps its score. ``vocabulary`` is None where the step has ruled out banned tokens already.
    """
    scores = np.full_like(candidates.scores, -np.inf)
    for row, source in enumerate(tracker.sources):
        paths = tracker.history[row]
        banned = [
            find_banned_tokens((vocabulary.start, *path.ids), decoding, vocabulary.eos) if vocabulary else set()
            for path in paths
        ]
        if isinstance(decoding, DelayedBeamSearch):
            row_scores, top_k = candidates.scores[row, 0], Sampling(top_k=decoding.top_k, top_p=1.0)
            chosen = _draw_token(row_scores, candidates.tokens[row, 0], banned[0], top_k, rngs[source].random())
            if chosen is not None:
                scores[row, 0, chosen] = row_scores[chosen]
            continue
        warped = np.stack(
            [
                _warp_scores(candidates.scores[row, beam], candidates.tokens[row, beam], banned[beam], decoding)
                for beam in range(len(paths))
            ]
        )
        totals = np.array([path.total for path in paths])[:, None]
        drawn = (warped + totals + rngs[source].gumbel(size=warped.shape)).ravel()
        best = np.argsort(-drawn, kind="stable")[: 2 * decoding.num_beams]
        best = best[np.isfinite(drawn[best])]
        scores[row].reshape(-1)[best] = warped.reshape(-1)[best]
    return candidates._replace(scores=scores)


def _warp_scores(
    scores: Array, tokens: Array, banned: set[int], decoding: Sampling | BeamSampling
) -> NDArray[np.float64]:
    """Scores of one beam divided by the temperature; -inf for tokens that are banned or outside top-k and top-p."""
    warped = scores.astype(np.float64) / decoding.temperature
    if banned:
        warped[np.isin(tokens, list(banned))] = -np.inf
    allowed = np.flatnonzero(warped > -np.inf)
    if decoding.top_k:
        warped[allowed[decoding.top_k :]] = -np.inf
        allowed = allowed[: decoding.top_k]
    if decoding.top_p < 1 and len(allowed):
        mass = np.cumsum(softmax(warped[allowed]))
        count = int(np.searchsorted(mass, decoding.top_p, side="left")) + 1
        warped[allowed[count:]] = -np.inf
    return warped


def _draw_token(scores: Array, tokens: Array, banned: set[int], decoding: Sampling, uniform: float) -> int | None:
    """The index of the drawn candidate; None when nothing is left to draw from."""
    warped = _warp_scores(scores, tokens, banned, decoding)
    allowed = np.flatnonzero(warped > -np.inf)
    if not len(allowed):
        return None
    mass = np.cumsum(softmax(warped[allowed]))
    drawn = int(np.searchsorted(mass, uniform * mass[-1], side="right"))
    return int(allowed[min(drawn, len(allowed) - 1)])
