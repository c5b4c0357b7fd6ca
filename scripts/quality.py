"""docs/quality.md: how good the embedded bundle is on the labelled sets, and what its fusion owes to each.

    python scripts/quality.py DATA/bench --train DATA/train

Does what ``groundwire evaluate`` does for every set of the directory and writes the page from what it finds. Scores are
kept in ``--out``, so a stopped run goes on. Nothing is tuned here but the thresholds named "tuned on begin_wow_dev".
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.metrics import roc_auc_score

from groundwire.engine.schema.results import Score
from groundwire.engine.verdict.features import features
from groundwire.evaluate.calibration import fusion
from groundwire.evaluate.calibration.fusion import Example
from groundwire.evaluate.cli import commands
from groundwire.evaluate.cli.calibrate import examples
from groundwire.evaluate.datasets import read
from groundwire.evaluate.datasets.examples import Row, apart, sampled
from groundwire.evaluate.report.page import write_report
from groundwire.evaluate.scores.metric_values import VALUES, save, tabulate
from groundwire.evaluate.scores.scoring import Scored, Settings, score_sets
from groundwire.evaluate.scores.workers import usable
from groundwire.evaluate.statistics.analysis import Development, analyse
from groundwire.evaluate.statistics.results import SCHEMA, Estimate, Results, SetFigures

ROOT = Path(__file__).resolve().parent.parent
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
"""Test sets and their families: sets of one family share their makers, and a fusion fitted on one knows the others."""
FORMATS = {"usr_topicalchat": "usr-q2"}
"""How a set is read where it is not as its columns tell: the rows that the Q² paper takes."""
DEVELOPMENT = {"begin_wow_dev": "BEGIN", "fever_symmetric_dev": "FEVER", "made_dev": "made"}
"""What may be tuned on; ``python -m groundwire.train consistency-pairs`` draws ``made_dev`` from SQuAD's development
part."""
AREAS = (
    ("q2_wow_600", "q2", "0.79"),
    ("q2_wow_600", "fused", "0.84"),
    ("q2_wow", "fused", "0.78"),
    ("begin_wow_test", "pmi", "0.88"),
    ("begin_wow_test", "fused", "0.97"),
    ("begin_cmu_dev", "fused", "0.975"),
    ("begin_tc_dev", "fused", "0.945"),
    ("factual_crowd_knn", "fused", "0.80"),
    ("factual_crowd_dpr", "fused", "0.80"),
)
"""What the project wants of which metric."""
FLOORS = ("overlap", "overlap_precision")
METRICS = (
    *("q2", "q2_no_nli", "nli", "detector.consistency", "verifiability", "overlap", "overlap_precision", "unigram_f1"),
    *("bleu", "rouge_l", "meteor", "bertscore", "pmi"),
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
    sample: Annotated[int, typer.Option(help="Rows of each set, to try the script; 0 takes all.", min=0)] = 0,
    repeats: Annotated[int, typer.Option(help="Samples behind an interval.", min=10)] = 1000,
    threads: Annotated[int | None, typer.Option(help="CPU threads of all workers together.", min=1)] = None,
    workers: Annotated[int, typer.Option(help="Processes that score; 0: one for each processor.", min=0)] = 0,
) -> None:
    """Measure the bundle and write the page."""
    out.mkdir(parents=True, exist_ok=True)
    if train is not None:
        _make(train, out / "made_dev.jsonl")
    chosen = [name for name in TESTS if only is None or name in only.split(",")]
    paths = {name: bench / f"{name}.jsonl" for name in (*chosen, *DEVELOPMENT)} | {"smalltalk": SMALLTALK}
    paths["made_dev"] = out / "made_dev.jsonl"
    sets = {name: sampled(read(path, FORMATS.get(name)), sample, 0) for name, path in paths.items() if path.exists()}
    if (bench / "begin_wow_test.jsonl").exists():
        clear = apart(sets["begin_wow_dev"], read(bench / "begin_wow_test.jsonl"))
        sets["begin_wow_dev"] = [row for row, one in zip(sets["begin_wow_dev"], clear, strict=True) if one]
    settings = Settings(
        bundle, metrics=tuple(metrics.split(",")), threads=threads, workers=workers or threads or usable()
    )
    with commands.progress() as watch:
        scored = score_sets(sets, out, settings, watch)
        tuning = Development("begin_wow_dev", sets["begin_wow_dev"], scored.sets["begin_wow_dev"])
        figures = {}
        for name in (*TESTS, "smalltalk"):
            if name in sets:
                watch(f"figures of {name}", 0, 0)
                save(out / VALUES / f"{name}.jsonl", tabulate(sets[name], scored.sets[name], scored.calibration))
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
        others = _left_out(sets, scored, figures)
    reading = _reading(bundle, train, sample) if train is not None else {}
    page.write_text("\n".join(_page(sets, scored, figures, others, reading)) + "\n", encoding="utf-8")
    print(f"{page} and {out / 'report.html'} written")


def _make(train: Path, path: Path) -> None:
    if path.exists():
        return
    import json

    from groundwire.train.compact import multitask_nli

    with path.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps(row, ensure_ascii=False) + "\n" for row in multitask_nli.make_labelled_pairs(train, 800)
        )


def _reading(bundle: str, train: Path, sample: int) -> dict[str, Any]:
    from groundwire.runtime.local import LocalRuntime
    from groundwire.train.compact import evaluate

    runtime = LocalRuntime.load(bundle)
    return evaluate.measure_extractive_qa(runtime, train, sample)


class Carried(NamedTuple):
    """ROC-AUC on a test set of what is fitted on development sets of other families, and of the better floor."""

    chosen: float
    """The penalty is the one that ranks those sets best when each is left out."""
    equal: float
    """Equal weights."""
    floor: float


def _left_out(
    sets: Mapping[str, Sequence[Row]], scored: Scored, figures: Mapping[str, SetFigures]
) -> dict[str, Carried]:
    found = examples(sets, scored.sets)
    tuned = [example for example in found if example.set in DEVELOPMENT]
    out = {}
    for name, family in TESTS.items():
        own = [example for example in found if example.set == name]
        if name not in figures or len({example.label for example in own}) < 2:
            continue
        rest = [example for example in tuned if DEVELOPMENT[example.set] != family]
        chosen, equal = (
            fusion.choose(rest, fusion.Choice(penalties=penalties))[0].probabilities([e.numbers for e in own])
            for penalties in (fusion.PENALTIES, fusion.PENALTIES[-1:])
        )
        labels = [e.label for e in own]
        areas = (float(roc_auc_score(labels, found)) for found in (chosen, equal))
        out[name] = Carried(*areas, max(_area(own, floor) for floor in FLOORS))
    return out


def _area(own: Sequence[Example], number: str) -> float:
    kept = [example for example in own if number in example.numbers]
    return float(roc_auc_score([e.label for e in kept], [e.numbers[number] for e in kept]))


def _page(
    sets: Mapping[str, Sequence[Row]],
    scored: Scored,
    figures: Mapping[str, SetFigures],
    others: Mapping[str, Carried],
    reading: Mapping[str, Any],
) -> Iterator[str]:
    yield "# Quality of the embedded bundle"
    yield ""
    yield "Written by `scripts/quality.py` (`make evaluate DATA=DATA/bench`; `--only` and `--metrics` choose less);"
    yield "numbers as they are. In brackets: 95 % intervals (bootstrap over rows). Rows a metric did not score are left"
    yield "out for that metric alone."
    yield ""
    yield f"`{scored.signature}`, {platform.processor() or platform.machine()}, {_now()[:10]}."
    if scored.calibration is not None:
        read_by = ", ".join(f"`{feature.name}`" for feature in scored.calibration.features)
        yield ""
        yield f"`fused` is the verdict's probability, fitted on {', '.join(scored.calibration.fitted_on)}"
        yield f"({scored.calibration.rows} rows), from {read_by}. No row of a set below was used for it."
    absent = [name for name in TESTS if name not in figures]
    if absent:
        yield ""
        yield f"Not scored in this run: {', '.join(absent)}."
    yield from _areas(figures)
    yield from _decisions(figures)
    yield from _families(others)
    yield from _targets(sets, scored, figures, reading)
    yield from _false_alarms(figures)


def _areas(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    labelled = {name: one for name, one in figures.items() if any(m.roc_auc for m in one.metrics.values())}
    metrics = list(dict.fromkeys(metric for one in labelled.values() for metric in one.metrics))
    yield from ("", "## ROC-AUC", "")
    yield f"| metric | {' | '.join(labelled)} |"
    yield f"|---|{'---|' * len(labelled)}"
    best = {
        name: max((m.roc_auc.value for m in one.metrics.values() if m.roc_auc), default=0.0)
        for name, one in labelled.items()
    }
    for metric in metrics:
        cells = []
        for name, one in labelled.items():
            found = one.metrics[metric].roc_auc if metric in one.metrics else None
            text = "–" if found is None else f"{found.value:.3f}"
            cells.append(f"**{text}**" if found is not None and found.value == best[name] else text)
        yield f"| `{metric}` | {' | '.join(cells)} |"


def _decisions(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    yield from ("", "## Fused: intervals and decisions", "")
    yield "`F1`: of the class consistent, at the threshold tuned on begin_wow_dev. Behind it: the profile `balanced`."
    yield ""
    yield "| set | rows | ROC-AUC | F1 | accuracy | false alarms | misses |"
    yield "|---|---|---|---|---|---|---|"
    for name, one in figures.items():
        fused = one.metrics.get("fused")
        if fused is None or fused.roc_auc is None:
            continue
        tuned = next((d for d in fused.decisions if d.origin == "begin_wow_dev"), None)
        balanced = next((v for v in one.verdicts if v.profile == "balanced"), None)
        cells = (
            _interval(fused.roc_auc),
            _interval(tuned.consistent.f1 if tuned else None),
            _accuracy(one),
            _percent(balanced.false_positive_rate if balanced else None),
            _percent(balanced.false_negative_rate if balanced else None),
        )
        yield f"| {name} | {fused.rows} | {' | '.join(cells)} |"


def _accuracy(one: SetFigures) -> str:
    balanced = next((v for v in one.verdicts if v.profile == "balanced"), None)
    if balanced is None or balanced.false_positive_rate is None or balanced.false_negative_rate is None:
        return "–"
    right, wrong = one.labels["consistent"], one.labels["inconsistent"]
    share = (right * (1 - balanced.false_positive_rate.value) + wrong * (1 - balanced.false_negative_rate.value)) / (
        right + wrong
    )
    return f"{share:.1%}"


def _families(others: Mapping[str, Carried]) -> Iterator[str]:
    yield from ("", "## What carries over", "")
    yield "ROC-AUC of the same fusion fitted without any set of the tested set's family, against plain word overlap"
    yield "(the better of `overlap` and `overlap_precision`). Once the left-out family also has no say in how far the"
    yield "weights may differ; once they are equal, as all development sets together want them (docs/decisions.md):"
    yield "there, BEGIN's 53 development rows have their say, but nothing of BEGIN is in the weights."
    yield ""
    yield "| set | fused, own family left out | with equal weights | overlap |"
    yield "|---|---|---|---|"
    for name, one in others.items():
        chosen, equal = (f"**{area:.3f}**" if area > one.floor else f"{area:.3f}" for area in (one.chosen, one.equal))
        yield f"| {name} | {chosen} | {equal} | {one.floor:.3f} |"


def _targets(
    sets: Mapping[str, Sequence[Row]], scored: Scored, figures: Mapping[str, SetFigures], reading: Mapping[str, Any]
) -> Iterator[str]:
    yield from ("", "## Targets", "", "| set | figure | wanted | measured |", "|---|---|---|---|")
    if reading:
        found = reading["independent"]
        yield f"| squad2_dev | F1 | 68 | {found['f1']:.1f} |"
        yield f"| squad2_dev | no-answer accuracy | 70 % | {found['no_answer_accuracy']:.1f} % |"

    for name, metric, wanted in AREAS:
        found = figures[name].metrics.get(metric) if name in figures else None
        if found is not None:
            yield f"| {name} | `{metric}` ROC-AUC | {wanted} | {_interval(found.roc_auc)} |"
    fused = figures["begin_wow_test"].metrics.get("fused") if "begin_wow_test" in figures else None
    tuned = next((d for d in fused.decisions if d.origin == "begin_wow_dev"), None) if fused else None
    if tuned is not None:
        yield f"| begin_wow_test | `fused` F1 at the tuned threshold | 0.87 | {_interval(tuned.consistent.f1)} |"
    if "q2_wow_600" in figures:
        q2 = figures["q2_wow_600"].metrics["q2"]
        half = next(decision for decision in q2.decisions if decision.origin == "0.5")
        yield f"| q2_wow_600 | Q² accuracy at 0.5 | 72 % | {_percent(half.accuracy)} |"
    systems = figures["q2_wow"].metrics["q2"].systems if "q2_wow" in figures else None
    if systems is not None:
        yield f"| q2_wow | system-level correlation of Q² | 0.95 | {_interval(systems.correlation)} |"
    for name in ("factual_crowd_knn", "factual_crowd_dpr"):
        checked = figures[name].verifiability if name in figures else None
        if checked is not None:
            yield f"| {name} | verifiability accuracy | 75 % | {_percent(checked.accuracy)} |"
    if "fever_symmetric_test" in figures:
        fever = _entailed(sets["fever_symmetric_test"], scored.sets["fever_symmetric_test"])
        yield f"| fever_symmetric_test | NLI accuracy (entailed or not) | 68 % | {fever:.1%} |"
    usr = figures["usr_topicalchat"].metrics if "usr_topicalchat" in figures else {}
    graded = {name: found.spearman for name, found in usr.items() if found.spearman is not None}
    if graded:
        best = max(graded, key=lambda name: graded[name].value)
        yield f"| usr_topicalchat | best Spearman (`{best}`) | 0.45 | {_interval(graded[best])} |"
    if "falke2019_pairs" in figures:
        ranked = _ranked(sets["falke2019_pairs"], scored.sets["falke2019_pairs"])
        yield f"| falke2019_pairs | NLI ranking accuracy, by the probability of entailment | 78 % | {ranked:.1%} |"


def _false_alarms(figures: Mapping[str, SetFigures]) -> Iterator[str]:
    yield from ("", "## False alarms", "")
    yield "Share of `inconsistent` verdicts under `balanced` where nothing is wrong: responses people called consistent"
    yield "(table above), responses people called not verifiable, and greetings, refusals and chit-chat"
    yield "(`examples/smalltalk.jsonl`)."
    yield ""
    yield "| responses | share of alarms |"
    yield "|---|---|"
    for name in ("factual_crowd_gt", "factual_crowd_knn", "factual_crowd_dpr", "smalltalk"):
        for verdicts in figures[name].verdicts if name in figures else ():
            if verdicts.profile == "balanced":
                yield f"| {name}, nothing to verify | {_percent(verdicts.alarms_on_unverifiable)} |"


def _entailed(rows: Sequence[Row], scores: Sequence[Score]) -> float:
    pairs = [(row.label, score.metrics["nli"].value) for row, score in zip(rows, scores, strict=True)]
    return float(np.mean([(value == 1.0) == (label == 1) for label, value in pairs if label is not None]))


def _ranked(rows: Sequence[Row], scores: Sequence[Score]) -> float:
    contexts: dict[str, dict[int, float]] = {}
    for row, score in zip(rows, scores, strict=True):
        if row.label is not None:
            contexts.setdefault(row.context, {})[row.label] = features(score.metrics)["nli.entailment"]
    pairs = [both for both in contexts.values() if len(both) == 2]
    return float(np.mean([both[1] > both[0] for both in pairs]))


def _interval(found: Estimate | None) -> str:
    return "–" if found is None else f"{found.value:.3f} ({found.low:.3f}–{found.high:.3f})"


def _percent(found: Estimate | None) -> str:
    return "–" if found is None else f"{found.value:.1%} ({found.low:.1%}–{found.high:.1%})"


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    typer.run(main)
