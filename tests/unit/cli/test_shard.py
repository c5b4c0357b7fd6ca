"""``groundwire score`` on parts of an input, on folders, and into Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from groundwire.cli import app
from groundwire.engine import Engine, InvalidRequest
from groundwire.files.reading import read_lines
from groundwire.files.sharding import Shard
from tests.support.fakes import world
from tests.support.usage import usage_error

pyarrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
from pyarrow import parquet  # noqa: E402

ROWS = [
    {"id": number, "response": f"Elvis was born in {1930 + number}.", "knowledge": "Elvis came in 1935."}
    for number in range(11)
]


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world())))


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["score", *args])


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_ids(path: Path) -> Iterator[int]:
    with read_lines(path) as lines:
        yield from (line.row["id"] for line in lines if line.row is not None)


@given(st.lists(st.integers(), max_size=40), st.integers(1, 50))
def test_shards_are_disjoint_complete_and_even(items: list[int], count: int) -> None:
    numbered = list(enumerate(items))
    shards = [list(Shard(number, count).select(iter(numbered))) for number in range(1, count + 1)]
    assert sorted(item for shard in shards for item in shard) == numbered
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1
    assert shards == [list(Shard(number, count).select(iter(numbered))) for number in range(1, count + 1)]


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "-1/8", "1/0", "1/8/2", "a/b", "1/ 8", "1" * 30 + "/8"])
def test_no_shard(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no shard; write NUMBER/COUNT"):
        Shard.parse(text)
    assert "is no shard" in usage_error(run("absent.jsonl", "--shard", text))


def test_the_results_of_all_shards_are_those_of_one_run(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ROWS)
    assert run(str(source), "--out", str(tmp_path / "whole.jsonl")).exit_code == 0
    parts = []
    for number in (1, 2, 3):
        out = tmp_path / f"part{number}.jsonl"
        for _ in range(2):  # the second run has nothing to do
            assert run(str(source), "--out", str(out), "--shard", f"{number}/3").exit_code == 0
        parts += [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    whole = [json.loads(line) for line in (tmp_path / "whole.jsonl").read_text(encoding="utf-8").splitlines()]
    for entry in (*parts, *whole):
        del entry["score"]["timings"]
    assert sorted(parts, key=lambda entry: entry["line"]) == whole


def test_a_limit_ends_the_input(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ROWS)
    lines = run(str(source), "--limit", "3", "--shard", "2/2", "--json").stdout.splitlines()
    assert [json.loads(line)["line"] for line in lines] == [2, 4, 6]


def test_parquet_is_written_when_the_run_is_complete(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [ROWS[0] | {"id": "first"}, *ROWS[1:]])
    out = tmp_path / "scores.parquet"
    for _ in range(2):
        assert run(str(source), "--out", str(out), "--metrics", "nli,overlap").exit_code == 0
        rows = parquet.read_table(out).to_pylist()
        assert [row["line"] for row in rows] == list(range(1, 12))
        assert [row["id"] for row in rows] == ["first", *map(str, range(1, 11))]
        written = [json.loads(line) for line in (tmp_path / "scores.parquet.jsonl").read_text().splitlines()]
        assert [json.loads(row["score"]) for row in rows] == [entry["score"] for entry in written]
        assert [row["overlap"] for row in rows] == [entry["score"]["metrics"]["overlap"]["value"] for entry in written]
        assert {row["status"] for row in rows} == {"scored"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "scores.parquet", "scores.parquet.jsonl"]


def test_an_interrupted_run_writes_no_parquet(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.json", ROWS), tmp_path / "scores.parquet"
    (tmp_path / "scores.parquet.jsonl").write_text(
        '{"line":1,"key":"0","score":{"signature":"other","status":"scored","verdict":{"label":"unknown"},"metrics":{}}}\n'
    )
    assert isinstance(run(str(source), "--out", str(out)).exception, InvalidRequest)
    assert not out.exists()


def test_parquet_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    result = run(str(write(tmp_path / "in.jsonl", ROWS)), "--out", str(tmp_path / "x.parquet"))
    assert "pip install 'groundwire[parquet]'" in usage_error(result)


def test_a_folder_of_parquet_files_is_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, rows in (("b.parquet", ROWS[6:]), ("a.parquet", ROWS[:6])):
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    assert list(read_ids(tmp_path)) == list(range(11))


def save_dataset(folder: Path, *parts: list[dict[str, Any]]) -> Path:
    """What ``Dataset.save_to_disk`` writes."""
    folder.mkdir()
    files = []
    for number, rows in enumerate(parts):
        table = pyarrow.Table.from_pylist(rows)
        files.append({"filename": f"data-{number:05d}-of-{len(parts):05d}.arrow"})
        with pyarrow.ipc.new_stream(folder / files[-1]["filename"], table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_fingerprint": "f", "_split": None}))
    return folder


def test_a_saved_dataset_is_read(tmp_path: Path) -> None:
    folder = save_dataset(tmp_path / "saved", ROWS[:6], ROWS[6:])
    assert list(read_ids(folder)) == list(range(11))
    assert run(str(folder), "--out", str(tmp_path / "out.jsonl")).exit_code == 0


def test_a_dataset_of_the_real_package_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", exc_type=ImportError)
    datasets.Dataset.from_list(ROWS).select(range(1, 11)).save_to_disk(tmp_path / "saved", num_shards=2)
    assert list(read_ids(tmp_path / "saved")) == list(range(1, 11))


def test_folders_that_are_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="a folder without files of JSON"):
        list(read_ids(tmp_path))
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InvalidRequest, match="several splits; choose one of its folders"):
        list(read_ids(tmp_path))
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(InvalidRequest, match=r"state\.json cannot be read"):
        list(read_ids(tmp_path))
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "../x.arrow"}]}')
    with pytest.raises(InvalidRequest, match=r"x\.arrow cannot be read"):
        list(read_ids(tmp_path))
    (tmp_path / "x.arrow").write_bytes(b"no stream")
    with pytest.raises(InvalidRequest, match=r"x\.arrow cannot be read"):
        list(read_ids(tmp_path))
