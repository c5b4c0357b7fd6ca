"""The metrics by name. To add one: a file with a generator of model calls, and its entry in ``METRICS``."""

from __future__ import annotations

from groundwire.runtime.errors import InvalidRequest

from . import q2
from .base import Metric, Steps, Wave

METRICS: dict[str, Metric] = {metric.name: metric for metric in q2.METRICS}

__all__ = ["METRICS", "Metric", "Steps", "Wave", "select"]


def select(names: tuple[str, ...], roles: frozenset[str]) -> tuple[Metric, ...]:
    """The named metrics; InvalidRequest for a name that does not exist or whose models the bundle lacks."""
    if not names:
        raise InvalidRequest(f"metrics is empty; name at least one of {', '.join(METRICS)}.")
    for name in names:
        if name not in METRICS:
            raise InvalidRequest(f"Unknown metric {name!r}; known are {', '.join(METRICS)}.")
        missing = METRICS[name].roles - roles
        if missing:
            raise InvalidRequest(
                f"Metric {name!r} needs the roles {', '.join(sorted(missing))}, which the bundle lacks "
                f"(it has {', '.join(sorted(roles))}). Export them into it, or load another bundle."
            )
    return tuple(METRICS[name] for name in dict.fromkeys(names))
