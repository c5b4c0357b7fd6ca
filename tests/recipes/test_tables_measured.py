"""Measured figures of the papers' tables are in the right cells and are what the papers mean by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from nltk.metrics.agreement import AnnotationTask
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import roc_auc_score

from groundwire.engine.schema.explanations import Comparison, Q2Explanation
from groundwire.engine.schema.results import MetricResult, Score
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.statistics.results import SetFigures
from groundwire.recipes.papers import ScoredRun, render_table
from groundwire.recipes.papers.q2 import measure_kappa
from groundwire.recipes.papers.runs import ScoredExample, ScoredSet
from groundwire.runtime.calls import TextSpan
from groundwire.runtime.errors import InvalidRequest
from tests.support.paper_runs import DEV, TEST, build_example, detector, measured, plain, results, score, simulated


def q2(value: float, kept: Sequence[str | None] = ()) -> MetricResult:
    """Q² with a kept question per knowledge answer, and one that was discarded."""
    asked = [Comparison(TextSpan("x", 0, 1), "Which?", 0, True, knowledge_answer=answer) for answer in kept]
    asked.append(Comparison(TextSpan("x", 0, 1), "What do you like?", 1, False, "personal"))
    return MetricResult("q2", "scored", value, explanation=Q2Explanation((), tuple(asked)))


def a_set(name: str, scored: Iterable[tuple[Example, Score | None]]) -> ScoredSet:
    return ScoredSet(name, tuple(ScoredExample(example, result) for example, result in scored))


HIGH = {("dodeca", 0): 20, ("dodeca", 1): 102, ("memnet", 0): 20, ("memnet", 1): 102}
"""How many of a part's 150 examples score 0.75; 10 more score exactly 0.5, the others 0."""


def parts(extra: int = 0) -> tuple[ScoredSet, ...]:
    """The authors' four sets, with ``extra`` examples each."""
    sets = []
    for (system, label), high in HIGH.items():
        name = f"{system}_{'consistent' if label else 'inconsistent'}"
        values = [0.75] * high + [0.5] * 10 + [0.0] * (140 - high + extra)
        sets.append(
            a_set(
                name,
                (
                    (
                        build_example(n, label, system, name),
                        score(
                            q2(value, ("yes", None) if value else ()),
                            plain("nli", 0.5),
                            *([plain("bleu", 30.0)] if n < 100 else []),
                        ),
                    )
                    for n, value in enumerate(values)
                ),
            )
        )
    return tuple(sets)


def test_q2_2_is_measured_by_part() -> None:
    table = render_table("q2-2", [ScoredRun(sets=parts())])
    cells = measured(table)
    assert cells["dodeca inconsistent", "Q²"] == pytest.approx((20 * 0.75 + 10 * 0.5) / 150)
    assert cells["MemNet consistent", "Q²"] == pytest.approx((102 * 0.75 + 10 * 0.5) / 150)
    assert cells["dodeca consistent", "E2E NLI"] == 0.5
    assert cells["dodeca inconsistent", "# questions"] == 60
    assert cells["MemNet consistent", "# questions"] == 224
    assert cells["MemNet consistent", "% no answer"] == 50.0
    assert cells["dodeca consistent", "BLEU"] == 30.0
    assert "bleu scored 100 of 150 examples of dodeca consistent." in table.remarks
    assert not any(name.endswith("random sample") or column == "BERTScore" for name, column in cells)


def test_q2_2_does_not_count_an_empty_answer_as_a_missing_one() -> None:
    sets = parts()
    asked = [
        Comparison(TextSpan("x", 0, 1), "Which?", 0, True, knowledge_answer=answer, answer_status=status)
        for answer, status in (("yes", "answered"), (None, "none"), (None, "empty"), (None, "empty"))
    ]
    first = MetricResult("q2", "scored", 0.25, explanation=Q2Explanation((), tuple(asked)))
    examples = [ScoredExample(scored.example, score(first)) for scored in sets[0].examples]
    table = render_table("q2-2", [ScoredRun(sets=(ScoredSet(sets[0].name, tuple(examples)), *sets[1:]))])
    assert measured(table)["dodeca inconsistent", "% no answer"] == 25.0


