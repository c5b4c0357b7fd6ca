"""``groundwire calibrate``: fits verdicts to labelled responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from groundwire.engine.cli import display, options
from groundwire.engine.cli.output import STDOUT, print_json
from groundwire.engine.jsonl.results_file import translate_write_errors
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
    bundle: options.BundleOption = "compact",
    extra: options.ExtraOption = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Metrics or groups, separated by commas, as for `groundwire score`. Default: all."),
    ] = None,
    apart_from: Annotated[
        list[Path] | None,
        typer.Option(help="Leave out examples that share knowledge with this test set; repeatable."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="Directory that keeps the scores, so that a stopped run resumes; default: beside --out."),
    ] = None,
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    workers: common.WorkersOption = 1,
    verifiable: Annotated[
        float | None, typer.Option(help="Verifiability below which nothing is called inconsistent.", min=0, max=1)
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the folds.", min=0)] = 13,
    columns: options.ColumnsOption = None,
    json: common.SummaryJsonOption = False,
) -> None:
    """Fit verdicts to your own labelled responses.

    Every metric gets a scale; together they give one probability of "consistent". The profiles balanced, strict and
    lenient draw the line; each states its false positive rate and false negative rate on held-out examples, where
    positive means that a response is called inconsistent. An example is
    `{"response": "…", "knowledge": "…", "label": 1}`; a few hundred examples of each label are a good start.

        groundwire calibrate examples/labelled.jsonl --metrics nli,overlap_precision --out mine.json
        groundwire score examples/dialogues.jsonl --calibration mine.json

    `explain`, `generate` and `evaluate` take `--calibration` too; in Python, `Engine.load(calibration=…)`.
    """
    common.require_extra()
    from ..calibration.fusion import FusionOptions, leave_one_out
    from ..calibration.operating_points import fit_calibration
    from ..datasets import read_dataset
    from ..datasets.examples import flag_unshared_knowledge
    from ..scores.scoring import Settings, score_sets

    if out is None and not save:
        raise typer.BadParameter("say where the calibration goes: --out FILE, or --save for the bundle's own.")
    directory = run or (out.with_suffix(".run") if out else None)
    if directory is None:
        raise typer.BadParameter("without --out it needs --run DIR, where the scores are kept.", param_hint="--save")
    choice, names = options.parse_device(device), options.parse_metrics(metrics) or ("all",)
    tests = [example for path in apart_from or () for example in read_dataset(path)]
    sets = common.read_sets(list(data), columns)
    if tests:
        for name, examples in sets.items():
            flags = flag_unshared_knowledge(examples, tests)
            sets[name] = [example for example, unshared in zip(examples, flags, strict=True) if unshared]
            _print_dropped(name, len(examples), len(sets[name]))
    with common.show_progress() as watch:
        settings = Settings(bundle, choice, threads, names, workers=workers, extra=tuple(extra or ()))
        with options.refuse_absent_bundles(bundle, extra):
            scored = score_sets(sets, directory, settings, watch)
        watch("fitting", 0, 0)
        labelled = collect_features(sets, scored.sets)
        computed = tuple(dict.fromkeys(name for scores in scored.sets.values() for s in scores for name in s.metrics))
        fusion = FusionOptions(verifiable=verifiable, seed=seed)
        fitted = fit_calibration(labelled, computed, fusion)
        others = leave_one_out(labelled, {name: name for name in sets}, fusion) if len(sets) > 1 and not json else {}
    common.print_unscored(scored.sets)
    warn_of_few_examples(fitted)
    written = []
    if out is not None:
        with translate_write_errors(out):
            fitted.save(out)
        written.append(f"written to {display.escape_markup(out)}")
    if save:
        from groundwire.runtime.bundle import Bundle

        directory = Bundle.open(bundle).calibrate(fitted).directory
        written.append(f"written into {display.escape_markup(directory)}")
    if json:
        print_json(fitted)
        return
    console = display.output_console()
    with translate_write_errors(STDOUT):
        console.print(_tabulate_weights(fitted))
        console.print(_tabulate_profiles(fitted))
        console.print("[dim]Positive: a response is called inconsistent.[/]")
        for name, predict in others.items():
            area = _measure_roc_auc(labelled, name, predict)
            console.print(f"[dim]{display.escape_markup(name)}, fitted on the other sets: ROC-AUC {area:.3f}[/]")
        for line in written:
            console.print(line, soft_wrap=True)


def _print_dropped(name: str, before: int, after: int) -> None:
    """Print how many examples --apart-from leaves out; InvalidRequest when none is left."""
    dropped = before - after
    if before and not after:
        raise InvalidRequest(
            f"All {before} examples of {name} share knowledge with the sets of --apart-from; give other examples."
        )
    display.error_console().print(
        f"{display.escape_markup(name)}: {dropped} of {before} examples share knowledge with the sets of --apart-from "
        "and are left out.",
        soft_wrap=True,
    )


def warn_of_few_examples(fitted: Calibration) -> None:
    """Print a warning when the examples are too few to tell the profiles apart."""
    thresholds = {profile.threshold for profile in fitted.profiles.values()}
    if len(thresholds) == 1 and len(fitted.profiles) > 1:
        display.error_console().print(
            f"[yellow]warning[/]: all profiles have the threshold {thresholds.pop():.3f}, because {fitted.rows} "
            "examples are too few to tell them apart; label a few hundred of each kind.",
            soft_wrap=True,
        )


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
