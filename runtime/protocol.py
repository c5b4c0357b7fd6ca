"""The interface between the scheduler and whatever runs models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from .calibration import Calibration
from .calls import Call, Generate, Result, SequencePart
from .errors import GroundwireError
from .manifest import RoleInfo as RoleInfo

Outcome: TypeAlias = Result | GroundwireError


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
        """What the bundle says about one of ``roles``."""
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
        """The pool of a role, one of ``worker_pools``."""
        ...

    def batch_group(self, role: str) -> str:
        """The name of the roles whose calls may share a batch with this one's: the first of them."""
        ...

    def batch(self, role: str) -> int:
        """How many calls of a role make a batch, at most."""
        ...

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """One result or error per call, in order; the calls share batches but not results.

        All are calls of ``role``, or of roles with the same ``batch_group``.
        """
        ...

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """The best response of ``call`` part by part, the whole of it in the last one; from any thread.

        Errors are raised, those of the call itself at once.
        """
        ...

    def warm_calls(self) -> Sequence[Call]:
        """Calls that make every model run once."""
        ...

    def close(self) -> None:
        """Free the models; later calls fail."""
        ...
