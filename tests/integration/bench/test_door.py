"""``python -m bench`` lists every benchmark and runs one by its name."""

from __future__ import annotations

import pytest

from bench.__main__ import describe, list_benchmarks, main


def test_every_benchmark_is_listed_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    benchmarks = list_benchmarks()
    assert {"values", "soak_http", "production"} <= set(benchmarks)
    assert not {"common", "models", "pairs"} & set(benchmarks)
    assert all(describe(path).endswith((".", ":", "``")) for path in benchmarks.values())
    assert len(lines) == len(benchmarks) + 2


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vales"]) == 2
    assert "values" in capsys.readouterr().err


def test_a_benchmark_runs_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["showcase", "--help"])
    assert stopped.value.code == 0
    assert "--pairs PAIRS" in capsys.readouterr().out
