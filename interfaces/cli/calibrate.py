"""``groundwire calibrate``: fits verdicts to labelled responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from groundwire.cli import display, options
from groundwire.cli.groups import Setting, expand_groups
from groundwire.cli.output import STDOUT, print_json
from groundwire.files.results_file import translate_write_errors
from groundwire.monitor.prevalence import count_errors, count_missing, share
from groundwire.runtime.errors import InvalidRequest

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.calibration.choosing import Choice
    from groundwire.evaluate.calibration.fusion import LabelledFeatures, Predict
    from groundwire.evaluate.calibration.trusted import TrustedCalibration
    from groundwire.evaluate.datasets import LeftOut
    from groundwire.evaluate.scores.scoring import ScoringSettings
    from groundwire.runtime.bundles.calibration import Calibration, Fusion

THRESHOLDS = [tenth / 10 for tenth in range(1, 10)]
TRUSTED, MADE = "trusted", "made"
"""Names under which scores of trusted rows and of made errors are kept."""


@dataclass(frozen=True)
class CalibrationFitOptions(common.FitOptions):
    """Which examples and features a calibration is fitted to, and how."""

    features: Annotated[
        str | None,
        typer.Option(
            help="Numbers that the verdict may read, separated by commas: metrics, or parts of their explanations as "
            "nli.expected. Default: all numbers that are evidence."
        ),
    ] = None
    needed: Annotated[
        str | None,
        Setting(help="Numbers that a verdict needs, separated by commas. Default: by the weights."),
    ] = None
    fusion: Annotated[
        str | None,
        Setting(
            help="Name of the only fusion, for a bundle that loads beside another. Default: full, and fast beside it."
        ),
    ] = None
    seed: common.SeedOption = 13
    trusted: Annotated[
        bool,
        typer.Option(
            "--trusted",
            help="All rows are right answers, at least 20: keep the fusion and draw the threshold for "
            "--max-false-positive-rate from them.",
        ),
    ] = False
    force: Annotated[
        bool,
        typer.Option("--force", help="Write a verdict that errs more on left-out rows than the bundle's own, too."),
    ] = False


@expand_groups
def calibrate(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Labelled sets, as for `groundwire evaluate`; every set has the same weight. With --trusted: right "
            "answers, whose labels may be left out.",
            metavar="DEV",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Write the calibration to this file.", dir_okay=False)] = None,
    save: Annotated[bool, typer.Option("--save", help="Write the calibration into the bundle's manifest.")] = False,
    metrics: Annotated[
        str | None,
        typer.Option(help="Metrics or groups, separated by commas, as for `groundwire score`. Default: all."),
    ] = None,
    workers: common.WorkersOption = 1,
    *,
    fit: CalibrationFitOptions,
    summary: common.SummaryOptions,
    engine_options: options.BundleOptions,
) -> None:
    """Fit verdicts to your own labelled responses.

    Every metric gets a scale. All metrics together give one probability of "consistent", and the metrics of the group
    fast give another. The profiles draw the line: balanced is right most often, strict misses at most 15 % of
    inconsistent responses like these, and lenient promises to call at most 5 % of the consistent ones inconsistent.
    Each states what to expect on other sets. An example is `{"response": "…", "knowledge": "…", "label": 1}`; a few
    hundred examples of each label are a good start, and 20 of each are needed.

    The bundle's weights and thresholds are kept unless others err less by two standard errors on rows that were left
    out, which takes more than a few rows. A verdict that errs more than the bundle's is not written without --force,
    and the exit code is then 4.

        groundwire calibrate labelled.jsonl --out mine.json
        groundwire score dialogues.jsonl --set calibration=mine.json
        groundwire calibrate labelled.jsonl --cost-of-missed 5 --out mine.json
        groundwire calibrate --trusted answers.jsonl --max-false-positive-rate 0.05 --out mine.json

    With --trusted all rows are right answers, such as those that agents wrote, and need no label. What the threshold
    misses is then estimated on errors that are made from them.

    Every command that draws verdicts takes it by --set calibration=FILE, serve and proxy by GROUNDWIRE_CALIBRATION; in
    Python, `LoadOptions(calibration=…)`.
    """
    common.require_extra()
    from groundwire.evaluate.calibration.choosing import choose_calibration
    from groundwire.evaluate.calibration.features import collect_features
    from groundwire.evaluate.calibration.fusion import check_classes, leave_one_out
    from groundwire.evaluate.scores.scoring import APART, ScoringSettings, score_sets
    from groundwire.evaluate.statistics.shift import compare_with_calibration, explain_shift

    if out is None and not save:
        raise typer.BadParameter("say where the calibration goes: --out FILE, or --save for the bundle's own.")
    directory = fit.run or (out.with_suffix(".run") if out else None)
    if directory is None:
        raise typer.BadParameter("without --out it needs --run DIR, where the scores are kept.", param_hint="--save")
    names = options.parse_metrics(metrics)
    settings = ScoringSettings(
        engine_options.bundle,
        options.parse_device(engine_options.device),
        engine_options.threads,
        ("all",) if metrics is None and not fit.trusted else names,
        None if fit.trusted else APART,
        workers=workers,
        extra=tuple(engine_options.extra or ()),
    )
    left_out: dict[str, LeftOut] = {}
    if fit.trusted:
        drawn = _draw_from_trusted(list(data), directory, settings, fit, summary, left_out)
        written = _write(drawn.calibration, out, settings.bundle if save else None)
        if summary.json:
            print_json(drawn)
        else:
            with translate_write_errors(STDOUT):
                print_trusted(drawn, written)
        common.exit_if_left_out(left_out)
        return
    sets = fit.read_sets(list(data), summary.columns, left_out)
    check_classes([example.label for examples in sets.values() for example in examples])
    with common.show_scoring() as watch:
        with options.refuse_absent_bundles(engine_options.bundle, engine_options.extra):
            scored = score_sets(sets, directory, settings, watch)
        watch("fitting", 0, 0)
        labelled = collect_features(sets, scored.sets)
        computed = tuple(dict.fromkeys(name for scores in scored.sets.values() for s in scores for name in s.metrics))
        wanted = _split_names(fit.features) or None
        how = fit.make_options(fit.seed, features=wanted, needed=_split_names(fit.needed))
        choice = choose_calibration(labelled, computed, how, scored.calibration, fit.fusion)
        fitted = choice.calibration
        others = (
            leave_one_out(labelled, {name: name for name in sets}, how) if len(sets) > 1 and not summary.json else {}
        )
        shifts = {
            name: compare_with_calibration(examples, scored.sets[name], scored.calibration)
            for name, examples in sets.items()
        }
    common.print_unscored(scored.sets)
    is_refused = choice.is_worse and not fit.force
    written = [] if is_refused else _write(fitted, out, settings.bundle if save else None)
    if summary.json:
        print_json(fitted)
    else:
        console = display.output_console()
        with translate_write_errors(STDOUT):
            _print_fitted(fitted, fit.cost_of_missed)
            for name in (name for name in sets if shifts[name]):
                console.print(f"[bold]{display.escape_markup(name)}[/] and the calibration that the bundle has")
                console.print(common.tabulate_shifts(shifts[name]))
                console.print(f"[dim]{explain_shift(shifts[name])}[/]", soft_wrap=True)
            for name, predict in others.items():
                area = _measure_roc_auc(labelled, name, predict)
                console.print(f"[dim]{display.escape_markup(name)}, fitted on the other sets: ROC-AUC {area:.3f}[/]")
            for line in written:
                console.print(line, soft_wrap=True)
    for line in explain_choice(choice, is_refused=is_refused):
        display.error_console().print(line, soft_wrap=True)
    if is_refused:
        raise typer.Exit(display.EXIT_WORSE)
    common.exit_if_left_out(left_out)


def _print_fitted(fitted: Calibration, cost_of_missed: float) -> None:
    """Print what a calibration has, and how it errs."""
    console = display.output_console()
    console.print(f"fitted on {fitted.rows} examples of {display.escape_markup(', '.join(fitted.fitted_on))}")
    console.print(_tabulate_fusions(fitted))
    for fusion in fitted.fusions:
        console.print(_tabulate_weights(fusion))
        console.print(_tabulate_profiles(fusion))
        console.print(_tabulate_thresholds(fitted, fusion, cost_of_missed))
    console.print(
        "[dim]Rates of what is delivered, each set left out in turn. Positive: a response is called inconsistent. "
        "Power: the share of inconsistent responses that are called so. Sure: the share of labels outside the "
        "band.[/]",
        soft_wrap=True,
    )
    if precision := explain_precision(fitted):
        console.print(f"[dim]{precision}[/]", soft_wrap=True)


def explain_choice(choice: Choice, *, is_refused: bool = False) -> Iterator[str]:
    """Yield what was compared and taken, and a warning where the rows are few or the bundle's verdict errs less."""
    from groundwire.evaluate.calibration.choosing import CANDIDATES

    if not choice.errors:
        if few := explain_few_rows(choice.calibration):
            yield few
        return
    figures = ", ".join(f"{CANDIDATES[name]} {choice.accuracy[name]:.1%}" for name in CANDIDATES)
    yield f"Balanced accuracy on {choice.rows} rows, each left out of the fit: {figures}."
    if choice.delivered == "weights":
        yield f"Taken: {CANDIDATES['weights']}."
    else:
        remains = "weights and thresholds" if choice.delivered == "unchanged" else "weights"
        yield (
            f"Kept: the {remains} of the verdict that is there; others do not err less by two standard errors. "
            "The rates, the band of labels that are not sure, and lenient are of these rows."
        )
    if choice.shares_knowledge:
        yield (
            "[yellow]warning[/]: the rows are about fewer than five texts, so left-out rows share theirs with others: "
            "the figures flatter. Add rows about other knowledge."
        )
    if choice.is_worse:
        ending = "so nothing was written; --force writes it" if is_refused else "written by --force"
        yield f"[yellow]warning[/]: the verdict that is there errs less on these rows, {ending}."


