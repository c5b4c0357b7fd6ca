"""The workflows of a forge run the targets of the Makefile, with the least permissions and with pinned actions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.offline import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path: Path) -> dict[str, Any]:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return workflow


def list_steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in read(path)["jobs"].values():
        yield from job["steps"]


def test_there_is_a_workflow_for_each_part_of_a_release() -> None:
    assert [path.stem for path in WORKFLOWS] == ["check", "docs", "image", "test", "wheels"]


@each
def test_commands_are_targets_of_the_makefile(path: Path) -> None:
    commands = [line for step in list_steps(path) for line in step.get("run", "").splitlines()]
    made = {target for line in commands if line.startswith("make ") for target in line.split()[1:]}
    assert made
    assert made <= TARGETS
    # What is no target only passes a value on to a later step.
    assert all(line.startswith(("make ", "echo ")) for line in commands)


@each
def test_a_workflow_may_read_and_only_jobs_may_more(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job
        may_write = {scope for scope, access in job.get("permissions", {}).items() if access == "write"}
        assert may_write <= {"id-token", "attestations", "packages", "pages"}
        assert not may_write or "environment" in job


@each
def test_actions_are_pinned_by_a_version(path: Path) -> None:
    for step in list_steps(path):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", step["uses"]), step["uses"]
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False


@each
def test_commands_hold_no_expression_of_the_event(path: Path) -> None:
    """Names of branches and tags are texts of others: they reach a shell by its environment."""
    assert not [step["run"] for step in list_steps(path) if "${{" in step.get("run", "")]


def test_one_job_publishes_and_only_after_all_others() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "wheels.yml")["jobs"]
    publish = jobs.pop("publish")
    assert set(publish["needs"]) == set(jobs)
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert all("id-token" not in job.get("permissions", {}) for job in jobs.values())
