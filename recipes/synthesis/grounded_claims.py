"""Draws claims that their knowledge supports: sentences of articles and facts of a graph, in several wordings.

- ``sentence``: a sentence of the knowledge, copied or shortened;
- ``two``: two neighbouring sentences;
- ``pronoun``: a sentence that begins with a pronoun, with the name from the sentence before in its place, so that the
  claim needs both;
- ``statement``: a question of SQuAD and its answer as a statement;
- ``fact``, ``facts``: one or two triples of FB15k-237 in words, the knowledge in other words than the claim;
- ``bridge``: two triples that share an entity, which the claim does not name ("the director of X was born in Y").
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from groundwire.runtime.triples import Triple

from ..common.corpus import Question, Squad
from ..common.phrases import read_phrases
from ..common.sentence_pieces import EntityMention, EntityPiece, Pieces, fill_template, join_pieces
from ..common.triple_index import TripleIndex, read_triples
from .answer_pairs import answer_kind
from .articles import Articles
from .pairs import shorten_sentence
from .qa_to_statement import make_statement

SHARES = {"sentence": 0.36, "two": 0.12, "pronoun": 0.1, "statement": 0.22, "fact": 0.07, "facts": 0.06, "bridge": 0.07}
SENTENCES = (1, 1, 2, 2, 3, 3, 4, 5, 6, 8)
"""Lengths of the passage, in sentences, before the limit in words."""
FACTS = (1, 2, 3, 4, 6)
"""Numbers of facts in the knowledge beside the facts that the claim states."""


@dataclass(frozen=True, slots=True)
class GroundedClaim:
    """A claim and the passage that supports it."""

    kind: str
    claim: str
    passage: tuple[str, ...]
    """Sentences, in order."""
    needed: tuple[int, ...]
    """Indices of the sentences that the claim rests on, as far as they are known."""
    near: tuple[str, ...]
    """Other sentences of the article, and some of another one; the passage lacks them."""
    answer: str = ""
    rivals: tuple[str, ...] = ()
    """What may be in the place of the answer."""
    topic: str = ""


class ArticleClaims:
    """Draws claims about articles."""

    def __init__(self, sources: Sequence[tuple[Articles, float]]) -> None:
        """``sources`` are lists of paragraphs with their shares."""
        self._articles, self._shares = zip(*sources, strict=True)

    def draw(self, kind: str, words: int, rng: random.Random) -> GroundedClaim | None:
        """Draw a claim of ``kind`` and a passage of at most so many words; None where the paragraph has none."""
        articles: Articles = rng.choices(self._articles, self._shares)[0]
        paragraph = rng.randrange(len(articles.texts))
        sentences = articles.list_sentences(paragraph)
        count = 1 if kind == "sentence" else 2
        if len(sentences) < count:
            return None
        first = rng.randrange(len(sentences) - count + 1)
        chosen = sentences[first : first + count]
        if not all(5 <= len(text.split()) <= 45 and is_plain(text) for text in chosen):
            return None
        claim = _word_claim(kind, chosen, articles.topics[paragraph], rng)
        if claim is None:
            return None
        start, end = _widen(sentences, first, first + count, words, rng)
        near = list_near(articles, paragraph, sentences[:start] + sentences[end:], rng)
        return GroundedClaim(
            kind,
            claim,
            tuple(sentences[start:end]),
            tuple(range(first - start, first - start + count)),
            near,
            topic=articles.topics[paragraph],
        )


class StatementClaims:
    """Draws statements from SQuAD's questions and answers."""

    def __init__(self, squad: Squad) -> None:
        self._squad = squad
        self._articles = Articles.from_squad(squad)
        self._rivals: dict[tuple[str, str], list[str]] = {}
        for question in squad.questions:
            key = (squad.titles[question.paragraph], answer_kind(question.answer))
            self._rivals.setdefault(key, []).append(question.answer)

    def draw(self, words: int, rng: random.Random) -> GroundedClaim | None:
        """Draw a statement and a passage of at most so many words; None where the answer is long or no rule fits."""
        question: Question = rng.choice(self._squad.questions)
        context = self._squad.contexts[question.paragraph]
        if len(question.answer.split()) > 8:
            return None
        claim = make_statement(question.text, question.answer, context, question.start, rng)
        if "?" in claim:
            return None
        sentences = self._articles.list_sentences(question.paragraph)
        index = _find_sentence(context, sentences, question.start)
        if index is None:
            return None
        start, end = _widen(sentences, index, index + 1, words, rng)
        near = list_near(self._articles, question.paragraph, sentences[:start] + sentences[end:], rng)
        title = self._squad.titles[question.paragraph]
        rivals = self._rivals[title, answer_kind(question.answer)]
        return GroundedClaim(
            "statement",
            claim,
            tuple(sentences[start:end]),
            (index - start,),
            near,
            question.answer,
            tuple(rng.sample(rivals, min(12, len(rivals)))),
            title.replace("_", " "),
        )