def _draw_from_trusted(
    paths: list[Path],
    directory: Path,
    settings: ScoringSettings,
    fit: CalibrationFitOptions,
    summary: common.SummaryOptions,
    left_out: dict[str, LeftOut],
) -> TrustedCalibration:
    from groundwire.evaluate.calibration.trusted import (
        check_trusted,
        decide_rows,
        fit_trusted,
        make_twin_examples,
    )
    from groundwire.evaluate.scores.scoring import score_sets

    for name, option in (("features", "--features"), ("needed", "--set needed"), ("fusion", "--set fusion")):
        if getattr(fit, name) is not None:
            raise typer.BadParameter("trusted rows keep the bundle's fusion; leave it out.", param_hint=option)
    if fit.cost_of_missed != 1:
        raise typer.BadParameter("trusted rows do not say what is missed; label some.", param_hint="--cost-of-missed")
    sets = fit.read_sets(paths, summary.columns, left_out, labelled=False)
    trusted = [example for examples in sets.values() for example in examples]
    check_trusted(trusted, fit.max_false_positive_rate)
    twins = make_twin_examples(trusted, fit.seed)
    with (
        common.show_scoring() as watch,
        options.refuse_absent_bundles(settings.bundle or "compact", list(settings.extra) or None),
    ):
        rows = {name: examples for name, examples in ((TRUSTED, trusted), (MADE, twins)) if examples}
        scored = score_sets(rows, directory, settings, watch)
    if scored.calibration is None:
        raise InvalidRequest("The bundle has no calibration, whose fusion --trusted keeps; give one that has.")
    rights, wrongs = (
        decide_rows(rows.get(name, ()), scored.sets.get(name, ()), scored.calibration) for name in (TRUSTED, MADE)
    )
    return fit_trusted(tuple(sets), rights, wrongs, scored.calibration, fit.max_false_positive_rate)


