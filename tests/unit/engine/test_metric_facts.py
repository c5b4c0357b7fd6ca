"""Facts of a metric are on its record: no other module asks for one by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from groundwire.engine.metrics import METRICS, find
from groundwire.engine.metrics.base import Metric
from groundwire.engine.metrics.detector import PREFIX

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("engine", "evaluate", "apps", "interfaces")
ROLES = frozenset().union(*(metric.roles for metric in METRICS.values()))
NAMES = {PREFIX, *METRICS} - ROLES - {"overlap", "values"}
"""Names that a module might compare with; not those that are also the name of a role, a folder or a quantity."""
LOOKUPS = {"get", "startswith", "endswith"}


def list_compared(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that are compared with another, looked up in a mapping, or searched for in a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKUPS:
            yield from node.args
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            yield node.slice


def find_names(source: str) -> list[str]:
    """Lines of a module that compare something with a metric's name."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    compared = [
        (part.lineno, part.value if isinstance(part, ast.Constant) else constants.get(part.id))
        for part in list_compared(tree)
        if isinstance(part, ast.Constant | ast.Name)
    ]
    return [f"{line}: {name}" for line, name in compared if name in NAMES]


def test_no_module_compares_the_name_of_a_metric() -> None:
    modules = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 200
    findings = [
        f"{path.relative_to(ROOT)}:{finding}"
        for path in modules
        if (ROOT / "engine/metrics") not in path.parents
        for finding in find_names(path.read_text(encoding="utf-8"))
    ]
    assert not findings


def test_a_comparison_with_the_name_of_a_metric_is_found() -> None:
    source = """NAME = "citations"
def check(name, results):
    return name.endswith("verifiability"), name.startswith("detector."), results.get(NAME), name != NAME, results["q2"]
"""
    assert sorted(find_names(source)) == ["3: citations", "3: citations", "3: detector.", "3: q2", "3: verifiability"]


def test_two_metrics_rate_verifiability_and_one_cites() -> None:
    rating = [metric.name_number(n.key) for metric in METRICS.values() for n in metric.numbers if n.rates_verifiability]
    assert rating == ["reader.verifiable", "verifiability"]
    assert [name for name, metric in METRICS.items() if metric.cites] == ["citations"]
    detector = find("detector.mine")
    assert isinstance(detector, Metric)
    assert not detector.rates_verifiability
    assert not detector.cites
