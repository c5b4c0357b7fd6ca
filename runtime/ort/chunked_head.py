"""The head of a language model with a large vocabulary, run over one chunk of its table after another.

Pages that were read from a mapped file stay resident: of BLOOM-560m's int8 table 257 MB, nearly a third of the process.
So the table is mapped here and not by ONNX Runtime, the head gets a few blocks of it at a time, and their pages are
released before the next ones are read. They stay in the system's file cache for the next run. Processor time of the
head for 48 positions, least and median of nine on a busy machine: 231 and 245 ms with everything resident, 239 and 272
with pages released, 289 and 331 with chunks read into a buffer. Row look-ups release pages too, because Linux maps up
to 2 MB around a row: 300 tokens made 215 MB resident.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import Head
from ..errors import BundleError, DeviceError
from .session import DeviceProfile, Session

CHUNK_BYTES = 1 << 25
"""Bytes of the table that one run of the graph gets, and that are resident at once."""


class MappedTable(NamedTuple):
    """An array in a file that is mapped into memory, read-only."""

    array: NDArray[np.uint8]
    """[blocks, rows, d]"""
    file: mmap.mmap
    offset: int
    """Bytes before the array."""

    def iterate_chunks(self) -> Iterator[slice]:
        """Yield the blocks of one chunk after another; the pages of a chunk are released after its use."""
        step = max(1, CHUNK_BYTES // self.array[0].nbytes)
        for first in range(0, len(self.array), step):
            chunk = slice(first, min(first + step, len(self.array)))
            yield chunk
            self.release_pages(chunk)

    def release_pages(self, blocks: slice) -> None:
        """Release the resident pages of some blocks, where the platform can; reading the blocks maps them again."""
        if hasattr(self.file, "madvise"):
            size = self.array[0].nbytes
            first, end = self.offset + blocks.start * size, self.offset + blocks.stop * size
            first -= first % mmap.PAGESIZE
            self.file.madvise(mmap.MADV_DONTNEED, first, end - first)


class ChunkedHead:
    """Log-probabilities from hidden states, in a graph that reads the vocabulary's table in chunks."""

    def __init__(self, session: Session, table: MappedTable) -> None:
        self._session = session
        self._table = table

    @classmethod
    def load(cls, bundle: Bundle, record: Head, profile: DeviceProfile) -> ChunkedHead:
        """Open the graph and map the table; BundleError when the file does not hold it, DeviceError on a GPU."""
        if profile.device.kind != "cpu":
            raise DeviceError(
                f"{record.graph} reads its int8 table in chunks from {record.file}, which only the CPU does. Export "
                "the language model with --precision fp16, or use device='cpu'."
            )
        session = Session.load(bundle.file(record.graph), profile)
        return cls(session, map_table(bundle, record))

    def log_probs(self, hidden: ort.OrtValue, targets: NDArray[np.int64]) -> NDArray[np.float32]:
        """The log-probability [N] of the token ``targets`` [N] after the states ``hidden`` [N, d]."""
        inputs = {"hidden": hidden, "targets": self._session.value(targets)}
        parts = []
        for chunk in self._table.iterate_chunks():
            feeds = {"table": self._table.array[chunk], "blocks": np.arange(chunk.start, chunk.stop)}
            values = {name: self._session.value(array) for name, array in feeds.items()}
            parts.append(self._session.run_values({**inputs, **values})["parts"].numpy())
        return combine_parts(np.concatenate(parts))

    def look_up_rows(self, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The rows [..., d] of the tokens ``ids`` [...], an input of the graph that does not hold the table."""
        _, rows, width = self._table.array.shape
        embeddings = np.zeros((*ids.shape, width), np.uint8)
        for chunk in self._table.iterate_chunks():
            inside = (chunk.start * rows <= ids) & (ids < chunk.stop * rows)
            embeddings[inside] = self._table.array[chunk].reshape(-1, width)[ids[inside] - chunk.start * rows]
        return embeddings


def combine_parts(parts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-probabilities [N] from the log-sum-exp of each block's logits and the target's logit, [blocks, 2, N].

    ``logaddexp`` adds block after block for each position, whatever N is; ``np.add`` would sum pairwise for one
    position and not for several.
    """
    with np.errstate(invalid="ignore"):  # states that are not finite, which the caller reports
        normal = np.logaddexp.reduce(parts[:, 0], axis=0, dtype=np.float64)
        values: NDArray[np.float32] = (parts[:, 1].max(axis=0) - normal).astype(np.float32)
    return values


def map_table(bundle: Bundle, record: Head) -> MappedTable:
    """Map the table of ``record``; BundleError when its file is not listed, missing, or too short for the table."""
    path = bundle.file(record.file)
    size, length = path.stat().st_size, prod(record.shape)
    if min(record.offset, *record.shape) < 0 or not 0 < length <= size - record.offset:
        raise BundleError(
            f"{path} has {size} bytes and holds no table of {record.shape} bytes at byte {record.offset}, as the "
            "manifest says. Restore the bundle, or export it again."
        )
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = np.frombuffer(content, np.uint8, length, record.offset).reshape(record.shape)
    return MappedTable(array, content, record.offset)
