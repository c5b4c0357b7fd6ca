"""Trains from a pack; it imports only torch, numpy, transformers and safetensors beside the code of the pack."""

from __future__ import annotations

import argparse
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

PART_MIB = 15


def main(arguments: list[str] | None = None) -> None:
    """Train the reader of a pack, then the small model, and write the weights of both in parts."""
    parser = argparse.ArgumentParser(description="Train the reader from a pack, then a small model that imitates it.")
    parser.add_argument("pack", type=Path, help="directory with weights, configurations and rows")
    parser.add_argument("out", type=Path, help="directory for the trained weights and the log")
    parser.add_argument("--seconds", type=float, default=300.0, help="for the reader")
    parser.add_argument("--student-seconds", type=float, default=0.0, help="for the small model; 0 leaves it out")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=8e-5)
    parser.add_argument("--student-lr", type=float, default=2e-4)
    parser.add_argument("--random", action="store_true", help="start from random weights, to try the pack")
    options = parser.parse_args(arguments)
    _provide_rich()
    _train(options)


def _train(options: argparse.Namespace) -> None:
    import torch
    from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

    from ..common.loop import select_device
    from ..compact.multitask_model import HEADS, MultitaskNLI
    from . import pack, timed
    from .fused import HalfOptimizer, fuse_attention
    from .model import Reader
    from .packed_rows import ArrivingRows, read_held

    torch.manual_seed(13)
    device = select_device()
    rows, held = ArrivingRows(options.pack, device), read_held(options.pack, device)
    options.out.mkdir(parents=True, exist_ok=True)
    print("Training on", device, "measured on", ", ".join(sorted(held)) or "nothing", flush=True)

    reader = Reader(MPNetModel(MPNetConfig.from_json_file(options.pack / "reader.json"), add_pooling_layer=False))
    if not options.random:
        reader.load_state_dict(pack.unpack_weights(options.pack, pack.READER))
    reader.to(device).train()
    fuse_attention(reader)
    optimizer = HalfOptimizer(reader, _is_trained, options.lr, weight_decay=0.01)
    batches = rows.make_batches(options.batch, seed=13)
    log = options.out / pack.LOGS[pack.READER]
    compute = partial(timed.compute_reader_loss, reader)
    check = partial(timed.measure_held, reader, held, options.batch)
    steps = timed.train_for(options.seconds, batches, compute, optimizer, log, check)
    print(steps, "steps of the reader; files of rows and how often each was begun:", dict(rows.times), flush=True)
    trained = {name: value for name, value in optimizer.state_dict().items() if _is_trained(name)}
    pack.write_halves(trained, options.out, pack.TRAINED_READER, PART_MIB * 2**20)
    pack.write_halves(optimizer.average_dict(), options.out, pack.AVERAGED_READER, PART_MIB * 2**20)

    if options.student_seconds:
        student = MultitaskNLI(BertModel(BertConfig.from_json_file(options.pack / "student.json")), HEADS)
        if not options.random:
            student.load_state_dict(pack.unpack_weights(options.pack, pack.STUDENT))
        student.to(device).train()
        optimizer = HalfOptimizer(student, lambda name: "embeddings" not in name, options.student_lr, 0.01)
        imitate = partial(timed.compute_imitation_loss, student, reader.eval())
        log = options.out / pack.LOGS[pack.STUDENT]
        steps = timed.train_for(options.student_seconds, batches, imitate, optimizer, log)
        print(steps, "steps of the small model", flush=True)
        trained = {name: value for name, value in optimizer.state_dict().items() if "embeddings" not in name}
        pack.write_halves(trained, options.out, pack.TRAINED_STUDENT, PART_MIB * 2**20)


def _is_trained(name: str) -> bool:
    return "embeddings." not in name and "relative_attention_bias" not in name


def _provide_rich() -> None:
    """Put an empty module in the place of rich, which shows progress on terminals, where it is not installed."""
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        names = ("BarColumn", "MofNCompleteColumn", "Progress", "TextColumn", "TimeRemainingColumn")
        progress: Any = types.ModuleType("rich.progress")
        console: Any = types.ModuleType("rich.console")
        progress.__dict__.update(dict.fromkeys(names))
        console.Console = None
        sys.modules |= {"rich": types.ModuleType("rich"), "rich.progress": progress, "rich.console": console}


if __name__ == "__main__":
    main()
