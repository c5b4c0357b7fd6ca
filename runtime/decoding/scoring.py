"""What a language model scores: calls as token ids, and the interface of what runs them through a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..calls import Read
from ..texts.tokenization import Window


class ScoringInput(NamedTuple):
    """The ids of a call: the prefix that is read first, the tokens read with the text, and the tokens to predict."""

    past: tuple[int, ...]
    """The prefix but its last token."""
    new: list[int]
    """That token and the text but its last; the text alone without a prefix."""
    targets: list[int]
    """The token after each of ``new``."""
    text: Window
    read: Read


class TextScorer(Protocol):
    """A language model's graph on some device."""

    def score(self, inputs: Mapping[int, ScoringInput]) -> Iterable[tuple[int, NDArray[np.float32]]]:
        """The log-probabilities of each call's targets, in any order of the calls; ModelError when a run fails."""
        ...
