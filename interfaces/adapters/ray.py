"""Scores on a Ray cluster: a batch function for Ray Data, files that are scored part by part, a deployment for Serve.

Needs the extra: ``pip install 'groundwire[ray]'``.

>>> from groundwire.adapters.ray import ScoreBatch, score_files                             # doctest: +SKIP
>>> dataset.map_batches(ScoreBatch, batch_format="pyarrow", concurrency=4, num_cpus=2)          # doctest: +SKIP
>>> score_files("answers.parquet", "scores", concurrency=4, num_cpus=2)                         # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from groundwire.engine import Engine, GroundwireError, InvalidRequest, Options
from groundwire.engine.extend import Knowledge
from groundwire.files.reading import Line, check_row, decode_line
from groundwire.files.resuming import is_final
from groundwire.files.sources import split_lines

from .checking import Checker, read_score
from .extras import needs

with needs("ray"):
    import pyarrow
    import ray
    import ray.data
    import ray.serve
    from pyarrow import parquet
    from starlette.requests import Request
    from starlette.responses import JSONResponse

__all__ = ["RunReport", "ScoreBatch", "load_compact", "make_deployment", "score_files"]

LoadEngine: TypeAlias = Callable[[], Engine]
Format: TypeAlias = Literal["parquet", "jsonl"]
PLAN = "plan.json"
SUFFIXES = (".parquet", ".jsonl")
SPAN = pyarrow.struct(
    [("text", pyarrow.string()), ("start", pyarrow.int64()), ("end", pyarrow.int64()), ("reason", pyarrow.string())]
)
CHECKED = (
    ("label", pyarrow.string()),
    ("passed", pyarrow.bool_()),
    ("probability", pyarrow.float64()),
    ("reason", pyarrow.string()),
    ("spans", pyarrow.list_(SPAN)),
)
"""Columns of a result, before one of float64 for each metric and ``signature``."""
UNREAD = "unread"
"""A field that makes a row that cannot be read an invalid request."""


def load_compact() -> Engine:
    """The embedded bundle ``compact``, with as many threads as the actor has processors; what actors load by default.

    Write such a function for another bundle or device: it runs once in each actor, because engines cannot be sent.
    """
    processors = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    return Engine.load("compact", threads=max(1, int(processors)))


class ScoreBatch:
    """Scores the rows of a batch; for ``Dataset.map_batches`` with ``batch_format="pyarrow"`` and actors.

    The batch gains ``label``, ``passed``, ``probability``, ``reason`` and ``spans`` as ``Checked`` has them, a column
    of float64 for each metric, null wherever a number is missing, and ``signature``. Types do not depend on the values,
    so all batches can be written to one Parquet dataset.
    """

    def __init__(
        self,
        response: str = "response",
        knowledge: str = "knowledge",
        history: str | None = None,
        *,
        load: LoadEngine = load_compact,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Load an engine in the worker.

        Args:
            response: Column of the responses, texts.
            knowledge: Column of the knowledge, a text or a list of passages.
            history: Column of the history, lists of utterances; None for none.
            load: Loads the engine; it is called once.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self._columns = {"response": response, "knowledge": knowledge} | ({"history": history} if history else {})
        self._scorer = Scorer(load(), metrics, options)

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """The batch with its results; InvalidRequest for a column that is absent, or would be there twice."""
        if absent := [name for name in self._columns.values() if name not in batch.column_names]:
            raise InvalidRequest(f"The batch has no column {absent[0]!r}; it has {batch.column_names}.")
        if present := sorted({*batch.column_names} & {*self._scorer.schema.names}):
            raise InvalidRequest(f"The batch has a column {present[0]!r} already; rename it, its score is called so.")
        columns = [batch.column(name).to_pylist() for name in self._columns.values()]
        rows = [dict(zip(self._columns, cells, strict=True)) for cells in zip(*columns, strict=True)]
        scored = pyarrow.Table.from_pylist(list(self._scorer.score(rows)), schema=self._scorer.schema)
        for name in scored.column_names:
            batch = batch.append_column(scored.schema.field(name), scored.column(name))
        return batch


class Scorer:
    """One engine, and the columns of its results."""

    def __init__(self, engine: Engine, metrics: Sequence[str] | str | None, options: Options | None) -> None:
        self._engine = engine
        self._names = engine.plan(metrics).names
        self._options = options
        self.signature = engine.plan(metrics, options).signature
        floats = [(name, pyarrow.float64()) for name in self._names]
        self.schema = pyarrow.schema([*CHECKED, *floats, ("signature", pyarrow.string())])
        self.unfinished = 0
        """Results so far that another run may improve: a deadline passed, or a model failed."""

    def score(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The result of each row, in order."""
        for score in self._engine.score_many(rows, metrics=self._names, options=self._options):
            values = {name: result.value for name, result in score.metrics.items()}
            self.unfinished += not is_final((score.status, *(result.status for result in score.metrics.values())))
            columns = {name: values.get(name) for name in self._names} | {"signature": self.signature}
            yield read_score(score).to_dict() | columns