_BRIDGES = {
    "/film/director/film": ("the director of {o}", 0),
    "/film/film/written_by": ("the writer of {s}", 1),
    "/film/film/music": ("the composer of {s}", 1),
    "/film/film/produced_by": ("a producer of {s}", 1),
    "/film/film/edited_by": ("the editor of {s}", 1),
    "/film/actor/film./film/performance/film": ("one of the actors in {o}", 0),
    "/tv/tv_program/program_creator": ("the creator of {s}", 1),
    "/tv/tv_program/regular_cast./tv/regular_tv_appearance/actor": ("one of the stars of {s}", 1),
    "/people/person/spouse_s./people/marriage/spouse": ("the spouse of {s}", 1),
    "/location/country/capital": ("the capital of {s}", 1),
    "/people/person/place_of_birth": ("the birthplace of {s}", 1),
    "/organization/organization_founder/organizations_founded": ("a founder of {o}", 0),
    "/influence/influence_node/influenced_by": ("someone who influenced {s}", 1),
}
"""Relations with a noun phrase for one of their ends: 0 the subject, 1 the object."""


class FactClaims:
    """Draws facts of a graph in words."""

    def __init__(self, index: TripleIndex, triples: Sequence[Triple]) -> None:
        """``triples`` are the facts that claims state; ``index`` has what else is known about their entities."""
        phrases = read_phrases()
        self._index = index
        self._by_relation: dict[str, list[Triple]] = {}
        for triple in triples:
            if triple.predicate in phrases and (phrases[triple.predicate].forward or phrases[triple.predicate].inverse):
                self._by_relation.setdefault(triple.predicate, []).append(triple)
        if not self._by_relation:
            raise ValueError("No triple has a relation of phrases.tsv; give triples of FB15k-237.")
        self._relations = list(self._by_relation)
        self._weights = [len(self._by_relation[relation]) ** 0.5 for relation in self._relations]
        self._bridges = [relation for relation in _BRIDGES if relation in self._by_relation]

    @classmethod
    def read(cls, data: Path, split: str = "train") -> FactClaims:
        """FB15k-237 in ``data``; ``split`` is train or dev."""
        return cls(TripleIndex.read(data), list(read_triples(data / f"fb15k237_{split}.jsonl.gz")))

    def draw(self, kind: str, words: int, rng: random.Random) -> GroundedClaim | None:
        """Draw a claim of ``kind`` and facts of at most so many words; None where the entity has no such facts."""
        bridge = kind == "bridge" and bool(self._bridges)
        relation = rng.choice(self._bridges) if bridge else rng.choices(self._relations, self._weights)[0]
        first = rng.choice(self._by_relation[relation])
        facts = [first]
        if kind != "fact":
            role = _BRIDGES[relation][1] if bridge else rng.randint(0, 1)
            joint = (first.subject, first.object)[role]
            others = [
                triple
                for triple in self._list_known(joint)
                if triple != first and (triple.subject == joint) and len({*_ends(triple), *_ends(first)}) == 3
            ]
            others = [triple for triple in others if triple.predicate != first.predicate and _has_forward(triple)]
            if not others:
                return None
            facts.append(rng.choice(others))
        last = facts[-1]
        claim, mentions = self._word_claim(facts, bridge, rng)
        target = rng.choice([mention.entity for mention in mentions if mention.entity in _ends(last)] or [last.object])
        related = [t for end in dict.fromkeys((*_ends(first), *_ends(last))) for t in self._list_known(end)]
        more = rng.sample(related, min(rng.choice(FACTS), len(related)))
        passage = [_make_sentence(triple, rng)[0] for triple in dict.fromkeys((*facts, *more))]
        while sum(len(text.split()) for text in passage) > words and len(passage) > len(facts):
            passage.pop()
        further = rng.sample(related, min(8, len(related)))
        near = [_make_sentence(triple, rng)[0] for triple in further if triple not in (*facts, *more)]
        order = rng.sample(range(len(passage)), len(passage))
        shown = tuple(passage[index] for index in order)
        side = target == last.object
        same = self._by_relation.get(last.predicate, [])
        rivals = [_ends(triple)[side] for triple in rng.sample(same, min(12, len(same)))]
        ends = {end for triple in self._list_known(_ends(last)[not side]) for end in _ends(triple)}
        return GroundedClaim(
            kind,
            claim,
            shown,
            tuple(order.index(index) for index in range(len(facts))),
            tuple(text for text in near if text not in shown),
            target,
            tuple(rival for rival in rivals if rival not in ends),
            last.subject,
        )

    def _list_known(self, entity: str) -> list[Triple]:
        """The facts about an entity that can be put into words."""
        phrases = read_phrases()
        near = self._index.triples_of(entity)
        return [
            t for t in near if t.predicate in phrases and (phrases[t.predicate].forward or phrases[t.predicate].inverse)
        ]

    def _word_claim(
        self, facts: Sequence[Triple], bridge: bool, rng: random.Random
    ) -> tuple[str, tuple[EntityMention, ...]]:
        if len(facts) == 1:
            return _make_sentence(facts[0], rng)
        first, second = facts
        joint = second.subject
        if bridge:
            noun = fill_template(_BRIDGES[first.predicate][0], _make_slots(first))
            return join_pieces([*noun, " ", *_make_predicate(second, rng), "."])
        if first.subject == joint and _has_forward(first):
            return join_pieces(
                [
                    EntityPiece(joint, joint, ()),
                    " ",
                    *_make_predicate(first, rng),
                    " and ",
                    *_make_predicate(second, rng),
                    ".",
                ]
            )
        (text, mentions), (further, more) = _make_sentence(first, rng), _make_sentence(second, rng)
        return f"{text} {further}", (*mentions, *more)


