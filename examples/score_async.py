"""Score from asyncio: concurrent requests share batches, and a cancelled task cancels its request."""

from __future__ import annotations

import asyncio

from groundwire.engine import Engine

PAIRS = [
    ("The violin has four strings.", "The violin has four strings and is tuned in perfect fifths."),
    ("Titan is a moon of Saturn.", "Saturn's largest moon is Titan."),
    ("Penicillin was discovered in 1928.", "Alexander Fleming discovered penicillin in 1928."),
]


async def score_pairs() -> list[str]:
    """Score all pairs at once; return their labels."""
    with Engine.load("compact") as engine:
        scores = await asyncio.gather(*(engine.ascore(response, knowledge) for response, knowledge in PAIRS))
        return [score.verdict.label for score in scores]


def main() -> None:
    """Print the label of every pair."""
    for (response, _), label in zip(PAIRS, asyncio.run(score_pairs()), strict=True):
        print(f"{label:14} {response}")


if __name__ == "__main__":
    main()
