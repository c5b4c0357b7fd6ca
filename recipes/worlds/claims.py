"""Claims: sentences of an answer that a scene supports, and how each can be made false."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .kinds import FeatureKind, Quantity, State
from .names import Person
from .relations import Falsehood, derive
from .scene import Scene, WorldRecord, write_subject
from .schema import HELD, Field, Relation, Wordings
from .wording import Filled, Wording, parse

COPIED = 0.14
"""Share of the claims that use a wording of the knowledge."""
GENERIC = 0.12
"""Share of the claims about a named value that use a wording for any value."""
LED = 0.7
"""Share of the answers to yes-or-no questions that begin with yes or no."""
LEADS = (("Yes", "No"), ("Yes", "No"), ("Yes", "No"), ("Yes, indeed", "No, sorry"), ("Yes", "I'm afraid not"))
_GENERIC = Wordings.split(
    "generic",
    (
        "{N} is {v}.",
        "As for {n}, (that is|it is|that's) {v}.",
        "(You asked about {n}|You wanted to know {n}|Regarding {n}): {v}.",
        "{N}? That's {v}.",
        "What I have for {n} is {v}.",
        "{v} is {n}.",
    ),
)
_ROLES = Wordings.split(
    "roles",
    (
        "{v} {act}.",
        "{v} is the (one|person) who {act}.",
        "It is {v} who {act}.",
        "The person who {act} is {v}.",
        "If you want to know who {act}: that's {v}.",
        "That would be {v}, who {act}.",
    ),
)
_WHO = Wordings.split(
    "who", ("{pronoun} {act}.", "{v} {act}.", "That's the person who {act}.", "{v}? {pronoun} {act}.")
)
_VERDICTS = (
    ("Yes, that's right.", "No, that's not right."),
    ("That's correct.", "That's not correct."),
    ("Yes, that's true.", "No, that isn't true."),
    ("Yes, you are right.", "No, you are mistaken."),
    ("True.", "False."),
    ("Yes.", "No."),
)
_DOUBTS = (
    "Someone told me this: “{quote}” Is that right?",  # terms: literal
    "I read somewhere: “{quote}” Is that correct?",
    "A friend says: “{quote}” True or false?",
    "“{quote}” – is that so?",
)


@dataclass(frozen=True, slots=True)
class WorldClaim:
    """A supported sentence and its false versions."""

    fields: tuple[str, ...]
    wording: Wording
    true: Filled
    falsehoods: tuple[Falsehood, ...]
    question: str = ""
    """What the claim answers."""
    needs_question: bool = False
    """Whether the claim makes no sense without its question."""


def claim_value(
    scene: Scene, key: str, named: bool, rng: random.Random, record: WorldRecord | None = None
) -> WorldClaim | None:
    """Claim what a field has; ``record`` is another one whose value is claimed."""
    field, record = scene.domain.fields[key], record or scene.record
    wording = _pick(scene, field, rng)
    if wording is None:
        return None
    form = rng.getrandbits(30)
    subject = write_subject(scene.record, named, rng)
    value = record.values[key]
    true = _fill(field, value, record, subject, form)
    question, needs = "", False
    if isinstance(field.kind, FeatureKind) and field.polar and rng.random() < 0.5:
        question = rng.choice(field.polar)
        if rng.random() < LED:
            yes, no = rng.choice(LEADS)
            wording, needs = wording.with_lead((yes, no)), True
    elif field.asks:
        question = rng.choice(field.asks)
    falsehoods = []
    for change, reason, other in _list_others(scene, field, rng):
        false = _fill(field, other, record, subject, form)
        wrong = {slot: reason for slot in ("v", "v-", "num") if false.slots.get(slot) != true.slots.get(slot)}
        if wrong or false.state != true.state:
            falsehoods.append(Falsehood(change, reason, false, wrong))
    return WorldClaim((key,), wording, true, tuple(falsehoods), question, needs)


def _pick(scene: Scene, field: Field, rng: random.Random) -> Wording | None:
    draw = rng.random()
    feature = isinstance(field.kind, FeatureKind)
    if field.acts and draw < 0.15 and not scene.as_we:
        return None
    if scene.split != HELD and draw < COPIED and not scene.as_we:
        return rng.choice(field.say).resolve(rng)
    if draw < COPIED + GENERIC and field.name and not feature and field.kind.group != "day":
        return scene.pick_wording(_GENERIC, rng)
    return scene.pick_wording(field.answers, rng)


def _fill(field: Field, value: Any, record: WorldRecord, subject: Mapping[str, str], form: int) -> Filled:
    slots = {**subject, "n": field.name, "N": field.name[:1].upper() + field.name[1:]}
    kind, state = field.kind, 0
    if isinstance(kind, FeatureKind):
        state, kind, value = value.state, kind.inner or kind, value.value
    if value is not None:
        slots["v"] = kind.write(value, record.style, random.Random(form), answer=True)
        slots["num"] = f"{value[0]:g}" if isinstance(kind, Quantity) else str(value)
        if isinstance(kind, Quantity):
            slots["v-"] = kind.write_attribute(value, random.Random(form))
    return Filled(slots, state)


def _list_others(scene: Scene, field: Field, rng: random.Random) -> list[tuple[str, str, Any]]:
    """List values that the record does not have: (change, reason, value)."""
    kind, value = field.kind, scene.record.values[field.key]
    if isinstance(kind, FeatureKind):
        return _list_other_states(kind, value, rng)
    others: list[tuple[str, str, Any]] = []
    for key in scene.disclosed:
        rival = scene.domain.fields[key].kind
        if key == field.key or rival.group != kind.group:
            continue
        exchanged = scene.record.values[key]
        if isinstance(kind, Quantity) and exchanged[1] != value[1]:
            exchanged = (exchanged[0], value[1])
        others.append(("exchange", kind.reason, exchanged))
    if scene.other is not None and field.key in scene.other_disclosed:
        others.append(("other_record", kind.reason, scene.other.values[field.key]))
    if isinstance(kind, Quantity):
        others.append(("unit", "number", kind.draw_other_unit(value, rng)))
    others.append((kind.change, kind.reason, kind.draw_other(value, rng)))
    identity = kind.identify(value)
    return [other for other in others if other[2] is not None and kind.identify(other[2]) != identity]


def _list_other_states(kind: FeatureKind, value: State, rng: random.Random) -> list[tuple[str, str, Any]]:
    reason = "negation" if kind.change == "negation" else "relation"
    others = [state for state in range(kind.states) if state != value.state]
    if kind.states > 2:
        # The next state: that something holds under a condition follows from that it always holds.
        others = [(value.state + 1) % kind.states]
    states = [(kind.change, reason, State(state, value.value)) for state in others]
    if kind.inner is not None and value.state == 0:
        inner = kind.inner.draw_other(value.value, rng)
        if inner is not None:
            states.append((kind.inner.change, kind.inner.reason, State(0, inner)))
    return states


def claim_role(scene: Scene, key: str, rng: random.Random) -> WorldClaim | None:
    """Claim what a person does; false with what another person of the knowledge does, or with that person."""
    fields = scene.domain.fields
    rivals = [rival for rival in scene.disclosed if rival != key and fields[rival].acts]
    if not rivals or not fields[key].acts:
        return None
    person: Person = scene.record.values[key]
    rival = rng.choice(rivals)
    act, other = rng.choice(fields[key].acts), rng.choice(fields[rival].acts)
    slots = {"v": str(person), "act": act, "pronoun": person.pronoun.capitalize()}
    role = Falsehood("role", "relation", Filled({**slots, "act": other}), {"act": "relation"})
    if rng.random() < 0.35:
        wording = scene.pick_wording(_WHO, rng)
        question = f"Who is {person}?"
        return wording if wording is None else WorldClaim((key,), wording, Filled(slots), (role,), question, True)
    wording = scene.pick_wording(_ROLES, rng)
    exchanged = Falsehood(
        "exchange", "entity", Filled({**slots, "v": str(scene.record.values[rival])}), {"v": "entity"}
    )
    question = f"Who {act}?"
    return wording if wording is None else WorldClaim((key,), wording, Filled(slots), (role, exchanged), question)


def claim_verdict(scene: Scene, key: str, rng: random.Random) -> WorldClaim | None:
    """Say whether what the user has heard is right."""
    heard = claim_value(scene, key, True, rng)
    if heard is None or heard.needs_question:
        return None
    state = int(rng.random() < 0.5)
    if state and not heard.falsehoods:
        return None
    filling = rng.choice(heard.falsehoods).filling if state else heard.true
    quote = "".join(part.text for part in heard.wording.fill(filling))
    quote = quote[:1].upper() + quote[1:]
    yes, no = rng.choice(_VERDICTS)
    wording = parse(f"[{yes[:-1]}|{no[:-1]}].")
    false = Falsehood("verdict", "negation", Filled({}, 1 - state), {})
    return WorldClaim((key,), wording, Filled({}, state), (false,), rng.choice(_DOUBTS).format(quote=quote), True)


def claim_relation(scene: Scene, relation: Relation, named: bool, rng: random.Random) -> WorldClaim | None:
    """Claim what follows from a relation's fields; None where it does not apply."""
    wording = scene.pick_wording(relation.answers, rng)
    if wording is None:
        return None
    facts = derive(scene, relation, rng)
    if facts is None:
        return None
    true, falsehoods = facts
    subject = write_subject(scene.record, named, rng)
    true = Filled({**subject, **true.slots}, true.state)
    falsehoods = [
        Falsehood(
            false.change,
            false.reason,
            Filled({**subject, **false.filling.slots}, false.filling.state),
            false.wrong,
        )
        for false in falsehoods
    ]
    question, needs = "", False
    if relation.asks and rng.random() < 0.6:
        template = rng.choice(relation.asks)
        question = "".join(part.text for part in parse(template).resolve(rng).fill(true))
        if relation.options.get("polar", "{x}" in template) and rng.random() < LED:
            wording, needs = wording.with_lead(rng.choice(LEADS)), True
        if "{x}" in template or "{n}" in template:
            falsehoods = [false for false in falsehoods if not {"x", "n"} & set(false.wrong)]
    falsehoods = _filter_shown(wording, true, falsehoods)
    return WorldClaim(relation.of, wording, true, tuple(falsehoods), question, needs)


def _filter_shown(wording: Wording, true: Filled, falsehoods: Sequence[Falsehood]) -> list[Falsehood]:
    """Leave out what the wording does not show."""
    text = wording.fill(true)
    return [false for false in falsehoods if wording.fill(false.filling) != text]
