"""Writes the model card of ``bundles/generator``, ``README.md``, and the figures that it is made from, ``report.json``.

Nothing in it is typed in: steps and perplexity are from the reports of the checkpoints, responses from the tables of
``decoding_table``, size and parity from the bundle's manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from groundwire.generation import GenerationOptions
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ResponseGeneratorRole

from .bundle import ROLE, read_stages
from .recipe import SMALL, load_base_model

ROWS = {
    "held_out.jsonl": "turns of Topical-Chat's test split",
    "q2_wow_600.jsonl": "turns of Wizard of Wikipedia, unlike anything that it was trained on",
}
"""What the rows of docs/quality_generation.md are; other files go by their names."""
BART_LARGE = 406e6
"""Weights of the generator of the PMI-Faith paper."""

_CARD = """\
# The generator bundle

A small response generator, so that `groundwire generate` writes responses offline, by PMI-Decode. Version {version};
{precision} for CPUs; English. {size:.1f} MB.

| role | model | trained on |
|---|---|---|
| `{role}` | {model} | {training} |

[docs/quality_generation.md](../../docs/quality_generation.md) has the commands that make it. Nothing of Topical-Chat's
test split, of SQuAD's development articles or of a labelled set was trained on. It is {times:.0f} times smaller than
the paper's BART-large, and weaker: it says a sentence that rests on the knowledge rather than converse. Check its
responses with `--metrics`.

## How good it is
Perplexity of {responses} held-out responses: {perplexity:.1f} with their knowledge and
{perplexity_without_knowledge:.1f} without it; the knowledge makes {knowledge_helps:.0%} of them more probable.

{figures}

α = 0 is plain decoding; α = {alpha:g} with top-p {top_p:g} is the default. {decoding}
Overlap precision is the share of a response's content words that the knowledge has, NLI the mean of 1 (entailed),
½ (neutral) and 0 (contradicted), ROUGE-L the likeness to a person's response. `report.json` has every setting.

Parity with the float32 PyTorch checkpoint is in `bundle.json`: {parity}.

## Licences
The weights are derived from all-MiniLM-L6-v2 (Apache-2.0), whose word embeddings they started from, SQuAD 1.1
(CC BY-SA 4.0) and Topical-Chat (CDLA-Sharing 1.0). Treat them as `{license}`.
"""


def write_card(directory: Path, checkpoints: Path, tables: Sequence[Path]) -> None:
    """Write ``README.md`` and ``report.json`` into the bundle ``directory``.

    ``checkpoints`` has the checkpoint that it was exported from, measured with ``--held-out``; ``tables`` are of
    ``decoding-table``. ValueError for a table of other weights, or without the default settings.
    """
    bundle = Bundle.open(directory)
    stages = read_stages(checkpoints)
    if "held_out" not in stages[ROLE]:
        raise ValueError(f"{checkpoints / ROLE / 'report.json'} measures nothing; train with --held-out.")
    measured = [read_table(path, bundle.manifest.digest()) for path in tables]
    text = render_card(bundle, stages, load_base_model(checkpoints / ROLE), measured)
    (directory / "README.md").write_text(text, encoding="utf-8")
    report = {
        "training": stages,
        "responses": [{**table, "cells": [_leave_out_examples(cell) for cell in table["cells"]]} for table in measured],
    }
    content = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    (directory / "report.json").write_text(content, encoding="utf-8")


def read_table(path: Path, digest: str) -> dict[str, Any]:
    """A table of ``decoding-table``; ValueError if it was measured on a bundle that does not have ``digest``."""
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if table["setup"].get("digest") != digest:
        raise ValueError(
            f"{path} was measured on a bundle with the digest {table['setup'].get('digest', 'unknown')}; this one has "
            f"{digest}. Measure it again with `python -m groundwire.recipes decoding-table`."
        )
    return table


def render_card(
    bundle: Bundle, stages: Mapping[str, Mapping[str, Any]], model: Any, tables: Sequence[Mapping[str, Any]]
) -> str:
    """The model card; ``stages`` as ``read_stages`` returns them, ``model`` is the checkpoint's."""
    role = bundle.manifest.roles[ROLE]
    assert isinstance(role, ResponseGeneratorRole)
    assert role.parity is not None
    weights, words = model.num_parameters(), model.get_input_embeddings().weight.numel()
    runs = [f"{run['steps']} steps of {SMALL.batch} on {run['rows']:,} rows" for run in [*stages.values()][::-1]]
    settings = GenerationOptions()
    return _CARD.format(
        version=bundle.manifest.version,
        precision=role.precision,
        size=bundle.manifest.size / 1e6,
        role=ROLE,
        model=f"GPT-2 of {role.layers} layers of {role.heads * role.head_dim}: {weights / 1e6:.1f} million weights, "
        f"{words / 1e6:.1f} of them word embeddings",
        training="SQuAD 1.1 and Topical-Chat, by the recipe `lm` of the compact bundle; then dialogues whose responses "
        f"rest on knowledge, made from the same two: {', '.join(runs)}",
        times=BART_LARGE / weights,
        **stages[ROLE]["held_out"],
        figures="\n".join(_list_figures(tables, settings)),
        alpha=settings.alpha,
        top_p=settings.pmi_top_p,
        decoding=" ".join(dict.fromkeys(_describe_decoding(table["setup"]) for table in tables)),
        parity=f"{role.parity.decision_agreement:.1%} of next tokens"
        + (f", {len(role.parity.kept_float)} of its matrices left in float32" if role.parity.kept_float else ""),
        license=bundle.manifest.license,
    )


def _list_figures(tables: Sequence[Mapping[str, Any]], settings: GenerationOptions) -> Iterator[str]:
    yield "| responses | α | PMI-Faith (nats per token) | overlap precision | NLI | ROUGE-L | words | cut off |"
    yield "|---|---|---|---|---|---|---|---|"
    for table in tables:
        cells = {cell["alpha"]: cell for cell in table["cells"] if cell["pmi_top_p"] == settings.pmi_top_p}
        rows = table["setup"]["rows"]
        if settings.alpha not in cells:
            raise ValueError(
                f"The table of {rows} has no cell of alpha {settings.alpha:g} and top-p {settings.pmi_top_p:g}, "
                "the default settings; measure them too."
            )
        for alpha in sorted({0.0, settings.alpha} & cells.keys()):
            cell = cells[alpha]
            yield (
                f"| {cell['rouge_l']['count']} {ROWS.get(rows, f'rows of `{rows}`')} | {alpha:g} "
                f"| {_format_mean(cell['pmi'], 2)} | {cell['overlap_precision']['value']:.2f} "
                f"| {cell['nli']['value']:.2f} | {_format_mean(cell['rouge_l'], 3)} | {cell['words']:.1f} "
                f"| {cell['unfinished']:.0%} |"
            )


def _format_mean(mean: Mapping[str, float], digits: int) -> str:
    return f"{mean['value']:.{digits}f} ± {mean['half_width']:.{digits}f}"


def _describe_decoding(setup: Mapping[str, Any]) -> str:
    return (
        f"Decoding is {setup['method'].replace('_', ' ')} of at most {setup['max_new_tokens']} tokens; the bundle "
        f"`{setup['scorer']}` scores."
    )


def _leave_out_examples(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name != "examples"}
