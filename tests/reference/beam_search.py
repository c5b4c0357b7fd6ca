"""Beam search over one source that scores the whole vocabulary, after transformers' GenerationMixin._beam_search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Prefix = tuple[int, ...]
LogProbs = Callable[[Prefix], NDArray[np.float32]]


class Options(NamedTuple):
    """The settings of one search, named as those of BeamSearch."""

    num_beams: int
    num_return_sequences: int
    start: int
    eos: tuple[int, ...]
    max_length: int
    min_length: int
    no_repeat_ngram_size: int
    length_penalty: float
    early_stopping: bool


class Hypothesis(NamedTuple):
    """Tokens from the start token on, and a score."""

    tokens: Prefix
    score: np.float32


def banned(prefix: Prefix, options: Options) -> set[int]:
    """Return the tokens that may not follow ``prefix``."""
    tokens = set(options.eos) if len(prefix) < options.min_length else set()
    n = options.no_repeat_ngram_size
    if n > 0:
        ngrams = [prefix[i : i + n] for i in range(len(prefix) - n + 1)]
        tokens |= {ngram[-1] for ngram in ngrams if ngram[:-1] == prefix[len(prefix) - n + 1 :]}
    return tokens


def beam_search(log_probs: LogProbs, options: Options) -> list[tuple[list[int], float]]:
    """Return the best finished hypotheses: tokens after the start token, score."""
    kept = max(2, 1 + len(options.eos)) * options.num_beams
    running = [Hypothesis((options.start,), np.float32(0))]
    finished: list[Hypothesis] = []
    while running:
        continuations = _continuations(running, log_probs, options)[:kept]
        length = len(running[0].tokens)
        divisor = np.float32(length**options.length_penalty)
        running = []
        for rank, continuation in enumerate(continuations):
            if length + 1 < options.max_length and continuation.tokens[-1] not in options.eos:
                running.append(continuation)
            elif rank < options.num_beams:
                finished.append(Hypothesis(continuation.tokens, continuation.score / divisor))
        running = running[: options.num_beams]
        finished = sorted(finished, key=lambda hypothesis: -hypothesis.score)[: options.num_beams]
        if len(finished) == options.num_beams and (
            options.early_stopping or not running or running[0].score / divisor <= finished[-1].score
        ):
            break
    best = finished[: options.num_return_sequences]
    return [(list(hypothesis.tokens[1:]), float(hypothesis.score)) for hypothesis in best]


def _continuations(running: Sequence[Hypothesis], log_probs: LogProbs, options: Options) -> list[Hypothesis]:
    continuations = []
    for beam in running:
        forbidden = banned(beam.tokens, options)
        for token, score in enumerate(log_probs(beam.tokens)):
            if token not in forbidden and score > -np.inf:
                continuations.append(Hypothesis((*beam.tokens, token), np.float32(beam.score + score)))
    return sorted(continuations, key=lambda hypothesis: -hypothesis.score)
