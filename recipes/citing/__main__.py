"""Fits or measures citations: ``python -m groundwire.recipes.citing fit --claims FILE --articles FILE``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from groundwire.engine import Engine
from groundwire.engine.schema.options import CitationOptions, Options
from groundwire.engine.schema.results import Score
from groundwire.evaluate.datasets.examples import Example, sample_examples
from groundwire.evaluate.statistics.citing import measure_citing
from groundwire.evaluate.statistics.human_labels import HumanLabels
from groundwire.monitor.records import Estimate

from .fever import read_fever_claims
from .fitting import collect_rated, fit_support, measure_reach

ALL_SENTENCES = 1000
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Claims = Annotated[
    Path, typer.Option(help="Claims with their evidence: JSON lines of id, hypothesis, premise, label, title.")
]
Articles = Annotated[Path, typer.Option(help="Articles: JSON lines of title and text.")]
Bundle = Annotated[str, typer.Option(help="The bundle whose models are asked.")]
Limit = Annotated[int, typer.Option(help="Claims at most, drawn at random; 0 takes all.")]
Threads = Annotated[int | None, typer.Option(help="Processor threads.")]


@app.command("fit")
def fit_citations(
    claims: Claims, articles: Articles, bundle: Bundle = "compact", limit: Limit = 1500, threads: Threads = None
) -> None:
    """Print the model of ``engine/metrics/support.py`` that is fitted to the half of the articles for fitting."""
    examples = sample_examples(read_fever_claims(claims, articles, "fit"), limit, seed=0)
    rated = collect_rated(examples, _score(examples, bundle, threads, CitationOptions(candidates=ALL_SENTENCES)))
    candidates = CitationOptions().candidates
    model = fit_support(rated, candidates)
    numbers = ", ".join(f"{name}={number:.3g}" for name, number in model._asdict().items())
    typer.echo(f"EMBEDDED = SupportModel({numbers})")
    typer.echo(
        f"{len(examples)} claims; evidence among the first {candidates}: {measure_reach(rated, model, candidates):.3f}"
    )


@app.command()
def measure(
    claims: Claims, articles: Articles, bundle: Bundle = "compact", limit: Limit = 0, threads: Threads = None
) -> None:
    """Print precision and recall of the citations on the other half of the articles."""
    examples = sample_examples(read_fever_claims(claims, articles, "held_out"), limit, seed=0)
    scores = _score(examples, bundle, threads, CitationOptions())
    figures = measure_citing(examples, scores, HumanLabels(examples, 1000, 0))
    typer.echo(f"{len(examples)} claims about {len({example.knowledge for example in examples})} articles")
    if figures is not None:
        for name in ("precision", "recall", "f1"):
            typer.echo(f"{name:10} {_format(getattr(figures.sentences, name))}")
    for label, title in ((1, "supported"), (0, "refuted")):
        cited = [
            bool(score.citations) for example, score in zip(examples, scores, strict=True) if example.label == label
        ]
        typer.echo(f"{title:10} {np.mean(cited):.3f} of {len(cited)} claims have a citation")
    rated = [item for sentence in collect_rated(examples, scores) for item in sentence]
    support = np.array([item.candidate.support for item in rated])
    supports = np.array([item.supports for item in rated])
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (support >= low) & (support < low + 0.2 + (low > 0.7))
        if inside.any():
            means = f"{support[inside].mean():.3f}, evidence {supports[inside].mean():.3f}"
            typer.echo(f"support {low:.1f}–{low + 0.2:.1f}: {means} of {inside.sum()}")


def _score(examples: list[Example], bundle: str, threads: int | None, options: CitationOptions) -> list[Score]:
    items = [(example.response, example.knowledge) for example in examples]
    with Engine.load(bundle, threads=threads) as engine:
        return list(engine.score_many(items, metrics=["citations"], options=Options(citations=options)))


def _format(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} ({estimate.low:.3f}–{estimate.high:.3f})"


if __name__ == "__main__":
    app()