def test_q2_10_is_measured_on_random_knowledge() -> None:
    asked = [
        Comparison(TextSpan("x", 0, 1), "Which?", 0, True, knowledge_answer=answer, answer_status=status)
        for answer, status in (("yes", "answered"), (None, "none"), (None, "none"), (None, "empty"))
    ]
    result = score(MetricResult("q2", "scored", 0.25, explanation=Q2Explanation((), tuple(asked))))
    run = ScoredRun(sets=(a_set("random", [(build_example(0, 0), result), (build_example(1, 0), score(q2(0.0)))]),))
    assert measured(render_table("q2-10", [run])) == {
        ("Random dialogue", "Q²"): 0.125,
        ("Random dialogue", "% no answer"): 50.0,
    }


def test_q2_11_counts_characters_and_words_of_one_system() -> None:
    """Responses are "dodeca r0" to "dodeca r149" and, of the other system, longer."""
    sets = []
    for system, label in HIGH:
        texts = [f"{system} r{n}" + " more" * (system == "memnet") for n in range(150)]
        rows = [
            msgspec.structs.replace(build_example(n, label, system), response=text + " !" * label)
            for n, text in enumerate(texts)
        ]
        sets.append(a_set(f"{system}_{label}", ((example, None) for example in rows)))
    characters = (10 * 9 + 90 * 10 + 50 * 11) / 150
    assert measured(render_table("q2-11", [ScoredRun(sets=tuple(sets))])) == {
        ("Inconsistent", "Average # Characters"): pytest.approx(characters),
        ("Inconsistent", "Average # Tokens"): 2.0,
        ("Consistent", "Average # Characters"): pytest.approx(characters + 2),
        ("Consistent", "Average # Tokens"): 3.0,
    }


def test_q2_3_counts_one_half_as_inconsistent() -> None:
    cells = measured(render_table("q2-3", [ScoredRun(sets=parts())]))
    assert cells["Inconsistent Q²", "Recall"] == pytest.approx(100 * 260 / 300)
    assert cells["Inconsistent Q²", "Precision"] == pytest.approx(100 * 260 / 356)
    assert cells["Consistent Q²", "Precision"] == pytest.approx(100 * 204 / 244)
    assert cells["Consistent Q²", "Recall"] == pytest.approx(68.0)
    assert cells["Consistent Q²", "F1"] == pytest.approx(2 * 204 / (204 + 40 + 300))
    assert cells["Consistent Q²", "Accuracy"] == cells["Inconsistent Q²", "Accuracy"] == pytest.approx(100 * 464 / 600)
    assert cells["Consistent E2E NLI", "F1"] == 0.0
    assert cells["Inconsistent E2E NLI", "Recall"] == 100.0


def test_other_examples_than_the_papers_150_are_not_their_sets() -> None:
    table = render_table("q2-2", [ScoredRun(sets=parts(extra=1))])
    assert measured(table) == {}
    note = (
        "dodeca_consistent has 151 examples of dodeca consistent, the paper's set 150: "
        "give the authors' file dodeca_consistent.csv."
    )
    assert note in table.remarks
    assert measured(render_table("q2-3", [ScoredRun(sets=parts(extra=1))])) == {}


def test_examples_that_name_their_part_are_found_in_the_cross_annotation() -> None:
    rows = [(build_example(n, 1, "dodeca", "dodeca_consistent" if n < 150 else ""), score(q2(1.0))) for n in range(180)]
    assert measured(render_table("q2-2", [ScoredRun(sets=(a_set("q2_wow", rows),))])) == {
        ("dodeca consistent", "Q²"): 1.0
    }


def test_q2_4_is_read_from_results() -> None:
    table = render_table("q2-4", [ScoredRun(results=results(SetFigures("other", 3, {}, {}), simulated(0.95, 200)))])
    cells = measured(table)
    assert cells["Q²", "Avg. Correlation"] == 0.95
    assert cells["BLEU", "Lower CI"] == pytest.approx(0.85)
    assert len(cells) == 6
    assert "Q²: 200 contexts of cross_annotation; the paper has 244." in table.remarks


