"""The Conv-FEVER corpus: inconsistent records made from consistent ones (Santhanam et al. 2021, section 4.1).

A consistent record (context, knowledge, response) gives, each where it applies:

- ``pair_response``, ``pair_knowledge``: the response, or the knowledge, of a random other conversation;
- ``negate_response``, ``negate_knowledge``: "not" or "n't" put in or taken out after one of ``VERBS``;
- ``swap_context``, ``swap_knowledge``: an entity that the response shares with the context, or with the knowledge,
  replaced there by another entity of the index of all contexts, or of all knowledge. The response stays as it is.

Where the paper is silent this follows the code of Kryscinski et al. 2020, whose strategies it takes over: only
lower-case verbs count, of two neighbouring verbs the first is negated, and nothing is negated before "no". An index
holds the entities of the whole corpus, because figure 2 of the paper swaps in a year that its own knowledge lacks; the
new entity has the label of the old one, as there.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from groundwire.evaluate.twins.negation import negate

RecordKind: TypeAlias = Literal[
    "consistent",
    "pair_response",
    "pair_knowledge",
    "negate_response",
    "negate_knowledge",
    "swap_context",
    "swap_knowledge",
]
KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
_ATTEMPTS = 32
"""Random draws after which a corruption does not apply."""

EntityFinder: TypeAlias = Callable[[str], Iterable[tuple[str, str]]]
"""Finds the entities of a text, as (text, label) pairs."""


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """A response, the knowledge it should rest on, and the turns before it."""

    context: tuple[str, ...]
    knowledge: str
    response: str
    dialogue: str = ""
    """Names the conversation, whose records are not paired; a record without a name is one by itself."""


@dataclass(frozen=True, slots=True)
class ConvFeverExample:
    """A record of the corpus and its kind."""

    record: CorpusRecord
    kind: RecordKind

    @property
    def consistent(self) -> bool:
        """Whether the response rests on its knowledge."""
        return self.kind == "consistent"


def make_examples(
    records: Sequence[CorpusRecord], entities: EntityFinder, seed: int = 13, kinds: Sequence[RecordKind] = KINDS
) -> Iterator[ConvFeverExample]:
    """Yield every record and its corruptions of ``kinds``, record by record; the same for the same seed.

    The paper's corpus has 68,957 consistent records, two pairings of each, 107,845 negations and 73,178 swaps.
    """
    in_context = [_list_distinct(entities("\n".join(record.context))) for record in records]
    in_knowledge = [_list_distinct(entities(record.knowledge)) for record in records]
    context_index, knowledge_index = EntityIndex.build(in_context), EntityIndex.build(in_knowledge)
    for index, record in enumerate(records):
        rng = random.Random(seed * 1_000_003 + index)
        # All kinds are made, so that leaving one out does not change the random draws of the others.
        examples = (
            ConvFeverExample(record, "consistent"),
            pair_response(record, records, rng),
            pair_knowledge(record, records, rng),
            negate_response(record, rng),
            negate_knowledge(record, rng),
            swap_context(record, in_context[index], context_index, rng),
            swap_knowledge(record, in_knowledge[index], knowledge_index, rng),
        )
        yield from (example for example in examples if example is not None and example.kind in kinds)


def count_kinds(examples: Iterable[ConvFeverExample]) -> Counter[RecordKind]:
    """The number of examples of each kind: Table 3 of the paper."""
    return Counter(example.kind for example in examples)


def pair_response(record: CorpusRecord, others: Sequence[CorpusRecord], rng: random.Random) -> ConvFeverExample | None:
    """The record with the response of another conversation; None when no other conversation has another response."""
    other = _draw_other(record, others, rng, lambda r: r.response)
    return ConvFeverExample(replace(record, response=other.response), "pair_response") if other else None


def pair_knowledge(record: CorpusRecord, others: Sequence[CorpusRecord], rng: random.Random) -> ConvFeverExample | None:
    """The record with the knowledge of another conversation; None when no other conversation has other knowledge."""
    other = _draw_other(record, others, rng, lambda r: r.knowledge)
    return ConvFeverExample(replace(record, knowledge=other.knowledge), "pair_knowledge") if other else None


def negate_response(record: CorpusRecord, rng: random.Random) -> ConvFeverExample | None:
    """The record with a negated response; None when no verb of ``VERBS`` allows it."""
    text = negate(record.response, rng)
    return ConvFeverExample(replace(record, response=text), "negate_response") if text is not None else None


def negate_knowledge(record: CorpusRecord, rng: random.Random) -> ConvFeverExample | None:
    """The record with negated knowledge; None when no verb of ``VERBS`` allows it."""
    text = negate(record.knowledge, rng)
    return ConvFeverExample(replace(record, knowledge=text), "negate_knowledge") if text is not None else None


def swap_context(
    record: CorpusRecord, entities: Iterable[tuple[str, str]], index: EntityIndex, rng: random.Random
) -> ConvFeverExample | None:
    """The record with an entity of its context that the response mentions replaced everywhere in the context.

    ``entities`` are the entities of the context, ``index`` has the entities of all contexts. None when the response
    mentions no entity of the context, or when no other entity can replace it.
    """
    chosen = _choose_swap(record.response, entities, index, rng)
    if chosen is None:
        return None
    context = tuple(substitute(turn, *chosen) for turn in record.context)
    return ConvFeverExample(replace(record, context=context), "swap_context") if context != record.context else None


def swap_knowledge(
    record: CorpusRecord, entities: Iterable[tuple[str, str]], index: EntityIndex, rng: random.Random
) -> ConvFeverExample | None:
    """The record with an entity of its knowledge that the response mentions replaced everywhere in the knowledge."""
    chosen = _choose_swap(record.response, entities, index, rng)
    if chosen is None:
        return None
    knowledge = substitute(record.knowledge, *chosen)
    return (
        ConvFeverExample(replace(record, knowledge=knowledge), "swap_knowledge")
        if knowledge != record.knowledge
        else None
    )


@dataclass(frozen=True)
class EntityIndex:
    """The distinct entities of many texts, by label."""

    by_label: Mapping[str, tuple[str, ...]]

    @classmethod
    def build(cls, texts: Iterable[Iterable[tuple[str, str]]]) -> EntityIndex:
        """Index the entities of each text."""
        labels: dict[str, set[str]] = {}
        for entities in texts:
            for text, label in entities:
                labels.setdefault(label, set()).add(text)
        return cls({label: tuple(sorted(members)) for label, members in sorted(labels.items())})

    def draw_other(self, text: str, label: str, rng: random.Random) -> str | None:
        """Another entity of ``label``; neither contains the other. None when ``_ATTEMPTS`` draws find none."""
        pool = self.by_label.get(label, ())
        for _ in range(_ATTEMPTS if pool else 0):
            other = rng.choice(pool)
            if not (has_entity(other, text) or has_entity(text, other)):
                return other
        return None


def has_entity(text: str, entity: str) -> bool:
    """Whether ``text`` contains ``entity`` as whole words, in any case."""
    return _word_pattern(entity).search(text) is not None


def substitute(text: str, old: str, new: str) -> str:
    """``text`` with every mention of ``old`` replaced by ``new``."""
    return _word_pattern(old).sub(lambda match: new, text)


def _choose_swap(
    response: str, entities: Iterable[tuple[str, str]], index: EntityIndex, rng: random.Random
) -> tuple[str, str] | None:
    shared = [(text, label) for text, label in entities if has_entity(response, text)]
    rng.shuffle(shared)
    for text, label in shared:
        other = index.draw_other(text, label, rng)
        if other is not None:
            return text, other
    return None


def _draw_other(
    record: CorpusRecord, others: Sequence[CorpusRecord], rng: random.Random, field: Callable[[CorpusRecord], str]
) -> CorpusRecord | None:
    for _ in range(_ATTEMPTS if others else 0):
        other = rng.choice(others)
        same = other is record or (record.dialogue and other.dialogue == record.dialogue)
        if not same and field(other) != field(record):
            return other
    return None


def _list_distinct(entities: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The entities once each, in order, without surrounding spaces."""
    return list(dict.fromkeys((text.strip(), label) for text, label in entities if text.strip()))


def _word_pattern(entity: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(entity)}(?!\w)", re.IGNORECASE)
