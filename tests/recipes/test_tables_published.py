"""The papers' tables as published: their figures agree with each other, and the guide has them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundwire.recipes.papers import TABLES, fill_tables, iterate_figures, render_table
from groundwire.runtime.errors import InvalidRequest
from tests.support.paper_runs import measured

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "reproduce.md"


def published(table: str) -> dict[tuple[str, str], float]:
    table_of_paper = TABLES[table]
    return {
        (row.name, column.name): value
        for row in table_of_paper.rows
        for column, value in zip(table_of_paper.columns, row.values, strict=True)
    }


def test_every_table_is_there() -> None:
    ids = [f"q2-{n}" for n in range(2, 12)] + [f"pmi-{n}" for n in (1, 2, 3, 4, 5, 7, 9)]
    ids += [f"conv-fever-{n}" for n in (2, *range(4, 13))]
    assert list(TABLES) == ids + [f"nph-{n}" for n in range(2, 8)]
    # The gold responses of nph-3 have no BLEU, pmi-5 no errors where it is no English; no paper has overlap precision.
    own = sum(len(TABLES[f"pmi-{n}"].columns) for n in (1, 2, 3, 9))
    cells = sum(len(table_of_paper.rows) * len(table_of_paper.columns) for table_of_paper in TABLES.values())
    assert sum(1 for _ in iterate_figures()) == cells - 2 - own == 989 + 72 + 72 + 95


@pytest.mark.parametrize("table", ["q2-3", "pmi-1", "conv-fever-5", "nph-5"])
def test_f1_is_the_harmonic_mean_of_its_neighbours(table: str) -> None:
    for row in TABLES[table].rows:
        if row.values[0] is None:
            continue
        names = [column.name for column in TABLES[table].columns]
        for at, name in enumerate(names):
            if name.endswith("F1"):
                precision, recall = row.values[at - 2 : at]
                scale = 100 if precision > 1 and row.values[at] <= 1 else 1
                expected = 2 * precision * recall / (precision + recall) / scale
                assert row.values[at] == pytest.approx(expected, abs=0.0015 if row.values[at] <= 1 else 0.11), row.name


def test_accuracy_is_the_mean_recall_of_two_classes_of_one_size() -> None:
    cells = published("q2-3")
    for name in ("Q²", "Q² w/o NLI", "E2E NLI"):
        recalls = [cells[f"{label} {name}", "Recall"] for label in ("Consistent", "Inconsistent")]
        for label in ("Consistent", "Inconsistent"):
            assert cells[f"{label} {name}", "Accuracy"] == pytest.approx(sum(recalls) / 2, abs=0.1)


def test_tables_of_q2_repeat_each_other() -> None:
    two, four, seven, eight, nine = (published(f"q2-{n}") for n in (2, 4, 7, 8, 9))
    for part in ("dodeca inconsistent", "dodeca consistent", "MemNet inconsistent", "MemNet consistent"):
        assert eight[f"{part} Original", "Q²"] == two[part, "Q²"] == nine[f"{part} Q²", "Score"]
        assert eight[f"{part} Original", "Q² w/o NLI"] == two[part, "Q² w/o NLI"]
        assert eight[f"{part} Original", "Coverage"] == nine[f"{part} Q²", "Coverage"]
    for column in ("Avg. Correlation", "Lower CI", "Upper CI"):
        assert seven["Original Q²", column] == four["Q²", column]


def test_tables_4_and_6_of_conv_fever_differ_where_the_paper_does() -> None:
    fine, rough = published("conv-fever-4"), published("conv-fever-6")
    differ = {cell for cell in fine if abs(fine[cell] - rough[cell]) > 0.5001}
    assert differ == {
        ("KNN NS", "XL F1(C)"),
        ("KNN NS", "XL F1(IC)"),
        ("KNN DBS", "XL F1(C)"),
        ("KNN DBS", "XL F1(IC)"),
        ("DPR DBS", "XL F1(IC)"),
    }


def test_coverage_is_a_count_of_150() -> None:
    for table in ("q2-8", "q2-9"):
        for (row, column), value in published(table).items():
            if column == "Coverage":
                count = round(value * 1.5)
                # The paper's T5-small and others round to two digits.
                assert value == pytest.approx(count / 1.5, abs=0.0051), (table, row)


@pytest.mark.parametrize("table", TABLES)
def test_nothing_run_leaves_every_measured_cell_empty(table: str) -> None:
    made = render_table(table)
    assert measured(made) == {}
    cells = sum(len(row.cells) for row in made.rows)
    assert made.markdown().count(" / –") == cells
    assert made.rich().row_count == len(made.rows)


def test_an_unknown_table_lists_the_tables() -> None:
    with pytest.raises(InvalidRequest, match="no table 'q2-1'; tables are q2-2, q2-3"):
        render_table("q2-1")


def test_the_guide_has_its_tables_as_published() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert "<!-- table q2-2 -->" in text
    assert fill_tables(text) == text, "run: python -m groundwire.recipes.papers docs/reproduce.md"


def test_filling_a_guide_restores_a_changed_figure() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    changed = text.replace("0.696", "0.796").replace("results.json has no means", "results.json has means")
    assert changed != text
    assert fill_tables(changed) == text


def test_filling_a_guide_keeps_what_was_measured() -> None:
    text = "Before.\n<!-- table q2-4 -->\n<!-- end -->\nAfter.\n"
    filled = fill_tables(text)
    assert filled == f"Before.\n<!-- table q2-4 -->\n{render_table('q2-4').markdown()}<!-- end -->\nAfter.\n"
    pasted = filled.replace("-0.7000 / –", "-0.7000 / -0.8000").replace("0.8780 / –", "0.8780 / 0.8673")
    pasted = pasted.replace("<!-- end -->", "- Here: 200 contexts.\n<!-- end -->")
    assert fill_tables(pasted) == pasted
    assert fill_tables(pasted.replace("0.8780 / ", "0.1 / ")) == pasted
    per_cent = fill_tables(text.replace("q2-4", "q2-6")).replace("74.49% / –", "74.49% / 70.00%")
    assert fill_tables(per_cent) == per_cent
