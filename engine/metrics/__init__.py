"""The metrics by name. To add one: a file with a generator of model calls, and its entry in ``METRICS``."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence

from groundwire.engine.scheduling.steps import Steps
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Runtime

from . import bertscore, critic, detector, feqa, libraries, nli, overlap, pmi, q2, token_classifier, verifiability
from .base import Metric

METRICS: dict[str, Metric] = {
    metric.name: metric
    for family in (q2, nli, feqa, verifiability, overlap, libraries, bertscore, pmi)
    for metric in family.METRICS
}
"""Those that every bundle with their roles has. Detectors and the token classifiers come with their bundle."""

FAST = frozenset({"overlap", "overlap_precision", "unigram_f1", "nli", "verifiability", "pmi", "upmi"})
"""Metrics that generate nothing: one or two forward passes each. Detectors belong to them too."""
NOT_PUBLISHED = frozenset({"overlap_precision", "unigram_f1", "rouge_l", "meteor", "token_classifier"})
"""Metrics that none of the four papers proposes or compares with in its main tables."""
GROUPS = {
    "all": "every metric that the bundle has the models for",
    "paper": "those of the papers' tables",
    "fast": "those that generate no text",
}

__all__ = ["GROUPS", "METRICS", "Metric", "Steps", "available", "select"]


def available(runtime: Runtime) -> dict[str, Metric]:
    """The metrics whose models the runtime has, by name."""
    found = {
        name: metric for name, metric in METRICS.items() if not metric.roles - runtime.roles and _installed(metric)
    }
    return found | _own(runtime)


def select(names: Sequence[str], runtime: Runtime) -> tuple[Metric, ...]:
    """The named metrics and groups, each once; InvalidRequest for a name that does not exist or cannot be computed."""
    if not names:
        raise InvalidRequest(f"metrics is empty; name at least one of {', '.join(METRICS)}, or a group.")
    own = METRICS | _own(runtime)
    chosen: dict[str, Metric] = {}
    for name in names:
        if name in GROUPS:
            found = available(runtime)
            chosen |= {each: found[each] for each in _members(name, found)}
            continue
        if name not in own:
            raise InvalidRequest(f"Unknown metric {name!r}; known are {', '.join(own)}, and {', '.join(GROUPS)}.")
        metric = own[name]
        missing = metric.roles - runtime.roles
        if missing:
            raise InvalidRequest(
                f"Metric {name!r} needs the roles {', '.join(sorted(missing))}, which the bundle lacks "
                f"(it has {', '.join(sorted(runtime.roles))}). Export them into it, or load another bundle."
            )
        if not _installed(metric):
            raise InvalidRequest(
                f"Metric {name!r} needs the package {metric.package}; run: pip install 'groundwire[metrics]'."
            )
        chosen[name] = metric
    return tuple(chosen.values())


def _own(runtime: Runtime) -> dict[str, Metric]:
    """The metrics that the bundle's roles bring along."""
    found = {role: detector.metric(role, runtime.role_info(role)) for role in detector.roles(runtime.roles)}
    if token_classifier.ROLE in runtime.roles:
        found["token_classifier"] = token_classifier.metric(runtime.role_info(token_classifier.ROLE))
    if critic.ROLE in runtime.roles:
        found["critic"] = critic.metric(runtime.role_info(critic.ROLE))
    if bertscore.ROLE in runtime.roles:
        found["bertscore"] = bertscore.metric(runtime.role_info(bertscore.ROLE))
    return found


def _members(group: str, found: dict[str, Metric]) -> Iterator[str]:
    for name in found:
        if group == "fast" and name not in FAST and not name.startswith(detector.PREFIX):
            continue
        if group == "paper" and name in NOT_PUBLISHED:
            continue
        yield name


def _installed(metric: Metric) -> bool:
    return not metric.package or importlib.util.find_spec(metric.package) is not None
