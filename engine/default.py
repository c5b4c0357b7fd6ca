"""The engine of ``groundwire.score``: one for each process, loaded at the first use."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence

from groundwire.runtime.errors import InvalidRequest

from .api import Engine, Knowledge, Metrics, Triples
from .schema.options import Options
from .schema.results import Score

_lock = threading.Lock()
_default: list[Engine] = []
_inherited: list[Engine] = []
"""The default engines of the processes that this one was forked from: freeing their models would wait for threads that
do not exist here."""


def default_engine() -> Engine:
    """The engine that ``score`` uses, loaded at the first use and closed when the process ends.

    The environment chooses it: ``GROUNDWIRE_BUNDLE`` (default: compact), ``GROUNDWIRE_DEVICE`` (auto) and
    ``GROUNDWIRE_THREADS`` (all usable processors). A forked process loads its own.
    """
    with _lock:
        if not _default:
            _default.append(_load_from_environment())
            atexit.register(_default[0].close)
        return _default[0]


def _load_from_environment() -> Engine:
    """The engine that the environment variables describe; InvalidRequest when one is not usable."""
    threads = os.environ.get("GROUNDWIRE_THREADS") or None
    if threads is not None and not threads.isdecimal():
        raise InvalidRequest(f"GROUNDWIRE_THREADS={threads!r} is not a number; give 1 or more, or leave it unset.")
    return Engine.load(
        os.environ.get("GROUNDWIRE_BUNDLE") or "compact",
        os.environ.get("GROUNDWIRE_DEVICE") or "auto",
        threads=None if threads is None else int(threads),
    )


def _forget_default() -> None:
    """In a forked process: another thread may have held the lock, and the engine's threads do not exist."""
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_default)
    _default.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_default)


def score(
    response: str,
    knowledge: Knowledge = (),
    *,
    history: Sequence[str] = (),
    triples: Triples = (),
    metrics: Metrics = None,
    options: Options | None = None,
) -> Score:
    """Score one response on the default engine; see ``Engine.score``.

    Args:
        response: The text to check, in English.
        knowledge: The text that the response should rest on, one text or several passages.
        history: The utterances before the response, oldest first.
        triples: Facts of a knowledge graph; without ``knowledge`` they are the knowledge.
        metrics: Names of metrics or groups; None takes the metrics of the verdict.
        options: Settings of metrics and verdict; None takes the defaults.

    Returns:
        The score. Its status, never an exception, says what happened to a valid request.

    Raises:
        BundleError: The default bundle cannot be loaded.
        InvalidRequest: An argument is not usable.
        Overloaded: As many requests, or tokens, are unfinished as the engine accepts.
    """
    return default_engine().score(
        response, knowledge, history=history, triples=triples, metrics=metrics, options=options
    )
