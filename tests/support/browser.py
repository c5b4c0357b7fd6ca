"""Pages in headless Chromium: a page with scripts of ours, and what they saw."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

BROWSER = next(
    (observed for name in ("chromium", "chromium-browser", "google-chrome") if (observed := shutil.which(name))), ""
)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=3000",
)
_WATCH = """
window.problems = [];
addEventListener("error", (event) => problems.push(event.message || String(event.target)), true);
addEventListener("securitypolicyviolation", (event) => problems.push(event.violatedDirective + " " + event.blockedURI));
"""
_ASK = """
const found = {{ problems, hacked: "hacked" in window }};
{script}
found.width = [document.documentElement.scrollWidth, innerWidth];
found.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
document.body.dataset.found = JSON.stringify(found);
"""


def observe_page(page: Path, script: str, profile: Path, width: int = 1280, height: int = 900) -> dict[str, Any]:
    """What ``script`` put into its object ``found``, with the page's problems, its width, its requests, and what the
    browser wrote to its console.

    The page's security policy is changed to allow the script.
    """
    probe = _add_scripts(page, _ASK.format(script=script))
    done = subprocess.run(
        [
            BROWSER,
            *_FLAGS,
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
            "--dump-dom",
            probe.as_uri(),
        ],
        capture_output=True,
        check=False,
        timeout=120,
    )
    console = done.stderr.decode(errors="replace")
    match = re.search(r'data-found="([^"]*)"', done.stdout.decode())
    assert match, console[-2000:]
    answer: dict[str, Any] = json.loads(html.unescape(match[1]))
    return answer | {"console": re.findall(r".*CONSOLE.*", console)}


def _add_scripts(page: Path, ask: str) -> Path:
    text = page.read_text(encoding="utf-8")
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in (_WATCH, ask)
    )
    assert text.count("script-src ") == 1
    text = text.replace("script-src ", f"script-src {digests} ")
    text = text.replace("<title>", f"<script>{_WATCH}</script>\n<title>", 1).replace(
        "</body>", f"<script>{ask}</script>\n</body>"
    )
    probe = page.with_name("probed.html")
    probe.write_text(text, encoding="utf-8")
    return probe
