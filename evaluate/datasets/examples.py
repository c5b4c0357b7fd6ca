"""Labelled examples: what every dataset is read into."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence

import msgspec

from groundwire.engine import Request
from groundwire.engine.schema.base import Record
from groundwire.engine.schema.explanations import PassageRange
from groundwire.runtime.errors import InvalidRequest


class Example(Record, frozen=True):
    """One response, the knowledge it should be consistent with, and its human labels."""

    id: str
    """Unique within its set."""
    response: str
    knowledge: tuple[str, ...]
    history: tuple[str, ...] = ()
    """Utterances, oldest first."""
    label: int | None = None
    """1 consistent, 0 inconsistent; None where it has no such label."""
    grade: float | None = None
    """A rating on a scale, higher is more faithful; None where there is none."""
    verifiable: bool | None = None
    """Whether it states anything that can be checked; None where that is not labelled."""
    hallucinated: bool | None = None
    """Whether it says what the knowledge does not, right or wrong; None where that is not labelled."""
    unsupported: tuple[tuple[int, int], ...] | None = None
    """First character, and the one after the last, of each unsupported part of the response; empty where a person found
    none, None where it is not labelled."""
    evidence: tuple[PassageRange, ...] | None = None
    """Parts of the knowledge that support the response; empty where a person found none, None where it is not
    labelled."""
    system: str = ""
    """What or who gave the response."""
    context: str = ""
    """Responses with the same non-empty context answer the same turn and may be ranked against each other."""
    dialogue: str = ""
    """Responses with the same non-empty dialogue are turns of one conversation."""
    source: str = ""
    """Part of the set, for breakdowns."""
    language: str = ""
    """Empty where it is not said."""
    scores: tuple[tuple[str, float], ...] = ()
    """Name and value of each column with the scores of another tool."""

    @property
    def is_labelled(self) -> bool:
        """Whether there is something to measure a verdict or a metric by."""
        return any(label is not None for label in (self.label, self.grade, self.verifiable))

    @property
    def request(self) -> Request:
        """What the engine scores."""
        return Request(self.response, self.knowledge, self.history)

    @property
    def group(self) -> str:
        """Knowledge and history, in sixteen hexadecimal digits: examples that share both are drawn together."""
        return hashlib.sha256(msgspec.json.encode((self.knowledge, self.history))).hexdigest()[:16]

    @property
    def digest(self) -> str:
        """Response and knowledge, in twelve hexadecimal digits; case and spaces are ignored."""
        texts = [_normalize(text) for text in (self.response, *self.knowledge)]
        return hashlib.sha256(msgspec.json.encode(texts)).hexdigest()[:12]


def sample_examples(examples: Sequence[Example], count: int, seed: int) -> list[Example]:
    """At most ``count`` examples, in their order; 0 takes all.

    Examples of one context are drawn together or not at all.
    """
    if not count or count >= len(examples):
        return list(examples)
    groups: dict[tuple[str, str], list[int]] = {}
    for index, example in enumerate(examples):
        group = ("context", example.context) if example.context else ("example", example.id)
        groups.setdefault(group, []).append(index)
    drawn = list(groups.values())
    random.Random(seed).shuffle(drawn)
    chosen: list[int] = []
    for indices in drawn:
        if len(chosen) + len(indices) <= count:
            chosen += indices
    return [examples[index] for index in sorted(chosen)]


def shuffle_knowledge(examples: Sequence[Example], seed: int, same_dialogue: bool = False) -> list[Example]:
    """Every example with the knowledge of another, drawn at random, and so with the label inconsistent.

    The test of the Q² paper's table 10: a metric that reads the knowledge gives such responses very low values. With
    ``same_dialogue`` the other is a turn of its dialogue, and examples whose dialogue has no other knowledge are left
    out. InvalidRequest when none has another knowledge to draw from.
    """
    rng = random.Random(seed)
    pools: dict[str, set[tuple[str, ...]]] = {}
    for example in examples:
        pools.setdefault(example.dialogue if same_dialogue else "", set()).add(example.knowledge)
    if same_dialogue:
        pools.pop("", None)
    candidates = {dialogue: sorted(pool) for dialogue, pool in pools.items() if len(pool) > 1}
    if not candidates:
        raise InvalidRequest(
            "No dialogue has turns with different knowledge; name the dialogue of each row in its field `dialogue`."
            if same_dialogue
            else "All examples have the same knowledge; there is no other to give them."
        )
    shuffled = []
    for example in examples:
        others = candidates.get(example.dialogue if same_dialogue else "")
        if others is None:
            continue
        drawn = rng.randrange(len(others) - 1)
        # The last one takes the place of the example's own, which is not drawn.
        knowledge = others[-1] if others[drawn] == example.knowledge else others[drawn]
        shuffled.append(msgspec.structs.replace(example, knowledge=knowledge, label=0, grade=None))
    return shuffled


def label_by_hallucination(examples: Sequence[Example]) -> list[Example]:
    """Every example with the label inconsistent where people called it a hallucination, and consistent where not.

    A response that is true and not in the knowledge is one. InvalidRequest when no example has such a label.
    """
    if all(example.hallucinated is None for example in examples):
        raise InvalidRequest("No example says whether it is a hallucination; the sets of Santhanam et al. do.")
    return [
        msgspec.structs.replace(
            example, label=None if example.hallucinated is None else int(not example.hallucinated), grade=None
        )
        for example in examples
    ]


def flag_unshared_knowledge(examples: Iterable[Example], others: Iterable[Example]) -> list[bool]:
    """For each of ``examples``, whether it shares no passage of knowledge with ``others``; case and spaces are ignored.

    What is tuned on examples that share a passage leaks information about the others.
    """
    seen = {_normalize(passage) for other in others for passage in other.knowledge}
    return [not any(_normalize(passage) in seen for passage in example.knowledge) for example in examples]


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())
