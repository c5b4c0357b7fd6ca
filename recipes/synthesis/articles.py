"""Paragraphs of encyclopedia articles, from several sources, as one list to draw sentences from."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.corpus import Squad, find_sentence_bounds, is_held_out, read_rows

PLAIN_TEXTS = ("text_wikipedia", "text_fever_intros", "text_wikitext_openings")
"""Files of paragraphs in ``more``."""
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|No|vs|Prof|Gen|Col|Sgt|Lt|Capt|Rev|Mt|Ft|Co|Inc|c))\.$"
)


@dataclass(frozen=True)
class Articles:
    """Paragraphs; ``members`` maps an article to the indices of its paragraphs."""

    texts: tuple[str, ...]
    keys: tuple[str, ...]
    """The article of each paragraph."""
    topics: tuple[str, ...]
    """What the article is about, where the source names it; empty elsewhere."""
    members: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, paragraphs: Iterable[tuple[str, str, str]]) -> Articles:
        """From (text, article, topic) of each paragraph."""
        texts: list[str] = []
        keys: list[str] = []
        topics: list[str] = []
        members: dict[str, list[int]] = {}
        for text, key, topic in paragraphs:
            members.setdefault(key, []).append(len(texts))
            texts.append(text)
            keys.append(key)
            topics.append(topic)
        frozen = {key: tuple(indices) for key, indices in members.items()}
        return cls(tuple(texts), tuple(keys), tuple(topics), frozen)

    @classmethod
    def read(cls, path: Path, split: str = "train") -> Articles:
        """A file of plain text, without its held-out articles or, with ``split`` dev, only these."""
        rows = ((row, str(row.get("doc", row.get("title", "")))) for row in read_rows(path))
        of_split = ((row, key) for row, key in rows if is_held_out(key) == (split == "dev"))
        return cls.of((_clean(row), f"{path.name}:{key}", row.get("title", "")) for row, key in of_split)

    @classmethod
    def from_squad(cls, squad: Squad) -> Articles:
        """The paragraphs of SQuAD."""
        return cls.of(
            zip(squad.contexts, squad.titles, (title.replace("_", " ") for title in squad.titles), strict=True)
        )

    def list_sentences(self, paragraph: int) -> list[str]:
        """The sentences of a paragraph; parts that were cut at an abbreviation are joined."""
        sentences: list[str] = []
        for start, end in find_sentence_bounds(self.texts[paragraph]):
            text = self.texts[paragraph][start:end].strip()
            if sentences and (
                len(text.split()) < 4 or len(sentences[-1].split()) < 4 or _ABBREVIATION.search(sentences[-1])
            ):
                sentences[-1] += f" {text}"
            else:
                sentences.append(text)
        return sentences

    def draw_other(self, paragraph: int, rng: random.Random, count: int = 2) -> list[int]:
        """Draw up to ``count`` other paragraphs of the same article."""
        others = self.members[self.keys[paragraph]]
        return [index for index in rng.sample(others, min(count + 1, len(others))) if index != paragraph][:count]


def _clean(row: dict[str, Any]) -> str:
    return " ".join(str(row["text"]).split())