class GroundedClaims:
    """Draws claims of all kinds."""

    def __init__(self, articles: ArticleClaims, statements: StatementClaims, facts: FactClaims | None) -> None:
        """``facts`` may be None: then all claims are about articles."""
        draws: dict[str, Callable[[int, random.Random], GroundedClaim | None]] = {"statement": statements.draw}
        draws |= {kind: partial(articles.draw, kind) for kind in ("sentence", "two", "pronoun")}
        if facts is not None:
            draws |= {kind: partial(facts.draw, kind) for kind in ("fact", "facts", "bridge")}
        self._draws = draws

    def draw(self, words: int, rng: random.Random) -> GroundedClaim:
        """Draw a claim whose passage has at most so many words, as far as its needed sentences allow."""
        kind = rng.choices(list(self._draws), [SHARES[kind] for kind in self._draws])[0]
        for attempt in range(200):
            claim = self._draws[kind if attempt < 100 else "sentence"](words, rng)
            if claim is not None:
                return claim
        raise ValueError("The articles hold no sentence of 5 to 45 words; give more of them.")


def is_plain(text: str) -> bool:
    """Whether a sentence looks whole: it begins with a capital, ends with a mark and has no markup."""
    return bool(re.match(r"[\"“(]?[A-Z0-9]", text)) and text.endswith((".", "!", '"', "”", ")")) and "==" not in text


