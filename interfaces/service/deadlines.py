"""How long a request may take: the shortest of what its headers, its options and the server allow."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .problems import Refusal

HEADER = "groundwire-deadline-ms"
GRPC_HEADER = "grpc-timeout"
_GRPC = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS_MS = {"H": 3_600_000.0, "M": 60_000.0, "S": 1000.0, "m": 1.0, "u": 1e-3, "n": 1e-6}


def read_headers(headers: Mapping[str, str]) -> float | None:
    """Milliseconds of ``Groundwire-Deadline-Ms`` or ``grpc-timeout``, the shorter; None without either.

    Raises Refusal ``invalid`` for a value that is no duration.

    >>> read_headers({"grpc-timeout": "2S", "groundwire-deadline-ms": "500"})
    500.0
    """
    times = []
    if (value := headers.get(HEADER)) is not None:
        times.append(_parse_ms(value))
    if (value := headers.get(GRPC_HEADER)) is not None:
        match = _GRPC.fullmatch(value.strip())
        if match is None:
            raise Refusal(
                "invalid",
                f"{GRPC_HEADER} is {value!r:.40}; allowed are up to eight digits and a unit of H, M, S, m, u, n, as in "
                "500m for 500 milliseconds.",
            )
        times.append(int(match[1]) * _UNITS_MS[match[2]])
    return min(times, default=None)


def _parse_ms(value: str) -> float:
    try:
        ms = float(value)
    except ValueError:
        ms = math.nan
    if not (ms > 0 and math.isfinite(ms)):
        raise Refusal("invalid", f"{HEADER} is {value!r:.40}; allowed are milliseconds above 0, as in 500.")
    return ms


class Deadline(NamedTuple):
    """When a request must be finished, counted from its arrival."""

    arrived: float
    ms: float
    now: Callable[[], float]

    def shorten(self, ms: float | None) -> Deadline:
        """This, or ``ms`` after the arrival if that is earlier."""
        return self if ms is None or ms >= self.ms else self._replace(ms=ms)

    def left_ms(self) -> float:
        """Milliseconds that are left; Refusal ``deadline`` if there are none."""
        left = self.ms - (self.now() - self.arrived) * 1000
        if left <= 0:
            raise Refusal("deadline", f"The request was not finished within {self.ms:g} ms.")
        return left


def make_deadline(
    headers: Mapping[str, str], default_ms: float, max_ms: float, arrived: float, now: Callable[[], float]
) -> Deadline:
    """The deadline of a request: its headers', else the default; never later than ``max_ms``."""
    ms = read_headers(headers)
    return Deadline(arrived, min(default_ms if ms is None else ms, max_ms), now)
