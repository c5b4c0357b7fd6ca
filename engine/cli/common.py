"""Options and output that several commands share."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from groundwire.engine.metrics import GROUPS, METRICS
from groundwire.engine.schema.explanations import Q2Explanation
from groundwire.engine.schema.options import Options, Q2Options
from groundwire.engine.schema.results import MetricResult, Score
from groundwire.runtime.calls import BeamSearch, Decoding, Greedy, Sampling
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.ort.session import DeviceChoice

BundleOption = Annotated[
    str, typer.Option(help="An embedded bundle's name, or a directory made by `groundwire export`.")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or tensorrt; nothing falls back silently.")]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        help=f"Comma-separated, of: {', '.join(METRICS)}, detector.NAME, tokens, critic; "
        f"or a group: {', '.join(GROUPS)}. "
        "Default: those of the bundle's verdict, else q2."
    ),
]
ThreadsOption = Annotated[int | None, typer.Option(help="CPU threads; default: all usable.", min=1)]
DecodingOption = Annotated[str, typer.Option(help="How questions are generated: beam, greedy or sampling.")]
QuestionsOption = Annotated[str, typer.Option(help="single: the first valid question of a span; all: every valid one.")]
PersonalOption = Annotated[bool, typer.Option(help="Keep questions about the speakers (for personal dialogue).")]
DeadlineOption = Annotated[float | None, typer.Option(help="Milliseconds one response may take.", min=1.0)]

REASONS = {
    "no_answer": "the knowledge does not say",
    "contradiction": "the knowledge says otherwise",
    "mismatch": "the knowledge says something else",
    "not_entailed": "the knowledge does not imply it",
    "detected": "a detector finds no support",
    "not_in_knowledge": "the knowledge does not have the word",
    "less_likely": "the document makes these words less likely",
}


def device_choice(name: str) -> DeviceChoice:
    """Check a --device value."""
    for choice in ("auto", "cpu", "cuda", "tensorrt"):
        if name == choice:
            return choice
    raise InvalidRequest(f"--device {name} is unknown; use auto, cpu, cuda or tensorrt.")


def make_options(decoding: str, questions: str, personal: bool, deadline_ms: float | None) -> Options:
    """Options from the command line's values."""
    known: dict[str, Decoding] = {"beam": BeamSearch(), "greedy": Greedy(), "sampling": Sampling()}
    if decoding not in known:
        raise InvalidRequest(f"--decoding {decoding} is unknown; use {', '.join(known)}.")
    if questions not in ("single", "all"):
        raise InvalidRequest(f"--questions {questions} is unknown; use single or all.")
    q2 = Q2Options(
        decoding=known[decoding],
        questions="all" if questions == "all" else "single",
        personal_filter=not personal,
    )
    return Options(q2=q2, deadline_ms=deadline_ms)


def metric_names(given: str | None) -> tuple[str, ...] | None:
    """The names in a --metrics value; None leaves the choice to the bundle."""
    return None if given is None else tuple(name.strip() for name in given.split(",") if name.strip())


def interactive() -> bool:
    """Whether someone watches: progress bars only then."""
    return sys.stderr.isatty()


@contextlib.contextmanager
def progress(source: Path, what: str) -> Iterator[Callable[[int], None]]:
    """A bar over the lines of a file, if someone watches; call what it gives with the number of the last line done."""
    if not interactive():
        yield lambda number: None
        return
    total = None
    if str(source) != "-":
        with source.open("rb") as file:
            total = sum(1 for _ in file)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda number: bar.update(task, completed=number)


def stdout() -> Console:
    """The console results go to; as wide as the terminal, or 120 columns in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


LABEL_COLOURS = {"consistent": "green", "inconsistent": "red", "unverifiable": "yellow", "unknown": "dim"}


def verdict_of(score: Score) -> str:
    """The verdict's label and probability."""
    verdict = score.verdict
    chance = "" if verdict.probability is None else f" {verdict.probability:.2f}"
    return f"[{LABEL_COLOURS[verdict.label]}]{verdict.label}{chance}[/]"


UNBOUNDED = frozenset({"bleu", "pmi", "upmi", "bertscore"})
"""Metrics whose values do not go from 0 to 1."""


def colour(value: float | None) -> str:
    """Green for supported, red for not, yellow between."""
    if value is None:
        return "dim"
    return "green" if value >= 2 / 3 else "yellow" if value > 1 / 3 else "red"


def marked(response: str, score: Score) -> Text:
    """The response with its unsupported words in reverse red (and in ⟦brackets⟧, for those who see no colour)."""
    text, at = Text(), 0
    for span in sorted(score.unsupported, key=lambda span: (span.start, -span.end)):
        if span.start < at:
            continue
        text.append(response[at : span.start])
        text.append(f"⟦{response[span.start : span.end]}⟧", style="bold red")
        at = span.end
    text.append(response[at:])
    return text


def reasons(score: Score) -> Text:
    """One line per unsupported span."""
    lines = []
    for span in score.unsupported:
        says = f": “{span.knowledge_says}”" if span.knowledge_says else ""
        lines.append(f"“{span.text}” – {REASONS[span.reason]}{says}")
    return Text("\n".join(dict.fromkeys(lines)))


def value_of(result: MetricResult) -> str:
    """A metric's value, or its status."""
    if result.value is None:
        return f"[dim]{escape(result.status)}[/]"
    fallback = isinstance(result.explanation, Q2Explanation) and result.explanation.fallback is not None
    shade = "default" if result.name in UNBOUNDED else colour(result.value)
    return f"[{shade}]{result.value:.2f}[/]" + ("[dim]*[/]" if fallback else "")
