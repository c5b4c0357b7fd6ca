"""What an engine does and has done, in numbers."""

from __future__ import annotations

from groundwire.runtime.protocol import CaptureCounts

from .base import Record


class StageStatistics(Record, frozen=True):
    """The batches of one role, or of several that share a graph."""

    batches: int = 0
    calls: int = 0
    ms: float = 0.0
    """Their run times together."""


class EngineStatistics(Record, frozen=True):
    """A snapshot of an engine. What counts since loading only grows."""

    queued: dict[str, int]
    """Requests that wait to be begun, by ``Options.tenant``."""
    active: int
    """Requests that are worked on."""
    waiting_calls: dict[str, int]
    """Model calls of active requests that wait for a batch, by group of roles."""
    running_calls: int
    """Model calls in the batches that run."""
    finished: int
    """Requests that are over, since loading."""
    stopped: dict[str, int]
    """Those of them that were stopped, by status: ``deadline``, ``cancelled``, ``failed``."""
    stages: dict[str, StageStatistics]
    """Since loading, by role; several that a batch served together are joined by ``+``."""
    unfinished: int
    """Requests that are accepted and not over: they wait, are worked on, or are on their way."""
    unfinished_tokens: int
    """Their estimated tokens, which ``LoadOptions.max_waiting_tokens`` bounds."""
    cached_calls: int
    cached_bytes: int
    cache_hits: int
    """Model calls that were answered from the cache, since loading."""
    cache_misses: int
    """Model calls that were not, since loading."""
    configured_processes: int = 1
    """Processes that ``Engine.load`` was asked for."""
    processes: int = 1
    """Processes that compute now; fewer than configured while an ended process is replaced."""
    restarts: int = 0
    """Worker processes that were started in place of others, since loading."""
    captures: CaptureCounts = CaptureCounts()
    """How graphs run on a GPU, since loading; zeros on a CPU."""
