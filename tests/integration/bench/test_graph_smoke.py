"""The benchmark of knowledge graphs runs at a tiny size and checks its answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench import graph
from bench.support.common import WrongAnswer


def test_graph(tmp_path: Path) -> None:
    parts = tmp_path / "data"
    parts.mkdir()
    rows = graph.synthetic(tiny=True)
    for number, part in enumerate(("train", "dev", "test")):
        lines = "".join(json.dumps(row) + "\n" for row in rows[number::3])
        (parts / f"fb15k237_{part}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    graph.main(data=parts, tiny=True, out=tmp_path / "graph.json")
    made, joined = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))["results"]
    assert (made["name"], joined["name"]) == ("made", "FB15k-237")
    for measured in (made, joined):
        assert (measured["triples"], measured["entities"]) == (3000, 300)
        assert measured["linked"] == 1
        assert measured["peak_mb"] > measured["graph_mb"] > 0
        assert measured["two_hops"]["repeats"] == measured["two_hops_scipy"]["repeats"] == 20


def test_a_wrong_neighbourhood_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph.Dictionaries, "two_hops", lambda self, entity: [])
    with pytest.raises(WrongAnswer, match="Dictionaries finds other triples around"):
        graph.main(data=tmp_path, tiny=True)
