"""How the cost of a response grows: with the words of its knowledge, with its spans, with the candidates of a ranking.

    python -m bench.scaling

A cost that grows linearly has the exponent 1: the slope of the logarithm of processor time over the size's,
fitted to the larger half of the sizes, where what every response costs anyway hides little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from rich.progress import track

from groundwire.engine import Engine, LoadOptions, Options
from groundwire.engine.schema.options import Q2Options

from .support import common
from .support.dialogues import examples

EXPONENT = 1.1
"""What the exponents may be at most."""
WORDS = (100, 200, 400, 800, 1600)
SPANS = (2, 4, 8, 16, 32)
CANDIDATES = (4, 8, 16, 32, 64)


class Growth(msgspec.Struct, frozen=True):
    """The cost of one kind of work at each of its sizes."""

    name: str
    sizes: tuple[int, ...]
    processor_ms: tuple[float, ...]
    """Medians, of all threads together."""
    exponent: float


def main(
    bundle: Annotated[str, typer.Option(help="Bundle: a name, a directory or hf://.")] = "compact",
    repeats: Annotated[int, typer.Option(help="Times each size is measured.", min=1)] = 7,
    tiny: Annotated[bool, typer.Option(help="Two small sizes, to try the benchmark itself.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; by default bench/results, or none with --tiny.")] = None,
) -> None:
    """Measure processor time against size, and fit exponents."""
    sizes: dict[str, tuple[int, ...]] = {"words": WORDS, "spans": SPANS, "candidates": CANDIDATES}
    if tiny:
        sizes, repeats = {name: values[:2] for name, values in sizes.items()}, 1
    with Engine.load(bundle, "cpu", options=LoadOptions(cache_bytes=0)) as engine:
        kinds = {
            "words of knowledge, fast": (sizes["words"], partial(score_knowledge, engine, "fast")),
            "words of knowledge, default": (sizes["words"], partial(score_knowledge, engine, None)),
            "spans, q2": (sizes["spans"], partial(score_spans, engine)),
            "candidates, pmi": (sizes["candidates"], partial(rank, engine, "pmi")),
            "candidates, nli": (sizes["candidates"], partial(rank, engine, "nli")),
        }
        results = measure(kinds, repeats)
    common.console().print(
        common.table(
            "processor time in ms by size, smallest to largest",
            ("work", "sizes", "ms", "exponent"),
            [
                (
                    growth.name,
                    " ".join(map(str, growth.sizes)),
                    " ".join(f"{value:.0f}" for value in growth.processor_ms),
                    f"{growth.exponent:.2f}",
                )
                for growth in results
            ],
        )
    )
    targets = [
        common.PerformanceTarget.at_most(f"exponent, {growth.name}", growth.exponent, EXPONENT, "")
        for growth in results
    ]
    common.finish(
        "scaling",
        {"bundle": bundle, "repeats": repeats},
        results,
        [] if tiny else targets,
        out or (None if tiny else common.RESULTS / "scaling.json"),
    )


def measure(kinds: Mapping[str, tuple[Sequence[int], Callable[[int], None]]], repeats: int) -> list[Growth]:
    """Run every size of every kind in turn."""
    work = [(name, size) for name, (sizes, _) in kinds.items() for size in sizes]
    spent: dict[tuple[str, int], list[float]] = {key: [] for key in work}
    for turn in track(range(-1, repeats), "measuring"):
        for name, size in common.in_turn(work, turn):
            started = time.process_time()
            kinds[name][1](size)
            if turn >= 0:
                spent[name, size].append((time.process_time() - started) * 1000)
    out = []
    for name, (sizes, _) in kinds.items():
        medians = [float(np.median(spent[name, size])) for size in sizes]
        out.append(Growth(name, tuple(sizes), tuple(medians), fit_exponent(sizes, medians)))
    return out


def fit_exponent(sizes: Sequence[int], spent: Sequence[float]) -> float:
    """The exponent of the cost over the larger half of two or more ascending sizes."""
    half = min(len(sizes) // 2, len(sizes) - 2)
    return float(np.polyfit(np.log(sizes[half:]), np.log(spent[half:]), 1)[0])


def score_knowledge(engine: Engine, metrics: str | None, words: int) -> None:
    """Score one response against so many words of knowledge."""
    dialogue = examples()[0]
    score = engine.score(dialogue.response, make_passages(words), metrics=metrics)
    common.check(score.status == "scored", f"{words} words of knowledge: {score.status}, {score.message}")


def score_spans(engine: Engine, spans: int) -> None:
    """Ask about so many spans of one response."""
    response = " ".join(dialogue.response for dialogue in examples()[:8])
    ranges, start = [], 0
    for word in response.split():
        start = response.index(word, start)
        ranges.append((start, start + len(word)))
        start += len(word)
    common.check(spans <= len(ranges), f"the response has {len(ranges)} words")
    options = Options(Q2Options(spans=tuple(ranges[:spans])))
    score = engine.score(response, make_passages(100), metrics=["q2"], options=options)
    common.check(score.status == "scored", f"{spans} spans: {score.status}, {score.message}")


def rank(engine: Engine, metric: str, candidates: int) -> None:
    """Order so many candidates by a metric."""
    dialogue = examples()[0]
    texts = [f"{dialogue.response[:-1]}, says source {number}." for number in range(10, 10 + candidates)]
    ranked = engine.rank(texts, dialogue.knowledge, history=["Tell me about it."], metric=metric)
    scored = [candidate.result.status == "scored" for candidate in ranked]
    common.check(len(scored) == candidates and all(scored), f"{candidates} candidates: not all ranked")


def make_passages(words: int) -> tuple[str, ...]:
    """Passages of the examples, other ones as long as there are any, cut to so many words."""
    pool = [passage for dialogue in examples() for passage in dialogue.knowledge]
    passages: list[str] = []
    left = words
    for index in range(words):
        chosen = f"Part {index // len(pool) + 1}. {pool[index % len(pool)]}".split()[:left]
        passages.append(" ".join(chosen))
        left -= len(chosen)
        if left <= 0:
            break
    return tuple(passages)


if __name__ == "__main__":
    typer.run(main)
