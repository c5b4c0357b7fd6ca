"""Tables 2 to 11 of the Q² paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from groundwire.engine.schema.explanations import Comparison
from groundwire.recipes.formats.usr import is_in_q2

from .runs import Measured, ScoredExample, ScoredRun, ScoredSet, match_variants

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
"""The four sets of responses that the authors publish, by system and label."""
PART_EXAMPLES = 150
CONTEXTS = 244
"""Turns of the cross annotation where exactly one of two responses is inconsistent."""
RATERS = 3
"""People who rated each response of USR."""
OTHERS = ("overlap", "overlap_precision", "meteor", "bertscore", "q2_reader")
"""Metrics that table 5 has not, whose figures are notes below it."""
USR_EXAMPLES = 260
SMALLER = ("Original", "T5-small", "Albert-base")
ABLATIONS = {"Q2": "Q²", "greedy": "-top-n", "personal": "-filter personal"}
"""Names of runs on the command line, and in table 9."""
KNOWLEDGE = ("Random dialogue", "Same dialogue")
"""Rows of table 10: where the knowledge that replaces a response's own is from."""
DNLI_THRESHOLD = 0.1


def measure_q2_table_2(runs: Sequence[ScoredRun]) -> Measured:
    """Mean scores of each part, how many questions were kept, and how many of them the knowledge does not answer."""
    measured = Measured()
    for run in runs:
        for name, examples in _iterate_parts(run, measured):
            for column, metric in BASELINES.items():
                measured.put(name, column, measured.mean(examples, metric, name))
            questions = [question for scored_example in examples for question in scored_example.questions()]
            if questions:
                measured.put(name, "# questions", len(questions))
                measured.put(name, "% no answer", 100 * sum(map(_has_no_answer, questions)) / len(questions))
    return measured


def measure_q2_table_3(runs: Sequence[ScoredRun]) -> Measured:
    """Both classes at 0.5: a response is consistent above it."""
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support

    measured = Measured()
    for run in runs:
        parts = list(_iterate_parts(run, measured))
        for name in ("Q²", "Q² w/o NLI", "E2E NLI"):
            scored = _select_scored(
                [scored_example for _, examples in parts for scored_example in examples], BASELINES[name]
            )
            if len(parts) < len(PARTS) or not scored:
                continue
            truth = [scored_example.example.label for scored_example, _ in scored]
            called = [int(value > 0.5) for _, value in scored]
            if len(truth) < len(PARTS) * PART_EXAMPLES:
                measured.note(f"{BASELINES[name]} scored {len(truth)} of {len(PARTS) * PART_EXAMPLES} examples.")
            for label, title in enumerate(("Inconsistent", "Consistent")):
                precision, recall, f1, _ = precision_recall_fscore_support(
                    truth, called, pos_label=label, average="binary", zero_division=0.0
                )
                measured.put(f"{title} {name}", "Precision", 100 * float(precision))
                measured.put(f"{title} {name}", "Recall", 100 * float(recall))
                measured.put(f"{title} {name}", "F1", float(f1))
                measured.put(f"{title} {name}", "Accuracy", 100 * float(accuracy_score(truth, called)))
    return measured


def measure_q2_table_4(runs: Sequence[ScoredRun]) -> Measured:
    """Simulated systems, for every metric."""
    measured = Measured()
    for run in runs:
        for name, metric in BASELINES.items():
            _fill_system_level(run, metric, name, measured)
    return measured


