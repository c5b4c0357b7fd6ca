"""Draws worlds: records written as knowledge and as answers that are true by construction, with false halves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from .answers import ABSTENTIONS, AnswerText, Item, arrange, hedge, join_items
from .claims import WorldClaim, claim_relation, claim_role, claim_value, claim_verdict
from .drawn import draw_domain
from .knowledge import write_knowledge
from .relations import Falsehood
from .rows import WorldPair, WorldRow
from .scene import Scene, draw_scene
from .schema import CONCEPTS, HELD, TRAIN, Domain, read_domains
from .wording import Segment, join

CHANGE_WEIGHTS: Mapping[str, float] = {
    "exchange": 2.6,
    "value": 1.1,
    "derived": 1.5,
    "threshold": 1.8,
    "other_record": 2.0,
    "negation": 3.5,
    "condition": 2.0,
    "exception": 6.0,
    "role": 3.5,
    "person": 1.0,
    "day": 5.0,
    "unit": 5.0,
    "comparison": 1.6,
    "verdict": 1.2,
    "invented": 0.35,
}
"""How often a change is chosen where it is possible."""
SENTENCES = (1, 2, 3, 4, 5, 6, 8, 10, 12)
SENTENCE_WEIGHTS = (26, 20, 16, 12, 9, 7, 5, 3, 2)
HELD_OUT_DOMAINS = 0.75
"""Share of the held-out pairs that are of held-out domains; the others have held-out wordings."""
RELATED = 0.4
"""Share of the claims that follow from fields, as far as relations apply."""
DISTRACTED = 0.4
"""Share of the pairs whose knowledge says of a second record."""
DRAWN_DOMAINS = 0.65
"""Share of the pairs of training whose domain is made at random."""
REDRAWN = 5
"""Attempts with one domain."""
_GREETINGS = ("Hi, I have a question about {name}.", "Hello! I'd like to know more about {name}.", "It's about {name}.")
_REPLIES = (
    "Of course, what would you like to know?",
    "Sure, how can I help?",
    "Go ahead!",
    "Gladly. What is it about?",
)


class Worlds:
    """Draws pairs of answers to a knowledge, one supported and one not."""

    def __init__(self, split: str = TRAIN) -> None:
        """Read the domains.

        Args:
            split: ``train``; ``held_out`` for written domains and wordings that are not in training; or
                ``held_out_concepts`` for domains drawn of concepts that are not in training.

        Raises:
            ValueError: The split is unknown.
        """
        if split not in (TRAIN, HELD, CONCEPTS):
            raise ValueError(f"No split {split!r}; there are {TRAIN!r}, {HELD!r} and {CONCEPTS!r}")
        self._split = split
        domains = read_domains().values()
        self._trained = [domain for domain in domains if not domain.is_held_out]
        self._held_out = [domain for domain in domains if domain.is_held_out]

    def draw(self, max_words: int, rng: random.Random, domain: Domain | None = None) -> WorldPair:
        """Draw a pair.

        Args:
            max_words: Upper bound of the words of the knowledge and the response together, 40 or more.
            rng: What the pair is a function of.
            domain: What the pair is about; None draws a domain of the split.
        """
        if max_words < 40:
            raise ValueError(f"max_words is {max_words}; it must be at least 40")
        attempt = 0
        while True:
            if attempt % REDRAWN == 0:
                drawn = domain or self._draw_domain(rng)
            size = max(3, min(rng.randint(4, 18), max_words // (14 + attempt // 4)))
            pair = self._try(drawn, size, max_words, attempt > 20, rng)
            if pair is not None and _fits(pair, max_words):
                return pair
            attempt += 1

    def _try(self, domain: Domain, size: int, max_words: int, small: bool, rng: random.Random) -> WorldPair | None:
        with_other = not small and rng.random() < DISTRACTED
        scene = draw_scene(domain, self._split, size, with_other, rng)
        number = min(rng.choices(SENTENCES, SENTENCE_WEIGHTS)[0], max(1, max_words // 30), size + 2)
        claims = _draw_claims(scene, 1 if small else number, rng)
        if not claims:
            return None
        asked = bool(claims[0].question) and (claims[0].needs_question or rng.random() < 0.5)
        claims = [claims[0], *(claim for claim in claims[1:] if not claim.needs_question)]
        chosen = _choose_change(scene, claims, asked, rng)
        if chosen is None:
            return None
        change, falsified = chosen
        items = [Item(claim.wording.fill(claim.true), falsified.get(index)) for index, claim in enumerate(claims)]
        if any(item.false is not None and join(item.false) == join(item.true) for item in items):
            return None
        items = join_items([hedge(item, rng) for item in items], rng)
        history = _write_history(scene, claims, asked, rng)
        named = scene.other is None or any(scene.record.name in turn for turn in history)
        layout = arrange(items, scene, named, _draw_abstention(scene, claims, rng), rng)
        knowledge = write_knowledge(scene, rng)
        halves = [
            _make_row(scene, knowledge, history, layout.write(false), change if false else "")
            for false in (False, True)
        ]
        return WorldPair(*halves)

    def _draw_domain(self, rng: random.Random) -> Domain:
        if self._split == CONCEPTS:
            return draw_domain((), True, rng)
        if self._split == TRAIN and rng.random() < DRAWN_DOMAINS:
            return draw_domain(self._trained, False, rng)
        held_out = self._split == HELD and rng.random() < HELD_OUT_DOMAINS
        return rng.choice(self._held_out if held_out else self._trained)


def _fits(pair: WorldPair, max_words: int) -> bool:
    rows = (pair.supported, pair.unsupported)
    return max(sum(len(text.split()) for text in (*row.knowledge, row.response)) for row in rows) <= max_words


def _make_row(
    scene: Scene, knowledge: tuple[str, ...], history: tuple[str, ...], answer: AnswerText, change: str
) -> WorldRow:
    return WorldRow(
        knowledge, history, answer.text, int(not change), answer.sentences, answer.spans, scene.domain.key, change
    )


def _draw_claims(scene: Scene, number: int, rng: random.Random) -> list[WorldClaim]:
    """Draw claims about different fields; the first may answer a question."""
    disclosed = set(scene.disclosed)
    relations = [relation for relation in scene.domain.relations if disclosed.issuperset(relation.of)]
    rng.shuffle(relations)
    keys = list(scene.disclosed)
    rng.shuffle(keys)
    roles = [key for key in keys if scene.domain.fields[key].acts]
    claims: list[WorldClaim] = []
    for _ in range(number * 2):
        if len(claims) == number or not (keys or relations):
            break
        claim = None
        draw = rng.random()
        if relations and (draw < RELATED or not keys):
            claim = claim_relation(scene, relations.pop(), not claims, rng)
        elif keys and not claims and draw > 0.95:
            claim = claim_verdict(scene, keys.pop(), rng)
        elif len(roles) > 1 and draw > 0.85:
            key = roles.pop()
            claim = claim_role(scene, key, rng) if key in keys else None
            if claim is not None:
                keys.remove(key)
        elif keys:
            claim = claim_value(scene, keys.pop(), not claims, rng)
        if claim is not None and (not claims or not claim.needs_question):
            claims.append(claim)
    return claims


def _choose_change(
    scene: Scene, claims: Sequence[WorldClaim], asked: bool, rng: random.Random
) -> tuple[str, dict[int, list[Segment]]] | None:
    """Choose what becomes false: the change, and the false parts by the index of the claim."""
    options: list[tuple[str, int, Falsehood | None]] = [
        (false.change, index, false) for index, claim in enumerate(claims) for false in claim.falsehoods
    ]
    options.extend(("invented", index, None) for index in range(len(claims)) if index or not asked)
    if not options:
        return None
    counts = Counter(change for change, _, _ in options)
    weights = [CHANGE_WEIGHTS[change] / counts[change] for change, _, _ in options]
    change, index, falsehood = rng.choices(options, weights)[0]
    if falsehood is None:
        return _invent(scene, claims, index, rng)
    falsified = {index: _falsify(claims[index], falsehood)}
    if change == "exchange":
        falsified |= _exchange_back(claims, index, falsehood, rng)
    return change, falsified


def _falsify(claim: WorldClaim, falsehood: Falsehood) -> list[Segment]:
    return claim.wording.fill_wrongly(claim.true, falsehood.filling, falsehood.wrong, falsehood.reason)


def _exchange_back(
    claims: Sequence[WorldClaim], index: int, falsehood: Falsehood, rng: random.Random
) -> dict[int, list[Segment]]:
    """Give the claim whose value was taken the value it was taken for, half of the time."""
    taken = falsehood.filling.slots.get("v")
    for other, claim in enumerate(claims):
        if other == index or rng.random() < 0.5:
            continue
        for false in claim.falsehoods:
            values = (claim.true.slots.get("v"), false.filling.slots.get("v"))
            if false.change == "exchange" and values == (taken, claims[index].true.slots.get("v")):
                return {other: _falsify(claim, false)}
    return {}


def _invent(
    scene: Scene, claims: Sequence[WorldClaim], index: int, rng: random.Random
) -> tuple[str, dict[int, list[Segment]]] | None:
    """Replace a claim by one about a field that the knowledge lacks, or says of the other record."""
    hidden = [key for key in scene.domain.fields if key not in scene.disclosed]
    change, record = "invented", None
    if scene.other is not None and rng.random() < 0.5:
        foreign = [key for key in hidden if key in scene.other_disclosed]
        if foreign:
            hidden, change, record = foreign, "other_record", scene.other
    claim = claim_value(scene, rng.choice(hidden), index == 0, rng, record) if hidden else None
    if claim is None or claim.needs_question:
        return None
    return change, {index: [Segment(join(claim.wording.fill(claim.true)), "addition")]}


def _draw_abstention(scene: Scene, claims: Sequence[WorldClaim], rng: random.Random) -> str:
    if rng.random() > 0.07:
        return ""
    taken = {key for claim in claims for key in claim.fields}
    names = [
        field.name for key, field in scene.domain.fields.items() if field.name and key not in scene.disclosed
        if key not in taken
    ]  # fmt: skip
    return rng.choice(ABSTENTIONS).format(n=rng.choice(names)) if names else ""


def _write_history(scene: Scene, claims: Sequence[WorldClaim], asked: bool, rng: random.Random) -> tuple[str, ...]:
    question = claims[0].question if asked else ""
    if question and len(claims) > 1 and claims[1].question and rng.random() < 0.3:
        question = f"{question} And another thing: {claims[1].question[0].lower()}{claims[1].question[1:]}"
    name = scene.record.name
    greets = scene.other is not None or rng.random() < 0.3
    if not question and not (greets and rng.random() < 0.6):
        return ()
    greeting = rng.choice(_GREETINGS).format(name=name)
    if not question:
        return (greeting,)
    if not greets:
        return (question,)
    return (f"{greeting} {question}",) if rng.random() < 0.5 else (greeting, rng.choice(_REPLIES), question)
