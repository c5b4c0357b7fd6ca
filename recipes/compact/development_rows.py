"""Labelled responses about unseen articles, as sets to calibrate on and to measure with.

They are made like the training examples of the multi-task NLI model, from the parts that it is not trained on. A model
is more confident on them than on what people write, so calibrate on other sets too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ..synthesis import pairs
from .multitask_examples import CLAIM_TOKENS, MAX_TOKENS, WORDS_PER_TOKEN, MultitaskExample, MultitaskExamples

WORDS = int((MAX_TOKENS - CLAIM_TOKENS) * WORDS_PER_TOKEN)
"""Words of the knowledge, at most."""
Draw: TypeAlias = Callable[[MultitaskExamples, random.Random], tuple[MultitaskExample, ...]]


def _draw_made(examples: MultitaskExamples, rng: random.Random) -> tuple[MultitaskExample, ...]:
    return (examples.draw_made(rng),)


def _draw_contrast(source: str, examples: MultitaskExamples, rng: random.Random) -> tuple[MultitaskExample, ...]:
    return examples.contrasts[source](WORDS, rng) if source in examples.contrasts else ()


KINDS: dict[str, Draw] = {
    "made": _draw_made,
    "edits": partial(_draw_contrast, "minimal"),
    "questions": partial(_draw_contrast, "questions"),
    "facts": partial(_draw_contrast, "facts"),
}
"""What is drawn: corrupted responses in chat style, small edits, statements of questions that people asked, and made-up
facts in other words."""
_ATTEMPTS = 50


def make_development_rows(data: Path, kind: str, count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """``count`` different rows of ``kind`` that ``groundwire calibrate`` reads, or as many as there are.

    ``unsupported`` has the characters that the edit wrote, where they are known.

    ValueError for a kind that is not in ``KINDS``, or that the sets in ``data`` lack.
    """
    if kind not in KINDS:
        raise ValueError(f"There are no rows of the kind {kind!r}; give one of {', '.join(KINDS)}.")
    examples = MultitaskExamples.read(data, "dev")
    written: set[tuple[str, str]] = set()
    index = fruitless = 0
    while len(written) < count and fruitless < _ATTEMPTS:
        drawn = KINDS[kind](examples, random.Random(seed * 1_000_003 + index))
        index, fruitless = index + 1, fruitless + 1
        for example in drawn:
            response = example.second or ""
            if (example.first, response) in written or len(written) == count:
                continue
            written.add((example.first, response))
            fruitless = 0
            spans = None if example.spans is None else [asdict(span) for span in example.spans]
            yield {
                "id": f"{kind}-{len(written) - 1}",
                "response": response,
                "knowledge": example.first,
                "label": int(example.labels["consistency"] == pairs.LABELS[0]),
                "unsupported": spans,
                "source": example.source,
            }
    if not written:
        raise ValueError(f"{data} has nothing to make rows of the kind {kind!r} from; add the files in more/.")
