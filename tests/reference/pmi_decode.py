"""PMI-Decode one source and one token at a time, without a cache: the model reads everything again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Prefix = tuple[int, ...]
Floats = NDArray[np.float32]


def contrast(given: Sequence[float], without: Sequence[float], alpha: float, top_p: float) -> list[float]:
    """Score every token by the authors' formula, from its log-probabilities with and without the knowledge."""
    out = [-math.inf] * len(given)
    mass = 0.0
    for token in sorted(range(len(given)), key=lambda token: -given[token]):
        a, b = given[token], without[token]
        if a == -math.inf or (mass >= top_p and top_p < 1 and mass > 0):
            break
        mass += math.exp(a)
        cpmi = math.inf if b == -math.inf else a - b
        out[token] = (alpha * cpmi if alpha else 0.0) + (1 - alpha) * a
    return out


class PmiDecodeReference:
    """A model's log-probabilities given two contexts; every call reads the whole context again."""

    def __init__(self, model: Any, given: Sequence[int], alone: Sequence[int]) -> None:
        """``given`` and ``alone`` are the inputs with and without the knowledge: the prompts of a causal model."""
        self._model = model
        self._contexts = (list(given), list(alone))
        self._known: dict[tuple[int, Prefix], Floats] = {}

    def log_probs(self, context: int, prefix: Prefix) -> Floats:
        """Of every token after ``prefix``; ``context`` is 0 with the knowledge and 1 without.

        ``prefix`` begins with the decoder's start token, or with the last token of both prompts.
        """
        if (context, prefix) not in self._known:
            ids = self._contexts[context]
            with torch.no_grad():
                if self._model.config.is_encoder_decoder:
                    given = {"input_ids": torch.tensor([ids]), "decoder_input_ids": torch.tensor([prefix])}
                else:
                    given = {"input_ids": torch.tensor([[*ids, *prefix[1:]]])}
                logits = self._model(**given, use_cache=False).logits[0, -1]
            self._known[context, prefix] = torch.log_softmax(logits, -1).numpy()
        return self._known[context, prefix]

    def scores(self, alpha: float, top_p: float) -> Callable[[Prefix], Floats]:
        """The scores of the next token, as ``tests.reference.beam_search`` asks for them."""

        def of(prefix: Prefix) -> Floats:
            given, without = (self.log_probs(context, prefix).tolist() for context in (0, 1))
            return np.array(contrast(given, without, alpha, top_p), dtype=np.float32)

        return of

    def greedy(self, start: int, eos: Sequence[int], alpha: float, top_p: float, most: int) -> list[int]:
        """Up to ``most`` tokens, each the best one, until one of ``eos``."""
        scores, tokens = self.scores(alpha, top_p), []
        while len(tokens) < most and (not tokens or tokens[-1] not in eos):
            tokens.append(int(scores((start, *tokens)).argmax()))
        return tokens