def _write(fitted: Calibration, out: Path | None, bundle: str | Path | None) -> list[str]:
    """Write the calibration to a file, and into a bundle; returns a line about each."""
    written = []
    if out is not None:
        with translate_write_errors(out):
            fitted.save(out)
        written.append(f"written to {display.escape_markup(out)}")
    if bundle is not None:
        from groundwire.runtime.bundles.bundle import Bundle

        directory = Bundle.open(bundle).calibrate(fitted).directory
        written.append(f"written into {display.escape_markup(directory)}")
    return written


def print_trusted(drawn: TrustedCalibration, written: Sequence[str]) -> None:
    """Print the threshold, what it promises, and what it misses of made errors."""
    from groundwire.evaluate.twins.twins import ABOUT

    console = display.output_console()
    others = {"state nothing": drawn.unverifiable, "have no probability": drawn.unscored}
    notes = "".join(f"; {count} {what}" for what, count in others.items() if count)
    console.print(
        f"consistent from [bold]{drawn.threshold:.3f}[/], by {drawn.trusted} trusted responses{notes}",
        soft_wrap=True,
    )
    console.print(
        f"On average at most {drawn.max_false_positive_rate:.0%} of right responses like these will be called "
        "inconsistent. "
        f"Of these {drawn.trusted} it is {drawn.stopped}.",
        soft_wrap=True,
    )
    if drawn.missed_rate is None:
        console.print("No error could be made from these responses, so what is missed is not known.")
    else:
        kinds = drawn.kinds.values()
        missed, made = sum(errors.missed for errors in kinds), sum(errors.made for errors in kinds)
        console.print(
            f"{missed} of {made} made errors ([bold]{missed / made:.0%}[/]) are missed; {drawn.missed_rate:.0%} where "
            "every kind counts the same. Real errors may be easier or harder to see: only labels tell.",
            soft_wrap=True,
        )
        table = Table(title="errors that were made from the trusted responses", title_justify="left")
        table.add_column("what is wrong")
        for column in ("made", "missed", "of these unverifiable"):
            table.add_column(column, justify="right")
        for kind, errors in drawn.kinds.items():
            missed_share = f"{errors.missed} [dim]{errors.rate:.0%}[/]"
            table.add_row(ABOUT[kind], str(errors.made), missed_share, str(errors.unverifiable))
        console.print(table)
    for line in written:
        console.print(line, soft_wrap=True)


