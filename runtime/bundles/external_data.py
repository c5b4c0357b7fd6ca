"""The files that an ONNX graph keeps its weights in, read off the graph without loading it.

ONNX Runtime opens whatever file a tensor of a graph names. So the names are read first, with the few fields of ONNX's
protobuf messages that lead to them (onnx.proto, version 1.23).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from ..errors import BundleError
from .protobuf import Buffer, iterate_fields

_NESTED: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""By message: the numbers of the fields that are followed, and what they hold. ``entry`` is a key with its value."""
_KEY = b"location"


def find_external_files(path: Path) -> frozenset[str]:
    """The locations of external data that the graph at ``path`` names; BundleError when it is not an ONNX graph."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return frozenset(_find(data, 0, len(data), "model"))
    except (ValueError, IndexError, OSError) as error:
        raise BundleError(
            f"{path} cannot be loaded: it is no ONNX graph ({error}). Run `groundwire bundle verify {path.parent}`; "
            "restore the file or export the bundle again."
        ) from error


def _find(data: Buffer, start: int, end: int, kind: str) -> Iterator[str]:
    waiting = [(start, end, kind)]
    while waiting:
        start, end, kind = waiting.pop()
        nested = _NESTED[kind]
        for number, begin, stop in iterate_fields(data, start, end):
            inner = nested.get(number)
            if inner == "entry":
                entry = {number: data[a:b] for number, a, b in iterate_fields(data, begin, stop)}
                if entry.get(1) == _KEY:
                    yield entry.get(2, b"").decode()
            elif inner is not None and data.find(_KEY, begin, stop) >= 0:  # most messages have none, and are not read
                waiting.append((begin, stop, inner))
