"""How an engine is loaded, besides its bundle and its device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from groundwire.runtime.arguments import check_integer, check_path, check_weights
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.kserve.endpoint import Backend, Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How an engine is loaded, besides its bundle, device, threads and further bundles.

    ``Engine(runtime, options)`` reads the first five; the others are about the models that ``Engine.load`` opens.
    """

    calibration: Calibration | str | Path | None = None
    """A calibration, or a file of ``Calibration.save``, in place of the bundle's own."""
    max_waiting: int = 4096
    """Unfinished requests, at most, 1 or more; a further one raises Overloaded."""
    max_waiting_tokens: int | None = None
    """Estimated tokens of the unfinished requests, at most, 1 or more: characters / 4 times metrics. A further request
    raises Overloaded, unless it is alone; bulk work takes half of them at most. None is without bound."""
    cache_bytes: int = 64_000_000
    """Memory of cached model calls and their results, in bytes; 0 caches nothing."""
    tenant_weights: Mapping[str, float] = field(default_factory=dict)
    """Shares of the engine's time by ``Options.tenant`` while requests wait, above 0; 1 for a tenant not named."""
    precision: str | None = None
    """The precision that the bundle must have (``int8``, ``float32``); None takes any."""
    verify: bool = True
    """Whether every file is compared with its digest, about a second for each gigabyte; without it the signature says
    ``unverified``."""
    device_memory_mb: int | None = None
    """MiB of a GPU that all engines of this process take together, at most; None is without bound."""
    strict: bool = False
    """On CUDA, whether encoders and question generation run at one shape each, and language models at one for each
    length, so that no bit of a result depends on what is scored beside it. A CPU needs none of it."""
    backend: Backend = "local"
    """``local``, or ``kserve``: the graphs run on a model server at ``url`` (needs ``groundwire[kserve]``)."""
    url: str | Endpoint | None = None
    """Address of the model server for ``backend="kserve"``; a ``groundwire.runtime.Endpoint`` also has headers and
    timeouts."""
    separate: bool = False
    """Whether a single process that computes is a worker process too, beside this one, as several are: its Python, its
    memory and its end are not this program's."""

    def __post_init__(self) -> None:
        """Check the values that need no bundle; InvalidRequest names the field and what is allowed."""
        if not isinstance(self.calibration, Calibration | None):
            path = check_path("calibration", self.calibration)
            object.__setattr__(self, "calibration", Calibration.load(path))
        object.__setattr__(self, "max_waiting", check_integer("max_waiting", self.max_waiting, 1))
        if self.max_waiting_tokens is not None:
            tokens = check_integer("max_waiting_tokens", self.max_waiting_tokens, 1)
            object.__setattr__(self, "max_waiting_tokens", tokens)
        object.__setattr__(self, "cache_bytes", check_integer("cache_bytes", self.cache_bytes, 0))
        object.__setattr__(self, "tenant_weights", check_weights("tenant_weights", self.tenant_weights or {}))

    @property
    def loaded_calibration(self) -> Calibration | None:
        """The calibration, read from its file."""
        assert not isinstance(self.calibration, str | Path)
        return self.calibration


def check_load_options(options: LoadOptions | None) -> LoadOptions:
    """Return ``options``, the defaults for None; InvalidRequest for anything else."""
    if options is None:
        return LoadOptions()
    if not isinstance(options, LoadOptions):
        raise InvalidRequest(f"options is {type(options).__name__}; pass LoadOptions(…), or None.")
    return options
