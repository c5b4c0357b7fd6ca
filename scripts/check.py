"""Every check of the project, in the order of their speed; the first that fails ends the run.

make test            all of them
python scripts/check.py lint types   some
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PACKAGES = ("engine", "runtime", "export", "evaluate", "train", "integrations")


def sources() -> list[str]:
    """The C++ files."""
    return [str(path) for path in sorted((ROOT / "cpp_ext").rglob("*.[ch]pp")) if "build" not in path.parts]


def namespace() -> str:
    """A folder in which the packages stand under ``groundwire``, as an installation has them, for mypy."""
    folder = ROOT / "build" / "types" / "groundwire"
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*PACKAGES, "bundles"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    return str(folder.parent)


CHECKS: dict[str, list[str]] = {
    "lint": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "cpp-format": [str(BIN / "clang-format"), "--dry-run", "--Werror", *sources()],
    "types": [str(BIN / "mypy"), *(part for name in PACKAGES for part in ("-p", f"groundwire.{name}"))],
    "types-bench": [str(BIN / "mypy"), "bench"],
    "imports": [str(BIN / "lint-imports"), "--no-cache"],
    "native": ["bash", "scripts/native_sanitize.sh"],
    "tests": [sys.executable, "-m", "pytest"],
}


def main(names: list[str]) -> int:
    """Run the named checks, or all."""
    env = os.environ | {"MYPYPATH": namespace()}
    for name in names or CHECKS:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        code = subprocess.run(CHECKS[name], cwd=ROOT, env=env, check=False).returncode
        if code:
            print(f"{name} failed with exit code {code}", flush=True)
            return code
        print(f"   {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
