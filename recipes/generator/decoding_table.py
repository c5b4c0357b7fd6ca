"""Measures how faithful and relevant PMI-Decode is at every alpha and top-p: a small version of PMI-Faith's table 5.

For every pair of settings a response to each context is generated and scored by ``pmi`` (PMI-Faith), by the share of
its content words that the knowledge contains (``overlap_precision``), by inference (``nli``) and Q², all with the
bundle ``scorer``, and by BLEU and ROUGE-L against a person's response. The scorer's language model must not be the
generator: PMI-Decode maximises what that model would measure.

Contexts are JSON Lines ``{"knowledge", "history", "response"}``; ``gold_response`` replaces ``response`` where a set
has both, and a context that occurs again (the systems of one benchmark answer the same dialogues) counts once.
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

from groundwire.engine import Engine
from groundwire.generation import GeneratedResponse, GenerationOptions, Generator
from groundwire.generation.options import Method
from groundwire.runtime.bundles.bundle import Bundle

from ..common.corpus import read_rows

METRICS = ("pmi", "overlap_precision", "nli", "q2")
AT_ONCE = 16
"""Contexts in flight: enough to fill the decoder's batches."""
ALPHAS = (0.0, 0.25, 0.5, 1.0)
"""Columns of the paper's table 5."""
PMI_TOP_PS = (0.6, 0.75, 0.9, 1.0)
"""Its rows; at 1 all tokens are candidates."""
SHOWN = 3
"""Responses of each cell that are kept as examples."""


@dataclass(frozen=True, slots=True)
class TableSetup:
    """The settings of a table; defaults follow the paper's table 5."""

    generator: Path
    """Bundle directory."""
    rows: Path
    scorer: str = "compact"
    count: int = 150
    """Contexts, the first of the file."""
    alphas: tuple[float, ...] = ALPHAS
    pmi_top_ps: tuple[float, ...] = PMI_TOP_PS
    method: Method = "beam_sampling"
    """The paper's table uses beam sampling with 4 beams."""
    max_new_tokens: int = 40
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DialogueContext:
    """A dialogue context and a person's response to it."""

    knowledge: str
    history: tuple[str, ...]
    response: str


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over responses, and the half width of its 95 % interval (normal)."""

    value: float
    half_width: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> MeanEstimate:
        """The estimate of any number of values; of none its value is NaN."""
        if not values:
            return cls(math.nan, math.nan, 0)
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(round(statistics.fmean(values), 4), round(1.96 * spread / math.sqrt(len(values)), 4), len(values))


@dataclass(frozen=True, slots=True)
class TableCell:
    """The measurements of one pair of settings."""

    alpha: float
    pmi_top_p: float
    pmi: MeanEstimate
    """PMI-Faith, nats per token."""
    pmi_normalised: float | None
    """Its mean, scaled by the smallest and the largest value of the scorer's development sets, as in the paper."""
    overlap_precision: MeanEstimate
    nli: MeanEstimate
    q2: MeanEstimate
    bleu: float
    """Of all responses against a person's, 0–100."""
    rouge_l: MeanEstimate
    log_prob: MeanEstimate
    """Log-probability in nats per token that the generator gives the response, with the knowledge."""
    words: float
    unfinished: float
    """Share of responses that ``max_new_tokens`` cut off."""
    examples: tuple[str, ...]


def read_contexts(path: Path) -> Iterator[DialogueContext]:
    """The distinct contexts of a file, in its order."""
    seen = set()
    for row in read_rows(path):
        knowledge, history = row["knowledge"], tuple(row["history"])
        knowledge = knowledge if isinstance(knowledge, str) else " ".join(knowledge)
        has_history = any(turn.strip() for turn in history)
        if (knowledge, history) not in seen and knowledge.strip() and has_history:
            seen.add((knowledge, history))
            yield DialogueContext(knowledge, history, row.get("gold_response") or row["response"])


def measure_cells(setup: TableSetup) -> Iterator[TableCell]:
    """Yield the table's cells, by top-p and then alpha."""
    relevance = _load_bleu(), _load_rouge_l()
    contexts = list(itertools.islice(read_contexts(setup.rows), setup.count))
    if not contexts:
        raise ValueError(f"{setup.rows} has no context with knowledge and history.")
    grid = list(itertools.product(setup.pmi_top_ps, setup.alphas))
    with Engine.load(setup.scorer, extra=[setup.generator]) as engine, ThreadPoolExecutor(AT_ONCE) as pool:
        scale = engine.core.calibration.scales.get("pmi") if engine.core.calibration else None
        for pmi_top_p, alpha in track(grid, "generating", console=Console(stderr=True), transient=True):
            responses = list(pool.map(_make_writer(engine, setup, alpha, pmi_top_p), contexts))
            yield _make_cell(
                alpha, pmi_top_p, contexts, responses, relevance, (scale.low, scale.high) if scale else None
            )


