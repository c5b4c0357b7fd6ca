"""How faithful and how relevant PMI-Decode is at every alpha and top-p: the PMI-Faith paper's table 5 in small.

For every pair of settings a response to each context is generated and scored by ``pmi`` (PMI-Faith), by the share of
its content words that the knowledge has (``overlap_precision``), by inference (``nli``), all of the bundle ``scorer``,
and by ROUGE-L against what a person said. The scorer's language model must not be the generator: PMI-Decode would then
raise by definition what measures it.

Contexts are JSON Lines ``{"knowledge", "history", "response"}``; ``gold_response`` stands for ``response`` where a set
has both, and a context that occurs again (as the systems of one benchmark answer the same dialogues) counts once.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.progress import track

from groundwire.engine import Engine, GeneratedResponse, GenerationOptions
from groundwire.engine.generation.options import Method
from groundwire.train.common.corpus import read_rows

METRICS = ("pmi", "overlap_precision", "nli")
AT_ONCE = 16
"""Contexts in flight: enough to fill the decoder's batches."""
SHOWN = 3
"""Responses of each cell that are kept as examples."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a table is made with; defaults follow the paper's table 5."""

    generator: Path
    """Bundle directory."""
    rows: Path
    scorer: str = "compact"
    count: int = 150
    """Contexts, the first of the file."""
    alphas: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0)
    pmi_top_ps: tuple[float, ...] = (0.6, 0.75, 0.9)
    method: Method = "beam_sampling"
    """The paper's table is of beam sampling with 4 beams."""
    max_new_tokens: int = 40
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What is answered, and how a person answered it."""

    knowledge: str
    history: tuple[str, ...]
    response: str


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over responses, and the half width of its 95 % interval (normal)."""

    value: float
    half_width: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of any number of values; of none it is not a number."""
        if not values:
            return cls(math.nan, math.nan, 0)
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(round(statistics.fmean(values), 4), round(1.96 * spread / math.sqrt(len(values)), 4), len(values))


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair of settings."""

    alpha: float
    pmi_top_p: float
    pmi: Mean
    """PMI-Faith, nats per token."""
    pmi_normalised: float | None
    """Its mean between the smallest and the largest value of the scorer's development sets, as the paper has it."""
    overlap_precision: Mean
    nli: Mean
    rouge_l: Mean
    log_prob: Mean
    """Nats per token that the generator itself gives the response, with the knowledge."""
    words: float
    unfinished: float
    """Share of responses that ``max_new_tokens`` ended."""
    examples: tuple[str, ...]


def contexts(path: Path) -> Iterator[Context]:
    """The distinct contexts of a file, in its order."""
    seen = set()
    for row in read_rows(path):
        knowledge, history = row["knowledge"], tuple(row["history"])
        knowledge = knowledge if isinstance(knowledge, str) else " ".join(knowledge)
        said = any(turn.strip() for turn in history)
        if (knowledge, history) not in seen and knowledge.strip() and said:
            seen.add((knowledge, history))
            yield Context(knowledge, history, row.get("gold_response") or row["response"])


def measure(setup: Setup) -> Iterator[Cell]:
    """Yield the table's cells, by top-p and then alpha."""
    rouge = _rouge_l()
    given = list(itertools.islice(contexts(setup.rows), setup.count))
    if not given:
        raise ValueError(f"{setup.rows} has no context with knowledge and history.")
    grid = list(itertools.product(setup.pmi_top_ps, setup.alphas))
    with Engine.load(setup.scorer, extra=[setup.generator]) as engine, ThreadPoolExecutor(AT_ONCE) as pool:
        scale = engine.calibration.scales.get("pmi") if engine.calibration else None
        for pmi_top_p, alpha in track(grid, "generating", console=Console(stderr=True), transient=True):
            responses = list(pool.map(_writer(engine, setup, alpha, pmi_top_p), given))
            yield _cell(alpha, pmi_top_p, given, responses, rouge, (scale.low, scale.high) if scale else None)


def report(setup: Setup, cells: Sequence[Cell]) -> dict[str, Any]:
    """A JSON form: how it was made, and every number."""
    made = {name: value.name if isinstance(value, Path) else value for name, value in asdict(setup).items()}
    return {"setup": made, "cells": [asdict(cell) for cell in cells]}


