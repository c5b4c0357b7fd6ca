"""A runtime without models: tests of metrics, of the scheduler or of a service give it the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .bundles.calibration import Calibration
from .calls import Call, Generate, GeneratedSequence, SequencePart, role_of
from .errors import GroundwireError
from .protocol import Identity, Outcome, RoleInfo


class FakeRuntime:
    """Answers calls from plain functions; records the batches it was given.

    ``answers`` maps a role to a function of one call; an exception of the tree it raises is that call's outcome.
    ``role_info`` and ``calibration`` are what the bundle would say about its roles and their values;
    ``concurrent_batches`` is how many batches the device runs at the same time, ``concurrent_requests`` how many
    requests the engine works on at the same time, and ``spare_requests`` below how many the device has time to spare;
    ``batch_groups`` lists roles whose calls share batches.

    >>> from groundwire.runtime.calls import Classify, Classified, Read
    >>> label = lambda call: Classified("neutral", {"neutral": 1.0}, 0, Read(1, 3, 3))
    >>> runtime = FakeRuntime({"nli": label})
    >>> runtime.run("nli", [Classify("nli", ("abc",), "d")], max_windows=8)[0].label
    'neutral'
    """

    def __init__(
        self,
        answers: Mapping[str, Callable[[Any], Outcome]],
        batch: int = 64,
        role_info: Mapping[str, RoleInfo] = MappingProxyType({}),
        calibration: Calibration | None = None,
        concurrent_batches: int = 1,
        concurrent_requests: int = 64,
        spare_requests: int = 0,
        batch_groups: Sequence[Sequence[str]] = (),
    ) -> None:
        """Answer calls by functions.

        Args:
            answers: By role, a function from a call to its result; it may raise a GroundwireError as the call's
                outcome.
            batch: Calls of a batch, 1 or more.
            role_info: The bundle's records of roles; a role that is absent has the defaults.
            calibration: The calibration of the verdict; None for no verdict.
            concurrent_batches: Batches that the scheduler runs beside each other, 1 or more.
            concurrent_requests: Requests that are worked on at a time, 1 or more.
            spare_requests: As ``Runtime.spare_requests``, 0 or more.
            batch_groups: Groups of roles whose calls may share a batch.
        """
        self._batch_groups = tuple(map(tuple, batch_groups))
        self._calibration = calibration
        self._concurrent_batches = concurrent_batches
        self._concurrent_requests = concurrent_requests
        self._spare_requests = spare_requests
        self._answers = dict(answers)
        self._role_info = dict(role_info)
        self._batch = batch
        self.batches: list[tuple[str, tuple[Call, ...]]] = []
        self.closed = False

    @property
    def roles(self) -> frozenset[str]:
        """The roles given at construction."""
        return frozenset(self._answers)

    @property
    def identity(self) -> Identity:
        """A fixed identity."""
        return Identity("fake", "0" * 12, "fp32", "cpu")

    @property
    def calibration(self) -> Calibration | None:
        """The one given at construction, or none."""
        return self._calibration

    def role_info(self, role: str) -> RoleInfo:
        """Return the given record of a role, or the defaults; as ``Runtime.role_info``."""
        return self._role_info.get(role, RoleInfo())

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """The number given at construction for the device, one for the host."""
        return {"device": self._concurrent_batches, "host": 1}

    @property
    def concurrent_requests(self) -> int:
        """The number given at construction."""
        return self._concurrent_requests

    @property
    def spare_requests(self) -> int:
        """The number given at construction."""
        return self._spare_requests

    def worker_pool(self, role: str) -> str:
        """Return ``host`` for ``spans``, otherwise ``device``; as ``Runtime.worker_pool``."""
        return "host" if role == "spans" else "device"

    def batch_group(self, role: str) -> str:
        """Return the first role of the given group, or the role itself; as ``Runtime.batch_group``."""
        return next((group[0] for group in self._batch_groups if role in group), role)

    def batch(self, role: str) -> int:
        """Return the given size of batches; as ``Runtime.batch``."""
        return self._batch

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Answer each call by the function of its role, and add the batch to ``batches``; as ``Runtime.run``."""
        self.batches.append((role, tuple(calls)))
        out: list[Outcome] = []
        for call in calls:
            try:
                out.append(self._answers[role_of(call)](call))
            except GroundwireError as error:
                out.append(error)
        return out

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """Return the best answer to the call in one part; as ``Runtime.stream``."""
        (outcome,) = self.run("generator", [call], 1)
        if isinstance(outcome, GroundwireError):
            raise outcome
        assert isinstance(outcome, tuple)
        assert isinstance(outcome[0], GeneratedSequence)
        return iter([SequencePart(outcome[0].text, outcome[0])])

    def warm_calls(self, roles: Collection[str] | None = None) -> Sequence[Call]:
        """Return no calls.

        Args:
            roles: Of no account.

        Returns:
            Nothing to warm.
        """
        return ()

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True