def list_near(articles: Articles, paragraph: int, rest: Sequence[str], rng: random.Random) -> tuple[str, ...]:
    """Sentences that a passage lacks: the rest of its paragraph, two others of the article and one of any."""
    others = [*articles.draw_other(paragraph, rng), rng.randrange(len(articles.texts))]
    texts = [*rest, *(text for index in others for text in articles.list_sentences(index)[:5])]
    return tuple(text for text in texts if 4 <= len(text.split()) <= 45 and is_plain(text))


_PRONOUN = re.compile(r"(He|She|It) (?=[a-z]+\b)")


def _word_claim(kind: str, chosen: Sequence[str], topic: str, rng: random.Random) -> str | None:
    if kind == "sentence":
        return shorten_sentence(chosen[0], chosen[0], rng)
    if kind == "two":
        return " ".join(shorten_sentence(text, text, rng) for text in chosen)
    pronoun = _PRONOUN.match(chosen[1])
    name = re.sub(r" ?\(.*\)", "", topic)
    # The pronoun surely means the topic where the sentence before begins with its name.
    if pronoun is None or not name or not chosen[0].startswith(name):
        return None
    return f"{name} {shorten_sentence(chosen[1], chosen[1], rng)[pronoun.end() :]}" if chosen[1] else None


def _find_sentence(context: str, sentences: Sequence[str], offset: int) -> int | None:
    """The index of the sentence that holds a character of ``context``."""
    start = 0
    for index, text in enumerate(sentences):
        start = context.find(text, start)
        if start <= offset < start + len(text):
            return index
    return None


def _widen(sentences: Sequence[str], start: int, end: int, words: int, rng: random.Random) -> tuple[int, int]:
    """A range of sentences around ``start`` to ``end``, at most so many words."""
    size = rng.choice(SENTENCES)
    count = sum(len(text.split()) for text in sentences[start:end])
    while end - start < size:
        sides = [side for side in ("left", "right") if (start > 0 if side == "left" else end < len(sentences))]
        if not sides:
            break
        left = rng.choice(sides) == "left"
        count += len(sentences[start - 1 if left else end].split())
        if count > words:
            break
        start, end = (start - 1, end) if left else (start, end + 1)
    return start, end


def _ends(triple: Triple) -> tuple[str, str]:
    return triple.subject, triple.object


def _has_forward(triple: Triple) -> bool:
    return bool(read_phrases()[triple.predicate].forward)


def _make_slots(triple: Triple) -> dict[str, Pieces]:
    return {
        "s": [EntityPiece(triple.subject, triple.subject, ())],
        "o": [EntityPiece(triple.object, triple.object, ())],
    }


def _make_predicate(triple: Triple, rng: random.Random) -> Pieces:
    return fill_template(rng.choice(read_phrases()[triple.predicate].forward), _make_slots(triple))


def _make_sentence(triple: Triple, rng: random.Random) -> tuple[str, tuple[EntityMention, ...]]:
    """The triple in words, and its entities in them."""
    phrases, slots = read_phrases()[triple.predicate], _make_slots(triple)
    forms = [form for form in ("forward", "inverse", "whole") if getattr(phrases, form)]
    form = rng.choice(forms)
    pieces = fill_template(rng.choice(getattr(phrases, form)), slots)
    if form != "whole":
        pieces = [slots["s" if form == "forward" else "o"][0], " ", *pieces]
    return join_pieces([*pieces, "."])