def markdown(cells: Sequence[Cell]) -> str:
    """The table as the paper lays it out: a row for each top-p, and for each figure a column for each alpha."""
    alphas = sorted({cell.alpha for cell in cells})
    figures: dict[str, Callable[[Cell], str]] = {
        "PMI-Faith (nats per token)": lambda cell: f"{cell.pmi.value:.2f} ± {cell.pmi.half_width:.2f}",
        "PMI-Faith, normalised": lambda cell: "–" if cell.pmi_normalised is None else f"{cell.pmi_normalised:.3f}",
        "Overlap precision": lambda cell: f"{cell.overlap_precision.value:.2f}",
        "NLI": lambda cell: f"{cell.nli.value:.2f}",
        "ROUGE-L": lambda cell: f"{cell.rouge_l.value:.3f} ± {cell.rouge_l.half_width:.3f}",
        "log-probability per token": lambda cell: f"{cell.log_prob.value:.2f}",
        "words": lambda cell: f"{cell.words:.1f}",
        "cut off": lambda cell: f"{cell.unfinished:.0%}",
    }
    lines = [
        f"| | top-p | {' | '.join(f'α = {alpha:g}' for alpha in alphas)} |",
        f"|---|---|{'---|' * len(alphas)}",
    ]
    for name, shown in figures.items():
        for pmi_top_p in sorted({cell.pmi_top_p for cell in cells}):
            row = {cell.alpha: shown(cell) for cell in cells if cell.pmi_top_p == pmi_top_p}
            lines.append(f"| {name} | {pmi_top_p:g} | {' | '.join(row[alpha] for alpha in alphas)} |")
            name = ""
    return "\n".join(lines)


def write(setup: Setup, out: Path) -> None:
    """Measure, write the JSON to ``out``, cell by cell, and print the table."""
    if setup.method not in get_args(Method):
        raise ValueError(f"method={setup.method!r}; use {', '.join(get_args(Method))}.")
    cells: list[Cell] = []
    for cell in measure(setup):
        cells.append(cell)
        out.write_text(json.dumps(report(setup, cells), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(markdown(cells))


def _writer(
    engine: Engine, setup: Setup, alpha: float, pmi_top_p: float
) -> Callable[[Context], GeneratedResponse | None]:
    def of(context: Context) -> GeneratedResponse | None:
        found = engine.generate(
            context.knowledge,
            context.history,
            GenerationOptions(alpha, pmi_top_p, setup.method, seed=setup.seed, max_new_tokens=setup.max_new_tokens),
            metrics=METRICS,
        )
        return found.responses[0] if found.text.strip() else None

    return of


def _cell(
    alpha: float,
    pmi_top_p: float,
    given: Sequence[Context],
    responses: Sequence[GeneratedResponse | None],
    rouge: Callable[[str, str], float],
    scale: tuple[float, float] | None,
) -> Cell:
    # A context too long for the generator, or a response without words, has no figures.
    pairs = [(context, one) for context, one in zip(given, responses, strict=True) if one is not None]
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    for _, one in pairs:
        assert one.check is not None
        for name, result in one.check.metrics.items():
            if result.value is not None:
                values[name].append(result.value)
    pmi = Mean.of(values["pmi"])
    return Cell(
        alpha=alpha,
        pmi_top_p=pmi_top_p,
        pmi=pmi,
        pmi_normalised=None if scale is None else round((pmi.value - scale[0]) / (scale[1] - scale[0]), 4),
        overlap_precision=Mean.of(values["overlap_precision"]),
        nli=Mean.of(values["nli"]),
        rouge_l=Mean.of([rouge(context.response, one.text) for context, one in pairs]),
        log_prob=Mean.of([one.log_prob for _, one in pairs]),
        words=round(statistics.fmean(len(one.text.split()) for _, one in pairs), 2) if pairs else 0.0,
        unfinished=round(sum(not one.finished for _, one in pairs) / max(1, len(pairs)), 4),
        examples=tuple(one.text for _, one in pairs[:SHOWN]),
    )


def _rouge_l() -> Callable[[str, str], float]:
    """F-measure of the longest common subsequence of stems, as the authors' code measures it: (reference, response)."""
    try:
        scorers = importlib.import_module("rouge_score.rouge_scorer")
    except ImportError as error:
        raise ImportError("The table needs rouge-score: pip install 'groundwire[metrics]'") from error
    scorer = scorers.RougeScorer(["rougeL"], use_stemmer=True)
    return lambda reference, response: float(scorer.score(reference, response)["rougeL"].fmeasure)
