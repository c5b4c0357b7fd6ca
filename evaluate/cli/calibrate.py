"""``groundwire calibrate``: fits verdicts to labelled responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from groundwire.engine.schema.results import Score
from groundwire.engine.verdict.features import features
from groundwire.runtime.errors import InvalidRequest

from . import common

if TYPE_CHECKING:
    from groundwire.runtime.calibration import Calibration

    from ..calibration.fusion import LabelledFeatures, PredictProbabilities
    from ..datasets.examples import Example


def calibrate(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled sets, as for `groundwire evaluate`. Every set has the same weight.", metavar="DEV"
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Write the calibration to this file.", dir_okay=False)] = None,
    save: Annotated[bool, typer.Option("--save", help="Write the calibration into the bundle's manifest.")] = False,
    bundle: Annotated[
        str, typer.Option(help="An embedded bundle's name, or a directory made by `groundwire export`.")
    ] = "compact",
    metrics: common.MetricsOption = None,
    apart_from: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out examples that share knowledge with this test set; repeatable."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="Directory that keeps the scores, so that a stopped run resumes; default: beside --out."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or tensorrt; nothing falls back silently.")] = "auto",
    threads: common.ThreadsOption = None,
    workers: common.WorkersOption = 1,
    verifiable: Annotated[
        float | None, typer.Option(help="Verifiability below which nothing is called inconsistent.", min=0, max=1)
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the folds.", min=0)] = 13,
) -> None:
    """Fit verdicts to your own labelled responses.

    Every metric gets a scale; together they give one probability of "consistent". The profiles balanced, strict and
    lenient draw the line; each states its false positive rate and false negative rate on held-out examples, where
    positive means that a response is called inconsistent. An example is
    `{"response": "…", "knowledge": "…", "label": 1}`; a few hundred examples of each label are a good start.

        groundwire calibrate dev.jsonl --metrics q2,nli,overlap_precision --out mine.json

    Then `Engine.load(calibration=Path("mine.json"))`, or `groundwire evaluate tests.jsonl --calibration mine.json`.
    """
    common.require_extra()
    from ..calibration.fusion import FusionOptions, leave_one_out
    from ..calibration.operating_points import fit_calibration
    from ..datasets import read_dataset
    from ..datasets.examples import flag_unshared_knowledge
    from ..scores.scoring import Settings, score_sets

    if out is None and not save:
        raise InvalidRequest("Say where the calibration goes: --out FILE, or --save for the bundle's own.")
    directory = run or (out.with_suffix(".run") if out else None)
    if directory is None:
        raise InvalidRequest("--save without --out needs --run DIR, where the scores are kept.")
    tests = [example for path in apart_from or () for example in read_dataset(path)]
    sets = {name: read_dataset(path) for name, path in common.name_sets(list(data)).items()}
    sets = {
        name: [
            example
            for example, unshared in zip(examples, flag_unshared_knowledge(examples, tests), strict=True)
            if unshared
        ]
        for name, examples in sets.items()
    }
    with common.show_progress() as watch:
        names = common.parse_metrics(metrics) or ("all",)
        settings = Settings(bundle, common.parse_device(device), threads, names, workers=workers)
        scored = score_sets(sets, directory, settings, watch)
        watch("fitting", 0, 0)
        labelled = collect_features(sets, scored.sets)
        computed = tuple(dict.fromkeys(name for scores in scored.sets.values() for s in scores for name in s.metrics))
        options = FusionOptions(verifiable=verifiable, seed=seed)
        fitted = fit_calibration(labelled, computed, options)
        others = leave_one_out(labelled, {name: name for name in sets}, options) if len(sets) > 1 else {}
    console = common.open_stdout()
    console.print(_tabulate_weights(fitted))
    console.print(_tabulate_profiles(fitted))
    console.print("[dim]Positive: a response is called inconsistent.[/]")
    for name, predict in others.items():
        area = _measure_roc_auc(labelled, name, predict)
        console.print(f"[dim]{escape(name)}, fitted on the other sets: ROC-AUC {area:.3f}[/]")
    if out is not None:
        fitted.save(out)
        console.print(f"written to {escape(str(out))}", soft_wrap=True)
    if save:
        from groundwire.runtime.bundle import Bundle

        console.print(f"written into {escape(str(Bundle.open(bundle).calibrate(fitted).directory))}", soft_wrap=True)


def collect_features(
    sets: Mapping[str, Sequence[Example]], scores: Mapping[str, Sequence[Score]]
) -> list[LabelledFeatures]:
    """The features of the labelled examples; examples about the same knowledge are one group."""
    from ..calibration.fusion import LabelledFeatures

    return [
        LabelledFeatures(name, "\n".join(example.knowledge), example.label, features(score.metrics))
        for name, examples in sets.items()
        for example, score in zip(examples, scores[name], strict=True)
        if example.label is not None and score.metrics
    ]


def _measure_roc_auc(labelled: Sequence[LabelledFeatures], name: str, predict: PredictProbabilities) -> float:
    from sklearn.metrics import roc_auc_score

    of_set = [example for example in labelled if example.set == name]
    return float(
        roc_auc_score([example.label for example in of_set], predict([example.features for example in of_set]))
    )


def _tabulate_weights(fitted: Calibration) -> Table:
    table = Table(title=f"fitted on {fitted.rows} examples of {', '.join(fitted.fitted_on)}", title_justify="left")
    for column in ("feature", "weight", "mean", "deviation"):
        table.add_column(column, justify="left" if column == "feature" else "right")
    for feature in fitted.features:
        name = f"{feature.name} (needed)" if feature.needed else feature.name
        table.add_row(name, f"{feature.weight:+.3f}", f"{feature.mean:.3f}", f"{feature.deviation:.3f}")
    return table


def _tabulate_profiles(fitted: Calibration) -> Table:
    table = Table(title="profiles, with their rates on examples that the fit had not seen", title_justify="left")
    for column in ("profile", "consistent from", "false positive rate", "false negative rate"):
        table.add_column(column, justify="left" if column == "profile" else "right")
    for name, profile in fitted.profiles.items():
        table.add_row(
            name,
            f"{profile.threshold:.3f}",
            f"{profile.false_positive_rate:.1%}",
            f"{profile.false_negative_rate:.1%}",
        )
    return table
