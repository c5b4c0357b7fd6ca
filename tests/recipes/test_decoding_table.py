"""The table of faithfulness and relevance: its contexts, its figures, and one small run on real models."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)
pytest.importorskip("rouge_score", reason="needs the metrics extra")

from typer.testing import CliRunner

from groundwire.engine import Engine
from groundwire.recipes.cli import app
from groundwire.recipes.generator import decoding_table
from groundwire.recipes.generator.decoding_table import (
    DialogueContext,
    MeanEstimate,
    TableSetup,
    measure_cells,
    read_contexts,
    render_markdown,
)
from groundwire.runtime.bundles.bundle import Bundle, embedded
from groundwire.runtime.fake import FakeRuntime
from tests.support.fakes import ROLES, label
from tests.support.generation import generator, language_model
from tests.support.zoo import Zoo

ROWS: list[dict[str, Any]] = [
    {"knowledge": "bees make honey", "history": ["who?"], "response": "a system's", "gold_response": "wasps make wax"},
    {"knowledge": "bees make honey", "history": ["who?"], "response": "another's", "gold_response": "wasps make wax"},
    {"knowledge": ["six", "strings"], "history": ["how many?"], "response": "six strings"},
    {"knowledge": " ", "history": ["how many?"], "response": "x"},
    {"knowledge": "six", "history": [""], "response": "x"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_contexts_are_distinct_and_what_a_person_said_counts(tmp_path: Path) -> None:
    assert list(read_contexts(write(tmp_path / "rows.jsonl", ROWS))) == [
        DialogueContext("bees make honey", ("who?",), "wasps make wax"),
        DialogueContext("six strings", ("how many?",), "six strings"),
    ]


def test_a_mean_has_its_interval() -> None:
    mean = MeanEstimate.of([1.0, 2.0, 3.0, 4.0])
    assert (mean.value, mean.count) == (2.5, 4)
    assert mean.half_width == pytest.approx(1.96 * math.sqrt(5 / 3) / 2, abs=1e-4)
    assert MeanEstimate.of([2.0]) == MeanEstimate(2.0, 0.0, 1)
    assert math.isnan(MeanEstimate.of([]).value)


def test_the_figures_are_those_of_the_responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake model writes "wasps make honey" whatever it is asked, and takes all of it for neutral."""
    fake = FakeRuntime(ROLES | {"generator": generator, "lm": language_model, "nli": label})
    monkeypatch.setattr(Engine, "load", lambda scorer, extra: Engine(fake))
    setup = TableSetup(
        tmp_path, write(tmp_path / "rows.jsonl", ROWS), alphas=(0.0, 1.0), pmi_top_ps=(0.6,), method="beam"
    )
    first, second = measure_cells(setup)
    assert (first.alpha, second.alpha, first.pmi_top_p) == (0.0, 1.0, 0.6)
    assert first.rouge_l.value == pytest.approx((2 / 3 + 0) / 2, abs=1e-4)
    # One of two content words (not "make") is among the knowledge's; of the other knowledge's none.
    assert first.overlap_precision.value == pytest.approx((1 / 2 + 0) / 2, abs=1e-4)
    assert (first.words, first.unfinished, first.rouge_l.count) == (3.0, 0.0, 2)
    assert first.log_prob.value == pytest.approx(-6.5 / 4)
    assert first.pmi_normalised is None
    assert first.nli == MeanEstimate(0.5, 0.0, 2)
    # No response has four words in a row.
    assert first.bleu == 0.0
    assert first.examples == ("wasps make honey", "wasps make honey")
    with Engine(fake) as engine:
        assert first.q2.value == engine.score("wasps make honey", "bees make honey", metrics=["q2"]).value
        values = [
            engine.score("wasps make honey", context.knowledge, history=context.history, metrics=["pmi"]).value
            for context in read_contexts(setup.rows)
        ]
    assert first.pmi.value == pytest.approx(sum(value or 0.0 for value in values) / 2, abs=1e-4)


def test_bleu_is_of_the_response_against_the_reference() -> None:
    """4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 fours; a short response is penalised, a long one is not."""
    bleu = decoding_table._load_bleu()
    assert bleu(["a b c d f"], ["a b c d e"]) == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert bleu(["a b c d e"], ["a b c d"]) == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_the_layout_is_the_papers() -> None:
    mean = MeanEstimate(1.0, 0.5, 2)
    cells = [
        decoding_table.TableCell(alpha, pmi_top_p, mean, 0.25 + alpha, mean, mean, mean, 5.0, mean, mean, 7.0, 0.5, ())
        for pmi_top_p in (0.9, 0.6)
        for alpha in (0.5, 0.0)
    ]
    lines = render_markdown(cells).splitlines()
    assert lines[0] == "| | top-p | α = 0 | α = 0.5 |"
    assert lines[2] == "| PMI-Faith (nats per token) | 0.6 | 1.00 ± 0.50 | 1.00 ± 0.50 |"
    assert lines[4] == "| PMI-Faith, normalised | 0.6 | 0.250 | 0.750 |"
    assert lines[5] == "|  | 0.9 | 0.250 | 0.750 |"
    assert lines[-1] == "|  | 0.9 | 50% | 50% |"


def test_the_table_has_the_papers_rows_and_columns() -> None:
    setup = TableSetup(Path("bundle"), Path("rows.jsonl"))
    assert (setup.pmi_top_ps, setup.alphas) == ((0.6, 0.75, 0.9, 1.0), (0.0, 0.25, 0.5, 1.0))


def test_no_context_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no context"):
        list(measure_cells(TableSetup(tmp_path, write(tmp_path / "rows.jsonl", ROWS[3:]))))


@pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle yet")
def test_the_command_on_real_models(tmp_path: Path) -> None:
    generator = Zoo(tmp_path / "zoo").bundle("generator", "gpt2").directory
    rows, out = write(tmp_path / "rows.jsonl", ROWS), tmp_path / "table.json"
    given = ["decoding-table", "--generator", str(generator), "--rows", str(rows), "--out", str(out)]
    settings = ["--alpha", "0", "--alpha", "0.5", "--pmi-top-p", "0.6", "--method", "greedy", "--max-new-tokens", "8"]
    done = CliRunner().invoke(app, [*given, *settings])
    assert done.exit_code == 0, (done.output, done.exception)
    report = json.loads(out.read_text())
    assert report["setup"]["method"] == "greedy"
    assert report["setup"]["digest"] == Bundle.open(generator).manifest.digest()
    assert [(cell["alpha"], cell["pmi_top_p"]) for cell in report["cells"]] == [(0.0, 0.6), (0.5, 0.6)]
    for cell in report["cells"]:
        assert cell["pmi"]["count"] == cell["nli"]["count"] == cell["rouge_l"]["count"] == 2
        assert 0 <= cell["nli"]["value"] <= 1
        assert cell["log_prob"]["value"] < 0
    assert "| PMI-Faith (nats per token) | 0.6 |" in done.output
    refused = CliRunner().invoke(app, [*given, "--method", "best"])
    assert isinstance(refused.exception, ValueError)
