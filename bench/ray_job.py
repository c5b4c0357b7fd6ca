"""A job on a Ray cluster that loses a node: every row has its result once, the same as from one process.

    .venv-adapters/bin/python -m bench.ray_job            (make test-adapters makes the environment)

10,000 rows with the embedded bundle and the metrics of ``fast``, on a cluster of two nodes that Ray starts on this
machine, with two actors of one thread each. When a third of the parts are there, the node of one actor is killed and
another is started. The peer is ``Engine.score_many`` with two threads in one process, on a tenth of the rows.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from groundwire.engine import Engine

from .support import common
from .support.common import PerformanceTarget, check
from .support.dialogues import Dialogue, distinct

PARTS = 50
SAMPLE = 10
"""Of so many rows, one is compared with the result of one process."""
SECONDS = 1800.0
COMPARED = ("label", "probability")


class Job(msgspec.Struct, frozen=True):
    """The results."""

    rows: int
    parts: int
    parts_before_kill: int
    job_per_second: float
    """Rows, from the start of the actors to the last part, the lost node included."""
    engine_per_second: float
    """Rows of ``score_many`` in one process, models loaded."""


def load_engine() -> Engine:
    """An engine for an actor that has one processor."""
    return Engine.load("compact", "cpu", threads=1)


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """All rows of the parts that are there."""
    return [json.loads(line) for path in sorted(folder.glob("part-*")) for line in path.open(encoding="utf-8")]


def run_job(source: Path, out: Path, rows: int) -> tuple[float, int]:
    """Seconds of the job, and how many parts were there when the node was killed."""
    import ray
    from ray.cluster_utils import Cluster

    from groundwire.adapters.ray import RunReport, score_files

    os.environ["PYTHONPATH"] = str(common.ROOT)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"object_store_memory": 100_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **node})
    victim = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    reports: list[RunReport] = []

    def score() -> None:
        reports.append(
            score_files(
                source,
                out,
                load=load_engine,
                metrics=["fast"],
                format="jsonl",
                rows_per_part=rows // PARTS,
                concurrency=(1, 2),
                num_cpus=1,
            )
        )

    started = time.perf_counter()
    thread = threading.Thread(target=score, daemon=True)
    thread.start()
    while len(list(out.glob("part-*"))) < PARTS // 3:
        check(thread.is_alive() and time.perf_counter() - started < SECONDS, "the job ended before a node was killed")
        time.sleep(0.1)
    before = len(list(out.glob("part-*")))
    cluster.remove_node(victim, allow_graceful=False)
    cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    thread.join(SECONDS)
    spent = time.perf_counter() - started
    check(reports == [RunReport(rows, PARTS, 0, 0)], f"the job reports {reports}")
    ray.shutdown()
    cluster.shutdown()
    return spent, before


def main(
    rows: Annotated[int, typer.Option(help="Rows of the job; a multiple of 50.", min=PARTS)] = 10_000,
    tiny: Annotated[bool, typer.Option(help="Few rows, to try it; writes no file.")] = False,
    out: Annotated[Path | None, typer.Option(help="The JSON file; default: bench/results/ray_job.json.")] = None,
) -> None:
    """Run a job on Ray, kill a node of it, and compare its results with one process's."""
    rows = 300 if tiny else rows - rows % PARTS
    dialogues: list[Dialogue] = list(distinct(rows))
    with tempfile.TemporaryDirectory() as work:
        source, results = Path(work, "rows.jsonl"), Path(work, "out")
        lines = [{"id": number, "response": d.response, "knowledge": d.knowledge} for number, d in enumerate(dialogues)]
        source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        spent, before = run_job(source, results, rows)
        scored = read_rows(results)
    check(Counter(row["row"] for row in scored) == Counter(range(rows)), "a row is missing or there twice")
    by_row = {row["row"]: row for row in scored}
    sample = range(0, rows, SAMPLE)
    with Engine.load("compact", "cpu") as engine:
        engine.warmup()
        pairs = [(dialogues[number].response, dialogues[number].knowledge) for number in sample]
        engine_ms, scores = common.timed(lambda: list(engine.score_many(pairs, metrics="fast")))
    for number, score in zip(sample, scores, strict=True):
        row, verdict = by_row[number], score.verdict
        check(
            (row["label"], row["probability"]) == (verdict.label, verdict.probability), f"row {number} differs: {row}"
        )
    job = Job(rows, PARTS, before, rows / spent, len(scores) * 1000 / engine_ms)
    common.console().print(job)
    targets = (
        PerformanceTarget.at_least(
            "rows a second, of one process", job.job_per_second / job.engine_per_second, 0.5, "×"
        ),
    )
    settings: dict[str, int | float | str | None] = {"rows": rows, "metrics": "fast"}
    path = out or (None if tiny else common.RESULTS / "ray_job.json")
    common.finish("ray_job", settings, job, () if tiny else targets, path)


if __name__ == "__main__":
    typer.run(main)
