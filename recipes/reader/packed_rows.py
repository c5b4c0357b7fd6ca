"""Rows as arrays of small numbers: what a host without the training sets, a tokenizer or a network trains from."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..common.loop import Row
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


class PackedRows:
    """Groups of rows in arrays."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays
        self._starts = {
            name: np.concatenate([[0], np.cumsum(arrays[f"{name}_length"], dtype=np.int64)]) for name in LISTS
        }
        self.groups = len(arrays[HEAD]) // GROUP

    @classmethod
    def read(cls, folder: Path) -> PackedRows:
        """All ``rows-*.npz`` of a directory; ValueError for none."""
        files = sorted(folder.glob("rows-*.npz"))
        if not files:
            raise ValueError(f"{folder} has no rows-*.npz; write them with the command pack-rows.")
        parts = [np.load(file) for file in files]
        return cls({name: np.concatenate([part[name] for part in parts]) for name in parts[0].files})

    def make(self, index: int, _: random.Random) -> tuple[Row, Row]:
        """The rows of a group."""
        return self._row(GROUP * index), self._row(GROUP * index + 1)

    def _row(self, index: int) -> Row:
        lists = {
            name: self._arrays[name][self._starts[name][index] : self._starts[name][index + 1]].astype(np.int64)
            for name in LISTS
        }
        ids = lists["input_ids"]
        lists["token_type_ids"] = (np.cumsum(ids == SEPARATOR) - (ids == SEPARATOR) > 0).astype(np.int64)
        lists["attention_mask"] = np.ones_like(ids)
        for name in (TOKEN_HEAD, SENTENCE_HEAD):
            lists[name][lists[name] == NONE] = IGNORED
        row: Row = {name: values.tolist() for name, values in lists.items()}
        for head in HEADS:
            label = int(self._arrays[head][index])
            row[head] = [IGNORED if label == NONE else label]
        return row


HEAD = next(iter(HEADS))


def pack_rows(rows: Iterable[Row]) -> dict[str, Array]:
    """The arrays of rows, groups in order."""
    listed = list(rows)
    arrays: dict[str, Array] = {}
    for name, kind in LISTS.items():
        values = [_store(row[name]) for row in listed]
        arrays[name] = np.concatenate(values).astype(kind)
        arrays[f"{name}_length"] = np.array([len(value) for value in values], np.uint16)
    for head in HEADS:
        arrays[head] = _store([row[head][0] for row in listed]).astype(np.int8)
    return arrays


def _store(values: Sequence[int]) -> Array:
    array = np.array(values, np.int64)
    return np.where(array == IGNORED, NONE, array)
