"""An untrained spaCy pipeline, for the span finder of tiny bundles."""

from __future__ import annotations

from pathlib import Path

import spacy
from spacy.training import Example

PATTERNS = [{"label": "MISC", "pattern": [rule]} for rule in ({"IS_TITLE": True}, {"LIKE_NUM": True})]


def pipeline(folder: Path) -> Path:
    """Write an English pipeline that labels capitalised words and numbers as entities; return ``folder``.

    Morphologizer and parser have random weights and find no nouns: they are there because a pipeline needs them.
    """
    if (folder / "config.cfg").exists():
        return folder
    nlp = spacy.blank("en")
    nlp.add_pipe("morphologizer")
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    nlp.add_pipe("entity_ruler")
    annotation = {
        "words": ["Dogs", "chase", "small", "cats", "."],
        "pos": ["X"] * 5,
        "heads": [1, 1, 3, 1, 1],
        "deps": ["nsubj", "ROOT", "amod", "obj", "punct"],
    }
    nlp.config["initialize"]["components"]["entity_ruler"] = {"patterns": PATTERNS}
    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc("Dogs chase small cats."), annotation)])
    nlp.to_disk(folder)
    return folder