def test_q2_5_leaves_out_what_the_paper_leaves_out() -> None:
    rng = np.random.default_rng(0)
    scored, values, grades = [], [], []
    for n in range(90):
        system = ("Argmax Decoding", "Nucleus Decoding (p = 0.3)", "Original Ground Truth")[n % 3]
        value, grade = float(rng.random()), float(rng.integers(0, 4)) / 3
        example = Example(str(n), f"r{n}", () if n >= 60 else ("k",), grade=grade, system=system)
        scored.append((example, score(q2(value), plain("overlap", 1 - value)) if n >= 1 else None))
        if 1 <= n < 60 and n % 3 < 2:
            values.append(value)
            grades.append(grade)
    table = render_table("q2-5", [ScoredRun(sets=(a_set("tc_usr_data", scored),))])
    assert measured(table) == {
        ("Q²", "Spearman"): pytest.approx(spearmanr(values, grades).statistic),
        ("Q²", "Pearson"): pytest.approx(pearsonr(values, grades).statistic),
    }
    assert {"Measured on 40 responses; the paper has 260.", "q2 scored 39 of 40 examples."} <= set(table.remarks)
    spearman = -spearmanr(values, grades).statistic
    assert f"Beside them, overlap has Spearman {spearman:.3f}" in " ".join(table.remarks)


def test_kappa_is_that_of_nltk() -> None:
    votes = np.random.default_rng(3).random((40, 3)) < np.random.default_rng(4).random((40, 1))
    task = AnnotationTask([(rater, item, int(vote)) for (item, rater), vote in np.ndenumerate(votes)])
    assert measure_kappa(votes.mean(axis=1).tolist()) == pytest.approx(task.pi())
    assert measure_kappa([1.0, 0.0, 1.0]) == 1
    assert measure_kappa([1.0, 1.0]) is None  # all said the same
    assert measure_kappa([0.25, 1.0]) is None  # not three raters


def test_q2_6_has_a_threshold_of_one_tenth() -> None:
    values = [(1, 0.2, 1.0), (1, 0.1, 0.5), (0, 0.05, 0.5), (0, 0.11, 0.0)]
    scored = [
        (build_example(n, label, source="matchingtriple_up"), score(q2(value), plain("nli", nli)))
        for n, (label, value, nli) in enumerate(values)
    ]
    other = a_set("clasp_dnli_test", [(build_example(9, 1), score(q2(0.0)))])
    assert measured(render_table("q2-6", [ScoredRun(sets=(other, a_set("test", scored)))])) == {
        ("Q²", "Accuracy"): 50.0,
        ("Baseline – NLI only", "Accuracy"): 75.0,
    }


def test_runs_are_the_variants_of_a_table() -> None:
    runs = [ScoredRun(results=results(simulated(0.9))), ScoredRun("t5-SMALL", results(simulated(0.8)))]
    cells = measured(render_table("q2-7", runs))
    assert (cells["Original Q²", "Avg. Correlation"], cells["T5-small", "Avg. Correlation"]) == (0.9, 0.8)
    assert ("Albert-base", "Lower CI") not in cells
    eight = measured(render_table("q2-8", [ScoredRun("Albert-base", sets=parts())]))
    assert eight["dodeca consistent Albert-base", "Coverage"] == pytest.approx(100 * 112 / 150)
    assert len(eight) == 8
    nine = measured(render_table("q2-9", [ScoredRun("greedy", sets=parts()), ScoredRun("personal", sets=parts())]))
    assert nine["MemNet inconsistent -top-n", "Score"] == nine["MemNet inconsistent -filter personal", "Score"]
    assert len(nine) == 16


@pytest.mark.parametrize(("table", "allowed"), [("q2-7", "Original, T5-small, Albert-base"), ("q2-4", "none")])
def test_a_variant_that_a_table_does_not_have(table: str, allowed: str) -> None:
    with pytest.raises(InvalidRequest, match=f"'big' is not a variant of table {table}; its variants are {allowed}"):
        render_table(table, [ScoredRun("big")])


@pytest.fixture
def pmi() -> ScoredRun:
    return ScoredRun(sets=(a_set("wow", TEST[:3]), a_set("cmu", TEST[3:])), development=(a_set("dev", DEV),))


def test_pmi_1_pools_the_sources_at_the_threshold_of_the_development_set(pmi: ScoredRun) -> None:
    table = render_table("pmi-1", [pmi])
    cells = measured(table)
    # 2.0 is the best threshold there: 3.0 is found, 2.5 wrongly too, 1.0 and 0.5 are missed.
    assert [cells["PMI-Faith", name] for name in ("Precision", "Recall", "F1", "Accuracy")] == pytest.approx(
        [1 / 2, 1 / 3, 2 / 5, 1 / 2]
    )
    assert [cells["FaithCritic", name] for name in ("Precision", "Recall", "Accuracy")] == pytest.approx([2 / 3] * 3)
    assert "Measured on 6 responses (3 CMU, 3 WoW); the paper has 11,059." in table.remarks