class Part(NamedTuple):
    """Some rows of one file, which are scored together and have a file of results."""

    number: int
    source: str
    first: int
    """Number of the first row, from 0; of JSON Lines, of the first line."""
    rows: int
    offset: int
    """Bytes before the first line; 0 for Parquet."""

    @property
    def name(self) -> str:
        """The name of its results, without a suffix."""
        return f"part-{self.number:06d}"


class FolderPlan(msgspec.Struct, frozen=True):
    """What a folder of results is of: an interrupted run is continued with the same plan alone."""

    signature: str
    sources: tuple[tuple[str, int], ...]
    """Files and their sizes, in order."""
    rows_per_part: int
    format: Format


class RunReport(NamedTuple):
    """What came of a run."""

    rows: int
    """Rows that this run scored."""
    parts: int
    parts_before: int
    """Parts that an earlier run has the results of."""
    unfinished: int
    """Rows without a result that another run may have: run it again."""


def score_files(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    load: LoadEngine = load_compact,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    format: Format = "parquet",
    rows_per_part: int = 1000,
    concurrency: int | tuple[int, int] = 1,
    num_cpus: float = 1,
    num_gpus: float = 0,
) -> RunReport:
    """Score Parquet and JSON Lines files part by part on a pool of actors, one engine each.

    A part is written under its own name in one step, so it is there once, whole, or not at all, whatever is killed; Ray
    starts lost actors and their parts again. Run it again to continue: parts that are there are not scored twice,
    except
    parts with rows that a deadline or a failure left without a result.

    Results have ``source``, ``row`` (from 0; of JSON Lines, the line), ``id`` as JSON, and the columns of
    ``ScoreBatch``. A row that cannot be read has the label ``unknown`` and the reason.

    Args:
        sources: Files, or folders with files, at the same path on every node.
        out: A folder, at the same path on every node, which gets one file for each part.
        load: Loads the engine of an actor.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.
        columns: The names of fields that are called otherwise, as in ``--columns``.
        format: Format of the parts.
        rows_per_part: Rows of a part, at most, 1 or more.
        concurrency: Actors, or the least and the most of them.
        num_cpus: Processors of an actor.
        num_gpus: GPUs of an actor.

    Returns:
        A report of the run.

    Raises:
        InvalidRequest: The input is not usable, or ``out`` has results of other files or settings.
    """
    files = _list_files(sources)
    folder = Path(out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # An engine says what its results are made with; on a node of the kind that will score.
    remote = ray.remote(num_cpus=num_cpus, num_gpus=num_gpus)(_describe_engine)
    try:
        signature = ray.get(remote.remote(load, metrics, options))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, GroundwireError):
            raise error.cause from error
        raise
    _check_plan(
        folder, FolderPlan(signature, tuple((str(path), path.stat().st_size) for path in files), rows_per_part, format)
    )
    parts = list(_plan_parts(files, rows_per_part))
    pending = [part for part in parts if not (folder / f"{part.name}.{format}").is_file()]
    if not pending:
        return RunReport(0, len(parts), len(parts), 0)
    scored = ray.data.from_items([part._asdict() for part in pending], override_num_blocks=len(pending)).map_batches(
        ScorePart,
        fn_constructor_args=(str(folder), load, metrics, options, dict(columns), format),
        batch_size=1,
        batch_format="pyarrow",
        concurrency=concurrency,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )
    counts = {row["number"]: (row["rows"], row["unfinished"]) for row in scored.iter_rows()}
    if lost := [part.name for part in pending if part.number not in counts]:
        raise ray.exceptions.RayError(f"Ray returned without {lost[0]} and {len(lost) - 1} others; run it again.")
    return RunReport(
        sum(rows for rows, _ in counts.values()),
        len(parts),
        len(parts) - len(pending),
        sum(unfinished for _, unfinished in counts.values()),
    )


