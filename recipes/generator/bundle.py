"""Exports ``bundles/generator``, the embedded bundle that generates responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from groundwire.export import RoleOptions, Title, export_bundle
from groundwire.runtime.bundles.bundle import Bundle

VERSION = "1"
LICENSE = "Apache-2.0 AND CC-BY-SA-4.0 AND CDLA-Sharing-1.0"
"""Of MiniLM, whose word embeddings the model has; of SQuAD; and of Topical-Chat."""
ROLE = "generator"
START = "lm"
"""The checkpoint that training starts from: the recipe ``lm``'s."""


def export_generator_bundle(
    checkpoints: Path, out: Path, watch: Callable[[str, str], None], *, precision: str = "int8", force: bool = False
) -> Bundle:
    """Export the checkpoint ``generator`` of ``checkpoints``; ValueError as ``read_stages`` raises it."""
    read_stages(checkpoints)
    weights: Literal["int8", "fp32"] = "int8" if precision == "int8" else "fp32"
    role = RoleOptions(str(checkpoints / ROLE), precision=weights)
    return export_bundle({ROLE: role}, out, title=Title("generator", VERSION, LICENSE), force=force, watch=watch)


def read_stages(checkpoints: Path) -> dict[str, dict[str, Any]]:
    """The reports of the runs that made the checkpoint ``generator``, by their directories' names, the last one first.

    Each run started from the checkpoint of the next one, and the first of all from ``lm``. ValueError for a checkpoint
    that has not finished or that started from anything else: the licence of its weights would be another.
    """
    stages: dict[str, dict[str, Any]] = {}
    name = ROLE
    while name != START:
        report = checkpoints / name / "report.json"
        if not report.is_file():
            raise ValueError(
                f"{checkpoints / name} is not a finished checkpoint; train it with `python -m groundwire.recipes "
                f"generator --out {checkpoints / name}`."
            )
        stages[name] = json.loads(report.read_text(encoding="utf-8"))
        base = Path(stages[name]["base"])
        name = base.name
        if name in stages or (name != START and not (checkpoints / name).is_dir()):
            raise ValueError(
                f"{report.parent} was trained from {base}, which is neither {checkpoints / START} nor trained from it, "
                f"so the licence {LICENSE} may be wrong. Export it with `groundwire export {ROLE}`."
            )
    return stages
