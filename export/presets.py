"""Published checkpoints that a paper used, or the nearest public ones, as ready sets of roles."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from groundwire.runtime.bundle import Template, locate
from groundwire.runtime.errors import BundleError, ExportError

from .options import RoleOptions, Wanted

SPACY_PIPELINE = "en_core_web_sm"
"""What the Q² authors find spans with."""


def preset(name: str) -> dict[str, RoleOptions]:
    """The roles of the preset ``name``; ExportError for a name that is none.

    >>> roles = override(preset("paper-q2"), "qa", precision="fp16", max_tokens=384)
    >>> roles["qa"].source
    'ktrapeznikov/albert-xlarge-v2-squad-v2'
    """
    try:
        return PRESETS[name]()
    except KeyError as error:
        raise ExportError(f"Unknown preset {name!r}; presets are {', '.join(PRESETS)}.") from error


def override(
    roles: Mapping[str, RoleOptions],
    role: str,
    *,
    source: str | None = None,
    revision: str | None = None,
    precision: Wanted | None = None,
    labels: tuple[str, ...] | None = None,
    template: Template | None = None,
    max_tokens: int | None = None,
) -> dict[str, RoleOptions]:
    """``roles`` with one of them changed; what is None stays.

    With another ``source`` the role's labels, prefix and revision are forgotten, because they belonged to the former
    checkpoint. ExportError when ``roles`` has no such role and no source is given.
    """
    if role not in roles and source is None:
        raise ExportError(f"The set has no role {role!r} to change; it has {', '.join(roles)}. Give its source.")
    options = roles.get(role) or RoleOptions(source or "")
    if source is not None and source != options.source:
        options = RoleOptions(source, precision=options.precision, template=options.template)
    options = replace(
        options,
        revision=revision or options.revision,
        precision=precision or options.precision,
        labels=labels or options.labels,
        template=template or options.template,
        max_tokens=max_tokens or options.max_tokens,
    )
    return {**roles, role: options}


def _paper_q2() -> dict[str, RoleOptions]:
    """Q² at the sizes of the paper.

    The authors' NLI model is AllenNLP's RoBERTa-large on SNLI, which is no transformers checkpoint; this takes a public
    three-way RoBERTa-large that saw SNLI, MNLI, FEVER and ANLI, with its own label order.
    """
    return {
        "qg": RoleOptions("mrm8488/t5-base-finetuned-question-generation-ap", strip_prefix="question: "),
        "qa": RoleOptions("ktrapeznikov/albert-xlarge-v2-squad-v2"),
        "nli": RoleOptions(
            "ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli", labels=("entailment", "neutral", "contradiction")
        ),
        "spans": RoleOptions(_spans()),
    }


def _paper_q2_small() -> dict[str, RoleOptions]:
    """The same roles several times smaller: T5-small, ALBERT-base, RoBERTa-base.

    For machines that the paper's sizes are too slow on; its scores are not the paper's.
    """
    return {
        "qg": RoleOptions("valhalla/t5-small-qg-prepend", template=Template("answer: {answer} context: {context}")),
        "qa": RoleOptions("twmkn9/albert-base-v2-squad2"),
        "nli": RoleOptions("cross-encoder/nli-roberta-base", labels=("contradiction", "entailment", "neutral")),
        "spans": RoleOptions(_spans()),
    }


def _spans() -> str:
    """The installed spaCy pipeline of the paper, else the one of the embedded bundle."""
    if importlib.util.find_spec(SPACY_PIPELINE) is None:
        try:
            embedded = locate("compact") / "spans"
        except BundleError:
            return SPACY_PIPELINE
        if Path(embedded, "config.cfg").is_file():
            return str(embedded)
    return SPACY_PIPELINE


PRESETS: Mapping[str, Callable[[], dict[str, RoleOptions]]] = MappingProxyType(
    {"paper-q2": _paper_q2, "paper-q2-small": _paper_q2_small}
)
"""By name; each call makes a fresh set."""
