"""Writes the results of a run as Parquet, when they are complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from groundwire.runtime.errors import InvalidRequest

from .results_file import translate_write_errors

ROWS = 1000
"""Rows that are in memory at the same time."""


class _Span(msgspec.Struct):
    text: str
    start: int
    end: int
    reason: str


class _Verdict(msgspec.Struct):
    label: str
    probability: float | None = None


class _Metric(msgspec.Struct):
    value: float | None = None


class _Score(msgspec.Struct):
    status: str
    verdict: _Verdict
    metrics: dict[str, _Metric]
    unsupported: tuple[_Span, ...]
    signature: str
    value: float | None = None


class _Line(msgspec.Struct):
    line: int
    score: msgspec.Raw
    id: msgspec.Raw = msgspec.Raw(b"null")


def check_parquet(path: Path) -> None:
    """InvalidRequest without the extra ``parquet``."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise InvalidRequest(f"{path} is Parquet; to write it, run: pip install 'groundwire[parquet]'") from error


def write_parquet(results: Path, out: Path, metrics: Sequence[str]) -> None:
    """Write the file of results that ``groundwire score`` made as Parquet, in the order of the input, in one step.

    Columns are ``line``, ``id`` (a text as it is, other values as JSON), ``status``, ``label``, ``probability``,
    ``value``, one of float64 for each of ``metrics``, ``unsupported`` (structs), ``signature`` and ``score``, the whole
    record as JSON. OutputError if it cannot be written.
    """
    import pyarrow
    from pyarrow import parquet

    texts, floats = ("status", "label", "signature", "score", "id"), ("probability", "value", *metrics)
    span = pyarrow.struct(
        [("text", pyarrow.string()), ("start", pyarrow.int64()), ("end", pyarrow.int64()), ("reason", pyarrow.string())]
    )
    types = {"line": pyarrow.int64(), "unsupported": pyarrow.list_(span)}
    types |= dict.fromkeys(texts, pyarrow.string()) | dict.fromkeys(floats, pyarrow.float64())
    order = ["line", "id", "status", "label", *floats, "unsupported", "signature", "score"]
    schema = pyarrow.schema([(name, types[name]) for name in order])
    partial = out.with_name(f".{out.name}.partial")
    with translate_write_errors(out):
        with parquet.ParquetWriter(partial, schema) as writer:
            rows: list[dict[str, Any]] = []
            for row in _read_rows(results, metrics):
                rows.append(row)
                if len(rows) == ROWS:
                    writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
                    rows.clear()
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
        partial.replace(out)


def _read_rows(results: Path, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows in the order of the input; of several results of a line, the last."""
    decoder, offsets, position = msgspec.json.Decoder(_Line), dict[int, int](), 0
    with results.open("rb") as file:
        for text in file:
            offsets[decoder.decode(text).line] = position
            position += len(text)
        for _, offset in sorted(offsets.items()):
            file.seek(offset)
            line = decoder.decode(file.readline())
            score = msgspec.json.decode(line.score, type=_Score)
            values = {name: result.value for name, result in score.metrics.items()}
            yield {
                "line": line.line,
                "id": _read_id(line.id),
                "status": score.status,
                "label": score.verdict.label,
                "probability": score.verdict.probability,
                "value": score.value,
                **{name: values.get(name) for name in metrics},
                "unsupported": [msgspec.structs.asdict(span) for span in score.unsupported],
                "signature": score.signature,
                "score": bytes(line.score).decode(),
            }


def _read_id(raw: msgspec.Raw) -> str | None:
    name = msgspec.json.decode(raw)
    return name if name is None or isinstance(name, str) else bytes(raw).decode()
