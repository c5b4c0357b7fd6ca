"""Beam search, greedy search, sampling and beam sampling over a decoder step, whatever graph stands behind it.

``search`` and ``sample`` are generators: they yield after every step, with what has been written so far, and return the
finished sequences. So the same loop serves a whole response and one that is streamed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from groundwire.runtime import _native
from groundwire.runtime.calls import BeamSampling, BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.models.classifier import softmax
from groundwire.runtime.ort.session import Array

T = TypeVar("T")
Ids = tuple[int, ...]
Values = tuple[float, ...]


class Candidates(NamedTuple):
    """What a step brings for every beam, the best first."""

    scores: Array
    """[A, K, C]: of a log-probability's kind, so that sums over a sequence rank it; -inf rules a token out."""
    tokens: Array
    """[A, K, C]"""
    values: tuple[Array, ...] = ()
    """What else is to be known of a chosen token, [A, K, C] each."""


class Path(NamedTuple):
    """What a beam has written after the start token."""

    ids: Ids = ()
    total: float = 0.0
    """Sum of scores."""
    values: tuple[Values, ...] = ()
    """``Candidates.values`` of each token."""


class Decoded(NamedTuple):
    """A finished sequence."""

    ids: list[int]
    """After the start token, with the end token."""
    score: float
    """transformers' ``sequences_scores`` for beams, the mean of a token's score otherwise."""
    values: tuple[Values, ...] = ()
    """``Candidates.values`` of each token, when the step was followed."""


Written = Sequence[Sequence[Path]]
"""What the beams of each open source have written so far."""
Steps = Generator[Written, None, list[list[Decoded]]]


class Step(Protocol):
    """A decoder over the open sources of a batch."""

    follows: bool
    """Whether it must be told what was written, and takes out itself what may not be written again or ended yet."""

    def __call__(self, tokens: Array, parents: Array, count: int, written: Written) -> Candidates:
        """The ``count`` best continuations of every beam; ``tokens`` and ``parents`` [A, K]."""
        ...

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop the sources that are closed; ``rows`` are the positions of those still open."""
        ...


class Language(NamedTuple):
    """What decoding must know of a model's tokens."""

    start: int
    eos: tuple[int, ...]
    pad: int
    vocabulary: int


