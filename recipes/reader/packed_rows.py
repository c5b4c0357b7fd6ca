"""Rows as arrays of small numbers: what a host without the training sets, a tokenizer or a network trains from."""

from __future__ import annotations

import io
import lzma
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from ..common.loop import Batch, Row
from ..compact.multitask_model import HEADS, IGNORED, TOKEN_HEAD
from .model import SENTENCE_HEAD, SENTENCE_IDS

Array: TypeAlias = np.ndarray[Any, Any]
LISTS = {"input_ids": np.uint16, TOKEN_HEAD: np.int8, SENTENCE_IDS: np.uint8, SENTENCE_HEAD: np.int8}
"""The lists of a row that are stored, and their types; token types and the mask follow from the ids."""
NONE = -1
"""Stored for ``IGNORED``, which does not fit a byte's half."""
SEPARATOR = 102
"""BERT's [SEP], after which the second text begins."""
GROUP = 2
SPAN = 24
"""Batches whose groups are sorted by length together."""
WIDTH_STEP = 16
"""Widths of batches are its multiples."""
ROWS, HELD = "rows-*.npz.xz", "held-*.npz.xz"
"""The files of a pack to train on, and those to measure on."""
DICTIONARY_BYTES = 512 * 2**20
"""How far back the compression looks for the same knowledge."""


