"""Opens the runtime of an engine: in this process, on a model server, or in worker processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from groundwire.runtime.arguments import check_integer
from groundwire.runtime.kserve.endpoint import check_backend
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.device import DeviceChoice
from groundwire.runtime.protocol import Runtime
from groundwire.runtime.resources import usable_cores

from ..schema.load_options import LoadOptions
from .messages import Start
from .runtime import ProcessRuntime

FACTORY = "groundwire.engine.api:Engine.load"
MAX_PROCESSES = 256


def open_runtime(
    bundle: str | Path,
    device: DeviceChoice,
    threads: int | None,
    extra: Sequence[str | Path],
    processes: int,
    options: LoadOptions,
) -> Runtime:
    """Return the runtime that ``Engine.load`` describes, in as many processes as it says; raises as that."""
    memory, strict = options.device_memory_mb, options.strict
    if check_integer("processes", processes, 1, MAX_PROCESSES) > 1 or options.separate:
        each = dataclasses.replace(
            options,
            separate=False,
            cache_bytes=options.cache_bytes // processes,
            device_memory_mb=memory and max(1, memory // processes),
        )
        share = max(1, (threads or usable_cores()) // processes)
        arguments = {"bundle": bundle, "device": device, "threads": share, "extra": tuple(extra), "options": each}
        return ProcessRuntime(processes, Start(FACTORY, arguments))
    if endpoint := check_backend(
        options.backend, options.url, threads=threads, device_memory_mb=memory, strict=strict or None
    ):
        return LocalRuntime.load_with_server(bundle, endpoint, device, options.precision, extra, verify=options.verify)
    return LocalRuntime.load(
        bundle,
        device,
        options.precision,
        threads,
        extra,
        verify=options.verify,
        device_memory_mb=memory,
        strict=strict,
    )
