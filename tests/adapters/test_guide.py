"""The code of the guides to the adapters and to clusters, each block where its tool is installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from groundwire.runtime.bundles.bundle import embedded
from tests.support.adapters import load

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "integrations.md"
PAGES = GUIDE.read_text(encoding="utf-8") + GUIDE.with_name("scale-out.md").read_text(encoding="utf-8")
BLOCKS = re.findall(
    r"^```python\n# doc: skip \(needs (\S+)\)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", PAGES, re.DOTALL | re.M
)
"""Package, code and, where the page shows it, what the code prints."""


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run elsewhere: a checkout has folders that are named like packages, and some tools write into their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT])


@pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")
@pytest.mark.parametrize(("package", "code", "shown"), BLOCKS, ids=[package for package, _, _ in BLOCKS])
def test_a_block_prints_what_its_page_shows(
    package: str, code: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """test_docs.py runs the others."""
    load(package)
    exec(compile(code, GUIDE.name, "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    assert printed == shown if shown else printed.strip()


def test_every_example_of_a_score_shows_what_it_prints() -> None:
    """All but guardrails that are only made, tests, and what asks a model over the network."""
    blocks = re.findall(r"^```python\n(.*?)^```\n(\n```text\n)?", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.M)
    silent = [code for code, shown in blocks if "Bob Ross" in code and not shown]
    assert blocks
    assert silent == []


def test_every_adapter_is_in_the_guide() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    modules = {path.stem for path in (ROOT / "interfaces" / "adapters").glob("*.py")} - {
        "__init__",
        "extras",
        "texts",
        "transformers",
    }
    assert [name for name in sorted(modules) if f"groundwire.adapters.{name}" not in text] == []
