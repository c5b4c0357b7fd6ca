"""The engine against Q² in PyTorch on the checkpoints its bundle was made from, one call at a time.

The reference implementation is ``tests/reference/q2.py``. Both sides score the same text with the same options, and
each stops asking questions when its own models find one valid; with trained weights that is nearly always the same
question.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from groundwire.engine import Engine, Options
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import SpansRole
from groundwire.runtime.models.span_finder import SpanFinder

from .common import Timing, check, in_turn, timed
from .dialogues import Dialogue


class PyTorchComparison(msgspec.Struct, frozen=True):
    """Both sides over the same responses, one at a time, in turns."""

    engine: Timing
    peer: Timing
    ratio: float
    """Median of the peer over the engine's."""
    same_values: float
    """Share of responses whose values differ by 1e-6 at most."""
    mean_difference: float
    """Mean of the values' absolute differences."""


def measure(
    engine: Engine, bundle: Bundle, checkpoints: Path, options: Options, dialogues: Sequence[Dialogue], threads: int
) -> PyTorchComparison:
    """Score every dialogue on both sides; ``checkpoints`` holds the directories qg, qa and nli."""
    import torch

    from tests.reference.q2 import Q2Reference

    torch.set_num_threads(threads)
    spans = bundle.manifest.roles["spans"]
    assert isinstance(spans, SpansRole)
    reference = Q2Reference(checkpoints, SpanFinder.load(bundle.file(spans.path)))

    def ours(response: str, knowledge: str) -> float:
        score = engine.score(response, knowledge, metrics=("q2",), options=options)
        check(score.status == "scored", f"a response ended with {score.status}: {score.message}")
        assert score.value is not None
        return score.value

    def theirs(response: str, knowledge: str) -> float:
        return reference.score(response, knowledge, options.q2).value

    sides = {"engine": ours, "peer": theirs}
    spent: dict[str, list[float]] = {side: [] for side in sides}
    gaps: list[float] = []
    for turn, dialogue in enumerate([dialogues[0], *dialogues]):
        values = []
        for side in in_turn(sides, turn):
            # The reference implementation reads one window, so the passages are joined, for both sides.
            took, value = timed(partial(sides[side], dialogue.response, " ".join(dialogue.knowledge)))
            spent[side].append(took)
            values.append(value)
        gaps.append(abs(values[0] - values[1]))
    # The first response is scored twice; the first time is the warm-up.
    timings = {side: Timing.of(samples[1:]) for side, samples in spent.items()}
    return PyTorchComparison(
        timings["engine"],
        timings["peer"],
        timings["peer"].p50_ms / timings["engine"].p50_ms,
        sum(gap <= 1e-6 for gap in gaps[1:]) / len(dialogues),
        sum(gaps[1:]) / len(dialogues),
    )