def measure_q2_table_5(runs: Sequence[ScoredRun]) -> Measured:
    """Correlation with "Uses Knowledge", on the responses that the paper keeps (format usr-q2)."""
    from scipy.stats import pearsonr, spearmanr

    measured = Measured()
    for run in runs:
        examples = [
            scored_example
            for scored_set in run.sets
            if _is_usr(scored_set)
            for scored_example in scored_set.examples
            if is_in_q2(scored_example.example)
        ]
        if examples and len(examples) != USR_EXAMPLES:
            measured.note(f"Measured on {len(examples)} responses; the paper has {USR_EXAMPLES}.")
        kappa = measure_kappa([scored.example.grade for scored in examples if scored.example.grade is not None])
        if kappa is not None:
            measured.note(f"Fleiss' κ of the {RATERS} raters of these responses: {kappa:.2f}.")
        for name, metric in (*((name, BASELINES[name]) for name in ("Q²", "Q² w/o NLI")), *(("", m) for m in OTHERS)):
            pairs = [
                (value, scored_example.example.grade)
                for scored_example in examples
                if (value := scored_example.value(metric)) is not None
            ]
            if not pairs:
                continue
            if len(pairs) < len(examples):
                measured.note(f"{metric} scored {len(pairs)} of {len(examples)} examples.")
            values, grades = zip(*pairs, strict=True)
            if len(set(values)) < 2 or len(set(grades)) < 2:
                continue
            spearman, pearson = float(spearmanr(values, grades).statistic), float(pearsonr(values, grades).statistic)
            if name:
                measured.put(name, "Spearman", spearman)
                measured.put(name, "Pearson", pearson)
            else:
                measured.note(f"Beside them, {metric} has Spearman {spearman:.3f}, Pearson {pearson:.3f}.")
    return measured


def measure_kappa(grades: Sequence[float], raters: int = RATERS) -> float | None:
    """Fleiss' κ of raters who said yes or no, from the share of yes that each response got.

    None where a share is not one of so many raters, or all said the same of everything.
    """
    votes = [grade * raters for grade in grades]
    if len(votes) < 2 or any(abs(vote - round(vote)) > 1e-3 for vote in votes):
        return None
    yes = sum(votes) / raters / len(votes)
    chance = yes**2 + (1 - yes) ** 2
    observed = sum(
        (vote * (vote - 1) + (raters - vote) * (raters - vote - 1)) / raters / (raters - 1) for vote in votes
    ) / len(votes)
    return (observed - chance) / (1 - chance) if 0 < yes < 1 else None


def measure_q2_table_6(runs: Sequence[ScoredRun]) -> Measured:
    """Accuracy on Dialogue NLI; the run must have kept personal questions (``--set personal=true``)."""
    measured = Measured()
    rules: dict[str, tuple[str, Callable[[float], bool]]] = {
        "Q²": ("q2", lambda value: value > DNLI_THRESHOLD),
        "Baseline – NLI only": ("nli", lambda value: value == 1.0),
    }
    for run in runs:
        examples = [
            scored_example for scored_set in run.sets if _is_dnli(scored_set) for scored_example in scored_set.examples
        ]
        for name, (metric, consistent) in rules.items():
            scored = _select_scored(examples, metric)
            if scored:
                right = sum(consistent(value) == bool(scored_example.example.label) for scored_example, value in scored)
                measured.put(name, "Accuracy", 100 * right / len(scored))
                if len(scored) < len(examples):
                    measured.note(f"{metric} scored {len(scored)} of {len(examples)} examples.")
    return measured


def measure_q2_table_7(runs: Sequence[ScoredRun]) -> Measured:
    """Simulated systems, with smaller models."""
    measured = Measured()
    for name, run in match_variants(runs, SMALLER):
        _fill_system_level(run, "q2", "Original Q²" if name == SMALLER[0] else name, measured)
    return measured


def measure_q2_table_8(runs: Sequence[ScoredRun]) -> Measured:
    """Mean scores of each part, with smaller models."""
    measured = Measured()
    for variant, run in match_variants(runs, SMALLER):
        for name, examples in _iterate_parts(run, measured):
            measured.put(f"{name} {variant}", "Coverage", _measure_coverage(examples))
            for column in ("Q²", "Q² w/o NLI"):
                measured.put(f"{name} {variant}", column, measured.mean(examples, BASELINES[column], name))
    return measured


def measure_q2_table_9(runs: Sequence[ScoredRun]) -> Measured:
    """Mean scores of each part, with stages left out."""
    measured = Measured()
    for variant, run in match_variants(runs, tuple(ABLATIONS)):
        for name, examples in _iterate_parts(run, measured):
            measured.put(f"{name} {ABLATIONS[variant]}", "Coverage", _measure_coverage(examples))
            measured.put(f"{name} {ABLATIONS[variant]}", "Score", measured.mean(examples, "q2", name))
    return measured


