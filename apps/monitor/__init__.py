"""What verdicts say about traffic without labels: how much is inconsistent, where, and whether that changes.

Reports need the extra ``evaluate``; the shares of inconsistent responses need nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from .prevalence import ErrorRates, Interval, correct_share, count_errors, share
from .records import Drift, Estimate, SampledTraffic, Shift, TrafficReport
from .sampling import Monitor, monitor

if TYPE_CHECKING:
    from .observations import Observations
    from .summary import Reference, build_report

__all__ = [
    "Drift",
    "ErrorRates",
    "Estimate",
    "Interval",
    "Monitor",
    "Observations",
    "Reference",
    "SampledTraffic",
    "Shift",
    "TrafficReport",
    "build_report",
    "correct_share",
    "count_errors",
    "monitor",
    "share",
]

_MODULES = {"Observations": "observations", "Reference": "summary", "build_report": "summary"}


def __getattr__(name: str) -> Any:
    """Import what needs scipy with its first use; ImportError with the install command without it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("scipy") is None:
        raise ImportError("groundwire.monitor's reports need scipy; run: pip install 'groundwire[evaluate]'")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
