"""Labels of a classifier, read from its checkpoint and never guessed."""

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


def read(role: str, id2label: dict[int, str], given: Sequence[str] | None) -> tuple[str, ...]:
    """The role's labels in the order of its logits.

    ``given`` overrides the checkpoint. Labels of the role ``nli`` become entailment, neutral and contradiction. Raises
    ExportError when the checkpoint only says LABEL_0, LABEL_1, … and nothing is given: the order of logits differs
    between checkpoints, and a wrong guess turns every verdict round.
    """
    own = tuple(id2label[index] for index in sorted(id2label))
    labels = tuple(given) if given is not None else own
    if len(labels) != len(own):
        raise ExportError(f"{len(labels)} labels given ({', '.join(labels)}); the checkpoint has {len(own)} logits.")
    if len(set(labels)) != len(labels):
        raise ExportError(f"Labels must differ: {', '.join(labels)}.")
    if any(re.fullmatch(r"LABEL_\d+", label, re.IGNORECASE) for label in labels):
        raise ExportError(
            f"The checkpoint of {role!r} does not say what its logits mean (id2label: {', '.join(own)}). "
            "Look it up in the checkpoint's documentation and give the labels in that order, "
            "for example --labels contradiction,entailment,neutral."
        )
    return _nli(labels) if role == "nli" else labels


def supported(role: str, labels: tuple[str, ...], given: Sequence[str] | None) -> tuple[str, ...]:
    """Those of a detector's labels that mean "consistent": ``given``, or the ones with a usual name.

    ExportError when none has, or all have: then the decision would be a guess.
    """
    found = tuple(given) if given is not None else tuple(label for label in labels if _plain(label) in _SUPPORTED)
    unknown = [label for label in found if label not in labels]
    if unknown or not found or len(found) == len(labels):
        what = f"names {', '.join(unknown)}, which it lacks" if unknown else "cannot be told from them"
        raise ExportError(
            f"{role!r} has the labels {', '.join(labels)}; which of them mean that a response is consistent {what}. "
            "Give them with --supported, for example --supported SUPPORTS."
        )
    return found


def _plain(label: str) -> str:
    return re.sub(r"[\s_-]+", " ", label.strip().lower())


def _nli(labels: tuple[str, ...]) -> tuple[str, ...]:
    named = tuple(_NLI_NAME.get(_plain(label), label) for label in labels)
    if sorted(named) != sorted(_NLI):
        raise ExportError(
            f"The role nli needs entailment, neutral and contradiction; the checkpoint has {', '.join(labels)}. "
            "Give them with --labels, in the order of the logits."
        )
    return named
