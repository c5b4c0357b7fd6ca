"""The runs, rows and tokens of every graph inside a block."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from groundwire.runtime.ort.session import Session

TOKENS = frozenset({"input_ids", "tokens"})
"""Names of token inputs."""


class Work(msgspec.Struct):
    """What one graph did."""

    runs: int = 0
    tokens: int = 0
    """Size of its token input, with padding; a decoder reads a token for each beam and step."""
    rows: int = 0
    """Rows of its token input: windows of an encoder."""


@contextmanager
def counting() -> Iterator[dict[str, Work]]:
    """Count the runs of every graph of this process until the block ends."""
    works: dict[str, Work] = {}
    lock = threading.Lock()

    def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(session: Session, feeds: Mapping[str, Any], *rest: Any, **named: Any) -> Any:
            read = next(value for name, value in feeds.items() if name in TOKENS) if TOKENS & feeds.keys() else None
            with lock:
                work = works.setdefault(session._name, Work())
                work.runs += 1
                shape = (0,) if read is None else _find_shape(read)
                work.rows += shape[0]
                work.tokens += math.prod(shape)
            return method(session, feeds, *rest, **named)

        return counted

    originals = {name: getattr(Session, name) for name in ("run", "run_values")}
    for name, method in originals.items():
        setattr(Session, name, wrap(method))
    try:
        yield works
    finally:
        for name, method in originals.items():
            setattr(Session, name, method)


def _find_shape(value: Any) -> tuple[int, ...]:
    shape = value.shape() if callable(getattr(value, "shape", None)) else value.shape
    return tuple(int(side) for side in shape)
