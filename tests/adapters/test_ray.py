"""The functions for Ray, on a local cluster of two nodes, one of which is killed."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine import InvalidRequest
from tests.support.adapters import CONSISTENT, INCONSISTENT, KNOWLEDGE, PROBABILITY, load

ray = load("ray")
load("ray.data")
load("ray.serve")
load("pyarrow")

import pyarrow  # noqa: E402
from pyarrow import parquet  # noqa: E402

from groundwire.adapters.ray import Report, ScoreBatch, make_deployment, score_files  # noqa: E402
from tests.support.ray_engines import load_broken, load_fast, load_noted  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 180
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with two processors each, as Ray counts them."""
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = str(ROOT)  # of the actors
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = {"num_cpus": 2, "object_store_memory": 100_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=nodes)
    cluster.add_node(**nodes)
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield cluster
    ray.serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


def make_rows(count: int) -> list[dict[str, Any]]:
    return [
        {"id": number, "response": f"{CONSISTENT if number % 3 else INCONSISTENT} {number}", "knowledge": [KNOWLEDGE]}
        for number in range(count)
    ]


def write_rows(path: Path, count: int) -> Path:
    rows = make_rows(count)
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=7)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_results(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for path in sorted(folder.glob("part-*")):
        if path.suffix == ".parquet":
            rows += parquet.read_table(path).to_pylist()
        else:
            rows += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return rows


def test_batches_gain_columns(cluster: Any) -> None:
    data = ray.data.from_items(make_rows(40), override_num_blocks=4)
    scored = data.map_batches(
        ScoreBatch, fn_constructor_kwargs={"load": load_fast}, batch_format="pyarrow", batch_size=8, concurrency=2
    ).take_all()
    assert sorted(row["id"] for row in scored) == list(range(40))
    for row in scored:
        label, text = ("consistent", CONSISTENT) if row["id"] % 3 else ("inconsistent", INCONSISTENT)
        assert (row["label"], row["passed"], row["probability"]) == (label, label == "consistent", PROBABILITY[text])
        assert row["nli"] == float(label == "consistent")
        assert row["signature"].startswith("groundwire:")


def test_a_batch_without_the_column_is_refused() -> None:
    score = ScoreBatch("answer", load=load_fast)
    with pytest.raises(InvalidRequest, match="no column 'answer'; it has"):
        score(pyarrow.table({"response": ["x"], "knowledge": ["y"]}))
    score = ScoreBatch(load=load_fast)
    with pytest.raises(InvalidRequest, match="has a column 'label' already"):
        score(pyarrow.table({"response": ["x"], "knowledge": ["y"], "label": [1]}))


def test_columns_have_the_same_types_whatever_the_values_are() -> None:
    score = ScoreBatch(load=load_fast)
    schemas = {
        score(pyarrow.table({"response": [text], "knowledge": [KNOWLEDGE]})).schema
        for text in (CONSISTENT, INCONSISTENT, "Thanks!", "")
    }
    assert len(schemas) == 1


def test_a_killed_node_loses_nothing_and_doubles_nothing(cluster: Any, tmp_path: Path) -> None:
    source, out, loads = write_rows(tmp_path / "rows.parquet", 300), tmp_path / "out", tmp_path / "loads"
    loads.mkdir()
    victim = cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
    reports: list[Report] = []

    def run() -> None:
        load_engine = partial(load_noted, str(loads))
        # Each node has room for one actor of these; the others take the part of one that is lost.
        reports.append(score_files(source, out, load=load_engine, rows_per_part=10, concurrency=3, num_cpus=1.5))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + SECONDS
    while len(list(out.glob("part-*"))) < 4 or not list(loads.glob(f"*.{victim.node_id}")):
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = len(list(out.glob("part-*")))
    cluster.remove_node(victim, allow_graceful=False)
    assert before < 30
    cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
    thread.join(SECONDS)
    assert reports == [Report(300, 30, 0, 0)]
    rows = read_results(out)
    assert Counter(row["row"] for row in rows) == Counter(range(300))
    assert [json.loads(row["id"]) for row in sorted(rows, key=lambda row: row["row"])] == list(range(300))
    assert {row["label"] for row in rows if row["row"] % 3} == {"consistent"}
    assert {row["label"] for row in rows if row["row"] % 3 == 0} == {"inconsistent"}


def test_a_run_is_continued_where_it_stopped(cluster: Any, tmp_path: Path) -> None:
    files, out = tmp_path / "files", tmp_path / "out"
    files.mkdir()
    write_rows(files / "a.jsonl", 25)
    with (files / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"response": 3\n')
    write_rows(files / "b.parquet", 13)
    given: Any = {"load": load_fast, "rows_per_part": 10}
    assert score_files(files, out, **given) == Report(39, 5, 0, 0)
    first = read_results(out)
    assert score_files(files, out, **given) == Report(0, 5, 5, 0)
    (out / "part-000001.parquet").unlink()
    assert score_files(files, out, **given) == Report(10, 5, 4, 0)
    assert read_results(out) == first
    (unread,) = [row for row in first if row["label"] == "unknown"]
    assert (Path(unread["source"]).name, unread["row"]) == ("a.jsonl", 26)
    assert "cannot be read: not JSON" in unread["reason"]
    with pytest.raises(InvalidRequest, match="has results with another rows_per_part: 10"):
        score_files(files, out, load=load_fast, rows_per_part=5)
    with pytest.raises(InvalidRequest, match="has results with another signature"):
        score_files(files, out, load=load_fast, rows_per_part=10, metrics=["overlap"])
    with pytest.raises(InvalidRequest, match="has files that are no results"):
        score_files(files, files, **given)
    with pytest.raises(InvalidRequest, match=r"^Unknown metric 'overlop' \(did you mean overlap\?\)"):
        score_files(files, out, load=load_fast, metrics="overlop")


def test_rows_that_failed_are_scored_again(cluster: Any, tmp_path: Path) -> None:
    source, out = write_rows(tmp_path / "rows.jsonl", 6), tmp_path / "out"
    (tmp_path / "broken").touch()
    load_engine = partial(load_broken, str(tmp_path))
    assert score_files(source, out, load=load_engine, rows_per_part=4, format="jsonl") == Report(6, 2, 0, 6)
    assert {row["label"] for row in read_results(out)} == {"unknown"}
    (tmp_path / "broken").unlink()
    assert score_files(source, out, load=load_engine, rows_per_part=4, format="jsonl") == Report(6, 2, 0, 0)
    assert Counter(row["label"] for row in read_results(out)) == {"consistent": 4, "inconsistent": 2}


def test_no_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"is no file or folder of files that end with \.parquet or \.jsonl"):
        score_files(tmp_path, tmp_path / "out", load=load_fast)


def test_a_deployment_answers(cluster: Any) -> None:
    application = make_deployment(load_fast, max_replicas=2)
    handle = ray.serve.run(application, name="groundwire", route_prefix="/")
    replies = [handle.check.remote(text, KNOWLEDGE) for text in [CONSISTENT, INCONSISTENT] * 10]
    assert [reply.result(timeout_s=SECONDS)["passed"] for reply in replies] == [True, False] * 10
    import httpx

    url = "http://127.0.0.1:8000/"
    reply = httpx.post(url, json={"response": INCONSISTENT, "knowledge": KNOWLEDGE}, timeout=SECONDS)
    assert (reply.status_code, reply.json()["label"]) == (200, "inconsistent")
    assert httpx.post(url, json={"text": 3}, timeout=SECONDS).status_code == 422
    assert httpx.post(url, json={"response": "", "knowledge": ""}, timeout=SECONDS).status_code == 503
