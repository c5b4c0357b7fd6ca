"""Makes dialogues about a knowledge graph from its triples, by templates: training data of critic and retriever.

A dialogue has one to three turns of history, a neighbourhood of the graph, and a response that states one to three
facts of it, with the range of every entity it mentions and the triples stated with each. The wording of about eighty
relations is hand-written (``phrases.tsv``), most of them about films; others get a generic wording. Graphs name the
same relation differently and in both directions, so a dialogue shows each of its relations as the data name it or as
another graph might.

The source is FB15k-237. It has no dates, so films get an invented year: a response is checked against the triples that
are shown, not against the world.
"""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from groundwire.runtime.triples import Triple, readable, upright

from ..common.phrases import RelationPhrases, read_phrases
from ..common.sentence_pieces import EntityMention, EntityPiece, Pieces, fill_template, join_pieces
from ..common.triple_index import YEAR, Split, TripleIndex, make_years, read_triples
from . import small_talk

FILM_SHARE, OTHER_SHARE, GENERIC_SHARE = 0.5, 0.4, 0.1
"""Shares of the dialogues: about relations of films, about others with hand-written phrases, and about the rest."""
DISTRACTORS = (0, 1, 2, 2, 3, 3, 4, 5, 6, 8, 8, 16)
"""Numbers of triples shown beside the stated ones, to draw from."""
HELD_OUT = 5
"""One phrase of so many is kept for development and test."""


class GraphDialogue(msgspec.Struct, frozen=True):
    """A response, its history and the triples it should rest on."""

    history: tuple[str, ...]
    """Turns before the response, oldest first."""
    triples: tuple[Triple, ...]
    """The neighbourhood that is shown, in random order; it includes the stated triples."""
    response: str
    mentions: tuple[EntityMention, ...]
    """Disjoint, in the order of the text."""

    def stated_triples(self) -> tuple[Triple, ...]:
        """The triples that the response states, each once."""
        return tuple(dict.fromkeys(triple for mention in self.mentions for triple in mention.triples))


class TemplateDialogues:
    """Draws dialogues."""

    def __init__(self, index: TripleIndex, triples: Sequence[Triple], part: str = "all") -> None:
        """``triples`` are the facts that responses state; ``part`` of the phrases: ``train``, ``held_out`` or ``all``.

        ValueError without triples.
        """
        self.index = index
        self._part = part
        self._by_relation: dict[str, list[Triple]] = defaultdict(list)
        for triple in triples:
            self._by_relation[triple.predicate].append(triple)
        if not self._by_relation:
            raise ValueError(
                "There are no triples to talk about; give triples of relations other than triple_index.IGNORED."
            )
        phrases = read_phrases()
        groups: dict[str, list[str]] = defaultdict(list)
        for relation in self._by_relation:
            film = relation.startswith(("/film/", "/media_common/")) or relation == YEAR
            groups["generic" if relation not in phrases else "film" if film else "other"].append(relation)
        shares = {"film": FILM_SHARE, "other": OTHER_SHARE, "generic": GENERIC_SHARE}
        self._groups = [
            (relations, [len(self._by_relation[name]) ** 0.5 for name in relations], shares[group])
            for group, relations in groups.items()
        ]

    @classmethod
    def read(cls, data: Path, split: Split = "train") -> TemplateDialogues:
        """Read FB15k-237 in ``data``; the development and test splits have other triples and phrases than training."""
        index = TripleIndex.read(data)
        triples = read_triples(data / f"fb15k237_{split}.jsonl.gz")
        return cls(index, [*triples, *make_years(triples)], "train" if split == "train" else "held_out")

    def draw(self, rng: random.Random) -> GraphDialogue:
        """Draw a dialogue with at least one mention that states a triple."""
        relations, weights, _ = rng.choices(self._groups, [share for *_, share in self._groups])[0]
        first = rng.choice(self._by_relation[rng.choices(relations, weights)[0]])
        return _DialogueBuilder(self.index, self._part, rng).dialogue(first)

    def stream(self, rng: random.Random) -> Iterator[GraphDialogue]:
        """Yield dialogues without end."""
        while True:
            yield self.draw(rng)


