"""Tables 2 to 9 of the Q² paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from groundwire.evaluate.datasets.usr import in_q2

from .runs import Judged, JudgedSet, Measured, Run

BASELINES = {
    "Q²": "q2",
    "Q² w/o NLI": "q2_no_nli",
    "E2E NLI": "nli",
    "Overlap(r, k)": "overlap",
    "BLEU": "bleu",
    "BERTScore": "bertscore",
}
"""The paper's names of metrics."""
PARTS = tuple((system, label) for system in ("dodeca", "MemNet") for label in ("inconsistent", "consistent"))
"""The four sets of responses that the authors publish."""
PART_ROWS = 150
CONTEXTS = 244
"""Turns of which exactly one of two responses is inconsistent, in the cross annotation."""
USR_ROWS = 260
SMALLER = ("Original", "T5-small", "Albert-base")
ABLATIONS = {"Q2": "Q²", "greedy": "-top-n", "personal": "-filter personal"}
"""What a run is called on the command line, and in table 9."""
DNLI_THRESHOLD = 0.1


def table_2(runs: Sequence[Run]) -> Measured:
    """Mean scores of each part, how many questions were kept, and how many of them the knowledge does not answer."""
    found = Measured()
    for run in runs:
        for name, rows in _parts(run, found):
            for column, metric in BASELINES.items():
                found.put(name, column, found.mean(rows, metric, name))
            kept = [question for one in rows for question in one.questions()]
            if kept:
                found.put(name, "# questions", len(kept))
                found.put(name, "% no answer", 100 * sum(not one.knowledge_answer for one in kept) / len(kept))
    return found


def table_3(runs: Sequence[Run]) -> Measured:
    """Both classes at 0.5: a response is consistent above it."""
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    found = Measured()
    for run in runs:
        parts = list(_parts(run, found))
        for name in ("Q²", "Q² w/o NLI", "E2E NLI"):
            scored = _scored([one for _, rows in parts for one in rows], BASELINES[name])
            if len(parts) < len(PARTS) or not scored:
                continue
            truth = [row.row.label for row, _ in scored]
            called = [int(value > 0.5) for _, value in scored]
            if len(truth) < len(PARTS) * PART_ROWS:
                found.note(f"{BASELINES[name]} scored {len(truth)} of {len(PARTS) * PART_ROWS} rows.")
            for label, title in enumerate(("Inconsistent", "Consistent")):
                precision, recall, f1, _ = precision_recall_fscore_support(
                    truth, called, pos_label=label, average="binary", zero_division=0.0
                )
                found.put(f"{title} {name}", "Precision", 100 * float(precision))
                found.put(f"{title} {name}", "Recall", 100 * float(recall))
                found.put(f"{title} {name}", "F1", float(f1))
                found.put(f"{title} {name}", "Accuracy", 100 * float(accuracy_score(truth, called)))
    return found


def table_4(runs: Sequence[Run]) -> Measured:
    """Simulated systems, for every metric."""
    found = Measured()
    for run in runs:
        for name, metric in BASELINES.items():
            _systems(run, metric, name, found)
    return found


def table_5(runs: Sequence[Run]) -> Measured:
    """Correlation with "Uses Knowledge", on the responses that the paper keeps (the loader's format usr-q2)."""
    from scipy.stats import pearsonr, spearmanr

    found = Measured()
    for run in runs:
        rows = [one for each in run.sets if _is_usr(each) for one in each.rows if in_q2(one.row)]
        if rows and len(rows) != USR_ROWS:
            found.note(f"Measured on {len(rows)} responses; the paper has {USR_ROWS}.")
        for name in ("Q²", "Q² w/o NLI"):
            pairs = [(value, one.row.grade) for one in rows if (value := one.value(BASELINES[name])) is not None]
            if not pairs:
                continue
            if len(pairs) < len(rows):
                found.note(f"{BASELINES[name]} scored {len(pairs)} of {len(rows)} rows.")
            values, grades = zip(*pairs, strict=True)
            if len(set(values)) > 1 and len(set(grades)) > 1:
                found.put(name, "Spearman", float(spearmanr(values, grades).statistic))
                found.put(name, "Pearson", float(pearsonr(values, grades).statistic))
    return found


