"""The ablations of Neural Path Hunter's table 4: one short training each, all measured in the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..common.loop import Schedule
from .evaluate import measure_retriever
from .loss import RetrieverRecipe
from .retriever import fit_retriever, save_retriever
from .templates import TemplateDialogues

_NAMES = RetrieverRecipe(paths=False)
ABLATIONS: Mapping[str, RetrieverRecipe] = {
    "embedded": RetrieverRecipe(),
    "sans": RetrieverRecipe(negatives="sans"),
    "batch": RetrieverRecipe(negatives="batch"),
    "without_nce": RetrieverRecipe(negatives="none"),
    "without_mlm": RetrieverRecipe(masked=False, aligned=0),
    "names": _NAMES,
    "names_compgcn": replace(_NAMES, memory="compgcn"),
}
"""``names`` is the paper's memory of texts, to compare with ``names_compgcn``; the others remember paths too. Without
NCE the model keeps what ``align_joint`` sets, which contrasts candidates too."""


def ablate_retriever(
    data: Path, out: Path, schedule: Schedule, measured: int, ablations: Mapping[str, RetrieverRecipe] = ABLATIONS
) -> dict[str, Any]:
    """Train, save and measure each of ``ablations``; those already in ``out/ablations.json`` are not repeated."""
    source, held_out = TemplateDialogues.read(data), TemplateDialogues.read(data, "dev")
    table = out / "ablations.json"
    done: dict[str, Any] = json.loads(table.read_text()) if table.exists() else {}
    for name, recipe in ablations.items():
        if name in done:
            continue
        model = fit_retriever(source, out / name, schedule, recipe)
        save_retriever(model, out / name)
        report = measure_retriever(model, held_out, measured, recipe)
        done[name] = {"steps": schedule.steps, "batch": schedule.batch, **report}
        table.write_text(json.dumps(done, indent=1) + "\n")
    return done
