"""What the build asks for the links: the README as a package index shows it, and the addresses of the project.

The address of the repository is ``REPOSITORY_URL`` of the environment, which the release workflow sets; a source
distribution remembers the address that it was built with. Without an address, relative links become plain text and
the distribution names no addresses, so an index never shows a link that leads nowhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def find_address() -> str | None:
    """Return the address of the repository, without a slash at its end; None where it is not known."""
    if address := os.environ.get("REPOSITORY_URL"):
        return address.rstrip("/")
    packaged = Path("PKG-INFO")
    if not packaged.is_file():
        return None
    headers = HeaderParser().parsestr(packaged.read_text(encoding="utf-8"))
    urls = dict(line.split(", ", 1) for line in headers.get_all("Project-URL", []))
    return urls.get("Source")


def make_absolute(text: str, address: str | None, tag: str) -> str:
    """Return Markdown with its relative links as links to files of ``tag``, or as plain text without an address."""

    def replace(link: re.Match[str]) -> str:
        image, title, path = link.groups()
        if address is None:
            return title
        return f"{image}[{title}]({address}/{'raw' if image else 'blob'}/{tag}/{path})"

    return _RELATIVE.sub(replace, text)


def list_urls(address: str, tag: str) -> dict[str, str]:
    """Return the addresses that a distribution names."""
    return {
        "Homepage": address,
        "Documentation": f"{address}/tree/{tag}/docs",
        "Source": address,
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the README and the addresses for a build of the version that ``pyproject.toml`` names."""
    address, tag = find_address(), f"v{project['version']}"
    text = make_absolute(Path("README.md").read_text(encoding="utf-8"), address, tag)
    readme = {"text": text, "content-type": "text/markdown"}
    return {"readme": readme, "urls": list_urls(address, tag) if address else {}}
