"""Reads the labels of a classifier from its checkpoint, and never guesses them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundwire.runtime.errors import ExportError

_NLI = {
    "entailment": ("entailment", "entail", "entails", "supports", "supported", "e"),
    "neutral": ("neutral", "not enough info", "nei", "n"),
    "contradiction": ("contradiction", "contradict", "contradicts", "refutes", "refuted", "c"),
}
_SUPPORTED = frozenset(
    {*_NLI["entailment"], "correct", "consistent", "faithful", "factual", "grounded", "attributable", "verifiable", "o"}
)
_NLI_NAME = {synonym: label for label, synonyms in _NLI.items() for synonym in synonyms}


def read_labels(role: str, id2label: dict[int, str], chosen: Sequence[str] | None) -> tuple[str, ...]:
    """Return the role's labels in the order of its logits.

    ``chosen`` overrides the checkpoint. Labels of the role ``nli`` become entailment, neutral and contradiction. Raises
    ExportError when the checkpoint only names LABEL_0, LABEL_1, … and no labels are given: the order of logits differs
    between checkpoints, and a wrong guess inverts every verdict.
    """
    named = tuple(id2label[index] for index in sorted(id2label))
    labels = tuple(chosen) if chosen is not None else named
    if len(labels) != len(named):
        raise ExportError(f"{len(labels)} labels given ({', '.join(labels)}); the checkpoint has {len(named)} logits.")
    if len(set(labels)) != len(labels):
        raise ExportError(f"Labels must differ: {', '.join(labels)}.")
    if any(re.fullmatch(r"LABEL_\d+", label, re.IGNORECASE) for label in labels):
        raise ExportError(
            f"The checkpoint of {role!r} does not say what its logits mean (id2label: {', '.join(named)}). "
            "Look it up in the checkpoint's documentation and give the labels in that order, "
            "for example --labels contradiction,entailment,neutral."
        )
    return _rename_nli(labels) if role == "nli" else labels


def name_one_logit(
    role: str, name: str, chosen: Sequence[str] | None, supported: Sequence[str] | None
) -> tuple[str, str]:
    """Return the labels of a low and a high logit of a classifier that has one, which the checkpoint calls ``name``.

    ``chosen`` are both, or the high one. ExportError when no one says what a high logit means.
    """
    named = tuple(chosen if chosen is not None else supported or ())
    if len(named) == 2:
        return named[0], named[1]
    if len(named) > 2:
        raise ExportError(f"{len(named)} labels given ({', '.join(named)}); the checkpoint has one logit.")
    high = named[0] if named else name
    if re.fullmatch(r"LABEL_\d+", high, re.IGNORECASE):
        raise ExportError(
            f"The checkpoint of {role!r} has one logit and does not say what a high one means. Look it up in the "
            "checkpoint's documentation and give the labels of a low and of a high one, for example "
            "--labels unsupported,supported."
        )
    return f"not {high}", high


def find_supported_labels(role: str, labels: tuple[str, ...], chosen: Sequence[str] | None) -> tuple[str, ...]:
    """Return the labels of a detector that mean "consistent": ``chosen``, or the labels with a usual name.

    ExportError when no label has such a name, or all have: then the decision would be a guess.
    """
    consistent = (
        tuple(chosen) if chosen is not None else tuple(label for label in labels if _normalize(label) in _SUPPORTED)
    )
    unknown = [label for label in consistent if label not in labels]
    if unknown or not consistent or len(consistent) == len(labels):
        reason = (
            f"{', '.join(unknown)} is not one of them"
            if unknown
            else "their names do not show which of them mean that a response is consistent"
        )
        raise ExportError(
            f"{role!r} has the labels {', '.join(labels)}; {reason}. Give the labels that mean consistent "
            "with --set supported=…, for example --set supported=SUPPORTS."
        )
    return consistent


def _normalize(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", label.strip().lower())


def _rename_nli(labels: tuple[str, ...]) -> tuple[str, ...]:
    named = tuple(_NLI_NAME.get(_normalize(label), label) for label in labels)
    if sorted(named) != sorted(_NLI):
        raise ExportError(
            f"The role nli needs entailment, neutral and contradiction; the checkpoint has {', '.join(labels)}. "
            "Give them with --labels, in the order of the logits."
        )
    return named