def test_pmi_2_splits_by_source(pmi: ScoredRun) -> None:
    assert measured(render_table("pmi-2", [pmi])) == {
        ("PMI-Faith", "CMU"): 0.0,
        ("PMI-Faith", "WoW"): pytest.approx(2 / 3),
        ("FaithCritic", "CMU"): 0.0,
        ("FaithCritic", "WoW"): 1.0,
    }


def test_pmi_3_correlates_with_the_labels(pmi: ScoredRun) -> None:
    values, labels = [3.0, 1.0, 0.0, 2.5, 0.5, -1.0], [1, 1, 0, 0, 1, 0]
    cells = measured(render_table("pmi-3", [pmi]))
    assert cells["PMI-Faith", "Spearman"] == pytest.approx(spearmanr(values, labels).statistic)
    assert cells["PMI-Faith", "Pearson"] == pytest.approx(pearsonr(values, labels).statistic)
    assert cells["PMI-Faith", "AUROC"] == pytest.approx(roc_auc_score(labels, values))
    assert cells["FaithCritic", "AUROC"] == pytest.approx(2 / 3)


def test_pmi_9_normalises_the_threshold(pmi: ScoredRun) -> None:
    cells = measured(render_table("pmi-9", [pmi]))
    assert [cells["PMI-Faith", name] for name in ("Min", "Max", "Threshold")] == pytest.approx([-1.0, 4.0, 0.6])
    assert [cells["FaithCritic", name] for name in ("Min", "Max", "Threshold")] == [0.0, 1.0, 1.0]


def test_without_a_development_set_there_is_no_threshold(pmi: ScoredRun) -> None:
    table = render_table("pmi-1", [pmi._replace(development=())])
    assert measured(table) == {}
    assert "Thresholds need the development set: give its files with --dev, and evaluate them too." in table.remarks


def crowd(number: int, label: int | None, system: str, factcc: int, source: str = "knn") -> tuple[Example, Score]:
    example = Example(
        str(number), f"r{number}", ("k",), label=label, verifiable=label is not None, system=system, source=source
    )
    return example, score(detector("detector.factcc", factcc))


def test_conv_fever_counts_a_response_for_every_configuration_that_gave_it() -> None:
    both = "GPT2-xlarge/DBS + GPT2-xlarge/beam search"
    scored = [
        crowd(0, 1, "GPT2-xlarge/DBS", 1),
        crowd(1, 1, both, 0),
        crowd(2, 0, both, 0),
        crowd(3, None, both, 0),
        crowd(4, 0, "GPT2-small/nucleus", 1, "dpr"),
        crowd(5, 1, "GPT2-small/nucleus", 1, "expert"),
    ]
    run = ScoredRun(sets=(a_set("knn", scored),))
    assert measured(render_table("conv-fever-7", [run])) == {
        ("KNN DBS", "XL"): 3,
        ("KNN BS", "XL"): 2,
        ("DPR NS", "small"): 1,
    }
    assert measured(render_table("conv-fever-12", [run])) == {
        ("KNN DBS", "XL F1(C)"): pytest.approx(200 / 3),
        ("KNN DBS", "XL F1(IC)"): pytest.approx(200 / 3),
        ("KNN BS", "XL F1(C)"): 0.0,
        ("KNN BS", "XL F1(IC)"): pytest.approx(200 / 3),
        ("DPR NS", "small F1(C)"): 0.0,
        ("DPR NS", "small F1(IC)"): 0.0,
    }
    assert measured(render_table("conv-fever-9", [run])) == {}


def test_conv_fever_2_is_what_people_said() -> None:
    said = [(1.0, False), (0.5, True), (0.0, True), (None, None)]
    scored = [
        (msgspec.structs.replace(example, grade=grade, hallucinated=hallucinated), stored)
        for (example, stored), (grade, hallucinated) in zip(
            (crowd(n, 1, "GPT2-small/nucleus", 1) for n in range(4)), said, strict=True
        )
    ]
    run = ScoredRun(sets=(a_set("knn", scored),))
    assert measured(render_table("conv-fever-2", [run])) == {
        ("KNN NS", "small F"): 0.5,
        ("KNN NS", "small H"): pytest.approx(200 / 3),
    }


