"""``evaluate`` and ``compare`` on rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import Engine, LoadOptions, Options
from groundwire.evaluate import Example, Run, calibrate, compare, evaluate
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import CALIBRATION
from tests.support.fakes import world

RIGHT, WRONG = "Elvis was born in 1935.", "Elvis was born in 1936."
ROWS: list[dict[str, Any]] = [
    {
        "response": RIGHT if index % 3 else WRONG,
        "knowledge": f"Elvis came in 1935. Note {index // 2}.",
        "label": index % 2,
    }
    for index in range(40)
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(world(), LoadOptions(calibration=CALIBRATION)) as loaded:
        yield loaded


def test_rows_are_measured_as_they_are_decided(engine: Engine) -> None:
    strict = Options(profile="strict")
    labels = [engine.score(row["response"], row["knowledge"], options=strict).verdict.label for row in ROWS]
    stopped = [label == "inconsistent" for label in labels]
    right = [flag for flag, row in zip(stopped, ROWS, strict=True) if row["label"]]
    wrong = [flag for flag, row in zip(stopped, ROWS, strict=True) if not row["label"]]
    assert 0 < sum(right) < len(right)
    seen: list[int] = []
    run = evaluate(ROWS, engine, repeats=20, name="mine", progress=seen.append)
    assert seen == list(range(1, len(ROWS) + 1))
    (figures,) = run.results.sets
    assert (figures.name, figures.examples) == ("mine", 40)
    verdicts = figures.verdicts[1]
    assert verdicts.profile == "strict"
    assert verdicts.false_positive_rate is not None
    assert verdicts.false_negative_rate is not None
    assert verdicts.false_positive_rate.value == sum(right) / len(right)
    assert verdicts.false_negative_rate.value == 1 - sum(wrong) / len(wrong)
    assert run.results.signature == engine.plan().signature
    examples = [
        Example(str(index + 1), row["response"], (row["knowledge"],), label=row["label"])
        for index, row in enumerate(ROWS)
    ]
    assert evaluate(examples, engine, repeats=20, name="mine").results.sets == run.results.sets


def test_a_run_is_read_as_it_was_saved_and_compared_by_name(engine: Engine, tmp_path: Path) -> None:
    runs = [evaluate(ROWS, engine, metrics, repeats=20) for metrics in (None, ("q2", "nli"))]
    report = runs[0].save(str(tmp_path / "run"))
    assert "labelled" in report.read_text(encoding="utf-8")
    assert Run.load(str(tmp_path / "run")) == runs[0]
    comparison = compare(*runs, repeats=20)
    assert {difference.set for difference in comparison.differences} == {"labelled"}
    assert ("verdict", "balanced_accuracy") in {(each.metric, each.figure) for each in comparison.differences}
    assert all(
        difference.difference.value == 0 for difference in comparison.differences if difference.metric == "verdict"
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"response": RIGHT, "knowledge": "Elvis."}], "None of the 1 rows has a label"),
        ([ROWS[0] | {"id": "a"}, ROWS[1] | {"id": "a"}], "2 rows have the id 'a'"),
        ([{"response": RIGHT}], "Row 0 cannot be used: no knowledge; allowed are knowledge, contexts"),
        ([ROWS[0] | {"label": 3}], "Row 0 cannot be used: label is 3"),
    ],
)
def test_rows_that_cannot_be_measured_are_refused(engine: Engine, rows: list[Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        evaluate(rows, engine)


def test_rows_that_a_calibration_was_fitted_to_are_left_out(engine: Engine) -> None:
    rows = [row | {"knowledge": f"Elvis came in 1935. No {index}."} for index, row in enumerate(ROWS + ROWS)]
    fitted = calibrate(rows[:60], engine, ("q2", "nli"))
    with Engine(world(), LoadOptions(calibration=fitted)) as other:
        run = evaluate(rows, other, repeats=20)
        assert (run.results.sets[0].fitted, run.results.sets[0].examples) == (60, 20)
        with pytest.raises(InvalidRequest, match="fitted to all 60 labelled examples"):
            evaluate(rows[:60], other)
