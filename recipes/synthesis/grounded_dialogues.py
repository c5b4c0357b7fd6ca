"""Makes grounded dialogues from dialogues without knowledge: facts that several dialogues state.

The speakers of Topical-Chat read the same articles, so a fact of one speaker ("the visitors' locker room is painted
pink") is stated by others in other words. A turn whose sentence shares its rare words with a sentence of another
dialogue becomes a row: the statements of the other turn are the knowledge, the turn is the response, and the turns
before it are the history. Rows about articles (``prompts``: questions and statements from SQuAD) are mixed in, because
chats contain few facts about the world.

A row is ``{"knowledge", "history", "response"}``, as the recipe ``generator`` and ``groundwire generate`` read it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from ..common.corpus import find_sentence_bounds, read_rows, word_coverage
from .prompts import PromptSampler
from .weak_labels import NOT_VERIFIABLE, assign_weak_label

Split: TypeAlias = Literal["train", "held_out"]
SPLITS: dict[Split, tuple[str, ...]] = {"train": ("valid_freq", "valid_rare"), "held_out": ("test_freq",)}
"""Topical-Chat's splits: other studies label continuations of its test split, so nothing is trained on that."""
SIMILAR = 0.55
"""Cosine of two sentences' TF-IDF vectors from which they state the same fact ..."""
WEIGHT = 12.0
"""... if the inverse document frequencies of their shared words, in nats, sum to at least this."""
WORDS = (7, 40)
"""Least and most words of a sentence that may state a fact; a response has no more than the latter."""
_AT_ONCE = 1000


class DialogueSentence(NamedTuple):
    """A sentence, its dialogue and its turn."""

    text: str
    dialogue: int
    turn: int


def make_grounded_dialogues(
    data: Path, split: Split, articles: float = 0.5, seed: int = 13, grounded: float = 0.0
) -> list[dict[str, Any]]:
    """The rows of a split, shuffled; ``articles`` is the share of rows about articles, 0 up to but not 1.

    ``data`` is the directory of training sets. Articles come from SQuAD's training or development split. Rows are kept
    if their knowledge contains at least the share ``grounded`` of the response's words: unlike FaithDial's responses,
    responses of chats also say much that is in no document.
    """
    if not 0 <= articles < 1:
        raise ValueError(f"articles={articles}; allowed are 0 up to, but not, 1.")
    rng = random.Random(seed)
    chats = [tuple(row["turns"]) for row in read_rows(data / "topical_chat.jsonl.gz") if row["split"] in SPLITS[split]]
    out = list(pair_dialogues(chats, rng))
    prompts = PromptSampler.read(data, "train" if split == "train" else "dev")
    for _ in range(int(len(out) * articles / (1 - articles))):
        prompt = prompts.draw_grounded(rng.choice(prompts.questions), rng)
        out.append({"knowledge": prompt.document, "history": [prompt.history], "response": prompt.response})
    rng.shuffle(out)
    return [row for row in out if word_coverage(row["response"], row["knowledge"]) >= grounded]


def pair_dialogues(chats: Sequence[Sequence[str]], rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield a row for every turn that states a fact which another dialogue of ``chats`` states too."""
    sentences = list(_list_statements(chats))
    statements: dict[tuple[int, int], list[str]] = {}
    for sentence in sentences:
        statements.setdefault((sentence.dialogue, sentence.turn), []).append(sentence.text)
    matches = {sentences[first][1:]: sentences[second][1:] for first, second in _match_facts(sentences)}
    for (dialogue, turn), source in matches.items():
        response = chats[dialogue][turn].strip()
        if turn == 0 or len(response.split()) > WORDS[1]:
            continue
        yield {
            "knowledge": " ".join(statements[source]),
            "history": [text.strip() for text in chats[dialogue][max(0, turn - rng.randint(1, 3)) : turn]],
            "response": response,
        }


def _list_statements(chats: Sequence[Sequence[str]]) -> Iterator[DialogueSentence]:
    for dialogue, turns in enumerate(chats):
        for number, turn in enumerate(turns):
            for start, end in find_sentence_bounds(turn):
                text = turn[start:end].strip()
                plain = WORDS[0] <= len(text.split()) <= WORDS[1] and not text.endswith("?")
                # "Thank you for chatting with me" occurs in many dialogues, and states nothing.
                if plain and assign_weak_label(text) != NOT_VERIFIABLE:
                    yield DialogueSentence(text, dialogue, number)


def _match_facts(sentences: Sequence[DialogueSentence]) -> Iterator[tuple[int, int]]:
    """Yield the indices of a sentence and of its nearest one in another dialogue, where both state the same fact."""
    if not sentences:
        return
    weigh = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    vectors = weigh.fit_transform([sentence.text for sentence in sentences])
    present, rarity = (vectors > 0).astype(np.float32), weigh.idf_
    dialogues = np.array([sentence.dialogue for sentence in sentences])
    for start in range(0, len(sentences), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        cosines = (vectors[part] @ vectors.T).toarray()
        cosines[dialogues[part, None] == dialogues[None, :]] = 0
        nearest = cosines.argmax(1)
        shared = present[part].multiply(present[nearest])
        weights = np.asarray(shared @ rarity)
        for row, other in enumerate(nearest):
            if cosines[row, other] >= SIMILAR and weights[row] >= WEIGHT:
                yield start + row, int(other)