def test_conv_fever_5_takes_a_detectors_own_decision() -> None:
    scored = [
        crowd(n, label, "", called, "expert") for n, (label, called) in enumerate([(1, 1), (1, 0), (0, 0), (0, 0)])
    ]
    cells = measured(render_table("conv-fever-5", [ScoredRun(sets=(a_set("expert", scored),))]))
    assert cells == {
        ("FactCC", "Consistent P"): 100.0,
        ("FactCC", "Consistent R"): 50.0,
        ("FactCC", "Consistent F1"): pytest.approx(200 / 3),
        ("FactCC", "Inconsistent P"): pytest.approx(200 / 3),
        ("FactCC", "Inconsistent R"): 100.0,
        ("FactCC", "Inconsistent F1"): 80.0,
    }


def test_the_first_run_that_has_a_cell_counts() -> None:
    first, second = (
        ScoredRun(sets=(a_set("dev", DEV), a_set("t", TEST[:n])), development=(a_set("d", DEV),)) for n in (3, 6)
    )
    assert measured(render_table("pmi-1", [first, second])) == measured(render_table("pmi-1", [first]))
    assert measured(render_table("pmi-1", [ScoredRun(), second])) == measured(render_table("pmi-1", [second]))


def test_markdown_has_both_figures() -> None:
    text = render_table("q2-3", [ScoredRun(sets=parts())]).markdown()
    assert "| Inconsistent Q² | 73.0% / 73.0% | 86.7% / 86.7% | 0.793 / 0.793 | 77.3% / 77.3% |" in text
    assert "| Consistent Q² w/o NLI | 85.9% / – | 55.2% / – | 0.672 / – | 73.1% / – |" in text


def decoding_report(path: Path, method: str, cells: Sequence[tuple[float, float, float, float]]) -> Path:
    """A report of ``decoding-table`` whose cells are α, top-p, normalised PMI-Faith and ROUGE-L."""
    names = ("alpha", "pmi_top_p", "pmi_normalised")
    rows = [{**dict(zip(names, cell, strict=False)), "rouge_l": {"value": cell[3]}} for cell in cells]
    setup = {"method": method, "rows": "rows.jsonl", "generator": "mine"}
    path.write_bytes(msgspec.json.encode({"setup": setup, "cells": [row | {"bleu": 4.5} for row in rows]}))
    return path


def test_pmi_4_takes_the_settings_that_trade_best(tmp_path: Path) -> None:
    cells = [(0.0, 0.6, 0.4, 0.4), (0.0, 1.0, 0.5, 0.4), (0.25, 0.6, 0.6, 0.4), (0.5, 0.6, 0.7, 0.25)]
    report = decoding_report(tmp_path / "report.json", "beam", cells)
    table = render_table("pmi-4", [ScoredRun("TopicalChat", file=report)])
    assert measured(table) == {
        ("TopicalChat Beam Search Stand.", "PMI-F"): 0.5,
        ("TopicalChat Beam Search Stand.", "BLEU"): 4.5,
        ("TopicalChat Beam Search Stand.", "RougeL"): 0.4,
        ("TopicalChat Beam Search PMI-D", "PMI-F"): 0.6,
        ("TopicalChat Beam Search PMI-D", "BLEU"): 4.5,
        ("TopicalChat Beam Search PMI-D", "RougeL"): 0.4,
    }
    assert "TopicalChat Beam Search PMI-D: α 0.25, top-p 0.6, chosen on the same responses." in table.remarks


def test_pmi_5_is_a_grid(tmp_path: Path) -> None:
    cells = [(0.0, 0.6, 0.4, 0.3), (0.25, 1.0, 0.6, 0.2)]
    report = decoding_report(tmp_path / "report.json", "beam_sampling", cells)
    assert measured(render_table("pmi-5", [ScoredRun(file=report)])) == {
        ("p = 0.6", "PMIF α=0"): 0.4,
        ("p = 0.6", "RougeL α=0"): 0.3,
        ("p = 1", "PMIF α=0.25"): 0.6,
        ("p = 1", "RougeL α=0.25"): 0.2,
    }
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(InvalidRequest, match="decoding-table"):
        render_table("pmi-5", [ScoredRun(file=tmp_path / "report.json")])