class ScorePart:
    """Scores parts in an actor and writes their results; what ``score_files`` maps."""

    def __init__(
        self,
        folder: str,
        load: LoadEngine,
        metrics: Sequence[str] | str | None,
        options: Options | None,
        columns: Mapping[str, str],
        format: Format,
    ) -> None:
        self._folder = Path(folder)
        self._columns = columns
        self._format = format
        self._scorer = Scorer(load(), metrics, options)
        where = [("source", pyarrow.string()), ("row", pyarrow.int64()), ("id", pyarrow.string())]
        self._schema = pyarrow.unify_schemas([pyarrow.schema(where), self._scorer.schema])

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """The numbers of the parts of a batch, with how many rows they have."""
        return pyarrow.Table.from_pylist([self._score(Part(**row)) for row in batch.to_pylist()])

    def _score(self, part: Part) -> dict[str, int]:
        before = self._scorer.unfinished
        lines = list(read_part(part, self._columns))
        items = (line.row if line.row is not None else {UNREAD: line.problem} for line in lines)
        rows = []
        for line, result in zip(lines, self._scorer.score(items), strict=True):
            if line.row is None:
                result["reason"] = f"There is no score. The row cannot be read: {line.problem}."
            rows.append({"source": part.source, "row": part.first + line.number - 1, "id": _encode_id(line), **result})
        unfinished = self._scorer.unfinished - before
        self._write(part, rows, is_final=not unfinished)
        return {"number": part.number, "rows": len(rows), "unfinished": unfinished}

    def _write(self, part: Part, rows: list[dict[str, Any]], *, is_final: bool) -> None:
        """Write the results under the part's name in one step, with ``.unfinished`` if another run may improve them."""
        final = self._folder / f"{part.name}.{self._format}"
        unfinished = self._folder / f"{part.name}.unfinished.{self._format}"
        # Two actors may write it, if a node that was given up still runs.
        partial = self._folder / f".{part.name}.{os.uname().nodename}.{os.getpid()}.partial"
        if self._format == "parquet":
            parquet.write_table(pyarrow.Table.from_pylist(rows, schema=self._schema), partial)
        else:
            partial.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
        partial.replace(final if is_final else unfinished)
        if is_final:
            unfinished.unlink(missing_ok=True)


