"""``groundwire explain``: shows how the score of one response comes about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from groundwire.engine import Engine, Score
from groundwire.engine.extend import shown
from groundwire.engine.schema.results import SentenceVerdict
from groundwire.evidence import Auditor
from groundwire.files.results_file import translate_write_errors
from groundwire.guard.chat import add_citing
from groundwire.metrics import find

from . import display, options
from .groups import expand_groups
from .output import STDOUT, print_json, prints_tables
from .texts import print_texts


@expand_groups
def explain(
    response: Annotated[str, typer.Argument(help="The response to check.")],
    json: options.JsonOption = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            help="Write an evidence packet to this file: settings, digests of bundles and texts, and results, which "
            "`groundwire verify` checks. - prints the packet in the place of the explanation.",
            dir_okay=False,
        ),
    ] = None,
    texts: Annotated[bool, typer.Option("--texts", help="Put the texts into the evidence packet.")] = False,
    *,
    dialogue: options.DialogueOptions,
    scoring: options.ScoringOptions,
    questions: options.QuestionOptions,
    engine_options: options.EngineOptions,
) -> None:
    """Score one response and show how the score comes about.

    The command prints the verdict with its probability and threshold. It shows the response with its unsupported words
    in ⟦brackets⟧ beside the knowledge, and the same number at a sentence and at its evidence (metric citations,
    computed here by default). Each metric's value follows with its details: for Q² every question with the answer that
    the knowledge gives, for example.
    In a pipe the output is the Score record as JSON. The exit code is 3 if the response could not be scored.

        groundwire explain "A marathon is 50 kilometres long." -k "The marathon is a race of 42.195 kilometres."
        groundwire explain "Honey never spoils." -k "Honey keeps for years." --metrics all --json
        groundwire explain "Honey never spoils." -k "Honey keeps for years." --evidence packet.json --texts
    """
    knowledge, history = dialogue.require_knowledge(), dialogue.history or ()
    request_options = scoring.make_options(questions)
    names = scoring.parse_metrics()
    with engine_options.open() as engine:
        names = _add_explaining(engine, names)
        with options.refuse_value():
            score = engine.score(response, knowledge, history=history, metrics=names, options=request_options)
        has_verdict = engine.core.calibration is not None
        packet = None
        if evidence is not None:
            packet = Auditor(engine).pack(
                score, response, knowledge, history=history, texts=texts, scoring=request_options
            )
    if packet is not None and str(evidence) == "-":
        print_json(packet)
    elif prints_tables(json):
        with translate_write_errors(STDOUT):
            _print_score(score, response, knowledge, has_verdict=has_verdict)
    else:
        print_json(score)
    if packet is not None and evidence is not None and str(evidence) != "-":
        with translate_write_errors(evidence):
            evidence.write_text(f"{packet.to_json()}\n", encoding="utf-8")
    display.exit_without_result(score.status)


def _add_explaining(engine: Engine, names: Sequence[str] | None) -> tuple[str, ...]:
    """The metrics to compute; where none are named, the metrics of all fusions (Q² asks and answers questions), and
    citations if the bundle has the models for them."""
    chosen = options.choose_metrics(engine, names)
    if names is not None:
        return chosen
    calibration = engine.core.calibration
    further = [name for fusion in (calibration.fusions if calibration else ()) for name in fusion.metrics]
    return add_citing(engine, (*chosen, *further))


def _find_weakest(score: Score) -> SentenceVerdict | None:
    """The sentence that is least probably consistent, of the sentences that state something; None without one."""
    rated = (
        (sentence.verdict.probability, sentence)
        for sentence in score.sentences
        if sentence.verdict.probability is not None and sentence.verdict.label != "unverifiable"
    )
    return min(rated, key=lambda pair: pair[0], default=(0.0, None))[1]


def _print_score(score: Score, response: str, knowledge: Sequence[str], *, has_verdict: bool) -> None:
    console = display.output_console()
    verdict = score.verdict
    if verdict.threshold is not None:
        point = display.format_threshold(verdict.threshold, verdict.profile, verdict.max_false_positive_rate)
        note = f"({point}) {verdict.message}".rstrip()
        console.print(f"verdict: {display.format_verdict(score)} [dim]{display.escape_markup(note)}[/]")
    elif has_verdict:
        console.print(f"verdict: {display.format_verdict(score)} [dim]{display.escape_markup(verdict.message)}[/]")
    if len(score.sentences) > 1:
        weakest = _find_weakest(score)
        for sentence in score.sentences:
            text = shown(sentence.text)
            reason = f"  {sentence.verdict.message}" if sentence.verdict.label == "unknown" else ""
            reason += "  (weakest)" if sentence is weakest else ""
            drawn = Text.from_markup(display.format_verdict(sentence))
            console.print(Text.assemble("  ", drawn, "  ", text, (shown(reason), "dim")))
    for warning in score.warnings:
        display.print_warning(console, warning)
    print_texts(console, response, knowledge, score)
    if score.unsupported:
        console.print(display.format_spans(score))
    for result in score.metrics.values():
        name, message = display.escape_markup(result.name), display.escape_markup(result.message)
        console.print(f"[bold]{name}[/] {display.format_value(result)} {message}")
        metric = find(result.name)
        details = metric.details(result) if metric is not None and result.status == "scored" else None
        if details is not None:
            display.print_details(console, details)
    stages = ", ".join(
        f"{display.escape_markup(role)} {spent_ms:.0f}" for role, spent_ms in score.timings.stages_ms.items()
    )
    console.print(f"[dim]{score.timings.total_ms:.0f} ms ({stages})  {display.escape_markup(score.signature)}[/]")
