"""Length packing, answer spans and beam search, in C++.

Arrays must be C-contiguous and of the stated type: they are read in place, never copied or converted. Returned arrays
own their memory. Every function raises ValueError, naming what was given and what is allowed, for an array of another
type or shape, or a value out of range, and TypeError for an argument that is not an array or int at all. The GIL
is released while the core works.
"""

import numpy as np
from numpy.typing import NDArray

def bucket_width(length: int) -> int:
    """Return the width a row of ``length`` tokens is padded to.

    The next multiple of 8 up to 64, of 16 up to 256, of 32 above; never less than 8. Lengths are 0 to 2**30.
    """

def plan_batches(
    lengths: NDArray[np.int64], max_tokens: int, max_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cut rows into batches of one padded width each: ``(order [N], bounds [M + 1], widths [M])``.

    Batch ``m`` holds the rows ``order[bounds[m]:bounds[m + 1]]``, padded to ``widths[m]``. Rows are sorted by width,
    narrow first, and keep their order within a width. A batch has at most ``max_rows`` rows and ``max_tokens`` padded
    tokens; a row wider than that gets a batch of its own.
    """

def pad_rows(
    flat: NDArray[np.int64], offsets: NDArray[np.int64], rows: NDArray[np.int64], width: int, fill: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Copy ``rows`` of a ragged table into one batch: ``(ids [R, width], mask [R, width])``.

    Row ``r`` of the table is ``flat[offsets[r]:offsets[r + 1]]``; no chosen row may be longer than ``width``. The mask
    is 1 on tokens and 0 on the ``fill`` after them. A batch has at most 2**27 values.
    """

def argmax_spans(
    start: NDArray[np.float32], end: NDArray[np.float32], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Take the largest start and end logit, independently: ``(starts, ends, scores, null_scores)``, each [B].

    ``start`` and ``end`` are logits [B, T], of which row ``b`` uses the first ``lengths[b]`` (1 to T); of equal maxima
    the first wins. ``ends`` are inclusive and may precede their start. A score is the sum of both logits, a null
    score that sum at position 0. NaN logits count as -inf.
    """

def best_spans(
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    max_tokens: int,
    n: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Find the n best joint spans: ``(starts [B, n], ends [B, n], scores [B, n], null_scores [B])``, best first.

    ``start`` and ``end`` are logits [B, T]; a span of row ``b`` has ``first[b] <= start <= end <= last[b]``, ends
    inclusive, and at most ``max_tokens`` positions; ``last[b] < first[b]`` leaves none. Of equal scores the earlier
    start, then the earlier end comes first. NaN logits count as -inf, and a span of score -inf does not count: where
    fewer than n spans remain, the rest is start = end = -1 and score = -inf. ``B * n`` is at most 2**24.
    """

class BeamSearch:
    """The bookkeeping of transformers 4.57's beam search over several sources; the caller runs the model.

    ::

        closed = False
        while not closed:
            scores, candidates = model(search.tokens(), search.parents(), search.wanted())
            closed = search.advance(scores, candidates)
            keep_sources(search.open())
        hypotheses = search.results()

    Sources do not influence each other. A source is closed, and leaves ``tokens``, ``parents`` and ``open``, as soon as
    no later step can change its result; ``K`` is 1 before the first step, when all beams of a source would be equal,
    and ``num_beams`` afterwards. Calls from several threads take turns.
    """

    def __init__(
        self,
        sources: int,
        num_beams: int,
        num_return_sequences: int,
        start: int,
        eos: list[int],
        vocabulary: int,
        max_length: int,
        min_length: int,
        no_repeat_ngram_size: int,
        length_penalty: float,
        early_stopping: bool,
    ) -> None:
        """Start the search.

        ``sources``: at least 1. ``num_beams``: 1 to ``vocabulary``; 1 is greedy search. ``num_return_sequences``:
        hypotheses per source, 1 to ``num_beams``. ``start``: the token every hypothesis begins with. ``eos``: the
        tokens that end a hypothesis, each once; empty means that only ``max_length`` ends one. ``vocabulary``: number
        of tokens. ``max_length``: tokens of a hypothesis, start token included, so ``max_new_tokens + 1``; at least 2.
        ``min_length``: no end before this many tokens, start token included; 0 allows it anywhere.
        ``no_repeat_ngram_size``: no n-gram of this length twice in a hypothesis, start token included; 0 turns it off.
        ``length_penalty``: a finished sum of log-probabilities is divided by (tokens after the start token) ** this;
        finite. ``early_stopping``: True stops at ``num_beams`` finished hypotheses, False when the best running beam,
        ended now, would not be among them. ``sources * num_beams`` is at most 2**20.
        """

    def wanted(self) -> int:
        """Return how many candidates per beam the next step needs for an exact result.

        As many as transformers considers, max(2, 1 + number of eos) * num_beams, plus those that
        ``no_repeat_ngram_size`` and ``min_length`` may rule out; never more than ``vocabulary``.
        """

    def tokens(self) -> NDArray[np.int64]:
        """Return the last token of every beam, [A, K], for the A sources still open, in their order."""

    def parents(self) -> NDArray[np.int64]:
        """Return, [A, K], the beam of the previous step that each beam continues."""

    def open(self) -> NDArray[np.int64]:
        """Return, [A], the position of each open source among the open sources of the previous step."""

    def advance(self, scores: NDArray[np.float32], candidates: NDArray[np.int64]) -> bool:
        """Take one step and return True when every source is closed.

        ``scores`` [A, K, C] are log-probabilities over the whole vocabulary, the best C of each beam, in any order, and
        ``candidates`` [A, K, C] their tokens; C is ``wanted()`` to ``vocabulary``. NaN and -inf scores are tokens that
        the model rules out. A refused step (ValueError) changes nothing; once all sources are closed, every step is
        refused.
        """

    def results(self) -> list[list[tuple[list[int], float]]]:
        """Return the best ``num_return_sequences`` pairs of each source, best first: (tokens, score).

        The tokens are those after the start token, with eos. The score is transformers' ``sequences_scores``. A closed
        source has fewer pairs, or none, only if banned or ruled-out tokens left it no continuation; an open one has
        those finished so far.
        """