def measure_q2_table_10(runs: Sequence[ScoredRun]) -> Measured:
    """Q² with knowledge of another turn: mean score, and how often the knowledge has no answer."""
    measured = Measured()
    for row, run in match_variants(runs, KNOWLEDGE):
        examples = run.all_examples()
        questions = [question for scored_example in examples for question in scored_example.questions()]
        if questions:
            measured.put(row, "Q²", measured.mean(examples, "q2", "the set"))
            measured.put(row, "% no answer", 100 * sum(map(_has_no_answer, questions)) / len(questions))
    return measured


def measure_q2_table_11(runs: Sequence[ScoredRun]) -> Measured:
    """Mean lengths of dodeca's responses by label, in characters and in words."""
    measured = Measured()
    for run in runs:
        for name, examples in _iterate_parts(run, measured):
            system, _, label = name.partition(" ")
            if system == "dodeca":
                responses = [scored_example.example.response for scored_example in examples]
                measured.put(label.capitalize(), "Average # Characters", fmean(map(len, responses)))
                measured.put(label.capitalize(), "Average # Tokens", fmean(len(text.split()) for text in responses))
    return measured


def _iterate_parts(run: ScoredRun, measured: Measured) -> Iterator[tuple[str, list[ScoredExample]]]:
    """The authors' four sets among the run's examples, by name; adds a note for examples of another number.

    A set of the cross annotation has more examples of a system and label than the part; where its examples name their
    part, those are taken.
    """
    for system, label in PARTS:
        wanted = f"{system}_{label}".lower()
        note: str = ""
        for scored_set in run.sets:
            examples = [
                scored_example
                for scored_example in scored_set.examples
                if scored_example.example.system.lower() == system.lower()
                and scored_example.example.label == int(label == "consistent")
            ]
            if any(scored_example.example.source for scored_example in examples):
                examples = [
                    scored_example for scored_example in examples if wanted in scored_example.example.source.lower()
                ]
            if len(examples) == PART_EXAMPLES:
                yield f"{system} {label}", examples
                break
            if examples:
                note = note or f"{scored_set.name} has {len(examples)} examples of {system} {label}"
        else:
            if note:
                measured.note(f"{note}, the paper's set {PART_EXAMPLES}: give the authors' file {wanted}.csv.")


def _has_no_answer(question: Comparison) -> bool:
    """Whether the reader found no answer; an empty one is none of these, as in the authors' count.

    Runs of older versions do not tell the two apart.
    """
    return question.answer_status == "none" if question.answer_status else not question.knowledge_answer


def _measure_coverage(examples: Sequence[ScoredExample]) -> float | None:
    """Percentage of responses with a valid question; None when Q² was not computed."""
    computed = [scored_example for scored_example in examples if scored_example.value("q2") is not None]
    return (
        100 * sum(bool(scored_example.questions()) for scored_example in computed) / len(computed) if computed else None
    )


def _select_scored(examples: Sequence[ScoredExample], metric: str) -> list[tuple[ScoredExample, float]]:
    """The examples with a label that the metric scored."""
    return [
        (scored_example, value)
        for scored_example in examples
        if scored_example.example.label is not None and (value := scored_example.value(metric)) is not None
    ]


def _fill_system_level(run: ScoredRun, metric: str, row: str, measured: Measured) -> None:
    for figures in run.results.sets if run.results else ():
        metric_figures = figures.metrics.get(metric)
        if metric_figures is None or metric_figures.system_level is None:
            continue
        if metric_figures.system_level.contexts != CONTEXTS:
            measured.note(
                f"{row}: {metric_figures.system_level.contexts} contexts of {figures.name}; the paper has {CONTEXTS}."
            )
        measured.put(row, "Avg. Correlation", metric_figures.system_level.correlation.value)
        measured.put(row, "Lower CI", metric_figures.system_level.correlation.low)
        measured.put(row, "Upper CI", metric_figures.system_level.correlation.high)


def _is_usr(scored_set: ScoredSet) -> bool:
    """Whether it is a set of graded responses with one of USR's systems."""
    return any(
        scored_example.example.grade is not None and scored_example.example.system == "Argmax Decoding"
        for scored_example in scored_set.examples
    )


def _is_dnli(scored_set: ScoredSet) -> bool:
    """Whether it is a set of Dialogue NLI, by its name or by the sources of its examples."""
    return "dialogue_nli" in scored_set.name or any(
        scored_example.example.source.endswith(("_up", "_pp", "_uu")) for scored_example in scored_set.examples
    )
