"""Structured edits: spans are the edited text, reasons fit, and edited knowledge supports the edited claim."""

from __future__ import annotations

import random
import re

import pytest

from groundwire.evaluate.twins.edits import ClaimEdit, EditedSpan
from groundwire.recipes.synthesis import word_sets
from groundwire.recipes.synthesis.structured_edits import EDITORS, REASONS, EditContext, edit_claim, edit_knowledge
from groundwire.recipes.synthesis.typed_names import NameTypes

KNOWLEDGE = (
    "Marie Curie was born in Warsaw on 7 November 1867. She shared the Nobel Prize in Physics with Henri Becquerel in "
    "1903. Marie Curie taught Irene Curie at the University of Paris, which was founded in 1150. The "
    "largest laboratory was 40 metres from the river and it was not heated. Frederic Joliot married Irene in 1926."
)
NEAR = (
    "Albert Einstein was offered a chair at Princeton University, which had opened a new institute, in 1933.",
    "The museum in Berlin holds 12,000 letters.",
)
NAMES = NameTypes({"PERSON": ["Marie Curie", "Henri Becquerel", "Albert Einstein"], "LOC": ["Warsaw", "Berlin"]})
CASES = [
    ("name", "She shared the Nobel Prize in Physics with Henri Becquerel in 1903.", {"entity"}),
    ("answer", "Marie Curie was born in Warsaw on 7 November 1867.", {"entity"}),
    ("number", "The largest laboratory was 40 metres from the river.", {"number"}),
    ("date", "She shared the Nobel Prize in Physics with Henri Becquerel in 1903.", {"date"}),
    ("word", "The largest laboratory was 40 metres from the river.", {"relation"}),
    ("negation", "The largest laboratory was 40 metres from the river and it was not heated.", {"negation"}),
    ("roles", "Henri Becquerel was a teacher of Marie Curie.", {"relation"}),
    ("splice", "Marie Curie was born in Warsaw on 7 November 1867.", {"relation"}),
    ("clause", "Marie Curie was born in Warsaw.", {"addition"}),
    ("sentence", "Marie Curie was born in Warsaw.", {"addition"}),
]


def make_context(claim: str) -> EditContext:
    return EditContext(KNOWLEDGE, NEAR, NAMES, "Warsaw", ("Berlin", "Vienna"))


@pytest.mark.parametrize(("editor", "claim", "reasons"), CASES, ids=[case[0] for case in CASES])
def test_spans_are_the_edited_text(editor: str, claim: str, reasons: set[str]) -> None:
    edits = [edit_claim(claim, make_context(claim), editor, random.Random(seed)) for seed in range(40)]
    made = [edit for edit in edits if edit is not None]
    assert made
    for edit in made:
        edited = edit.apply(claim)
        assert edited != claim
        assert edit.reason in reasons
        assert {span.reason for span in edit.find_spans()} == {edit.reason}
        # Without what the edit wrote and took away, the two texts are the same.
        assert cut(edited, edit.find_spans()) == cut(claim, edit.find_replaced_spans())
        for span, (_, _, new) in zip(edit.find_spans(), edit.replacements, strict=True):
            assert edited[span.start : span.end] == new.strip(" ,;")


def cut(text: str, spans: tuple[EditedSpan, ...]) -> list[str]:
    for span in reversed(spans):
        text = text[: span.start] + " " + text[span.end :]
    return re.findall(r"\w+|[^\w\s,]", text)


def test_the_cases_cover_every_editor_and_reason() -> None:
    assert {editor for editor, _, _ in CASES} == set(EDITORS)
    assert set.union(*(reasons for _, _, reasons in CASES)) == set(REASONS)


@pytest.mark.parametrize(
    ("editor", "claim"),
    [
        ("name", "She shared the Nobel Prize in Physics with Henri Becquerel in 1903."),
        ("date", "She shared the Nobel Prize in Physics with Henri Becquerel in 1903."),
        ("number", "The largest laboratory was 40 metres from the river and it was not heated."),
        ("negation", "The largest laboratory was 40 metres from the river and it was not heated."),
        ("word", "The largest laboratory was 40 metres from the river and it was not heated."),
    ],
)
def test_the_edited_knowledge_has_the_edited_claim_and_not_the_first(editor: str, claim: str) -> None:
    assert claim in KNOWLEDGE or claim.rstrip(".") in KNOWLEDGE
    mirrored = 0
    for seed in range(30):
        rng = random.Random(seed)
        edit = edit_claim(claim, make_context(claim), editor, rng)
        assert edit is not None
        changed = edit_knowledge(KNOWLEDGE, claim, edit, rng)
        if changed is None:
            continue
        mirrored += 1
        assert edit.apply(claim) in changed
        assert claim not in changed
    assert mirrored


def test_an_answer_that_the_knowledge_gives_to_something_else_is_exchanged_there() -> None:
    claim = "Marie Curie was born in Warsaw."
    knowledge = "Marie Curie was born in Warsaw. Albert Einstein lived in Berlin."
    edit = ClaimEdit("answer", "entity", ((24, 30, "Berlin"),))
    assert edit.apply(claim) == "Marie Curie was born in Berlin."
    assert (
        edit_knowledge(knowledge, claim, edit, random.Random(0))
        == "Marie Curie was born in Berlin. Albert Einstein lived in Warsaw."
    )


def test_half_of_a_name_left_in_the_knowledge_prevents_its_edit() -> None:
    claim = "Elvis Presley sang."
    edit = ClaimEdit("name_outside", "entity", ((0, 13, "Roy Orbison"),))
    assert edit_knowledge("Elvis Presley sang. Presley danced.", claim, edit, random.Random(0)) is None
    assert edit_knowledge("Elvis Presley sang.", claim, edit, random.Random(0)) == "Roy Orbison sang."


def test_roles_that_hold_both_ways_are_not_exchanged() -> None:
    for claim in ("Marie Curie met with Henri Becquerel.", "Marie Curie and Henri Becquerel were there."):
        assert edit_claim(claim, make_context(claim), "roles", random.Random(0)) is None


def test_dates_keep_their_form() -> None:
    for date, form in (("1903", r"\d{4}"), ("1980s", r"\d{3}0s"), ("19th", r"\d+(st|nd|rd|th)"), ("March", "[A-Z]")):
        for seed in range(20):
            new = word_sets.vary_date(date, random.Random(seed))
            assert new != date
            assert re.match(form, new), (date, new)


def test_names_have_types_and_sentence_capitals_are_none() -> None:
    text = "However, Marie Curie left Warsaw in March. The Danube River is long. French people liked it."
    assert [(name.text, name.type) for name in NAMES.find(text)] == [
        ("Marie Curie", "PERSON"),
        ("Warsaw", "LOC"),
        ("Danube River", "LOC"),
        ("French", "people"),
    ]
    assert all(text[name.start : name.end] == name.text for name in NAMES.find(text))