class _DialogueBuilder:
    """Builds one dialogue."""

    def __init__(self, index: TripleIndex, part: str, rng: random.Random) -> None:
        self._index = index
        self._part = part
        self._rng = rng
        self._names: dict[str, str] = {}
        self._surfaces: dict[str, str] = {}

    def dialogue(self, first: Triple) -> GraphDialogue:
        """A dialogue whose response states ``first``."""
        rng, phrases = self._rng, self._find_phrases(first)
        topic = first.subject
        if phrases.inverse and (not phrases.forward or rng.random() < 0.5):
            topic = first.object
        kind = phrases.types[topic != first.subject]
        facts = [first, *self._draw_more(first, topic)]
        history, asked, liked = self._make_history(first, topic, kind)
        pieces = self._make_response(facts, topic, kind, asked)
        if liked is not None and rng.random() < 0.6:
            pieces += [
                " ",
                *fill_template(self._choose_phrase(small_talk.ON_LIKED), {"e": [EntityPiece(liked, liked, ())]}),
            ]
        elif rng.random() < 0.07:
            pieces += [
                " ",
                *fill_template(
                    self._choose_phrase(small_talk.ON_TOPIC), {"e": [self._make_entity_piece(topic, kind, ())]}
                ),
            ]
        response, mentions = join_pieces(self._add_small_talk(pieces))
        return GraphDialogue(history, self._draw_neighbourhood(facts), response, mentions)

    def _draw_more(self, first: Triple, topic: str) -> list[Triple]:
        """Draw up to two other facts about the topic."""
        rng = self._rng
        count = rng.choices((0, 1, 2), (0.58, 0.32, 0.1))[0]
        near = _sample_some(self._index.triples_of(topic), 40, rng)
        sayable = [t for t in near if t != first and t.predicate in read_phrases() and self._list_predicates(t, topic)]
        alike = [
            t for t in sayable if t.predicate == first.predicate and (t.subject == topic) == (first.subject == topic)
        ]
        chosen = rng.sample(sayable, min(count, len(sayable)))
        if alike and chosen and rng.random() < 0.4:
            chosen[0] = alike[0]
        return list(dict.fromkeys(chosen))

    def _draw_neighbourhood(self, facts: Sequence[Triple]) -> tuple[Triple, ...]:
        """Draw the shown triples: the facts among other triples of their entities."""
        rng = self._rng
        ends = dict.fromkeys(end for fact in facts for end in (fact.subject, fact.object))
        near = [t for end in ends for t in _sample_some(self._index.triples_of(end), 12, rng)]
        others = [t for t in dict.fromkeys(near) if t not in facts]
        shown = [*facts, *rng.sample(others, min(rng.choice(DISTRACTORS), len(others)))]
        rng.shuffle(shown)
        return tuple(dict.fromkeys(self._rename_relation(triple) for triple in shown))

    def _rename_relation(self, triple: Triple) -> Triple:
        """The triple under the name that this dialogue uses for its relation."""
        names = self._find_phrases(triple).names
        if triple.predicate not in self._names:
            keep = not names or self._rng.random() < (0.1 if triple.predicate == YEAR else 0.4)
            self._names[triple.predicate] = triple.predicate if keep else self._rng.choice(names)
        name = self._names[triple.predicate]
        return upright(Triple(triple.subject, name, triple.object))

    def _make_history(self, first: Triple, topic: str, kind: str) -> tuple[tuple[str, ...], bool, str | None]:
        """The turns, whether the last asks for ``first``, and an entity that was mentioned beside the topic."""
        rng, phrases = self._rng, self._find_phrases(first)
        slots = {"e": [self._make_entity_piece(topic, kind, ())]}
        questions = phrases.ask_object if topic == first.subject else phrases.ask_subject
        asked = bool(questions) and rng.random() < 0.6
        pronoun = self._choose_pronoun(topic, kind)
        length = rng.choice((1, 1, 2, 3))
        turns: list[str] = []
        liked = None
        before = self._make_earlier_turn(first, topic) if length == 3 and rng.random() < 0.6 else None
        if before is not None:
            turns.append(join_pieces(fill_template(self._choose_phrase(small_talk.INTRODUCTIONS), slots))[0])
            turns.append(before)
            length = 1
        if length == 3:
            turns.append(join_pieces(fill_template(self._choose_phrase(small_talk.GREETINGS), {}))[0])
        if length > 1 and rng.random() < 0.3:
            liked = self._index.draw_peer(topic, {topic}, rng)
        if liked is not None:
            turns.append(
                join_pieces(
                    fill_template(self._choose_phrase(small_talk.LIKES), {"e": [EntityPiece(liked, liked, ())]})
                )[0]
            )
        elif length > 1:
            turns.append(join_pieces(fill_template(self._choose_phrase(small_talk.INTRODUCTIONS), slots))[0])
        if asked:
            object_pronoun = {"He": "him", "She": "her", "It": "it"}.get(pronoun or "")
            named = liked is not None or not turns or object_pronoun is None or rng.random() < 0.5
            question = self._choose_phrase(questions)
            # "who won the it?", "what is him's place of birth?"
            if not named and not any(part in question for part in ("'s", "the {s}", "the {o}")):
                slots = {"e": [EntityPiece(object_pronoun or "", "", ())]}
            both_slots = {"s": slots["e"], "o": slots["e"]}
            turns.append(join_pieces(fill_template(question, both_slots))[0])
        else:
            turns.append(join_pieces(fill_template(self._choose_phrase(small_talk.INTRODUCTIONS), slots))[0])
        return tuple(turns), asked, liked

    def _make_earlier_turn(self, first: Triple, topic: str) -> str | None:
        """A turn that states another fact about the topic; None when there is none."""
        near = _sample_some(self._index.triples_of(topic), 20, self._rng)
        for fact in near:
            predicate = self._make_predicate(fact, topic) if fact != first else []
            if predicate:
                pieces = [
                    self._make_entity_piece(topic, self._find_phrases(fact).types[topic != fact.subject], ()),
                    " ",
                    *predicate,
                    ".",
                ]
                return join_pieces(self._add_small_talk(pieces))[0]
        return None

    def _make_response(self, facts: Sequence[Triple], topic: str, kind: str, asked: bool) -> Pieces:
        rng, first = self._rng, facts[0]
        shown = tuple(self._rename_relation(fact) for fact in facts)
        other = first.object if topic == first.subject else first.subject
        other_kind = self._find_phrases(first).types[topic == first.subject]
        if asked and len(facts) == 1 and rng.random() < 0.15:
            answer = self._choose_phrase(small_talk.YEARS if other_kind == "year" else small_talk.ANSWERS)
            return fill_template(answer, {"e": [self._make_entity_piece(other, other_kind, shown)]})
        pronoun = self._choose_pronoun(topic, kind)
        head: Pieces = [self._make_entity_piece(topic, kind, shown)]
        if pronoun is not None and rng.random() < 0.35:
            head = [pronoun]
        whole = self._find_phrases(first).whole or (() if self._find_phrases(first).forward else small_talk.GENERIC)
        if whole and len(facts) == 1 and (rng.random() < 0.25 or not self._list_predicates(first, topic)):
            slots = {
                "s": [self._make_entity_piece(first.subject, self._find_phrases(first).types[0], shown)],
                "o": [self._make_entity_piece(first.object, self._find_phrases(first).types[1], shown)],
                "p": [_make_relation_piece(first)],
            }
            return [*_capitalise(fill_template(self._choose_phrase(whole), slots)), "."]
        predicates = [self._make_predicate(fact, topic) for fact in facts]
        if not predicates[0]:
            return [*_capitalise([*head, " ", *self._make_generic_predicate(first, topic)]), "."]
        if len(facts) == 2 and self._share_relation(facts, topic):
            return [*_capitalise([*head, " ", *self._make_shared_predicate(facts, topic)]), "."]
        out = [*head, " ", *predicates[0]]
        again = pronoun or ""
        for number, predicate in enumerate(predicates[1:], 1):
            if not predicate:
                continue
            if again and rng.random() < 0.4:
                also = rng.choice(("", "", "also "))
                # "is also", "was also" would be better English; people write both.
                out += [". ", again, " ", *([also] if also else []), *predicate]
            else:
                out += [", and " if number == len(predicates) - 1 and len(predicates) > 2 else " and ", *predicate]
        return [*_capitalise(out), "."]

    def _make_predicate(self, fact: Triple, topic: str) -> Pieces:
        choices = self._list_predicates(fact, topic)
        return fill_template(self._choose_phrase(choices), self._make_slots(fact)) if choices else []

    def _make_shared_predicate(self, facts: Sequence[Triple], topic: str) -> Pieces:
        template = self._choose_phrase(self._list_predicates(facts[0], topic))
        slots: dict[str, Pieces] = {"s": [], "o": []}
        for slot in slots:
            first, second = (self._make_slots(fact)[slot] for fact in facts)
            slots[slot] = [*first, " and ", *second]
        return fill_template(template, slots)

    def _make_generic_predicate(self, fact: Triple, topic: str) -> Pieces:
        template = self._choose_phrase(
            small_talk.GENERIC_FORWARD if topic == fact.subject else small_talk.GENERIC_INVERSE
        )
        return fill_template(template, {**self._make_slots(fact), "p": [_make_relation_piece(fact)]})

    def _make_slots(self, fact: Triple) -> dict[str, Pieces]:
        types, shown = self._find_phrases(fact).types, (self._rename_relation(fact),)
        return {
            "s": [self._make_entity_piece(fact.subject, types[0], shown)],
            "o": [self._make_entity_piece(fact.object, types[1], shown)],
        }

    def _share_relation(self, facts: Sequence[Triple], topic: str) -> bool:
        first, second = facts
        return first.predicate == second.predicate and (first.subject == topic) == (second.subject == topic)

    def _list_predicates(self, fact: Triple, topic: str) -> tuple[str, ...]:
        phrases = self._find_phrases(fact)
        return phrases.forward if topic == fact.subject else phrases.inverse

    def _find_phrases(self, triple: Triple) -> RelationPhrases:
        return read_phrases().get(triple.predicate, RelationPhrases())

    def _choose_phrase(self, choices: Sequence[str]) -> str:
        """Draw a phrase of this part; where the part has none, one of all."""
        preferred = [
            phrase
            for phrase in choices
            if self._part == "all" or (zlib.crc32(phrase.encode()) % HELD_OUT == 0) == (self._part == "held_out")
        ]
        return self._rng.choice(preferred or choices)

    def _choose_pronoun(self, topic: str, kind: str) -> str | None:
        """The pronoun of the topic at the beginning of a sentence; None for none."""
        if kind in ("it", "org"):
            return "It"
        # The graph knows the gender of few, and a wrong one says nothing about the facts.
        return ("He", "She", None)[zlib.crc32(topic.encode()) % 3] if kind == "person" else None

    def _make_entity_piece(self, entity: str, kind: str, triples: tuple[Triple, ...]) -> EntityPiece:
        if entity not in self._surfaces:
            self._surfaces[entity] = vary_surface(entity, kind, self._rng)
        return EntityPiece(self._surfaces[entity], entity, triples)

    def _add_small_talk(self, pieces: Pieces) -> Pieces:
        """The parts, sometimes with small talk before and after."""
        rng = self._rng
        if rng.random() < 0.4:
            opening = self._choose_phrase(small_talk.OPENINGS)
            pieces = [opening, " ", *(pieces if opening[-1] in ".!" else _uncapitalise(pieces))]
        if rng.random() < 0.35:
            pieces = [*pieces, " ", self._choose_phrase(small_talk.CLOSINGS)]
        if rng.random() < 0.12 and isinstance(pieces[-1], str):
            pieces = [*pieces[:-1], pieces[-1].rstrip(".")]
        return pieces


