"""Records written as knowledge: prose, questions and answers, tables, lists, info-boxes and several passages."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from .kinds import FeatureKind, Quantity
from .scene import Scene, WorldRecord, write_subject
from .schema import Domain, Field
from .wording import Filled, Wording, capitalize, join

_HEADINGS = (
    "About {name}",
    "{name}",
    "# {name}",
    "## {name}",
    "{name} – at a glance",
    "Information: {name}",
    "**{name}**",
)
_DATE_NOTES = {
    3: ("(Dates: day/month/year.)", "All dates are given as day/month/year.", "Date format: DD/MM/YYYY"),
    4: ("", "Dates are written as year-month-day."),
}
_COLUMNS = (
    ("Item", "Details"),
    ("Topic", "Value"),
    ("Question", "Answer"),
    ("What", "Information"),
    ("Field", "Value"),
)
AnswerLayout: TypeAlias = Callable[[Domain, WorldRecord, Sequence[str], random.Random], str]


def write_knowledge(scene: Scene, rng: random.Random) -> tuple[str, ...]:
    """Write what is disclosed of the records of a scene."""
    if scene.other is not None and rng.random() < 0.3:
        passages = [_write_shared_table(scene, rng)]
    else:
        passages = _write_passages(scene.domain, scene.record, scene.disclosed, rng)
        if scene.other is not None:
            others = _write_passages(scene.domain, scene.other, scene.other_disclosed, rng)
            passages = [*others, *passages] if rng.random() < 0.5 else [*passages, *others]
    notes = _DATE_NOTES.get(scene.record.style.date)
    if notes and any(scene.domain.fields[key].kind.group == "date" for key in scene.disclosed):
        note = rng.choice(notes)
        passages[-1] = f"{passages[-1]}\n{note}" if note else passages[-1]
    return tuple(passages) if rng.random() < 0.6 else ("\n\n".join(passages),)


def _write_passages(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> list[str]:
    if len(keys) >= 6 and rng.random() < 0.35:
        cut = rng.randint(2, len(keys) - 2)
        return [_write_passage(domain, record, part, rng) for part in (keys[:cut], keys[cut:])]
    return [_write_passage(domain, record, keys, rng)]


def _write_passage(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> str:
    layout = rng.choices(list(_LAYOUTS), list(_LAYOUTS.values()))[0]
    return layout(domain, record, keys, rng)


def write_field(field: Field, record: WorldRecord, named: bool, rng: random.Random) -> str:
    """Write a sentence of the knowledge."""
    wording = rng.choice(field.say).resolve(rng)
    parts = wording.fill(_fill(wording, field, record, write_subject(record, named, rng), rng))
    return join(capitalize(parts))


def _fill(
    wording: Wording,
    field: Field,
    record: WorldRecord,
    subject: Mapping[str, str],
    rng: random.Random,
    cell: bool = False,
) -> Filled:
    value, kind, state = record.values[field.key], field.kind, 0
    slots = dict(subject)
    if isinstance(kind, FeatureKind):
        state, kind, value = value.state, kind.inner or kind, value.value
    if value is not None:
        text = kind.write_cell(value, record.style, rng) if cell else kind.write(value, record.style, rng, answer=False)
        slots["v"] = text
        slots["num"] = f"{value[0]:g}" if isinstance(kind, Quantity) else str(value)
        if "{v-}" in wording.source and isinstance(kind, Quantity):
            slots["v-"] = kind.write_attribute(value, rng)
    return Filled(slots, state)


def write_cell(field: Field, record: WorldRecord, rng: random.Random) -> str:
    """Write a value for a table."""
    wording = rng.choice(field.cells)
    return join(wording.fill(_fill(wording, field, record, {}, rng, cell=True)))


def _write_intro(domain: Domain, record: WorldRecord, rng: random.Random) -> str:
    return rng.choice(domain.intros).replace("{S}", record.name) if domain.intros and rng.random() < 0.4 else ""


def _write_heading(record: WorldRecord, rng: random.Random) -> str:
    return rng.choice(_HEADINGS).format(name=record.name)


def _write_prose(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> str:
    intro = _write_intro(domain, record, rng)
    sentences = [intro] if intro else []
    heading = f"{_write_heading(record, rng)}\n" if not intro or rng.random() < 0.2 else ""
    named = bool(heading or intro)
    for key in keys:
        sentences.append(write_field(domain.fields[key], record, not named, rng))
        named = True
    breaks = "\n" if rng.random() < 0.15 else " "
    return heading + breaks.join(sentences)


def _write_bullets(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> str:
    mark = rng.choice(("- ", "- ", "* ", "• "))
    lines = [write_field(domain.fields[key], record, False, rng) for key in keys]
    return "\n".join([_write_heading(record, rng), *(mark + line for line in lines)])


def _write_info_box(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> str:
    mark = rng.choice(("", "", "- "))
    fields = [domain.fields[key] for key in keys]
    lines = [f"{mark}{rng.choice(field.labels)}: {write_cell(field, record, rng)}" for field in fields]
    return "\n".join([_write_heading(record, rng), *lines])


def _write_table(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> str:
    left, right = rng.choice(_COLUMNS)
    fields = [domain.fields[key] for key in keys]
    rows = [f"| {rng.choice(field.labels)} | {write_cell(field, record, rng)} |" for field in fields]
    return "\n".join([_write_heading(record, rng), f"| {left} | {right} |", "|---|---|", *rows])


def _write_questions(domain: Domain, record: WorldRecord, keys: Sequence[str], rng: random.Random) -> str:
    question, answer = rng.choice((("Q: ", "A: "), ("**", ""), ("", ""), ("Question: ", "Answer: ")))
    lines = [_write_heading(record, rng)]
    for key in keys:
        field = domain.fields[key]
        asked = rng.choice(field.asks or field.polar or (f"What about {field.labels[0].lower()}?",))
        lines.append(f"{question}{asked}{'**' if question == '**' else ''}")
        lines.append(answer + write_field(field, record, False, rng))
    return "\n".join(lines)


def _write_shared_table(scene: Scene, rng: random.Random) -> str:
    """Write both records as columns of a table."""
    if scene.other is None:
        raise ValueError("A shared table needs a second record")
    records = [scene.record, scene.other]
    disclosed = {scene.record.name: set(scene.disclosed), scene.other.name: set(scene.other_disclosed)}
    if rng.random() < 0.5:
        records.reverse()
    lines = [f"| | {records[0].name} | {records[1].name} |", "|---|---|---|"]
    for key in dict.fromkeys([*scene.disclosed, *scene.other_disclosed]):
        field = scene.domain.fields[key]
        cells = [write_cell(field, record, rng) if key in disclosed[record.name] else "–" for record in records]
        lines.append(f"| {rng.choice(field.labels)} | {' | '.join(cells)} |")
    return "\n".join(lines)


_LAYOUTS: Mapping[AnswerLayout, float] = {
    _write_prose: 0.45,
    _write_bullets: 0.15,
    _write_info_box: 0.14,
    _write_table: 0.12,
    _write_questions: 0.14,
}
"""Layouts of a passage, and how often each is drawn."""
