"""Writes what the pages of metrics say of each: the facts of its record, and what its models cost."""

from __future__ import annotations

import json

from markdown_tables import format_ms, format_table
from repository_files import ROOT, load_results


def write_facts(names: str) -> str:
    """Return table rows with what the metrics' records say: description, roles, range, groups, package."""
    from groundwire.engine.metrics import find

    metrics = [metric for metric in map(find, names.split()) if metric is not None]
    if len(metrics) < len(names.split()):
        raise ValueError(f"One of the metrics {names} does not exist.")
    first = metrics[0]
    bounds = "unbounded" if first.bounds is None else " to ".join(f"{bound:g}" for bound in first.bounds)
    groups = ", ".join(f"`{group}`" for group in ("all", *sorted(first.groups)))
    rows = [[f"`{metric.name}`", metric.description] for metric in metrics]
    rows.append(["roles", ", ".join(f"`{role}`" for role in sorted(first.roles)) or "none: no model"])
    rows += [["range", bounds], ["groups", groups]]
    if first.package:
        rows.append(["needs", f"the package `{first.package}`: `pip install 'groundwire[metrics]'`"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


ROLE_METRICS = {
    "detector.consistency": "`detector.consistency`",
    "detector.verifiability": "`verifiability`",
    "embedder": "`bertscore`",
    "lm": "`pmi` and `upmi`",
    "nli": "`nli`, and the comparisons of `q2`",
    "qa": "`q2`, `q2_no_nli` and `feqa`: answers",
    "qg": "`q2`, `q2_no_nli` and `feqa`: questions",
    "reader": "`reader`",
    "spans": "`q2`, `q2_no_nli` and `feqa`: spans and the personal filter",
    "token_classifier": "`token_classifier`",
}


def _share_graph(role: str) -> list[str]:
    """Return the roles of the embedded bundle that read one graph with a role, itself included.

    Their batches are named by the first.
    """
    roles = json.loads((ROOT / "bundles" / "compact" / "bundle.json").read_text(encoding="utf-8"))["roles"]
    graph = roles[role].get("graph")
    return sorted(name for name, record in roles.items() if graph and record.get("graph") == graph) or [role]


def _name_roles(role: str) -> str:
    names = ", ".join(f"`{name}`" for name in _share_graph(role))
    return f"{names}: one graph" if "," in names else names


def write_role_times() -> str:
    """Return the run time of each role for one response, when all metrics are asked for, one response at a time."""
    results = load_results("compact_all")["results"]["latency"]
    responses = results["total"]["repeats"]
    rows = [
        [
            _name_roles(role),
            "; ".join(ROLE_METRICS[name] for name in _share_graph(role)),
            f"{stage['calls'] / responses:.1f}",
            format_ms(stage["run_ms"] / responses),
        ]
        for role, stage in sorted(results["stages"].items())
    ]
    return format_table(["role", "used by", "calls per response", "milliseconds per response"], rows)


def write_role_cost(roles: str) -> str:
    """Return one sentence: what the graphs of the named roles cost per response in the run of every metric."""
    document = load_results("compact_all")
    latency = document["results"]["latency"]
    responses = latency["total"]["repeats"]
    graphs = dict.fromkeys(_share_graph(role)[0] for role in roles.split())
    times = {role: latency["stages"][role]["run_ms"] / responses for role in graphs}
    parts = " + ".join(f"{format_ms(time)} ms ({_name_roles(role)})" for role, time in times.items())
    total = f" = {format_ms(sum(times.values()))} ms" if len(times) > 1 else ""
    machine = document["machine"]
    return (
        f"{parts}{total} of model run time per response, one response at a time on {machine['cores']} cores "
        f"({machine['processor']}; [how it was measured](../benchmarks.md)). "
        "Metrics share equal calls, and batches of several roles run at the same time: all metrics of a response "
        f"together take {format_ms(latency['total']['p50_ms'])} ms (p50)."
    )


def write_q2_time() -> str:
    """Return the median milliseconds of a response's Q²."""
    return format_ms(load_results("compact")["results"]["latency"]["total"]["p50_ms"])


def write_values_cost() -> str:
    """Return one sentence: what ``values`` costs per response, beside word overlap."""
    document = load_results("values")
    short, long = document["results"][:2]
    machine = document["machine"]
    return (
        f"{short['values']['p50_ms']:.1f} ms of processor time per response (p50; p95 "
        f"{short['values']['p95_ms']:.1f} ms) where it has {short['characters']:.0f} characters with its knowledge, "
        f"{long['values']['p50_ms']:.1f} ms where they are {long['characters']:.0f}. Word overlap takes "
        f"{short['overlap']['p50_ms']:.1f} and {long['overlap']['p50_ms']:.1f} ms. Measured on "
        f"{machine['cores']} cores with a load of {machine['load_average']:.0f} ({machine['processor']}; "
        "[how it was measured](../benchmarks.md))."
    )