def _split_names(value: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",")) if value else ()


def explain_few_rows(fitted: Calibration) -> str:
    """A warning when a label has too few rows for weights of its own; empty for enough."""
    from groundwire.evaluate.calibration.profiles import ENOUGH

    held_out = fitted.fusions[0].held_out
    if held_out is None or min(held_out.consistent.count, held_out.inconsistent.count) >= ENOUGH:
        return ""
    return (
        f"[yellow]warning[/]: {fitted.rows} rows are few for weights of their own, and there is no other verdict of "
        f"these metrics to compare with; label {ENOUGH} or more of each label."
    )


def explain_precision(fitted: Calibration) -> str:
    """How well the rates of the profile balanced are known, and how many more rows would tell them to ± 5 points."""
    fusion = fitted.fusions[0]
    errors = count_errors(fitted, fusion, fusion.profiles["balanced"].threshold)
    if errors is None:
        return ""
    parts, missing = [], []
    for name, label, count, total in (
        ("false positive rate", "consistent", errors.false_positives, errors.consistent),
        ("power", "inconsistent", errors.true_positives, errors.inconsistent),
    ):
        rate = share(round(count), total)
        parts.append(f"{name} {rate.value:.1%} ({rate.low:.1%}–{rate.high:.1%}) of {total} {label} rows")
        if more := count_missing(round(count), total):
            missing.append(f"{more} more {label}")
    needed = f"label {' and '.join(missing)} rows" if missing else "there are enough rows"
    return f"Profile balanced of {fusion.name}: {' and '.join(parts)}. For ± 5 points {needed}."