def table_6(runs: Sequence[Run]) -> Measured:
    """Accuracy on Dialogue NLI; the metric ``q2`` must have kept personal questions."""
    found = Measured()
    rules: dict[str, tuple[str, Callable[[float], bool]]] = {
        "Q²": ("q2", lambda value: value > DNLI_THRESHOLD),
        "Baseline – NLI only": ("nli", lambda value: value == 1.0),
    }
    for run in runs:
        rows = [one for each in run.sets if _is_dnli(each) for one in each.rows]
        for name, (metric, consistent) in rules.items():
            scored = _scored(rows, metric)
            if scored:
                right = sum(consistent(value) == bool(one.row.label) for one, value in scored)
                found.put(name, "Accuracy", 100 * right / len(scored))
                if len(scored) < len(rows):
                    found.note(f"{metric} scored {len(scored)} of {len(rows)} rows.")
    return found


def table_7(runs: Sequence[Run]) -> Measured:
    """Simulated systems, with smaller models."""
    found = Measured()
    for name, run in _variants(runs, SMALLER):
        _systems(run, "q2", "Original Q²" if name == SMALLER[0] else name, found)
    return found


def table_8(runs: Sequence[Run]) -> Measured:
    """Mean scores of each part, with smaller models."""
    found = Measured()
    for variant, run in _variants(runs, SMALLER):
        for name, rows in _parts(run, found):
            found.put(f"{name} {variant}", "Coverage", _coverage(rows))
            for column in ("Q²", "Q² w/o NLI"):
                found.put(f"{name} {variant}", column, found.mean(rows, BASELINES[column], name))
    return found


def table_9(runs: Sequence[Run]) -> Measured:
    """Mean scores of each part, with stages left out."""
    found = Measured()
    for variant, run in _variants(runs, tuple(ABLATIONS)):
        for name, rows in _parts(run, found):
            found.put(f"{name} {ABLATIONS[variant]}", "Coverage", _coverage(rows))
            found.put(f"{name} {ABLATIONS[variant]}", "Score", found.mean(rows, "q2", name))
    return found


def _parts(run: Run, found: Measured) -> Iterator[tuple[str, list[Judged]]]:
    """The authors' four sets among the run's rows, by name; a note for rows that look like a part but are not one.

    A set of the cross annotation has more rows of a system and label than the part; where its rows say which part they
    belong to, those are taken.
    """
    for system, label in PARTS:
        wanted = f"{system}_{label}".lower()
        other: str = ""
        for each in run.sets:
            rows = [
                one
                for one in each.rows
                if one.row.system.lower() == system.lower() and one.row.label == int(label == "consistent")
            ]
            if any(one.row.source for one in rows):
                rows = [one for one in rows if wanted in one.row.source.lower()]
            if len(rows) == PART_ROWS:
                yield f"{system} {label}", rows
                break
            if rows:
                other = other or f"{each.name} has {len(rows)} rows of {system} {label}"
        else:
            if other:
                found.note(f"{other}, the paper's set {PART_ROWS}: give the authors' file {wanted}.csv.")


def _coverage(rows: Sequence[Judged]) -> float | None:
    """Percentage of responses about which a valid question was found; None when Q² was not asked."""
    asked = [one for one in rows if one.value("q2") is not None]
    return 100 * sum(bool(one.questions()) for one in asked) / len(asked) if asked else None


def _scored(rows: Sequence[Judged], metric: str) -> list[tuple[Judged, float]]:
    """The rows with a label on which the metric scored."""
    return [(one, value) for one in rows if one.row.label is not None and (value := one.value(metric)) is not None]


def _systems(run: Run, metric: str, row: str, found: Measured) -> None:
    for figures in run.results.sets if run.results else ():
        one = figures.metrics.get(metric)
        if one is None or one.systems is None:
            continue
        if one.systems.contexts != CONTEXTS:
            found.note(f"{row}: {one.systems.contexts} contexts of {figures.name}; the paper has {CONTEXTS}.")
        found.put(row, "Avg. Correlation", one.systems.correlation.value)
        found.put(row, "Lower CI", one.systems.correlation.low)
        found.put(row, "Upper CI", one.systems.correlation.high)


def _is_usr(each: JudgedSet) -> bool:
    """Whether it is a set of graded responses, of which some are decoded as USR's are."""
    return any(one.row.grade is not None and one.row.system == "Argmax Decoding" for one in each.rows)


def _is_dnli(each: JudgedSet) -> bool:
    """Whether it is a set of Dialogue NLI, by its name or by what its rows say of how they were made."""
    return "dialogue_nli" in each.name or any(one.row.source.endswith(("_up", "_pp", "_uu")) for one in each.rows)


def _variants(runs: Sequence[Run], names: Sequence[str]) -> Iterator[tuple[str, Run]]:
    """The runs with their variants; one without a name is the first."""
    known = {name.lower(): name for name in names}
    for run in runs:
        yield known.get(run.name.lower(), names[0]), run
