"""The search of the built site lists a page for users first, for what newcomers look for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shared import make_once, shared_root

ROOT = Path(__file__).resolve().parents[2]
FIRST = {
    "docker": "guides/serving.html",
    "kubernetes": "guides/serving.html",
    "langchain": "guides/integrations.html",
    "long response": "guides/long-answers.html",
    "threshold": "guides/settings.html",
    "false positive": "guides/settings.html",
    "language": "faq.html",
    "streaming": "guides/streaming.html",
    "timeout": "guides/service.html",
    "gpu": "guides/gpu.html",
    "medical": "guides/settings.html",
}
"""The page that is to be listed first for each query."""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="the search of the site runs in Node.js")


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The locations that the search lists for each query, best first."""

    def build(site: Path) -> None:
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
        subprocess.run(command, cwd=ROOT, check=True)

    site = make_once(shared_root(tmp_path_factory) / "site", build)
    command = ["node", str(ROOT / "tests" / "support" / "search.js"), str(site), *FIRST]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    locations: dict[str, list[str]] = json.loads(answer.stdout)
    return locations


@pytest.mark.parametrize("query", FIRST)
def test_a_guide_is_listed_first(listed: dict[str, list[str]], query: str) -> None:
    assert listed[query][0].partition("#")[0] == FIRST[query], listed[query][:3]


def test_records_of_decisions_are_not_listed(listed: dict[str, list[str]]) -> None:
    assert not [location for locations in listed.values() for location in locations if location.startswith("adr/")]
