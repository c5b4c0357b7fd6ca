"""The head of a language model with a large vocabulary, run over one stripe of its table after another.

What is read of a mapped file stays resident: of BLOOM-560m's int8 table 257 MB, nearly a third of the process. So the
table is mapped here and not by ONNX Runtime, the head is given a few blocks of it at a time, and their pages are given
back before the next ones are touched. They stay in the system's file cache, where the next run finds them. Processor
time of the head for 48 positions, least and median of nine on a busy machine: 231 and 245 ms with everything resident,
239 and 272 with pages given back, 289 and 331 with stripes read into a buffer. Look-ups go the same way, because Linux
maps up to 2 MB around a row: 300 tokens made 215 MB resident.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from groundwire.runtime.bundle import Bundle, Head
from groundwire.runtime.errors import BundleError

from .session import DeviceProfile, Session

STRIPE = 1 << 25
"""Bytes of the table that a run of the graph is given, and that are resident at once."""


class Mapped(NamedTuple):
    """An array in a file that is mapped into memory, for reading alone."""

    array: NDArray[np.uint8]
    """[blocks, rows, d]"""
    file: mmap.mmap
    offset: int
    """Bytes in front of the array."""

    def stripes(self) -> Iterator[slice]:
        """Blocks to read at once, one stripe after another; its pages are given back when the next one is asked for."""
        step = max(1, STRIPE // self.array[0].nbytes)
        for first in range(0, len(self.array), step):
            stripe = slice(first, min(first + step, len(self.array)))
            yield stripe
            self.give_back(stripe)

    def give_back(self, blocks: slice) -> None:
        """Let the pages of some blocks go, where the platform can; whoever reads them gets them again."""
        if hasattr(self.file, "madvise"):
            size = self.array[0].nbytes
            first, end = self.offset + blocks.start * size, self.offset + blocks.stop * size
            first -= first % mmap.PAGESIZE
            self.file.madvise(mmap.MADV_DONTNEED, first, end - first)


class ChunkedHead:
    """What states say about one token each, as the one graph of a smaller language model answers."""

    def __init__(self, session: Session, table: Mapped) -> None:
        self._session = session
        self._table = table

    @classmethod
    def load(cls, bundle: Bundle, record: Head, profile: DeviceProfile) -> ChunkedHead:
        """Open the graph and map the table; BundleError when the file has no such place."""
        session = Session.load(bundle.file(record.graph), profile)
        return cls(session, mapped(bundle, record))

    def log_probs(self, hidden: ort.OrtValue, targets: NDArray[np.int64]) -> NDArray[np.float32]:
        """The log-probability [N] of the token ``targets`` [N] behind the states ``hidden`` [N, d]."""
        asked = {"hidden": hidden, "targets": self._session.value(targets)}
        found = []
        for stripe in self._table.stripes():
            feeds = {"table": self._table.array[stripe], "blocks": np.arange(stripe.start, stripe.stop)}
            values = {name: self._session.value(array) for name, array in feeds.items()}
            found.append(self._session.run_values({**asked, **values})["parts"].numpy())
        return folded(np.concatenate(found))

    def words(self, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The rows [..., d] of the tokens ``ids`` [...], which a graph without the table is given."""
        _, rows, width = self._table.array.shape
        found = np.zeros((*ids.shape, width), np.uint8)
        for stripe in self._table.stripes():
            inside = (stripe.start * rows <= ids) & (ids < stripe.stop * rows)
            found[inside] = self._table.array[stripe].reshape(-1, width)[ids[inside] - stripe.start * rows]
        return found


def folded(parts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-probabilities [N] from the log-sum of each block's logits and the target's logit, [blocks, 2, N].

    ``logaddexp`` takes block after block, position by position, whatever N is: the sum of ``np.add`` would be pairwise
    for one position and not for several.
    """
    with np.errstate(invalid="ignore"):  # states that are no numbers, which the caller reports
        normal = np.logaddexp.reduce(parts[:, 0], axis=0, dtype=np.float64)
        values: NDArray[np.float32] = (parts[:, 1].max(axis=0) - normal).astype(np.float32)
    return values


def mapped(bundle: Bundle, record: Head) -> Mapped:
    """The table of ``record``; BundleError when it is not listed, not there, or shorter than its record says."""
    path = bundle.file(record.file)
    size, length = path.stat().st_size, prod(record.shape)
    if min(record.offset, *record.shape) < 0 or not 0 < length <= size - record.offset:
        raise BundleError(
            f"{path} has {size} bytes and holds no table of {record.shape} bytes behind byte {record.offset}, as the "
            "manifest says. Restore the bundle, or export it again."
        )
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(content, np.uint8, length, record.offset).reshape(record.shape)
    return Mapped(array, content, record.offset)
