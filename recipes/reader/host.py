"""Trains from a pack; it imports only torch, numpy, transformers and safetensors beside the code of the pack."""

from __future__ import annotations

import argparse
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any


def main(arguments: list[str] | None = None) -> None:
    """Run ``train PACK RUN`` or ``export RUN OUT``."""
    parser = argparse.ArgumentParser(description="Train the reader from a pack.")
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train, or continue")
    train.add_argument("pack", type=Path)
    train.add_argument("run", type=Path)
    train.add_argument("--steps", type=int, default=4000)
    train.add_argument("--batch", type=int, default=64)
    train.add_argument("--lr", type=float, default=4e-5)
    train.add_argument("--decay", type=float, default=0.2)
    train.add_argument("--layers", type=int, default=12)
    train.add_argument("--frozen", type=int, default=4)
    train.add_argument("--checkpoint-s", type=float, default=120.0)
    export = commands.add_parser("export", help="write the trained weights in parts")
    export.add_argument("run", type=Path)
    export.add_argument("out", type=Path)
    export.add_argument("--frozen", type=int, default=4)
    export.add_argument("--part-mib", type=int, default=15)
    options = parser.parse_args(arguments)
    _provide_rich()
    if options.command == "train":
        _train(options)
    else:
        _export(options)


def _train(options: argparse.Namespace) -> None:
    from .pack import unpack_weights
    from .recipe import SCHEDULE, ReaderOptions, train_packed_reader

    start = options.run / "start.pt"
    if not start.exists():
        unpack_weights(options.pack, start)
    schedule = replace(
        SCHEDULE, steps=options.steps, batch=options.batch, decay=options.decay, checkpoint_s=options.checkpoint_s
    )
    settings = ReaderOptions(options.pack, options.layers, options.frozen, start, options.lr)
    train_packed_reader(options.pack, options.run, schedule, settings)


def _export(options: argparse.Namespace) -> None:
    from .pack import pack_weights

    layers = [f"backbone.encoder.layer.{index}." for index in range(options.frozen)]
    skip = ",".join(["backbone.embeddings.", *layers])
    config = options.run / "config.json"
    pack_weights(options.run / "checkpoint.pt", options.out, config, options.part_mib * 2**20, skip)


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
