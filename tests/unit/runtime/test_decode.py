"""Whatever is wrong with JSON from outside, every reader of it raises its own typed error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundwire.engine.schema.results import Request
from groundwire.evaluate.datasets.source import ExampleError, Source
from groundwire.evaluate.statistics.results import Results
from groundwire.repair.kg.files import read_jsonl, read_opendialkg_csv
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import BundleError, InvalidRequest

DEEP = b"[" * 100_000
HOSTILE = {
    "nothing": b"",
    "not UTF-8": b'{"schema": 2, "name": "\xff"}',
    "nested": DEEP,
    "nested in a field": b'{"schema": 2, "schema_": ' + DEEP + b"]" * len(DEEP) + b"}",
    "half a surrogate": b'{"schema": 2, "name": "\\ud800"}',
    "a number without end": b'{"schema": 1' + b"0" * 5000 + b"}",
    "an infinite number": b'{"schema": 1e999}',
    "another type": b"[1]",
}


def open_bundle(path: Path) -> object:
    path.rename(path.with_name(MANIFEST))
    return Bundle.open(path.parent)


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    ("read", "error"),
    [
        (open_bundle, BundleError),
        (Calibration.load, BundleError),
        (Results.load, InvalidRequest),
        (lambda path: Request.from_json(path.read_bytes()), InvalidRequest),
    ],
    ids=["bundle", "calibration", "results", "record"],
)
def test_every_reader_raises_its_own_error(
    tmp_path: Path, read: Callable[[Path], Any], error: type[Exception], raw: bytes
) -> None:
    path = tmp_path / "given.json"
    path.write_bytes(raw)
    with pytest.raises(error):
        read(path)


def test_a_graphs_line_that_is_nested_too_deep_is_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "graph.jsonl"
    path.write_bytes(b'["a", "b", "c"]\n{"x": ' + DEEP + b'\n["d", "e", "f"]\n')
    blocks = list(read_jsonl(path))
    assert [row for block in blocks for row in block.rows] == [("a", "b", "c"), ("d", "e", "f")]
    assert [(line, "nested too deep" in what) for block in blocks for line, what in block.broken] == [(2, True)]


def test_a_dialogues_messages_that_are_nested_too_deep_are_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "opendialkg.csv"
    path.write_bytes(b'Messages\n"[{""metadata"": {""path"": ' + DEEP + b'"\n"[]"\n')
    (broken,) = (what for block in read_opendialkg_csv(path) for _, what in block.broken)
    assert "Messages is not a JSON list of messages: brackets are nested too deep" in broken


def test_an_examples_line_that_is_nested_too_deep_is_a_broken_example(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(b'{"a": ' + DEEP + b"}\n{}\n")
    entries = list(Source(path).entries())
    assert isinstance(entries[0][1], ExampleError)
    assert entries[1] == ("line 2", {})
