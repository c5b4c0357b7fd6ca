"""``groundwire explain``: shows how the score of one response comes about."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from groundwire.engine.api import Engine
from groundwire.engine.schema.explanations import Comparison, Q2Explanation

from . import display, options

DISCARDED = {
    "personal": "about the speakers",
    "no_answer_in_response": "the response does not answer it",
    "other_answer_in_response": "the response answers something else",
}


def explain(
    response: Annotated[str, typer.Argument(help="The response to check.")],
    knowledge: Annotated[
        list[str], typer.Option("--knowledge", "-k", help="A passage of knowledge; repeat for several.")
    ],
    history: Annotated[
        list[str] | None,
        typer.Option("--history", "-h", help="An utterance before the response; repeat for several, oldest first."),
    ] = None,
    metrics: options.MetricsOption = None,
    bundle: options.BundleOption = "compact",
    device: options.DeviceOption = "auto",
    decoding: options.DecodingOption = "beam",
    questions: options.QuestionsOption = "single",
    personal: options.PersonalOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print the Score record as JSON.")] = False,
) -> None:
    """Score one response and show how the score comes about.

    Prints the verdict with its probability and threshold, the response with its unsupported words in ⟦brackets⟧, each
    metric's value, and for Q² every question with the answer that the knowledge gives.

        groundwire explain "Elvis was born in 1936." -k "Elvis Presley was born on January 8, 1935."
        groundwire explain "Elvis was born in 1936." -k "Elvis Presley was born in 1935." --metrics all --json
    """
    request_options = options.make_options(decoding, questions, personal, None)
    names = options.parse_metrics(metrics)
    with Engine.load(bundle, options.parse_device(device)) as engine:
        score = engine.score(response, knowledge, history=history or (), metrics=names, options=request_options)
    if json:
        typer.echo(score.to_json())
        return
    console = display.output_console()
    verdict = score.verdict
    if verdict.threshold is not None:
        note = f"(consistent from {verdict.threshold:.2f}, profile {verdict.profile})"
        console.print(f"verdict: {display.format_verdict(score)} [dim]{note}[/]")
    elif engine.calibration is not None:
        console.print(f"verdict: {display.format_verdict(score)} [dim]{escape(verdict.message)}[/]")
    console.print(Panel(display.mark_unsupported(response, score), title="response", title_align="left"))
    for passage in knowledge:
        console.print(Panel(Text(passage), title="knowledge", title_align="left", border_style="dim"))
    for result in score.metrics.values():
        console.print(f"[bold]{result.name}[/] {display.format_value(result)} {escape(result.message)}")
        if isinstance(result.explanation, Q2Explanation):
            _print_questions(console, result.explanation)
    stages = ", ".join(f"{role} {spent_ms:.0f}" for role, spent_ms in score.timings.stages_ms.items())
    console.print(f"[dim]{score.timings.total_ms:.0f} ms ({stages})  {escape(score.signature)}[/]")


def _print_questions(console: Console, explanation: Q2Explanation) -> None:
    if explanation.fallback is not None:
        shares = ", ".join(
            f"{label} {share:.2f}" for label, share in (explanation.fallback_probabilities or {}).items()
        )
        console.print(f"No valid question: the whole response was classified as {explanation.fallback} ({shares}).")
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
                _format_comparison(comparison),
                f"[{display.choose_colour(value)}]{value:.2f}[/]",
            )
    if table.row_count:
        console.print(table)
    for comparison in explanation.questions:
        if comparison.discarded:
            answer = f" (“{comparison.response_answer}”)" if comparison.response_answer else ""
            reason = f"{DISCARDED[comparison.discarded]}{answer}"
            text = f"discarded: “{comparison.question}” for “{comparison.span.text}”: {reason}"
            console.print(f"[dim]{escape(text)}[/]")


def _format_comparison(comparison: Comparison) -> str:
    if comparison.nli is not None:
        return f"{comparison.nli}, F1 {comparison.f1 or 0:.2f}"
    return "same words" if comparison.f1 == 1 else f"F1 {comparison.f1 or 0:.2f}"