def drain(steps: Generator[object, None, T]) -> T:
    """Run a generator to its end and give what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result


def decode(step: Step, windows: Sequence[Sequence[int]], decoding: Decoding, language: Language) -> Steps:
    """Decode every source, best sequence first; ``windows`` are their ids, which seed what is drawn."""
    if isinstance(decoding, Sampling):
        return sample(step, windows, decoding, language)
    return search(step, windows, decoding, language)


def width(decoding: Decoding) -> int:
    """How many sequences of a source a step continues."""
    match decoding:
        case BeamSearch() | BeamSampling():
            return decoding.num_beams
        case Sampling():
            return decoding.num_return_sequences
        case Greedy():
            return 1


def search(
    step: Step, windows: Sequence[Sequence[int]], decoding: BeamSearch | Greedy | BeamSampling, language: Language
) -> Steps:
    """Beam search, or with BeamSampling beams whose continuations are drawn; one beam is greedy search."""
    beam = BeamSearch(num_beams=1, num_return_sequences=1) if isinstance(decoding, Greedy) else decoding
    found = _native.BeamSearch(
        sources=len(windows),
        num_beams=beam.num_beams,
        num_return_sequences=beam.num_return_sequences,
        start=language.start,
        eos=list(language.eos),
        vocabulary=language.vocabulary,
        max_length=decoding.max_new_tokens + 1,  # the native search counts the start token
        min_length=0 if step.follows else _min_length(decoding),
        no_repeat_ngram_size=0 if step.follows else decoding.no_repeat_ngram_size,
        length_penalty=beam.length_penalty,
        early_stopping=beam.early_stopping,
    )
    drawn = decoding if isinstance(decoding, BeamSampling) else None
    streams = [stream(window, drawn.seed, 0) for window in windows] if drawn else []
    trail = _Trail(len(windows), language, decoding.max_new_tokens) if step.follows or drawn else None
    closed = False
    while not closed:
        count = found.wanted()
        if drawn:
            # What a step that does not follow may not use comes on top; wanted() counts that too.
            count = min(count + (drawn.top_k or language.vocabulary), language.vocabulary)
        candidates = step(found.tokens(), found.parents(), count, trail.written if trail else ())
        if trail and drawn:
            candidates = _thinned(candidates, trail, streams, drawn, None if step.follows else language)
        closed = found.advance(candidates.scores, candidates.tokens)
        if trail:
            trail.advance(candidates, found)
        if not closed:
            step.keep(found.open())
            yield trail.written if trail else ()
    return [
        [Decoded(ids, score, trail.values(source, tuple(ids)) if trail else ()) for ids, score in sequences]
        for source, sequences in enumerate(found.results())
    ]


def sample(step: Step, windows: Sequence[Sequence[int]], decoding: Sampling, language: Language) -> Steps:
    """``decoding.num_return_sequences`` drawn sequences per source, the most probable first."""
    draws = [[stream(window, decoding.seed, k) for k in range(decoding.num_return_sequences)] for window in windows]
    paths: list[list[Path]] = [[Path()] * decoding.num_return_sequences for _ in windows]
    shape = (len(windows), decoding.num_return_sequences)
    count = decoding.top_k or language.vocabulary
    tokens = np.full((len(windows), 1), language.start, dtype=np.int64)
    parents = np.zeros_like(tokens)
    for length in range(1, decoding.max_new_tokens + 1):  # the length after this step
        # A step that does not follow takes nothing out, so ask for as many more as may be banned.
        extra = 0 if step.follows else (length if decoding.no_repeat_ngram_size else 0) + len(language.eos)
        written = paths if length > 1 else [row[:1] for row in paths]
        found = step(tokens, parents, min(count + extra, language.vocabulary), written)
        tokens = np.full(shape, language.pad, dtype=np.int64)
        parents = np.broadcast_to(np.arange(decoding.num_return_sequences) if length > 1 else 0, shape).astype(np.int64)
        for row, streams in enumerate(draws):
            for k, drawn in enumerate(streams):
                path = paths[row][k]
                if _over(path, length - 1, language):
                    continue
                place = k if length > 1 else 0
                banned = set() if step.follows else blocked((language.start, *path.ids), decoding, language.eos)
                chosen = _draw(found.scores[row, place], found.tokens[row, place], banned, decoding, drawn.random())
                if chosen is None:
                    continue
                tokens[row, k] = found.tokens[row, place, chosen]
                paths[row][k] = _continued(path, found, row, place, chosen)
        if all(_over(path, length, language) for row in paths for path in row):
            break
        yield paths
    return [
        sorted(
            (Decoded(list(path.ids), path.total / max(1, len(path.ids)), path.values) for path in row),
            key=lambda one: -one.score,
        )
        for row in paths
    ]


def blocked(written: Ids, decoding: Decoding, eos: Sequence[int]) -> set[int]:
    """The tokens that may not follow ``written``, which has the start token where there is one."""
    found = set(eos) if len(written) < _min_length(decoding) else set()
    size = decoding.no_repeat_ngram_size
    if size > 0:
        tail = written[len(written) - size + 1 :] if size > 1 else ()
        places = range(len(written) - size + 1)
        found |= {written[i + size - 1] for i in places if written[i : i + size - 1] == tail}
    return found


def _min_length(decoding: Decoding) -> int:
    """The tokens that a sequence must have before it may end, the start token included; 0 for any."""
    return decoding.min_new_tokens + 1 if decoding.min_new_tokens else 0


def check(decoding: Decoding) -> None:
    """Raise InvalidRequest for settings outside their range."""
    rules: list[tuple[bool, str]] = []
    if isinstance(decoding, BeamSearch | BeamSampling):
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
    if isinstance(decoding, Sampling | BeamSampling):
        rules += [
            (decoding.top_k >= 0, f"top_k={decoding.top_k}; allowed are 0 (all) and above"),
            (0 < decoding.top_p <= 1, f"top_p={decoding.top_p}; allowed is above 0 up to 1"),
            (decoding.temperature > 0, f"temperature={decoding.temperature}; allowed is above 0"),
            (decoding.seed >= 0, f"seed={decoding.seed}; allowed are 0 and above"),
        ]
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
    for fine, message in rules:
        if not fine:
            raise InvalidRequest(f"{type(decoding).__name__}: {message}.")


def stream(ids: Sequence[int], seed: int, number: int) -> np.random.Generator:
    """Random numbers that depend on the source and the seed, not on the batch or the order of requests."""
    digest = hashlib.sha256(np.asarray(ids, dtype=np.int64).tobytes()).digest()
    return np.random.default_rng([seed, number, int.from_bytes(digest[:8], "little")])


class _Trail:
    """What the beams of a search wrote, with the values of every token; the search itself keeps ids and scores."""

    def __init__(self, sources: int, language: Language, max_new_tokens: int) -> None:
        self.written: list[list[Path]] = [[Path()] for _ in range(sources)]
        self.sources = list(range(sources))
        """Which source each row of ``written`` belongs to."""
        self._eos = np.array(language.eos, dtype=np.int64)
        self._last = max_new_tokens
        self._ended: dict[tuple[int, Ids], tuple[Values, ...]] = {}

    def advance(self, candidates: Candidates, search: _native.BeamSearch) -> None:
        """Note what may have ended with the step that ``search`` just took, and follow the beams that go on."""
        length = len(self.written[0][0].ids) + 1
        ends = np.isfinite(candidates.scores)
        if length < self._last:
            ends &= np.isin(candidates.tokens, self._eos)
        for row, beam, place in np.argwhere(ends).tolist():
            path = _continued(self.written[row][beam], candidates, row, beam, place)
            self._ended[self.sources[row], path.ids] = path.values
        rows = search.open().tolist()
        beams = zip(rows, search.parents().tolist(), search.tokens().tolist(), strict=True)
        self.written = [self._next(candidates, row, parents, tokens) for row, parents, tokens in beams]
        self.sources = [self.sources[row] for row in rows]

    def values(self, source: int, ids: Ids) -> tuple[Values, ...]:
        """``Path.values`` of a sequence that ended."""
        return self._ended[source, ids]

    def _next(self, candidates: Candidates, row: int, parents: list[int], tokens: list[int]) -> list[Path]:
        paths: list[Path] = []
        for parent, token in zip(parents, tokens, strict=True):
            places = np.flatnonzero(candidates.tokens[row, parent] == token)
            path = Path((*self.written[row][parent].ids, token), -math.inf)
            # A place that no continuation was left for carries a token that ends, is ruled out or is a repetition.
            if len(places) and token not in self._eos and all(path.ids != other.ids for other in paths):
                path = _continued(self.written[row][parent], candidates, row, parent, int(places[0]))
            paths.append(path)
        return paths


def _over(path: Path, length: int, language: Language) -> bool:
    """Whether a path ended, or was left without a token to go on with, before ``length`` tokens."""
    return len(path.ids) < length or (length > 0 and path.ids[-1] in language.eos)


def _continued(path: Path, candidates: Candidates, row: int, beam: int, place: int) -> Path:
    return Path(
        (*path.ids, int(candidates.tokens[row, beam, place])),
        path.total + float(candidates.scores[row, beam, place]),
        (*path.values, tuple(float(value[row, beam, place]) for value in candidates.values)),
    )


def _thinned(
    candidates: Candidates,
    trail: _Trail,
    streams: Sequence[np.random.Generator],
    decoding: BeamSampling,
    bans: Language | None,
) -> Candidates:
    """Rule out all continuations of a source but twice as many drawn ones as it has beams.

    Drawing without putting back is taking the largest sums of log-weight and Gumbel noise. What is drawn keeps its
    score divided by the temperature, as in transformers, where beams add up what the warpers leave.
    """
    scores = np.full_like(candidates.scores, -np.inf)
    for row, source in enumerate(trail.sources):
        paths = trail.written[row]
        banned = [blocked((bans.start, *path.ids), decoding, bans.eos) if bans else set() for path in paths]
        warped = np.stack(
            [
                _warped(candidates.scores[row, beam], candidates.tokens[row, beam], banned[beam], decoding)
                for beam in range(len(paths))
            ]
        )
        totals = np.array([path.total for path in paths])[:, None]
        drawn = (warped + totals + streams[source].gumbel(size=warped.shape)).ravel()
        best = np.argsort(-drawn, kind="stable")[: 2 * decoding.num_beams]
        best = best[np.isfinite(drawn[best])]
        scores[row].reshape(-1)[best] = warped.reshape(-1)[best]
    return candidates._replace(scores=scores)


def _warped(scores: Array, tokens: Array, banned: set[int], decoding: Sampling | BeamSampling) -> NDArray[np.float64]:
    """Scores of one beam by the temperature; -inf for what is banned or outside top-k and top-p."""
    warped = scores.astype(np.float64) / decoding.temperature
    if banned:
        warped[np.isin(tokens, list(banned))] = -np.inf
    places = np.flatnonzero(warped > -np.inf)
    if decoding.top_k:
        warped[places[decoding.top_k :]] = -np.inf
        places = places[: decoding.top_k]
    if decoding.top_p < 1 and len(places):
        mass = np.cumsum(softmax(warped[places]))
        kept = int(np.searchsorted(mass, decoding.top_p, side="left")) + 1
        warped[places[kept:]] = -np.inf
    return warped


def _draw(scores: Array, tokens: Array, banned: set[int], decoding: Sampling, uniform: float) -> int | None:
    """The place of the drawn candidate; None when nothing is left to draw from."""
    warped = _warped(scores, tokens, banned, decoding)
    places = np.flatnonzero(warped > -np.inf)
    if not len(places):
        return None
    mass = np.cumsum(softmax(warped[places]))
    place = int(np.searchsorted(mass, uniform * mass[-1], side="right"))
    return int(places[min(place, len(places) - 1)])