def _measure_roc_auc(labelled: Sequence[LabelledFeatures], name: str, predict: Predict) -> float:
    from sklearn.metrics import roc_auc_score

    of_set = [example for example in labelled if example.set == name]
    return float(roc_auc_score([example.label for example in of_set], predict(of_set)))


def _tabulate_fusions(fitted: Calibration) -> Table:
    table = Table(title="fusions: which of them draws a verdict depends on --metrics", title_justify="left")
    for column in ("fusion", "metrics"):
        table.add_column(column)
    for column in ("held-out consistent", "held-out inconsistent"):
        table.add_column(column, justify="right")
    for fusion in fitted.fusions:
        counts = [fusion.held_out.consistent.count, fusion.held_out.inconsistent.count] if fusion.held_out else []
        table.add_row(fusion.name, ", ".join(fusion.metrics), *map(str, counts))
    return table


def _tabulate_weights(fusion: Fusion) -> Table:
    table = Table(title=f"fusion {fusion.name}", title_justify="left")
    for column in ("feature", "weight", "mean", "deviation"):
        table.add_column(column, justify="left" if column == "feature" else "right")
    for feature in fusion.features:
        name = f"{feature.name} (needed)" if feature.needed else feature.name
        table.add_row(name, f"{feature.weight:+.3f}", f"{feature.mean:.3f}", f"{feature.deviation:.3f}")
    return table


def _tabulate_profiles(fusion: Fusion) -> Table:
    sets = next(iter(fusion.profiles.values())).sets
    left_out = f"means over {sets} sets, each left out" if sets > 1 else "on folds that were left out"
    band = f"sure: inconsistent below {fusion.band.low:.2f}, consistent from {fusion.band.high:.2f}"
    table = Table(title=f"profiles of {fusion.name}, {left_out}; {band}", title_justify="left")
    columns = (
        *("consistent from", "false positive rate", "power", "balanced accuracy"),
        *("wrong, unverifiable", "sure", "sure and wrong"),
    )
    table.add_column("profile")
    for column in columns:
        table.add_column(column, justify="right")
    for name, profile in fusion.profiles.items():
        bound = profile.max_false_positive_rate
        table.add_row(
            name,
            f"{profile.threshold:.3f}",
            f"{profile.false_positive_rate:.1%}" + ("" if bound is None else f" (≤ {bound:.0%})"),
            f"{1 - profile.false_negative_rate:.1%}",
            f"{1 - (profile.false_positive_rate + profile.false_negative_rate) / 2:.1%}",
            f"{profile.unverifiable_rate:.1%}",
            f"{profile.coverage:.0%}",
            f"{profile.risk:.1%}",
        )
    return table


def _tabulate_thresholds(fitted: Calibration, fusion: Fusion, cost_of_missed: float) -> Table:
    """What other thresholds do to the held-out rows, for ``Options(threshold=…)``."""
    table = Table(title=f"other thresholds of {fusion.name}, on rows that were held out", title_justify="left")
    cost = f"cost (a missed error costs {cost_of_missed:g})"
    for column in ("threshold", "right ones stopped", "wrong ones missed", "balanced accuracy", cost):
        table.add_column(column, justify="right")
    for threshold in THRESHOLDS:
        errors = count_errors(fitted, fusion, threshold)
        if errors is not None:
            stopped, missed = errors.false_positive_rate, 1 - errors.true_positive_rate
            balanced_accuracy = f"{1 - (stopped + missed) / 2:.1%}"
            total = f"{100 * (stopped + cost_of_missed * missed):.0f}"
            table.add_row(f"{threshold:.1f}", f"{stopped:.1%}", f"{missed:.1%}", balanced_accuracy, total)
    table.caption = "Cost: in false positives, of 100 right and 100 wrong responses; a false positive costs 1."
    return table
