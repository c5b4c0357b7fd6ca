"""Rows as the engine reads them: excerpts of long knowledge, and windows of long responses."""

from __future__ import annotations

import random

from groundwire.evaluate.twins.edits import EditedSpan
from groundwire.recipes.compact.multitask_examples import MultitaskExample
from groundwire.recipes.compact.multitask_model import HEADS, IGNORED
from groundwire.recipes.reader import as_used
from groundwire.recipes.reader.model import SUPPORTED, UNSUPPORTED
from groundwire.recipes.reader.rows import AnswerRow, LabelledRange, label_ranges

OTHERS = [f"Rule {number}. " + "A guest who borrows skates returns them dry. " * 12 for number in range(4)]
KNOWLEDGE = "The library opens at nine on weekdays. It is closed on Sundays."
SENTENCES = [
    "Borrowers carry a card.",
    "Cards are made at the desk in the hall.",
    "They are free for pupils.",
    "The library opens at nine.",
    "Bags go into the lockers.",
    "Coffee is sold in the yard.",
]


def make_answer(text: str, wrong: str = "", knowledge: str = KNOWLEDGE) -> AnswerRow:
    start = text.find(wrong)
    spans = (EditedSpan(start, start + len(wrong), "number"),) if wrong else ()
    labels = {"consistency": HEADS["consistency"][bool(wrong)]}
    example = MultitaskExample(knowledge, text, "", labels, spans)
    return AnswerRow(example, label_ranges(example))


def make_twins(sentences: list[str] = SENTENCES) -> as_used.Group:
    text = " ".join(sentences)
    return make_answer(text), make_answer(text.replace("nine", "eight"), "eight")


def test_each_answer_reads_the_excerpt_that_it_is_about() -> None:
    right, wrong = as_used.select_excerpts(make_twins(["The library opens at nine."]), OTHERS, random.Random(1))
    for answer in (right, wrong):
        assert "The library opens at nine on weekdays." in answer.example.first
        assert len(answer.example.first) < sum(map(len, OTHERS))
    assert right.example.second == "The library opens at nine."


def test_knowledge_that_is_read_whole_stays() -> None:
    twins = make_twins(["The library opens at nine."])
    assert as_used.select_excerpts(twins, ["Skates are lent."], random.Random(1)) == twins


def test_answers_that_another_passage_supports_or_that_find_nothing_stay() -> None:
    twins = make_twins(["The library opens at nine."])
    others = [*OTHERS, "In June the library opens at eight."]
    assert as_used.select_excerpts(twins, others, random.Random(1)) == twins
    lost = (make_answer("Borrows skates."), make_answer("Returns them dry.", "dry"))
    assert as_used.select_excerpts(lost, OTHERS, random.Random(1)) == lost


def test_a_window_of_a_stream_has_the_difference_and_what_is_before_it() -> None:
    random_order = random.Random(0)
    sizes = set()
    for _ in range(20):
        right, wrong = as_used.cut_responses(make_twins(), random_order)
        assert right.example.second is not None
        assert wrong.example.second is not None
        assert wrong.example.second == right.example.second.replace("nine", "eight")
        (span,) = wrong.example.spans or ()
        assert wrong.example.second[span.start : span.end] == "eight"
        labels = {wrong.example.second[part.start : part.end]: part.label for part in wrong.ranges}
        assert labels["The library opens at eight."] == UNSUPPORTED
        sizes.add(len(labels))
        if len(labels) < len(SENTENCES):
            assert "Coffee is sold in the yard." not in labels
            assert labels["They are free for pupils."] in (SUPPORTED, IGNORED)
            assert next(iter(labels.values())) == IGNORED, "a sentence before the window is context"
        assert {part.label for part in right.ranges} <= {SUPPORTED, IGNORED}
    assert len(sizes) > 1


def test_ranges_keep_their_words_where_blanks_and_lines_go() -> None:
    text = "Cards are free.\n\n- Pupils bring a letter.\n- The library opens at nine.\n- Bags go into lockers."
    twins = (make_answer(text), make_answer(text.replace("nine", "eight"), "eight"))
    for seed in range(6):
        _, wrong = as_used.cut_responses(twins, random.Random(seed))
        (span,) = wrong.example.spans or ()
        assert (wrong.example.second or "")[span.start : span.end] == "eight"
        doubted = [part for part in wrong.ranges if part.label == UNSUPPORTED]
        assert ["opens at eight" in (wrong.example.second or "")[part.start : part.end] for part in doubted] == [True]


def test_short_answers_and_others_than_twins_stay() -> None:
    short = make_twins(["The library opens at nine.", "Bags go into lockers."])
    assert as_used.cut_responses(short, random.Random(1)) == short
    different = (make_answer(" ".join(SENTENCES)), make_answer(" ".join(reversed(SENTENCES))))
    assert as_used.cut_responses(different, random.Random(1)) == different
    single = (
        AnswerRow(MultitaskExample("I like tea.", None, "", {}), ()),
        AnswerRow(MultitaskExample("Tea is grown in Assam.", None, "", {}), (LabelledRange(0, 1, SUPPORTED),)),
    )
    assert as_used.cut_responses(single, random.Random(1)) == single
    assert as_used.select_excerpts(single, OTHERS, random.Random(1)) == single
