"""The interface between the scheduler and whatever runs models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from .bundles.calibration import Calibration
from .bundles.manifest import RoleInfo as RoleInfo
from .calls import Call, Generate, Result, SequencePart
from .errors import GroundwireError

Outcome: TypeAlias = Result | GroundwireError


class Withdrawn(GroundwireError):
    """The outcome of a call that nothing waited for any more; the scheduler runs it again for those that do by now."""


class Identity(msgspec.Struct, frozen=True):
    """What ran a call, for signatures: equal identities give equal results."""

    bundle: str
    digest: str
    precision: str
    device: str
    kernel: str = ""
    """What the results depend on besides: on a CPU the instruction set of the int8 kernels, if there are any; on a GPU
    the version of ONNX Runtime and the compute capability."""
    verified: bool = True
    """Whether the files were compared with the digest; where they were not, it is what the manifest claims."""


class CaptureCounts(msgspec.Struct, frozen=True):
    """How graphs run on a GPU: launched as a whole, from what was captured, or kernel by kernel, which is slower."""

    captured: int = 0
    """Shapes of batches that were captured."""
    uncaptured: int = 0
    """Runs that were launched kernel by kernel."""
    failed: int = 0
    """Captures that failed. Something outside of the runtime may end one; it is tried again, three times."""

    def __add__(self, other: CaptureCounts) -> CaptureCounts:
        """The sums."""
        return CaptureCounts(
            self.captured + other.captured, self.uncaptured + other.uncaptured, self.failed + other.failed
        )


@runtime_checkable
class Capturing(Protocol):
    """A runtime that counts its captures."""

    @property
    def captures(self) -> CaptureCounts:
        """Since loading."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """A runtime whose batches can be ended before they are complete."""

    def interrupt(self) -> None:
        """End the batches that run, for ever, from any thread: their calls get EngineClosed, and so do later ones."""
        ...


class Runtime(Protocol):
    """Runs model calls. ``run`` may be called from as many threads at a time as ``worker_pools`` says."""

    @property
    def roles(self) -> frozenset[str]:
        """The roles this runtime can answer."""
        ...

    @property
    def identity(self) -> Identity:
        """What determines its results."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """How to read the values of the metrics; None where none was fitted."""
        ...

    def role_info(self, role: str) -> RoleInfo:
        """Return what the bundle says about a role.

        Args:
            role: One of ``roles``.
        """
        ...

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """How many batches of each pool may run at the same time, of one role or of several."""
        ...

    @property
    def concurrent_requests(self) -> int:
        """How many requests to work on at the same time, at least 1; others wait for their turn."""
        ...

    @property
    def spare_requests(self) -> int:
        """With fewer unfinished requests than this the device has time to spare: calls that may turn out not to be
        needed cost less than another round. 0 where every call takes its time, as on a CPU."""
        ...

    def worker_pool(self, role: str) -> str:
        """Return the pool of workers that runs a role.

        Args:
            role: One of ``roles``.

        Returns:
            One of ``worker_pools``.
        """
        ...

    def batch_group(self, role: str) -> str:
        """Return the name of the roles whose calls may share a batch with a role's calls.

        Args:
            role: One of ``roles``.

        Returns:
            The first of these roles; the role itself if it shares its batches with none.
        """
        ...

    def batch(self, role: str) -> int:
        """Return how many calls of a role make a batch.

        Args:
            role: One of ``roles``.

        Returns:
            The largest number of calls, 1 or more.
        """
        ...

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Answer calls, which share batches but not results.

        Args:
            role: One of ``roles``.
            calls: Calls of this role, or of roles with the same ``batch_group``.
            max_windows: Windows in which a model may read a long text, at most, 1 or more.

        Returns:
            One result or error for each call, in order.
        """
        ...

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """Generate the best response to a call part by part, from any thread.

        Args:
            call: The prompt and the settings of decoding.

        Returns:
            The parts; the last one has the whole response. An error of decoding is raised with the next part.

        Raises:
            GroundwireError: The call itself cannot be answered.
        """
        ...

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        """Make calls that run every model once, or those of some roles.

        Args:
            roles: Names of roles of the bundle; None is all of them.

        Returns:
            The calls.
        """
        ...

    def close(self) -> None:
        """Free the models; later calls fail."""
        ...
