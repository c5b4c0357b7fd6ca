"""What all stages share: the device, the sizes, where the models are, and what ran on it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import TargetName
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.device import choose_device
from groundwire.runtime.ort.session import DeviceProfile

from ..support import common
from ..support.models import NAMES, PAPER, TINY, Precision, Size, exporter
from .stages import Skipped

ROLES = tuple(NAMES)
SPANS = "spans"
READER = "reader"
"""The bundle of the embedded reader's weights in float16."""
EMBEDDED = ("compact", "reader")
"""The trained bundles of the default. The second is loaded with the first, where it is installed."""


class Setup(msgspec.Struct, frozen=True):
    """The settings of a run."""

    device: str
    """Device of the engine: cuda, cuda:1 or cpu."""
    tiny: bool
    work: Path
    roles: tuple[str, ...] = ROLES
    """Roles to prepare and measure."""
    seconds: float = 2.0
    """Time of each comparison, and of each rate."""
    in_flight: tuple[int, ...] = (64, 256)
    stages: Path | None = None
    """The directory of what the stages of the run found."""

    @property
    def size(self) -> Size:
        """The models' size."""
        return TINY if self.tiny else PAPER

    @property
    def precision(self) -> Precision:
        """Precision of the exported graphs."""
        return "fp32" if self.device == "cpu" else "fp16"

    @property
    def target(self) -> TargetName | None:
        """Target of the graphs that roles have beside their own."""
        return "cuda" if self.device.startswith("cuda") else None

    @property
    def bundles(self) -> Path:
        """The directory of the exported bundles, one for each role."""
        return self.work / f"{self.size.name}-{self.precision}-{self.target or 'own'}-{exporter()}"

    def open_bundle(self, role: str) -> Bundle:
        """The bundle of a role; Skipped when it was not exported."""
        if not (self.bundles / role / MANIFEST).exists():
            raise Skipped(f"the role {role} was not exported")
        return Bundle.open(self.bundles / role)

    def list_bundles(self, *needed: str) -> list[Path]:
        """The bundles of all exported roles; Skipped when a needed one was not exported."""
        for role in needed:
            self.open_bundle(role)
        return [self.bundles / role for role in (*ROLES, SPANS) if (self.bundles / role / MANIFEST).exists()]

    def load_runtime(self, *needed: str) -> LocalRuntime:
        """All exported roles on the device; Skipped when a needed one was not exported."""
        first, *others = self.list_bundles(*needed)
        return LocalRuntime.load(first, self.device, extra=others, verify=False)

    @property
    def profile(self) -> DeviceProfile:
        """The engine's profile of the device, which is started: that finds CUDA's libraries."""
        return DeviceProfile.of(choose_device(self.device, ()), None)

    @property
    def torch_device(self) -> str:
        """PyTorch's name of the device; Skipped when PyTorch does not have it."""
        import torch

        if self.tiny:
            torch.set_num_threads(1)  # for such products more threads only wait for each other
        if self.device == "cpu":
            return "cpu"
        if not torch.cuda.is_available():
            raise Skipped("PyTorch sees no GPU")
        return self.device


class Gpu(msgspec.Struct, frozen=True):
    """What nvidia-smi says."""

    name: str
    driver: str
    memory_mb: int
    sm_mhz: int
    """The clock at the start, when it may be idle."""


def find_gpu() -> Gpu | None:
    """The first GPU; None without nvidia-smi."""
    query = "name,driver_version,memory.total,clocks.sm"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        name, driver, memory, clock = (part.strip() for part in lines[0].split(","))
        return Gpu(name, driver, int(memory), int(clock))
    except (OSError, subprocess.CalledProcessError, IndexError, ValueError):
        return None


def is_double() -> bool:
    """Whether the GPU is the double that counts and computes nothing."""
    return os.environ.get("GROUNDWIRE_CUDA_DOUBLE") == "1"


class Launches(msgspec.Struct, frozen=True):
    """What one run gives the GPU to do."""

    kernels: int
    uploads: int
    """Copies from the host."""
    downloads: int
    """Copies to the host."""
    waits: int | None
    """How often the host waits for the GPU; None where they are not counted."""
    replays: int | None = None
    """Captured graphs. On the double their kernels and copies are not among those above; on a GPU they are, and this is
    None."""


def count_launches(setup: Setup, run: Callable[[], Any]) -> Launches:
    """Count what ``run`` launches: on the double, or by PyTorch's profiler, which sees all of the process.

    Skipped where neither can.
    """
    if setup.device == "cpu":
        raise Skipped("a CPU has no kernels")
    if is_double():
        from tests.support import cuda_double

        with cuda_double.count() as counts:
            run()
        return Launches(counts.launches, counts.uploads.times, counts.downloads.times, counts.syncs, counts.replays)
    import torch

    if not torch.cuda.is_available():
        raise Skipped("PyTorch sees no GPU")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    kernels = uploads = downloads = 0
    for event in profile.events():
        if "DeviceType.CUDA" not in str(event.device_type):
            continue
        if event.name.startswith("Memcpy HtoD"):
            uploads += 1
        elif event.name.startswith("Memcpy DtoH"):
            downloads += 1
        elif not event.name.startswith(("Memcpy", "Memset")):
            kernels += 1
    common.check(kernels > 0, "the profiler saw no kernel")
    return Launches(kernels, uploads, downloads, None)
