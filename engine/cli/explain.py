"""``groundwire explain``: shows how the score of one response comes about."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from ..api import Engine
from ..metrics import find
from . import display, options


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

    Prints the verdict with its probability and threshold, the response with its unsupported words in ⟦brackets⟧, and
    each metric's value with its details: for Q² every question with the answer that the knowledge gives, for example.

        groundwire explain "A marathon is 50 kilometres long." -k "The marathon is a race of 42.195 kilometres."
        groundwire explain "Honey never spoils." -k "Honey keeps for years." --metrics all --json
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
        metric = find(result.name)
        details = metric.details(result) if metric is not None and result.status == "scored" else None
        if details is not None:
            display.print_details(console, details)
    stages = ", ".join(f"{role} {spent_ms:.0f}" for role, spent_ms in score.timings.stages_ms.items())
    console.print(f"[dim]{score.timings.total_ms:.0f} ms ({stages})  {escape(score.signature)}[/]")
