"""Stages of a long measurement: what goes wrong in one is recorded, and the others go on."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.gpu import stages
from bench.gpu.stages import Record, Stage, read_done, run_stages
from tests.support.stages import exit_with_one

HERE = "tests.support.stages"


@pytest.fixture(autouse=True)
def _import_nothing_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """These stages use no large library."""
    monkeypatch.setattr(stages, "PRELOAD", "tests.support.stages")


def run(tmp_path: Path, *groups: Sequence[Stage], seconds: float = 100) -> dict[str, Record]:
    seen: list[int] = []

    def see(records: Sequence[Record]) -> None:
        if records[-1].status == "running":
            assert records[-1].results is not None, "it has saved something"
            assert len(records) == len(seen) + 1
        else:
            seen.append(len(records))

    records = run_stages(groups, "setup", tmp_path / "stages", seconds, see, 3)
    assert seen == list(range(1, len(records) + 1))
    return {record.name: record for record in records}


def stage(name: str, seconds: float = 60) -> Stage:
    return Stage(name, HERE, name, seconds)


def test_what_goes_wrong_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    names = ("raise_error", "crash", "leave", "have_nothing", "save_twice")
    records = run(tmp_path, [stage(name) for name in names])
    assert {name: record.status for name, record in records.items()} == {
        "raise_error": "failed",
        "crash": "failed",
        "leave": "failed",
        "have_nothing": "skipped",
        "save_twice": "done",
    }
    assert records["raise_error"].message.startswith("ValueError: no such graph\n")
    assert records["raise_error"].results == {"before": 1}
    assert records["crash"].message == "the process ended with signal SIGSEGV"
    assert records["leave"].message == "the process ended with exit code 7"
    assert records["have_nothing"].message == "no GPU"
    assert records["save_twice"].results == {"setup": "setup", "rows": [1, 2]}


def test_a_stage_that_takes_too_long_is_cut_and_keeps_what_it_saved(tmp_path: Path) -> None:
    records = run(tmp_path, [stage("save_and_hang", 5)], [stage("save_twice")])
    assert records["save_and_hang"].status == "cut"
    assert records["save_and_hang"].message == "its 5 seconds were over"
    assert records["save_twice"].status == "done"
    wait_for_end(records["save_and_hang"].results["child"])


def wait_for_end(child: int) -> None:
    """A killed process is gone, or a zombie of whatever adopts it."""
    state = Path(f"/proc/{child}/stat")
    for _ in range(200):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("what a stage has started outlives it")


def test_after_an_interrupt_no_stage_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "stages" / "save_and_hang.json"

    def interrupt(records: Sequence[Record]) -> None:
        while not path.exists():
            time.sleep(0.05)
        raise KeyboardInterrupt

    both = [stage("save_and_hang"), stage("have_nothing")]
    with pytest.raises(KeyboardInterrupt):
        run_stages([both], "setup", path.parent, 60, interrupt, 2)
    wait_for_end(json.loads(path.read_text())["results"]["child"])


def test_after_cuda_was_started_processes_do_not_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_probe", exit_with_one)
    assert run(tmp_path, [stage("save_twice")])["save_twice"].status == "done"
    assert stages._choose_context().get_start_method() == "spawn"
    monkeypatch.undo()
    assert stages._choose_context().get_start_method() == "forkserver"


def test_what_a_stage_saves_is_known_while_it_runs(tmp_path: Path) -> None:
    seen: list[Record] = []
    run_stages([[stage("save_and_hang", 5)]], "setup", tmp_path, 60, lambda records: seen.append(records[-1]), 1)
    assert [record.status for record in seen] == ["running", "cut"]
    assert seen[0].results == seen[1].results


def test_without_time_left_a_stage_is_skipped(tmp_path: Path) -> None:
    records = run(tmp_path, [stage("save_and_hang", 60)], [stage("save_twice")], seconds=5)
    assert records["save_and_hang"].status == "cut"
    assert (records["save_twice"].status, records["save_twice"].message) == ("skipped", "no time was left")


def test_a_second_run_takes_what_was_done_and_runs_the_rest(tmp_path: Path) -> None:
    folder, group = tmp_path / "stages", [stage(name) for name in ("save_twice", "raise_error", "leave")]
    run(tmp_path, group)
    done = read_done(folder, [*group, stage("have_nothing")])
    assert [(record.name, record.results["rows"]) for record in done] == [("save_twice", [1, 2])]
    seen: list[Record] = []
    records = run_stages([group], "setup", folder, 60, lambda records: seen.append(records[-1]), 1, done)
    assert records[0] == done[0]
    assert [record.name for record in seen if record.status != "running"] == ["raise_error", "leave"]
    assert records[2].results is None, "what an earlier run has saved is gone"