def vary_surface(entity: str, kind: str, rng: random.Random) -> str:
    """How a speaker might write an entity: mostly unchanged, or lower-cased, or without its article or first name."""
    text, dice = entity, rng.random()
    if kind == "word":
        text = text.removesuffix(" Language") if dice < 0.7 else text
        text = text.lower() if rng.random() < 0.5 else text
    elif kind == "person" and dice < 0.06 and len(text.split()) == 2:
        text = text.split()[1]
    elif dice < 0.1:
        text = text.removeprefix("The ")
    elif dice < 0.17:
        text = text.lower()
    return text or entity


def _capitalise(pieces: Pieces) -> Pieces:
    first = pieces[0]
    return [first[:1].upper() + first[1:], *pieces[1:]] if isinstance(first, str) else pieces


def _uncapitalise(pieces: Pieces) -> Pieces:
    first = pieces[0]
    if not isinstance(first, str) or first.startswith(("I ", "I'")):
        return pieces
    return [first[:1].lower() + first[1:], *pieces[1:]]


def _make_relation_piece(fact: Triple) -> EntityPiece:
    """The relation as a noun: "specialization of" is followed by its own "of"."""
    return EntityPiece(readable(fact.predicate).removesuffix(" of"), "", ())


def _sample_some(triples: Sequence[Triple], count: int, rng: random.Random) -> list[Triple]:
    return list(triples) if len(triples) <= count else rng.sample(triples, count)
