"""Compares generated text, adds to the site what is not a page of ``docs/``, and weighs its search; hooks of mkdocs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from command_line import write_cli_page
from write import list_stale

ROOT = Path(__file__).resolve().parents[2]
DOWNLOADS = (
    "requirements.lock",
    "deploy/helm/groundwire/alerts.yaml",
    "deploy/nginx/groundwire.conf",
    "deploy/systemd/groundwire.service",
)
"""Files of the repository that the site has too, for installations from wheels."""
SEARCH_BOOSTS = {
    "guides/": 4,
    "faq": 2,
    "metrics/": 2,
    "concepts": 2,
    "quickstart": 2,
    "release": 0.3,
    "architecture": 0.5,
}
"""How much a page counts in the site's search, by the begin of its path; others count 1."""


def on_startup(**context: Any) -> None:
    """Lay the package out for mkdocstrings, which reads it without importing."""
    if not (ROOT / "build" / "tree").exists():
        subprocess.run([sys.executable, "-m", "deploy.tree"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def on_pre_build(config: Any) -> None:
    """Refuse pages whose generated parts differ from what they are made from."""
    from mkdocs.exceptions import PluginError

    stale = [str(page.relative_to(ROOT)) for page in list_stale()]
    if stale:
        raise PluginError(f"Run make docs-write: generated text is out of date in {', '.join(stale)}.")


def on_files(files: Any, config: Any) -> Any:
    """Add the page of the command line, and the files to download."""
    from mkdocs.structure.files import File

    for path in DOWNLOADS:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "reference/cli.md", content=write_cli_page()))
    return files


def on_page_markdown(markdown: str, page: Any, **context: Any) -> str:
    """Let the search list what users read before what contributors read; lead links to the site's downloads."""
    boost = next((boost for prefix, boost in SEARCH_BOOSTS.items() if page.file.src_uri.startswith(prefix)), 1)
    page.meta["search"] = {"boost": boost, "exclude": page.file.src_uri.startswith("adr/")}
    downloads = "|".join(map(re.escape, DOWNLOADS))
    return re.sub(rf"\]\(\.\./((?:\.\./)*(?:{downloads})\))", r"](\1", markdown)
