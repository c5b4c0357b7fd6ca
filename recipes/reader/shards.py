"""Draws rows into files: what a host without the training sets trains on, made anew from nothing by its seed."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ..common.loop import Row
from .feed import MakeGroup, call_group, start_worker
from .pack import PART_BYTES
from .packed_rows import GROUP, compress_rows, pack_rows

SHARD_GROUPS = 50_000
"""Groups of a file of rows: about five MiB, and four minutes of a core."""
HELD_SOURCES, HELD_GROUPS = ("worlds", "written", "tools", "public", "minimal"), 400
"""What is measured on while a model trains: of each source so many groups, of texts that no training row has."""


def write_rows(make_group: MakeGroup, path: Path, indices: range, seed: int = 13, part_bytes: int = PART_BYTES) -> Path:
    """Draw the groups of these indices and write them to ``path``; other indices are other groups.

    Raises:
        ValueError: If the file is longer than ``part_bytes``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)

    def draw() -> Iterator[Row]:
        for index in indices:
            group = make_group(index, random.Random(seed * 15_485_863 + index))
            assert len(group) == GROUP
            yield from group

    data = compress_rows(pack_rows(draw()))
    if len(data) > part_bytes:
        raise ValueError(f"{path} has {len(data)} bytes, more than {part_bytes}; write fewer groups a file.")
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.rename(path)
    return path


def write_held(data: Path, out: Path, groups: int = HELD_GROUPS) -> Iterator[Path]:
    """Draw groups of each source of ``HELD_SOURCES`` that are kept for measuring; files that are there are kept.

    Args:
        data: Directory with the training sets.
        out: Directory of the files.
        groups: Of each source.
    """
    missing = [source for source in HELD_SOURCES if not name_held(out, source).is_file()]
    if missing:
        from .examples import ReaderExamples

        examples = ReaderExamples.read(data, "dev")
    for source in missing:
        yield write_rows(partial(_draw, examples.draw, source), name_held(out, source), range(groups))


def _draw(
    draw: Callable[[str, random.Random], Sequence[Row]], source: str, _: int, rng: random.Random
) -> Sequence[Row]:
    return draw(source, rng)


def write_shards(
    build: Callable[[], MakeGroup], out: Path, rows: int, workers: int = 1, shard: int = SHARD_GROUPS
) -> Iterator[Path]:
    """Draw ``rows`` rows to files of ``shard`` groups each, and yield each path; files that are there are kept.

    So a run that was stopped goes on where it was, and the same rows are drawn again from nothing.

    Args:
        build: Makes the function that draws a group, once in each process.
        out: Directory of the files.
        rows: Rows in all; the last file may have more.
        workers: Processes that draw.
        shard: Groups of a file.
    """
    firsts = range(0, -(-rows // GROUP), shard)
    missing = [first for first in firsts if not name_rows(out, first).is_file()]
    with multiprocessing.get_context("spawn").Pool(workers, start_worker, (build,)) as pool:
        yield from pool.imap(partial(_write_shard, out, shard), missing)


def name_rows(out: Path, first: int) -> Path:
    """The file of the groups from ``first`` on."""
    return out / f"rows-{first:09}.npz.xz"


def name_held(out: Path, source: str) -> Path:
    """The file of the groups of ``source`` that are measured on."""
    return out / f"held-{source}.npz.xz"


def _write_shard(out: Path, groups: int, first: int) -> Path:
    return write_rows(call_group, name_rows(out, first), range(first, first + groups))
