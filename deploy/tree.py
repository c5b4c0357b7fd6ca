"""Lays the package out as an installation has it, from links: ``build/tree/groundwire``.

    python -m deploy.tree     prints the folder

For tools that read the package and run no code (mypy, import-linter, griffe), and for a machine on which nothing can be
installed. The folder is made anew at each call, so it follows the checkout.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "tree"


def list_packages(root: Path = ROOT) -> dict[str, Path]:
    """Return the files and folders of the package, by their path in an installation; the recipes are among them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["scikit-build"]["wheel"]
    packages = {**settings["packages"], "groundwire/recipes": "recipes"}
    return {target: root / source for target, source in packages.items()}


def make_tree(tree: Path = TREE) -> Path:
    """Make the folder of links, whole or not at all, and return it."""
    tree.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{tree.name}.", dir=tree.parent))
    for target, source in list_packages().items():
        link = partial / target
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(source, tree / Path(target).parent))
    if tree.exists():
        shutil.rmtree(tree)
    return partial.rename(tree)


if __name__ == "__main__":
    print(make_tree())
