"""The metrics by name.

Every module of this package with a tuple ``METRICS`` adds its metrics, so a new metric is one file. A program of your
own adds one with ``register``. Detectors have one metric per role ``detector.NAME`` of the bundle.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from groundwire.runtime.arguments import suggest
from groundwire.runtime.errors import InvalidRequest

from ..schema.results import MetricResult
from .base import GROUPS, BoundResult, Details, Metric, skip
from .detector import detector_metric, is_detector

__all__ = [
    "GROUPS",
    "METRICS",
    "Details",
    "Metric",
    "available",
    "bind_results",
    "check_names",
    "find",
    "register",
    "select",
    "stand_in",
]


def _discover() -> dict[str, Metric]:
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    metrics = (metric for module in modules for metric in getattr(module, "METRICS", ()))
    return {metric.name: metric for metric in sorted(metrics, key=lambda metric: (metric.order, metric.name))}


METRICS: dict[str, Metric] = _discover()
"""All metrics but the detectors, in the order of ``Metric.order``."""


def register(metric: Metric) -> Metric:
    """Add a metric for the rest of the process.

    Args:
        metric: The metric, with a name that no metric and no group has.

    Returns:
        The metric, unchanged.

    Raises:
        InvalidRequest: The name is taken.
    """
    if metric.name in METRICS or metric.name in GROUPS or is_detector(metric.name):
        raise InvalidRequest(f"The name {metric.name!r} is taken; taken are {', '.join((*METRICS, *GROUPS))}.")
    METRICS[metric.name] = metric
    return metric


def find(name: str) -> Metric | None:
    """Return the metric of a name, whether or not a bundle has its models.

    Args:
        name: Name of a metric: ``nli``, ``detector.consistency``.

    Returns:
        The metric; None for an unknown name.
    """
    return METRICS.get(name) or (detector_metric(name) if is_detector(name) else None)


def bind_results(results: Mapping[str, MetricResult]) -> tuple[BoundResult, ...]:
    """Return stored results with their metrics.

    Args:
        results: Results by name: ``Score.metrics``.

    Returns:
        The results in their order. A metric that is not registered any more has no number besides its value.
    """
    return tuple(BoundResult(find(name) or stand_in(name), result) for name, result in results.items())


def stand_in(name: str) -> Metric:
    """Return a record for a metric that is not registered in this process: its numbers say nothing special."""
    metric = Metric(
        name=name, title=name, description="a metric that is not registered", compute=lambda *_: skip(metric)
    )
    return metric


def available(roles: Iterable[str]) -> dict[str, Metric]:
    """The metrics that can be computed with these bundle roles, by name, in order."""
    roles = frozenset(roles)
    metrics = {name: metric for name, metric in METRICS.items() if not metric.roles - roles and _is_installed(metric)}
    return metrics | {role: detector_metric(role) for role in sorted(filter(is_detector, roles))}


def select(names: Sequence[str], roles: Iterable[str]) -> tuple[Metric, ...]:
    """The named metrics and groups, each once; InvalidRequest for a name that does not exist or cannot be computed."""
    if not names:
        raise InvalidRequest(f"metrics is empty; name at least one of {', '.join(METRICS)}, or a group.")
    roles = frozenset(roles)
    selected: dict[str, Metric] = {}
    for name in names:
        if name in GROUPS:
            group = available(roles)
            selected |= {key: metric for key, metric in group.items() if name == "all" or name in metric.groups}
        else:
            selected[name] = _require(name, roles)
    return tuple(selected.values())


def check_names(names: Iterable[str]) -> None:
    """Refuse a name that is neither a metric of any bundle nor a group.

    Args:
        names: Names of metrics and groups.

    Raises:
        InvalidRequest: A name is not known; the message has those that are.
    """
    for name in names:
        if name not in GROUPS:
            _require_known(name, (name,))


def _require_known(name: str, roles: Iterable[str]) -> Metric:
    metric = find(name)
    if metric is None or (is_detector(name) and name not in roles):
        names = (*METRICS, *sorted(filter(is_detector, roles)))
        raise InvalidRequest(
            f"Unknown metric {name!r}{suggest(name, names)}; known are {', '.join(names)}, and {', '.join(GROUPS)}."
        )
    return metric


def _require(name: str, roles: frozenset[str]) -> Metric:
    metric = _require_known(name, roles)
    missing = metric.roles - roles
    if missing:
        raise InvalidRequest(
            f"Metric {name!r} needs the roles {', '.join(sorted(missing))}, which the bundle lacks "
            f"(it has {', '.join(sorted(roles))}). Export them into it, or load another bundle."
        )
    if not _is_installed(metric):
        raise InvalidRequest(
            f"Metric {name!r} needs the package {metric.package}; run: pip install 'groundwire[metrics]'."
        )
    return metric


def _is_installed(metric: Metric) -> bool:
    return not metric.package or _is_importable(metric.package)


@cache
def _is_importable(package: str) -> bool:
    """Whether ``package`` can be imported; looked up once, as it searches many folders."""
    return importlib.util.find_spec(package) is not None