def make_deployment(
    load: LoadEngine = load_compact,
    *,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
    min_replicas: int = 1,
    max_replicas: int = 4,
    concurrent_requests: int = 64,
    num_cpus: float = 1,
    num_gpus: float = 0,
) -> ray.serve.Application:
    """Return an application for ``serve.run`` that scores over HTTP and through handles; each replica has an engine.

    The body is ``{"response": …, "knowledge": …, "history": […]}``, the answer ``Checked`` as JSON: with status 200 if
    there is a score, 422 for unusable input, 503 for none. The engine joins the model calls of requests in batches, so
    no
    request waits for a batch to fill. Replicas are added while each has more than half of ``concurrent_requests`` to
    do.

    Args:
        load: Loads the engine of a replica.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.
        min_replicas: Replicas at least, 0 or more.
        max_replicas: Replicas at most, 1 or more.
        concurrent_requests: Requests that a replica works on at a time, at most, 1 or more.
        num_cpus: Processors of a replica.
        num_gpus: GPUs of a replica.

    Returns:
        The application.
    """
    deployment = ray.serve.deployment(
        ScoreDeployment,
        name="groundwire",
        max_ongoing_requests=concurrent_requests,
        autoscaling_config={
            "min_replicas": min_replicas,
            "max_replicas": max_replicas,
            "target_ongoing_requests": max(1, concurrent_requests // 2),
        },
        ray_actor_options={"num_cpus": num_cpus, "num_gpus": num_gpus},
    )
    return deployment.bind(load, metrics, options)


class ScoreDeployment:
    """What ``make_deployment`` deploys."""

    def __init__(self, load: LoadEngine, metrics: Sequence[str] | str | None, options: Options | None) -> None:
        self._checker = Checker(load(), metrics=metrics, options=options)
        self._checker.engine.warmup()

    async def __call__(self, request: Request) -> JSONResponse:
        """Check the response in a request's body."""
        try:
            body = msgspec.json.decode(await request.body(), type=DeploymentRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return JSONResponse({"error": str(error)}, 422)
        checked = await self.check(body.response, body.knowledge, body.history)
        return JSONResponse(checked, 503 if checked["passed"] is None else 200)

    async def check(self, response: str, knowledge: Knowledge, history: Sequence[str] = ()) -> dict[str, Any]:
        """``Checked`` as a dictionary, for callers with a handle."""
        return (await self._checker.acheck(response, knowledge, history)).to_dict()

    def check_health(self) -> None:
        """Raise if the engine stopped; Ray Serve starts another replica then."""
        if not self._checker.engine.core.is_open:
            raise RuntimeError("the engine accepts no more requests")


class DeploymentRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request."""

    response: str
    knowledge: str | list[str]
    history: list[str] = []


def read_part(part: Part, columns: Mapping[str, str]) -> Iterator[Line]:
    """The rows of a part, numbered from 1; of JSON Lines, without lines of spaces alone."""
    path = Path(part.source)
    if path.suffix == ".parquet":
        with parquet.ParquetFile(path) as file:
            rows = _slice_rows(file, part.first, part.rows)
            yield from (check_row(number, row, columns) for number, row in enumerate(rows, 1))
        return
    with path.open("rb") as stream:
        stream.seek(part.offset)
        texts = itertools.islice(split_lines(stream), part.rows)
        for number, text in enumerate(texts, 1):
            if text is None or text.strip():
                yield decode_line(number, text, columns)


def _slice_rows(file: parquet.ParquetFile, first: int, count: int) -> Iterator[dict[str, Any]]:
    """Some rows; only the row groups that have them are read."""
    begin = 0
    for group in range(file.num_row_groups):
        end = begin + file.metadata.row_group(group).num_rows
        if begin < first + count and end > first:
            start = max(first - begin, 0)
            yield from file.read_row_group(group).slice(start, min(end, first + count) - begin - start).to_pylist()
        begin = end


def _list_files(sources: str | Path | Sequence[str | Path]) -> list[Path]:
    paths = [sources] if isinstance(sources, str | Path) else list(sources)
    files: list[Path] = []
    for source in map(Path, paths):
        listed = sorted(path for path in source.iterdir() if path.suffix in SUFFIXES) if source.is_dir() else [source]
        if not listed or not all(path.is_file() and path.suffix in SUFFIXES for path in listed):
            raise InvalidRequest(f"{source} is no file or folder of files that end with {' or '.join(SUFFIXES)}.")
        files += [path.resolve() for path in listed]
    return files


def _plan_parts(files: Sequence[Path], rows_per_part: int) -> Iterator[Part]:
    numbers = itertools.count()
    for path in files:
        if path.suffix == ".parquet":
            with parquet.ParquetFile(path) as file:
                total = file.metadata.num_rows
            offsets = [0] * -(-total // rows_per_part)
        else:
            offsets, total = _find_offsets(path, rows_per_part)
        for index, offset in enumerate(offsets):
            first = index * rows_per_part
            yield Part(next(numbers), str(path), first, min(rows_per_part, total - first), offset)


def _find_offsets(path: Path, lines_per_part: int) -> tuple[list[int], int]:
    """The bytes before every part of a file of lines, and the number of its lines."""
    offsets, total, position = [], 0, 0
    with path.open("rb") as stream:
        for line in stream:
            if total % lines_per_part == 0:
                offsets.append(position)
            total += 1
            position += len(line)
    return offsets, total


def _check_plan(folder: Path, plan: FolderPlan) -> None:
    """Write the plan of a new folder; InvalidRequest if the folder has another one."""
    path = folder / PLAN
    if path.is_file():
        before = msgspec.json.decode(path.read_bytes(), type=FolderPlan)
        for field in FolderPlan.__struct_fields__:
            old, new = getattr(before, field), getattr(plan, field)
            if old != new:
                raise InvalidRequest(
                    f"{folder} has results with another {field}: {old!r:.500}. Now it is {new!r:.500}. Choose another "
                    "folder, or remove this one."
                )
        return
    if any(not entry.name.startswith(".") for entry in folder.iterdir()):
        raise InvalidRequest(f"{folder} has files that are no results; choose another folder.")
    partial = folder / f".{PLAN}.partial"
    partial.write_bytes(msgspec.json.encode(plan))
    partial.replace(path)


def _describe_engine(load: LoadEngine, metrics: Sequence[str] | str | None, options: Options | None) -> str:
    with load() as engine:
        return engine.plan(metrics, options).signature


def _encode_id(line: Line) -> str | None:
    value = (line.row or {}).get("id")
    return None if value is None else msgspec.json.encode(value).decode()