class PackedRows:
    """Groups of rows in tensors on a device, and batches of them."""

    def __init__(self, arrays: dict[str, Array], device: torch.device) -> None:
        self._values = {name: torch.from_numpy(_load(arrays[name])).to(device) for name in LISTS}
        lengths = {name: arrays[f"{name}_length"].astype(np.int64) for name in LISTS}
        self._lengths = {name: torch.from_numpy(length).to(device) for name, length in lengths.items()}
        self._starts = {name: length.cumsum(0) - length for name, length in self._lengths.items()}
        self._labels = {name: torch.from_numpy(_load(arrays[name]).astype(np.int64)).to(device) for name in HEADS}
        self._widths = {name: length.reshape(-1, GROUP).max(1) for name, length in lengths.items()}
        self._device = device
        self.groups = len(self._widths["input_ids"])

    @classmethod
    def read(cls, path: Path, device: torch.device) -> PackedRows:
        """The rows of a file."""
        arrays = np.load(io.BytesIO(lzma.decompress(path.read_bytes())))
        return cls({name: arrays[name] for name in arrays.files}, device)

    def make_batches(self, batch: int, seed: int) -> Iterator[Batch]:
        """Yield batches of ``batch`` rows, groups of similar length together, until each group that fills one was read.

        ValueError when the groups do not fill a batch.
        """
        size = batch // GROUP
        if self.groups < size:
            raise ValueError(
                f"{self.groups} groups do not fill a batch of {batch} rows; give more, or a smaller batch."
            )
        random_order = np.random.default_rng(seed)
        order = random_order.permutation(self.groups)
        for first in range(0, self.groups - size + 1, size * SPAN):
            span = order[first : first + size * SPAN]
            span = span[np.argsort(self._widths["input_ids"][span], kind="stable")]
            starts = random_order.permutation(len(span) // size) * size
            for start in starts:
                yield self.collate(span[start : start + size])

    def list_batches(self, batch: int) -> Iterator[Batch]:
        """Yield all rows once, shortest first."""
        order = np.argsort(self._widths["input_ids"], kind="stable")
        for start in range(0, self.groups, batch // GROUP):
            yield self.collate(order[start : start + batch // GROUP])

    def collate(self, groups: Array) -> Batch:
        """The rows of the groups of these numbers, padded."""
        numbers = torch.from_numpy((groups[:, None] * GROUP + np.arange(GROUP)).ravel()).to(self._device)
        width = -(-int(self._widths["input_ids"][groups].max()) // WIDTH_STEP) * WIDTH_STEP
        sentences = max(1, int(self._widths[SENTENCE_HEAD][groups].max()))
        ids = self._gather("input_ids", numbers, width, 0)
        inside = torch.arange(width, device=self._device) < self._lengths["input_ids"][numbers][:, None]
        after = (ids == SEPARATOR).cumsum(-1) - (ids == SEPARATOR).long() > 0
        return {
            "input_ids": ids,
            "attention_mask": inside.long(),
            "token_type_ids": (after & inside).long(),
            TOKEN_HEAD: self._gather(TOKEN_HEAD, numbers, width, IGNORED),
            SENTENCE_IDS: self._gather(SENTENCE_IDS, numbers, width, 0),
            SENTENCE_HEAD: self._gather(SENTENCE_HEAD, numbers, sentences, IGNORED),
            **{name: labels[numbers] for name, labels in self._labels.items()},
        }

    def _gather(self, name: str, numbers: torch.Tensor, width: int, padding: int) -> torch.Tensor:
        values, columns = self._values[name], torch.arange(width, device=self._device)
        index = (self._starts[name][numbers][:, None] + columns).clamp(max=len(values) - 1)
        table = values[index].long()
        return table.masked_fill(columns >= self._lengths[name][numbers][:, None], padding)


class ArrivingRows:
    """The files of rows of a directory, which may get more of them while somebody trains on those that are there.

    A file has to arrive whole: copy it under another name, and rename it.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        self._folder = folder
        self._device = device
        self.times: Counter[str] = Counter()
        """How often each file was begun."""

    def make_batches(self, batch: int, seed: int) -> Iterator[Batch]:
        """Yield batches of ``batch`` rows for ever, file after file: the next is one that was read least often.

        The next file is read from the disk while its predecessor is trained on.

        Raises:
            ValueError: If there is no file yet, or one does not fill a batch.
        """
        with ThreadPoolExecutor(1) as executor:
            name = self._choose()
            ahead = executor.submit(PackedRows.read, self._folder / name, self._device)
            while True:
                rows, times = ahead.result(), self.times[name]
                self.times[name] += 1
                name = self._choose()
                ahead = executor.submit(PackedRows.read, self._folder / name, self._device)
                yield from rows.make_batches(batch, seed + times)

    def _choose(self) -> str:
        names = [path.name for path in self._folder.glob(ROWS)]
        if not names:
            raise ValueError(f"{self._folder} has no {ROWS}; write them with the command pack.")
        return min(names, key=lambda name: (self.times[name], name))


def read_held(folder: Path, device: torch.device) -> dict[str, PackedRows]:
    """The rows of a directory that are kept for measuring, by source."""
    return {path.name.split(".")[0].removeprefix("held-"): PackedRows.read(path, device) for path in folder.glob(HELD)}


def pack_rows(rows: Iterable[Row]) -> dict[str, Array]:
    """The arrays of rows, groups in order; each row is packed at once, because lists of numbers take much memory."""
    values = {name: array(np.dtype(kind).char) for name, kind in LISTS.items()}
    lengths = {name: array("H") for name in LISTS}
    labels = {head: array("b") for head in HEADS}
    for row in rows:
        for name in LISTS:
            values[name].extend(_store(row[name]))
            lengths[name].append(len(row[name]))
        for head in HEADS:
            labels[head].extend(_store(row[head]))
    named = {**values, **{f"{name}_length": length for name, length in lengths.items()}, **labels}
    return {name: np.array(column) for name, column in named.items()}


def compress_rows(arrays: dict[str, Array]) -> bytes:
    """What ``PackedRows.read`` reads."""
    file = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez(file, **named)
    data = file.getvalue()
    # The compression takes eleven times the memory of its dictionary.
    chain = {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": min(DICTIONARY_BYTES, 1 << len(data).bit_length())}
    return lzma.compress(data, filters=[chain])


def _store(values: Sequence[int]) -> list[int]:
    return [NONE if value == IGNORED else value for value in values]


def _load(values: Array) -> Array:
    if values.dtype == np.uint16:
        return values.astype(np.int32)
    if values.dtype == np.int8:
        return np.where(values == NONE, IGNORED, values.astype(np.int16))
    return values
