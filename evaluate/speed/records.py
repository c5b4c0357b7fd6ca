"""What every speed measurement records: order statistics, targets, the machine, and the report that has them all."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from groundwire.runtime.resources import usable_cores

PACKAGES = (
    "groundwire",
    "onnxruntime",
    "onnxruntime-gpu",
    "numpy",
    "tokenizers",
    "spacy",
    "torch",
    "transformers",
)
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "i8mm")

T = TypeVar("T")


class Timing(msgspec.Struct, frozen=True):
    """Order statistics of one subject's samples."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    repeats: int

    @classmethod
    def of(cls, samples_ms: Iterable[float]) -> Timing:
        """Return quantiles by the nearest rank above, so that p95 of few samples is a measured one."""
        ordered = sorted(samples_ms)
        ranks = [max(0, math.ceil(share * len(ordered)) - 1) for share in (0.95, 0.99)]
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        return cls(median, ordered[ranks[0]], ordered[ranks[1]], len(ordered))


class PerformanceTarget(msgspec.Struct, frozen=True):
    """A performance target of the project, and whether this run meets it."""

    name: str
    measured: float
    sense: Literal["<=", ">="]
    limit: float
    unit: str
    passed: bool

    @classmethod
    def at_most(cls, name: str, measured: float, limit: float, unit: str) -> PerformanceTarget:
        """``measured`` should not exceed ``limit``."""
        return cls(name, measured, "<=", limit, unit, measured <= limit)

    @classmethod
    def at_least(cls, name: str, measured: float, limit: float, unit: str) -> PerformanceTarget:
        """``measured`` should reach ``limit``."""
        return cls(name, measured, ">=", limit, unit, measured >= limit)


class Machine(msgspec.Struct, frozen=True):
    """The machine of a run. A load average near the number of cores means that other processes used it."""

    processor: str
    cores: int
    """Processors this process may use."""
    cpu_flags: tuple[str, ...]
    memory_gib: float | None
    """None where the system does not say."""
    load_average: float | None
    """Load of the last minute, when the benchmark ended; on an idle machine about the benchmark's own threads."""
    system: str
    python: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> Machine:
        """Describe this machine."""
        info = Path("/proc/cpuinfo")
        text = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
        names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
        words = set(text.split())
        return cls(
            processor=names[0] if names else platform.processor(),
            cores=usable_cores(),
            cpu_flags=tuple(flag for flag in CPU_FLAGS if flag in words),
            memory_gib=_read_memory_gib(),
            load_average=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            versions={name: _find_version(name) for name in PACKAGES},
        )


class Report(msgspec.Struct, Generic[T], frozen=True):
    """The content of a benchmark's JSON file."""

    benchmark: str
    when: str
    machine: Machine
    settings: dict[str, int | float | str | None]
    results: T
    targets: tuple[PerformanceTarget, ...] = ()

    def write(self, path: Path) -> None:
        """Write the file, in whole or not at all: a run that is cut keeps what it wrote before."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.part")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")
        partial.replace(path)


def make_report(
    benchmark: str,
    settings: dict[str, int | float | str | None],
    results: T,
    targets: Iterable[PerformanceTarget] = (),
) -> Report[T]:
    """The report of a benchmark that ends now on this machine."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Report(benchmark, when, Machine.here(), settings, results, tuple(targets))


def _read_memory_gib() -> float | None:
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= names.keys():
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
