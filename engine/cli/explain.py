"""``groundwire explain``: one response, looked at closely."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from groundwire.engine.api import Engine
from groundwire.engine.schema.explanations import Comparison, Q2Explanation
from groundwire.engine.schema.results import MetricResult

from . import common

DISCARDED = {
    "personal": "about the speakers",
    "no_answer_in_response": "the response does not answer it",
    "other_answer_in_response": "the response answers something else",
}


def explain(
    response: Annotated[str, typer.Argument(help="The response to check.")],
    knowledge: Annotated[list[str], typer.Option("--knowledge", "-k", help="A passage; repeat for several.")],
    history: Annotated[
        list[str] | None, typer.Option("--history", "-h", help="An utterance before; repeat, oldest first.")
    ] = None,
    metrics: common.MetricsOption = None,
    bundle: common.BundleOption = "compact",
    device: common.DeviceOption = "auto",
    decoding: common.DecodingOption = "beam",
    questions: common.QuestionsOption = "single",
    personal: common.PersonalOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print the Score as JSON.")] = False,
) -> None:
    """Show a response with its unsupported words marked, and the questions below.

    groundwire explain "Elvis was born in 1936." -k "Elvis Presley was born on January 8, 1935."
    """
    options = common.make_options(decoding, questions, personal, None)
    names = common.metric_names(metrics)
    with Engine.load(bundle, common.device_choice(device)) as engine:
        score = engine.score(response, knowledge, history=history or (), metrics=names, options=options)
    if json:
        typer.echo(score.to_json())
        return
    console = common.stdout()
    verdict = score.verdict
    if verdict.threshold is not None:
        line = f"({verdict.profile} draws the line at {verdict.threshold:.2f})"
        console.print(f"verdict: {common.verdict_of(score)} [dim]{line}[/]")
    elif engine.calibration is not None:
        console.print(f"verdict: {common.verdict_of(score)} [dim]{escape(verdict.message)}[/]")
    body = Text.assemble(common.marked(response, score))
    console.print(Panel(body, title="response", title_align="left"))
    for passage in knowledge:
        console.print(Panel(Text(passage), title="knowledge", title_align="left", border_style="dim"))
    for result in score.metrics.values():
        console.print(f"[bold]{result.name}[/] {common.value_of(result)} {escape(result.message)}")
        if isinstance(result.explanation, Q2Explanation):
            _questions(console.print, result, result.explanation)
    stages = ", ".join(f"{role} {spent:.0f}" for role, spent in score.timings.stages_ms.items())
    console.print(f"[dim]{score.timings.total_ms:.0f} ms ({stages})  {escape(score.signature)}[/]")


def _questions(show: object, result: MetricResult, explanation: Q2Explanation) -> None:
    assert callable(show)
    if explanation.fallback is not None:
        shares = ", ".join(f"{k} {v:.2f}" for k, v in (explanation.fallback_probabilities or {}).items())
        show(f"No valid question: the whole response was classified as {explanation.fallback} ({shares}).")
    table = Table(expand=True)
    for title, ratio in (("span", 3), ("question", 6), ("answer in the knowledge", 4), ("comparison", 3)):
        table.add_column(title, ratio=ratio)
    table.add_column("score", justify="right")
    for comparison in explanation.questions:
        if comparison.kept:
            value = comparison.value or 0.0
            table.add_row(
                Text(comparison.span.text),
                Text(comparison.question),
                Text(comparison.knowledge_answer or "– no answer –"),
                _compared(comparison),
                f"[{common.colour(value)}]{value:.2f}[/]",
            )
    if table.row_count:
        show(table)
    for comparison in explanation.questions:
        if comparison.discarded:
            answered = f" (“{comparison.response_answer}”)" if comparison.response_answer else ""
            why = f"{DISCARDED[comparison.discarded]}{answered}"
            show(f"[dim]{escape(f'discarded: “{comparison.question}” for “{comparison.span.text}”: {why}')}[/]")


def _compared(comparison: Comparison) -> str:
    if comparison.nli is not None:
        return f"{comparison.nli}, F1 {comparison.f1 or 0:.2f}"
    return "same words" if comparison.f1 == 1 else f"F1 {comparison.f1 or 0:.2f}"
