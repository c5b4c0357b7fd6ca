"""Writes docs/quality.md: quality of the embedded bundle on the labelled sets, and how its fusion carries over.

    python bench/quality/quality.py DATA/bench --train DATA/train

Evaluates every set of the directory like ``groundwire evaluate`` and writes the page from the figures. Scores are kept
in ``--out``, so a stopped run resumes. Only the thresholds named "tuned on begin_wow_dev" are tuned here.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import typer
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from groundwire.cli.evaluation import show_scoring
from groundwire.engine import Score
from groundwire.engine.verdict import decide_again
from groundwire.evaluate.calibration import fusion
from groundwire.evaluate.calibration.features import collect_features
from groundwire.evaluate.calibration.fusion import LabelledFeatures
from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.datasets.examples import Example, flag_unshared_knowledge, sample_examples
from groundwire.evaluate.report.page import write_report
from groundwire.evaluate.scores.metric_values import DEFAULT_PROFILE, VALUES, build_example_values, save_values
from groundwire.evaluate.scores.scoring import Scored, ScoringSettings, score_sets
from groundwire.evaluate.statistics.analysis import Development, analyse
from groundwire.evaluate.statistics.results import SCHEMA, Results, SetFigures
from groundwire.metrics import sentences
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.resources import usable_cores

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.quality.targets import (  # noqa: E402 - after the path of the checkout
    Measured,
    add_labels,
    count_showcase,
    format_interval,
    format_percent,
    is_fast,
    write_targets,
)

PAGE = ROOT / "docs" / "quality.md"
SMALLTALK = ROOT / "examples" / "smalltalk.jsonl"
TESTS = {
    "q2_wow_600": "Q2",
    "q2_wow": "Q2",
    "begin_wow_test": "BEGIN",
    "begin_cmu_dev": "BEGIN",
    "begin_tc_dev": "BEGIN",
    "factual_crowd_gt": "crowd",
    "factual_crowd_knn": "crowd",
    "factual_crowd_dpr": "crowd",
    "fever_symmetric_test": "FEVER",
    "clasp_dnli_test": "DNLI",
    "usr_topicalchat": "USR",
    "falke2019_pairs": "Falke",
}
"""Test sets and their families: sets of one family have the same makers, so a fusion fitted on one knows the others."""
FORMATS = {"usr_topicalchat": "usr-q2"}
"""Formats of sets where the columns do not decide: the examples that the Q² paper takes."""
MADE = ("made", "edits", "questions", "facts")
"""Kinds of rows that ``python -m groundwire.recipes development-rows`` draws, from articles that no model has read."""
DEVELOPMENT = {"begin_wow_dev": "BEGIN", "fever_symmetric_dev": "FEVER"} | {f"{kind}_dev": "made" for kind in MADE}
"""Sets for tuning, which the calibration uses, with their families."""
EDITS = 600
"""Most held-out edits that unsupported words are measured on."""
BASELINES = ("overlap", "overlap_precision")
METRICS = (
    *("q2", "q2_no_nli", "nli", "detector.consistency", "token_classifier", "verifiability"),
    *("overlap", "overlap_precision", "unigram_f1", "values", "bleu", "rouge_l", "meteor", "bertscore", "pmi"),
)
"""All but FeQA and UPMI, which no verdict reads and which cost half of Q² and PMI again."""


def main(
    bench: Annotated[Path, typer.Argument(help="Directory of the labelled sets.", exists=True, file_okay=False)],
    train: Annotated[
        Path | None, typer.Option(help="Directory of the training sets: adds reading comprehension and made_dev.")
    ] = None,
    bundle: Annotated[str, typer.Option(help="A bundle's name or directory.")] = "compact",
    metrics: Annotated[str, typer.Option(help="Comma-separated, or a group.")] = ",".join(METRICS),
    only: Annotated[str | None, typer.Option(help="Comma-separated test sets; default: all that are there.")] = None,
    out: Annotated[Path, typer.Option(help="Directory of the run.", file_okay=False)] = Path("runs/quality"),
    page: Annotated[Path, typer.Option(help="The page to write.", dir_okay=False)] = PAGE,
    title: Annotated[str, typer.Option(help="What the page measures, for its title.")] = "the embedded bundle",
    sample: Annotated[int, typer.Option(help="Examples of each set, to try the script; 0 takes all.", min=0)] = 0,
    repeats: Annotated[int, typer.Option(help="Bootstrap samples for each interval.", min=10)] = 1000,
    threads: Annotated[int | None, typer.Option(help="CPU threads of all workers together.", min=1)] = None,
    workers: Annotated[int, typer.Option(help="Processes that score; 0: one for each processor.", min=0)] = 0,
) -> None:
    """Measure the bundle and write the page."""
    out.mkdir(parents=True, exist_ok=True)
    if train is not None:
        for kind in MADE:
            _write_development_rows(train, kind, 500, out / f"{kind}_dev.jsonl")
        _write_development_rows(train, "edits", 1000, out / "edits.jsonl", seed=8)
    chosen = [name for name in TESTS if only is None or name in only.split(",")]
    paths = {name: bench / f"{name}.jsonl" for name in (*chosen, *DEVELOPMENT)} | {"smalltalk": SMALLTALK}
    paths |= {name: out / f"{name}.jsonl" for name in ("edits", *(f"{kind}_dev" for kind in MADE))}
    sets = {
        name: sample_examples(read_dataset(path, FORMATS.get(name)), sample, 0)
        for name, path in paths.items()
        if path.exists()
    }
    if (bench / "begin_wow_test.jsonl").exists():
        development = sets["begin_wow_dev"]
        unshared = flag_unshared_knowledge(development, read_dataset(bench / "begin_wow_test.jsonl"))
        sets["begin_wow_dev"] = [example for example, is_new in zip(development, unshared, strict=True) if is_new]
    if "edits" in sets and "edits_dev" in sets:
        unshared = flag_unshared_knowledge(sets["edits"], sets["edits_dev"])
        sets["edits"] = [example for example, is_new in zip(sets["edits"], unshared, strict=True) if is_new][:EDITS]
    if "q2_wow" in sets:
        sets["q2_wow"] = add_labels(sets["q2_wow"])
    settings = ScoringSettings(
        bundle, metrics=tuple(metrics.split(",")), threads=threads, workers=workers or threads or usable_cores()
    )
    with show_scoring() as watch:
        scored = score_sets(sets, out, settings, watch)
        tuning = Development("begin_wow_dev", sets["begin_wow_dev"], scored.sets["begin_wow_dev"])
        figures = {}
        for name in (*TESTS, "edits", "smalltalk"):
            if name in sets:
                watch(f"figures of {name}", 0, 0)
                values = build_example_values(sets[name], scored.sets[name], scored.calibration)
                save_values(out / VALUES / f"{name}.jsonl", values)
                figures[name] = analyse(
                    name,
                    sets[name],
                    scored.sets[name],
                    calibration=scored.calibration,
                    development=tuning,
                    repeats=repeats,
                )
        results = Results(SCHEMA, _now(), scored.signature, 0, repeats, tuple(figures.values()))
        results.save(out / "results.json")
        write_report(results, out)
        watch("fusion without each family", 0, 0)
        others = _measure_left_out(sets, scored, figures)
        reading = _read_or_measure_reading(bundle, train, sample, out) if train is not None else {}
        watch("showcase", 0, 0)
        showcase = count_showcase(bundle)
    lines = [f"# Quality of {title}", *_write_page(sets, scored, figures, others, reading, showcase)]
    if page == PAGE:
        lines[1:1] = ["", "The default verdict has [a page of its own](quality_default.md)."]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{page} and {out / 'report.html'} written")


def _write_development_rows(train: Path, kind: str, count: int, path: Path, seed: int = 7) -> None:
    if path.exists():
        return
    from groundwire.recipes.compact.development_rows import make_development_rows

    path.write_bytes(
        b"".join(msgspec.json.encode(row) + b"\n" for row in make_development_rows(train, kind, count, seed))
    )


def _read_or_measure_reading(bundle: str, train: Path, sample: int, out: Path) -> Mapping[str, Any]:
    from groundwire.recipes.compact import evaluate
    from groundwire.runtime.local import LocalRuntime

    runtime = LocalRuntime.load(bundle)
    stored = out / "reading" / f"{hashlib.sha256(f'{runtime.identity} {sample}'.encode()).hexdigest()[:16]}.json"
    if not stored.exists():
        stored.parent.mkdir(exist_ok=True)
        measured = evaluate.measure_extractive_qa(runtime, train, sample)
        stored.write_bytes(msgspec.json.encode({str(rule): figures for rule, figures in measured.items()}))
    return msgspec.json.decode(stored.read_bytes(), type=dict[str, Any])


class LeftOutAreas(NamedTuple):
    """ROC-AUC on a test set: of fusions fitted on development sets of other families, and of the better baseline."""

    chosen: float
    """With the penalty that ranks those sets best when each is left out."""
    equal: float
    """With equal weights."""
    baseline: float


def _measure_left_out(
    sets: Mapping[str, Sequence[Example]], scored: Scored, figures: Mapping[str, SetFigures]
) -> dict[str, LeftOutAreas]:
    labelled = collect_features(sets, scored.sets)
    development = [example for example in labelled if example.set in DEVELOPMENT]
    fitted = scored.calibration
    read = None if fitted is None else tuple(feature.name for feature in fitted.fusions[0].features)
    areas = {}
    for name, family in TESTS.items():
        tests = [example for example in labelled if example.set == name]
        if name not in figures or len({example.label for example in tests}) < 2:
            continue
        rest = [example for example in development if DEVELOPMENT[example.set] != family]
        chosen, equal = (
            fusion.select_model(rest, fusion.FusionOptions(read, penalties))[0].predict_responses(
                tests, fusion.FusionOptions().verifiable
            )
            for penalties in (fusion.PENALTIES, fusion.PENALTIES[-1:])
        )
        labels = [example.label for example in tests]
        areas[name] = LeftOutAreas(
            float(roc_auc_score(labels, chosen)),
            float(roc_auc_score(labels, equal)),
            max(_measure_area(tests, feature) for feature in BASELINES),
        )
    return areas


def _measure_area(examples: Sequence[LabelledFeatures], feature: str) -> float:
    present = [example for example in examples if feature in example.features]
    return float(
        roc_auc_score([example.label for example in present], [example.features[feature] for example in present])
    )


def _write_page(
    sets: Mapping[str, Sequence[Example]],
    scored: Scored,
    figures: Mapping[str, SetFigures],
    others: Mapping[str, LeftOutAreas],
    reading: Mapping[str, Any],
    showcase: tuple[int, int] | None,
) -> Iterator[str]:
    yield ""
    yield "Written by `bench/quality/quality.py` (`make evaluate`, or `make evaluate-default` without Q²);"
    yield "numbers as they are. In brackets after a figure: its 95 % interval (bootstrap over contexts). Examples"
    yield "that a metric did not score are left out for that metric alone."
    yield ""
    yield f"`{scored.signature}`, {platform.processor() or platform.machine()}, {_now()[:10]}."
    if scored.calibration is not None:
        read_by = ", ".join(f"`{feature.name}`" for feature in scored.calibration.fusions[0].features)
        yield ""
        yield "`verdict` is the verdict's probability, by the fusion"
        yield f"`{scored.calibration.fusions[0].name}`, from {read_by}."
        yield f"The calibrations of the bundles were fitted on {', '.join(scored.calibration.fitted_on)} together"
        yield "(`groundwire bundle inspect` says which rows each of them has). No example of a set below was used."
    absent = [name for name in TESTS if name not in figures]
    if absent:
        yield ""
        yield f"Not scored in this run: {', '.join(absent)}."
    yield from _write_labels(figures, sets, scored)
    yield from _write_areas(figures)
    yield from _write_decisions(figures)
    yield from _write_profiles(figures)
    yield from _write_lengths(sets, scored)
    yield from _write_families(others)
    yield from write_targets(Measured(sets, scored.sets, scored.calibration, figures, reading, showcase))


def _write_labels(
    figures: Mapping[str, SetFigures], sets: Mapping[str, Sequence[Example]], scored: Scored
) -> Iterator[str]:
    """What is delivered under the default profile: the headline, with the group fast beside it."""
    rows = [
        (name, verdicts)
        for name, of_set in figures.items()
        for verdicts in of_set.verdicts
        if verdicts.profile == DEFAULT_PROFILE and verdicts.balanced_accuracy is not None
    ]
    if not rows:
        return
    shares = [verdicts.balanced_accuracy.value for _, verdicts in rows if verdicts.balanced_accuracy is not None]
    yield from ("", "## Delivered labels", "")
    yield f"Mean balanced accuracy of the {len(rows)} sets: **{np.mean(shares):.1%}**, the lowest {min(shares):.1%}."
    yield f"Profile `{DEFAULT_PROFILE}`. Balanced accuracy is 1 minus the mean of both error rates; guessing has 50 %."
    yield "Flagged: called inconsistent."
    yield ""
    yield "`fast`: the balanced accuracy of the verdict by these metrics alone."
    yield ""
    yield "| set | balanced accuracy | `fast` | consistent | flagged | inconsistent | flagged | passed | unverifiable |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, verdicts in rows:
        right, wrong = verdicts.called["consistent"], verdicts.called["inconsistent"]
        counts = (sum(right.values()), right.get("inconsistent", 0), sum(wrong.values()))
        calls = (wrong.get(label, 0) for label in ("inconsistent", "consistent", "unverifiable"))
        fast = _measure_fast(sets[name], scored.sets[name], scored.calibration)
        cells = (format_percent(verdicts.balanced_accuracy), fast, *map(str, (*counts, *calls)))
        yield f"| {name} | {' | '.join(cells)} |"


def _measure_fast(examples: Sequence[Example], scores: Sequence[Score], calibration: Calibration | None) -> str:
    """Balanced accuracy of the labels that the metrics of the group fast give by themselves; a dash without any."""
    called: dict[int | None, list[bool]] = {0: [], 1: [], None: []}
    for example, score in zip(examples, scores, strict=True):
        metrics = {name: result for name, result in score.metrics.items() if is_fast(name)}
        verdict, _ = decide_again(example.request, metrics, calibration, DEFAULT_PROFILE)
        if verdict.label != "unknown":
            called[example.label].append(verdict.label == "inconsistent")
    if not called[0] or not called[1]:
        return "–"
    return f"{(1 - np.mean(called[1]) + np.mean(called[0])) / 2:.1%}"


def _write_areas(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    labelled = {
        name: set_figures
        for name, set_figures in figures.items()
        if any(m.roc_auc for m in set_figures.metrics.values())
    }
    metrics = list(dict.fromkeys(metric for set_figures in labelled.values() for metric in set_figures.metrics))
    yield from ("", "## ROC-AUC", "")
    yield "In brackets: on how many of the set's labelled examples, where a metric did not score all of them."
    yield ""
    yield f"| metric | {' | '.join(labelled)} |"
    yield f"|---|{'---|' * len(labelled)}"
    best = {
        name: max((m.roc_auc.value for m in set_figures.metrics.values() if m.roc_auc), default=0.0)
        for name, set_figures in labelled.items()
    }
    yield f"| labelled examples | {' | '.join(str(set_figures.labelled) for set_figures in labelled.values())} |"
    for metric in metrics:
        cells = []
        for name, set_figures in labelled.items():
            area = set_figures.metrics[metric].roc_auc if metric in set_figures.metrics else None
            text = "–" if area is None else f"{area.value:.3f}{_format_count(set_figures, metric)}"
            cells.append(f"**{text}**" if area is not None and area.value == best[name] else text)
        yield f"| `{metric}` | {' | '.join(cells)} |"


def _format_count(figures: SetFigures, metric: str) -> str:
    """The examples that a figure is of, where the metric did not score all labelled ones."""
    of_metric = figures.metrics[metric]
    return f" ({of_metric.examples})" if figures.count_missing(of_metric) else ""


def _write_decisions(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    yield from ("", "## Fused: intervals and decisions", "")
    yield "`F1`: of the class consistent, at the threshold tuned on begin_wow_dev. The columns after it: the profile"
    yield "`balanced`. The false positive rate is the share of consistent responses called inconsistent, right answers"
    yield "that are stopped; the false negative rate is the share of inconsistent responses called consistent or"
    yield "unverifiable."
    yield ""
    yield "| set | examples | ROC-AUC | F1 | accuracy | false positive rate | false negative rate |"
    yield "|---|---|---|---|---|---|---|"
    for name, set_figures in figures.items():
        fused = set_figures.metrics.get("verdict")
        if fused is None or fused.roc_auc is None:
            continue
        tuned = next((d for d in fused.decisions if d.origin == "begin_wow_dev"), None)
        balanced = next((v for v in set_figures.verdicts if v.profile == "balanced"), None)
        cells = (
            format_interval(fused.roc_auc),
            format_interval(tuned.consistent.f1 if tuned else None),
            _format_accuracy(set_figures),
            format_percent(balanced.false_positive_rate if balanced else None),
            format_percent(balanced.false_negative_rate if balanced else None),
        )
        yield f"| {name} | {fused.examples} of {set_figures.labelled} | {' | '.join(cells)} |"


def _write_profiles(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    yield from ("", "## By profile", "")
    yield "False positive rate and false negative rate at each profile's threshold."
    yield ""
    profiles = list(dict.fromkeys(verdicts.profile for of_set in figures.values() for verdicts in of_set.verdicts))
    yield f"| set | {' | '.join(f'`{profile}`' for profile in profiles)} |"
    yield f"|---|{'---|' * len(profiles)}"
    for name, of_set in figures.items():
        rates = [(verdicts.false_positive_rate, verdicts.false_negative_rate) for verdicts in of_set.verdicts]
        if rates and all(None not in pair for pair in rates):
            cells = (" and ".join(f"{rate.value:.0%}" for rate in pair if rate is not None) for pair in rates)
            yield f"| {name} | {' | '.join(cells)} |"


SENTENCES = {"1 sentence": 1, "2 or 3": 3, "4 to 7": 7, "8 or more": sys.maxsize}
KNOWLEDGE_WORDS = {"up to 25 words of knowledge": 25, "26 to 100": 100, "101 to 400": 400, "more": sys.maxsize}


def _write_lengths(sets: Mapping[str, Sequence[Example]], scored: Scored) -> Iterator[str]:
    yield from ("", "## By length", "")
    yield "The labelled test sets together: responses by their sentences, and by the words of their knowledge. At"
    yield "`balanced`, with the 95 % interval of each share."
    yield ""
    yield "| length | consistent | false positive rate | inconsistent | false negative rate |"
    yield "|---|---|---|---|---|"
    rows = [
        (len(sentences(example.response)), sum(len(text.split()) for text in example.knowledge), example.label, called)
        for name in TESTS
        for example, called in zip(sets.get(name, ()), _list_called(sets, scored, name), strict=True)
        if example.label is not None
    ]
    for column, bounds in enumerate((SENTENCES, KNOWLEDGE_WORDS)):
        least = 0
        for title, most in bounds.items():
            within = [row for row in rows if least < row[column] <= most]
            right, wrong = ([row[3] for row in within if row[2] == label] for label in (1, 0))
            missed = [not called for called in wrong]
            yield f"| {title} | {len(right)} | {_format_share(right)} | {len(wrong)} | {_format_share(missed)} |"
            least = most


def _list_called(sets: Mapping[str, Sequence[Example]], scored: Scored, name: str) -> Iterator[bool]:
    """Whether the default profile calls each response of a set inconsistent."""
    for example, score in zip(sets.get(name, ()), scored.sets.get(name, ()), strict=True):
        verdict, _ = decide_again(example.request, score.metrics, scored.calibration, DEFAULT_PROFILE)
        yield verdict.label == "inconsistent"


def _format_share(flags: Sequence[bool]) -> str:
    """A share with its 95 % interval (Wilson's)."""
    if not flags:
        return "–"
    interval = binomtest(sum(flags), len(flags)).proportion_ci(method="wilson")
    return f"{sum(flags) / len(flags):.1%} ({interval.low:.1%}–{interval.high:.1%})"


def _format_accuracy(figures: SetFigures) -> str:
    balanced = next((v for v in figures.verdicts if v.profile == "balanced"), None)
    if balanced is None or balanced.false_positive_rate is None or balanced.false_negative_rate is None:
        return "–"
    right, wrong = figures.labels["consistent"], figures.labels["inconsistent"]
    share = (right * (1 - balanced.false_positive_rate.value) + wrong * (1 - balanced.false_negative_rate.value)) / (
        right + wrong
    )
    return f"{share:.1%}"


def _write_families(others: Mapping[str, LeftOutAreas]) -> Iterator[str]:
    yield from ("", "## What carries over", "")
    yield "ROC-AUC of the same fusion fitted without any set of the test set's family, against plain word overlap"
    yield "(the better of `overlap` and `overlap_precision`). In the first column, the left-out family does not"
    yield "affect the penalty either. In the second, all weights are equal, so no set affects any weight."
    yield ""
    yield "| set | verdict, family left out | with equal weights | overlap |"
    yield "|---|---|---|---|"
    for name, areas in others.items():
        chosen, equal = (
            f"**{area:.3f}**" if area > areas.baseline else f"{area:.3f}" for area in (areas.chosen, areas.equal)
        )
        yield f"| {name} | {chosen} | {equal} | {areas.baseline:.3f} |"


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    typer.run(main)