def make_table_report(setup: TableSetup, cells: Sequence[TableCell]) -> dict[str, Any]:
    """The table as JSON: its settings, the digest of the generator's bundle, and every number."""
    settings = {name: value.name if isinstance(value, Path) else value for name, value in asdict(setup).items()}
    settings["digest"] = Bundle.open(setup.generator).manifest.digest()
    return {"setup": settings, "cells": [asdict(cell) for cell in cells]}


def render_markdown(cells: Sequence[TableCell]) -> str:
    """The table in the paper's layout: per measure a row for each top-p and a column for each alpha."""
    alphas = sorted({cell.alpha for cell in cells})
    figures: dict[str, Callable[[TableCell], str]] = {
        "PMI-Faith (nats per token)": lambda cell: f"{cell.pmi.value:.2f} ± {cell.pmi.half_width:.2f}",
        "PMI-Faith, normalised": lambda cell: "–" if cell.pmi_normalised is None else f"{cell.pmi_normalised:.3f}",
        "Overlap precision": lambda cell: f"{cell.overlap_precision.value:.2f}",
        "NLI": lambda cell: f"{cell.nli.value:.2f}",
        "Q²": lambda cell: f"{cell.q2.value:.2f}",
        "BLEU": lambda cell: f"{cell.bleu:.2f}",
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


def check_method(name: str) -> Method:
    """The decoding method of this name; ValueError names the methods that exist."""
    methods: tuple[Method, ...] = get_args(Method)
    for method in methods:
        if method == name:
            return method
    raise ValueError(f"method={name!r}; use {', '.join(methods)}.")


def write_decoding_table(setup: TableSetup, out: Path) -> None:
    """Measure the cells, write the JSON to ``out`` after each, and print the table."""
    cells: list[TableCell] = []
    for cell in measure_cells(setup):
        cells.append(cell)
        out.write_text(
            json.dumps(make_table_report(setup, cells), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    print(render_markdown(cells))


def _make_writer(
    engine: Engine, setup: TableSetup, alpha: float, pmi_top_p: float
) -> Callable[[DialogueContext], GeneratedResponse | None]:
    def write(context: DialogueContext) -> GeneratedResponse | None:
        result = Generator(engine).generate(
            context.knowledge,
            context.history,
            GenerationOptions(
                alpha=alpha,
                pmi_top_p=pmi_top_p,
                method=setup.method,
                seed=setup.seed,
                max_new_tokens=setup.max_new_tokens,
            ),
            metrics=METRICS,
        )
        return result.responses[0] if result.text.strip() else None

    return write


def _make_cell(
    alpha: float,
    pmi_top_p: float,
    contexts: Sequence[DialogueContext],
    responses: Sequence[GeneratedResponse | None],
    relevance: tuple[Callable[[Sequence[str], Sequence[str]], float], Callable[[str, str], float]],
    scale: tuple[float, float] | None,
) -> TableCell:
    # A context too long for the generator, or a response without words, is not measured.
    pairs = [(context, response) for context, response in zip(contexts, responses, strict=True) if response is not None]
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    for _, response in pairs:
        assert response.check is not None
        for name, result in response.check.metrics.items():
            if result.value is not None:
                values[name].append(result.value)
    pmi = MeanEstimate.of(values["pmi"])
    bleu, rouge = relevance
    texts = [response.text for _, response in pairs]
    return TableCell(
        alpha=alpha,
        pmi_top_p=pmi_top_p,
        pmi=pmi,
        pmi_normalised=None if scale is None else round((pmi.value - scale[0]) / (scale[1] - scale[0]), 4),
        overlap_precision=MeanEstimate.of(values["overlap_precision"]),
        nli=MeanEstimate.of(values["nli"]),
        q2=MeanEstimate.of(values["q2"]),
        bleu=round(bleu([context.response for context, _ in pairs], texts), 4) if pairs else 0.0,
        rouge_l=MeanEstimate.of([rouge(context.response, response.text) for context, response in pairs]),
        log_prob=MeanEstimate.of([response.log_prob for _, response in pairs]),
        words=round(statistics.fmean(len(text.split()) for text in texts), 2) if pairs else 0.0,
        unfinished=round(sum(not response.finished for _, response in pairs) / max(1, len(pairs)), 4),
        examples=tuple(texts[:SHOWN]),
    )


def _load_bleu() -> Callable[[Sequence[str], Sequence[str]], float]:
    """BLEU of a corpus, as sacrebleu prints it: (references, responses)."""
    try:
        sacrebleu = importlib.import_module("sacrebleu")
    except ImportError as error:
        raise ImportError("The table needs sacrebleu: pip install 'groundwire[metrics]'") from error
    return lambda references, responses: float(sacrebleu.corpus_bleu(list(responses), [list(references)]).score)


def _load_rouge_l() -> Callable[[str, str], float]:
    """F-measure of the longest common subsequence of stems, as the authors' code measures it: (reference, response)."""
    try:
        scorers = importlib.import_module("rouge_score.rouge_scorer")
    except ImportError as error:
        raise ImportError("The table needs rouge-score: pip install 'groundwire[metrics]'") from error
    scorer = scorers.RougeScorer(["rougeL"], use_stemmer=True)
    return lambda reference, response: float(scorer.score(reference, response)["rougeL"].fmeasure)
