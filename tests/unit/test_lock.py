"""``requirements.lock`` holds every dependency, hashed, in the version that the checks last passed with."""

from __future__ import annotations

import re
import tomllib

from tests.support.offline import ROOT

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LOCKED = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", LOCK, re.M))


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_locked_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["cli"], *extras["serve"]]
    names = {normalize(re.split(r"[<>=!~\[; ]", dependency)[0]) for dependency in asked}
    assert names - {"groundwire"} <= LOCKED.keys()
    assert not {name for name in LOCKED if name.startswith("groundwire")}
    for block in re.split(r"^(?=[A-Za-z])", LOCK, flags=re.M)[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


def test_the_locked_versions_are_the_tested_ones() -> None:
    tested = re.findall(
        r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "requirements-dev.lock").read_text(encoding="utf-8"), re.M
    )
    versions = {normalize(name): version for name, version in tested}
    different = {
        name: (version, versions[name]) for name, version in LOCKED.items() if versions.get(name, version) != version
    }
    assert not different, "run deploy/lock.sh"
