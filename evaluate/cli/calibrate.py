"""``groundwire calibrate``: a verdict of one's own from labelled responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from groundwire.engine.cli import display
from groundwire.engine.cli import options as cli_options
from groundwire.engine.schema.results import Score
from groundwire.engine.verdict.features import features
from groundwire.runtime.errors import InvalidRequest

from . import commands

if TYPE_CHECKING:
    from groundwire.evaluate.calibration.fusion import Example
    from groundwire.evaluate.datasets.examples import Row
    from groundwire.runtime.calibration import Calibration


def calibrate(
    data: Annotated[
        list[Path],
        typer.Argument(help="Labelled sets, as for `groundwire evaluate`. Several count the same.", metavar="DEV"),
    ],
    out: Annotated[Path | None, typer.Option(help="Write the calibration here.", dir_okay=False)] = None,
    save: Annotated[bool, typer.Option("--save", help="Write it into the bundle's manifest.")] = False,
    bundle: cli_options.BundleOption = "compact",
    metrics: cli_options.MetricsOption = None,
    apart_from: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out rows that share knowledge with this set, on which you will test; repeatable."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="Directory that keeps the scores, so that a stopped run goes on; default: beside --out."),
    ] = None,
    device: cli_options.DeviceOption = "auto",
    threads: cli_options.ThreadsOption = None,
    workers: commands.WorkersOption = 1,
    verifiable: Annotated[
        float | None, typer.Option(help="Verifiability below which nothing is called inconsistent.", min=0, max=1)
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Of the folds.", min=0)] = 13,
) -> None:
    """Fit verdicts to labelled responses of your own.

    Every metric gets a scale; together they give one probability of "consistent", and the profiles balanced, strict and
    lenient draw the line with the rates of false alarms and misses that held-out rows have. A row is
    `{"response": "…", "knowledge": "…", "label": 1}`; a few hundred rows of each label are a good start.

        groundwire calibrate dev.jsonl --metrics q2,nli,overlap_precision --out mine.json

    Then `Engine.load(calibration=Path("mine.json"))`, or `groundwire evaluate tests.jsonl --calibration mine.json`.
    """
    commands.required()
    from groundwire.evaluate.calibration.fusion import Choice, leave_one_out
    from groundwire.evaluate.calibration.fusion import calibrate as fit
    from groundwire.evaluate.datasets import read
    from groundwire.evaluate.datasets.examples import apart
    from groundwire.evaluate.scores.scoring import Settings, score_sets

    if out is None and not save:
        raise InvalidRequest("Say where the calibration goes: --out FILE, or --save for the bundle's own.")
    kept = run or (out.with_suffix(".run") if out else None)
    if kept is None:
        raise InvalidRequest("--save without --out needs --run DIR, where the scores are kept.")
    tested = [row for path in apart_from or () for row in read(path)]
    sets = {name: read(path) for name, path in commands.named(list(data)).items()}
    sets = {
        name: [row for row, clear in zip(rows, apart(rows, tested), strict=True) if clear]
        for name, rows in sets.items()
    }
    with commands.progress() as watch:
        names = cli_options.parse_metrics(metrics) or ("all",)
        settings = Settings(bundle, cli_options.parse_device(device), threads, names, workers=workers)
        scored = score_sets(sets, kept, settings, watch)
        watch("fitting", 0, 0)
        found = examples(sets, scored.sets)
        computed = tuple(dict.fromkeys(name for scores in scored.sets.values() for s in scores for name in s.metrics))
        choice = Choice(verifiable=verifiable, seed=seed)
        fitted = fit(found, computed, choice)
        others = leave_one_out(found, {name: name for name in sets}, choice) if len(sets) > 1 else {}
    console = display.output_console()
    console.print(_weights(fitted))
    console.print(_profiles(fitted))
    for name, scorer in others.items():
        console.print(f"[dim]{escape(name)}, fitted on the other sets: ROC-AUC {_auc(found, name, scorer):.3f}[/]")
    if out is not None:
        fitted.save(out)
        console.print(f"written to {escape(str(out))}", soft_wrap=True)
    if save:
        from groundwire.runtime.bundle import Bundle

        console.print(f"written into {escape(str(Bundle.open(bundle).calibrate(fitted).directory))}", soft_wrap=True)


def examples(sets: Mapping[str, Sequence[Row]], scores: Mapping[str, Sequence[Score]]) -> list[Example]:
    """The labelled rows with their numbers; rows about the same knowledge are one group."""
    from groundwire.evaluate.calibration.fusion import Example

    return [
        Example(name, "\n".join(row.knowledge), row.label, features(score.metrics))
        for name, rows in sets.items()
        for row, score in zip(rows, scores[name], strict=True)
        if row.label is not None and score.metrics
    ]


def _auc(found: Sequence[Example], name: str, scorer: object) -> float:
    from sklearn.metrics import roc_auc_score

    assert callable(scorer)
    own = [example for example in found if example.set == name]
    return float(roc_auc_score([e.label for e in own], scorer([e.numbers for e in own])))


def _weights(fitted: Calibration) -> Table:
    table = Table(title=f"fitted on {fitted.rows} rows of {', '.join(fitted.fitted_on)}", title_justify="left")
    for column in ("number", "weight", "mean", "deviation"):
        table.add_column(column, justify="left" if column == "number" else "right")
    for feature in fitted.features:
        name = f"{feature.name} (needed)" if feature.needed else feature.name
        table.add_row(name, f"{feature.weight:+.3f}", f"{feature.mean:.3f}", f"{feature.deviation:.3f}")
    return table


def _profiles(fitted: Calibration) -> Table:
    table = Table(title="profiles, with the rates of rows that the fit had not seen", title_justify="left")
    for column in ("profile", "consistent from", "false alarms", "misses"):
        table.add_column(column, justify="left" if column == "profile" else "right")
    for name, point in fitted.profiles.items():
        table.add_row(
            name, f"{point.threshold:.3f}", f"{point.false_positive_rate:.1%}", f"{point.false_negative_rate:.1%}"
        )
    return table
