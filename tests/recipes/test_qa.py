"""Training examples of extractive QA: which questions they come from, how long the windows are, what is held out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertForQuestionAnswering

from groundwire.recipes.common import backbone
from groundwire.recipes.common.corpus import Question, Squad, find_sentence_bounds, is_held_out
from groundwire.recipes.common.loop import Schedule, make_batches
from groundwire.recipes.compact import qa
from tests.support.training_sets import PARAGRAPHS, UNANSWERABLE, write_gzipped

RIVER = PARAGRAPHS["Amazon_River"][0]
QAMR = [
    {
        "id": "qamr-dev-Wiki1k:wikipedia:16016:90:8-76-0",
        "context": "Each of the four teachers is associated with distinctive emblems.",
        "question": "Who is associated with emblems?",
        "answers": ["Each", "the four teachers", "four teachers", "pupils"],
        "unanswerable": False,
    },
    {
        "id": "qamr-dev-Wiki1k:wikipedia:16016:91:8-1-0",
        "context": "They taught for years.",
        "question": "How long did they teach?",
        "answers": ["decades"],
        "unanswerable": False,
    },
]


@pytest.fixture
def squad(sets: Path) -> Squad:
    return Squad.read(sets / "squad1_train.jsonl.gz")


@pytest.fixture
def data(sets: Path, tmp_path: Path) -> Path:
    """A data directory with all sets of the recipe."""
    (tmp_path / "more").mkdir()
    (tmp_path / qa.ANSWERABLE).symlink_to(sets / qa.ANSWERABLE)
    write_gzipped(tmp_path / qa.UNANSWERABLE, UNANSWERABLE)
    write_gzipped(tmp_path / qa.QAMR, [{**QAMR[0], "id": f"{QAMR[0]['id']}-{number}"} for number in range(6)])
    return tmp_path


def text_from_anchor(squad: Squad, question: Question) -> str:
    return squad.contexts[question.paragraph][question.anchor :]


def test_unanswerable_rows_join_their_paragraph(squad: Squad) -> None:
    both = squad.add_questions(UNANSWERABLE)
    assert (both.contexts, both.articles) == (squad.contexts, squad.articles)
    plausible, other = both.questions[len(squad.questions) :]
    for question in (plausible, other):
        assert (question.answers, question.start, squad.contexts[question.paragraph]) == ((), -1, RIVER)
    assert text_from_anchor(both, plausible).startswith("Vicente Pinzon")
    # Without a plausible answer: the sentence that shares most words with the question.
    assert text_from_anchor(both, other).startswith("It carries more water")


def test_rows_of_new_contexts_are_paragraphs_of_their_document(squad: Squad) -> None:
    both = squad.add_questions(QAMR)
    (question,) = both.questions[len(squad.questions) :]
    # The answer that agrees most with the others; a row whose answer its context lacks is left out.
    assert (question.answer, text_from_anchor(both, question)[: len(question.answer)]) == ("the four teachers",) * 2
    assert both.articles["qamr-dev-Wiki1k:wikipedia:16016"] == (len(squad.contexts), len(squad.contexts) + 1)


def test_the_recipe_reads_what_is_there(data: Path, sets: Path) -> None:
    answerable = len(Squad.read(data / qa.ANSWERABLE).questions)
    assert len(qa.read_qa_sets(sets).questions) == answerable
    assert len(qa.read_qa_sets(data, qamr=False).questions) == answerable + 2
    assert len(qa.read_qa_sets(data).questions) == answerable + 2 + 3


def test_every_window_contains_its_anchor(data: Path) -> None:
    squad = qa.read_qa_sets(data)
    for question in squad.questions:
        paragraph = squad.contexts[question.paragraph]
        for sentences in (1, 2, 3, qa.ALL_SENTENCES):
            rng = random.Random(sentences)
            window, offset = qa.cut_qa_window(squad, question, sentences, rng)
            assert window in paragraph
            assert window[offset:].startswith(question.answer or paragraph[question.anchor :][:1])
            assert len(find_sentence_bounds(window)) <= sentences
            assert sentences < qa.ALL_SENTENCES or window == paragraph


def test_windows_that_are_too_long_have_fewer_sentences() -> None:
    sentences = [f"The number {index} is followed by the number {index + 1}. " for index in range(40)]
    text = "".join(sentences)
    bounds = tuple(find_sentence_bounds(text))
    question = Question("What follows the number 20?", ("21",), 0, at := text.index("21"), at)
    squad = Squad((text,), (bounds,), ("Numbers",), {"Numbers": (0,)}, (question,))
    window, offset = qa.cut_qa_window(squad, question, qa.ALL_SENTENCES, random.Random(1))
    assert len(find_sentence_bounds(window)) == 7
    assert window[offset:].startswith("21")


def test_labels_of_examples(data: Path) -> None:
    squad = qa.read_qa_sets(data)
    seen = set()
    for index in range(400):
        question = squad.questions[index % len(squad.questions)]
        asked, window, start, end = qa.make_qa_example(squad, question, random.Random(index))
        if start >= 0:
            assert (asked, window[start:end]) == (question.text, question.answer)
        elif not question.answers:
            assert asked == question.text
        else:
            assert asked != question.text or question.answer.lower() not in window.lower()
        seen.add((bool(question.answers), start >= 0))
    # People's unanswerable questions stay unanswerable, some answerable ones become so.
    assert seen == {(False, False), (True, False), (True, True)}


def test_token_labels(small: Path) -> None:
    tokens = backbone.load_tokenizer()
    passage = "He was born in Tupelo. He was born in Memphis."
    start = passage.index("Memphis")
    row = qa.encode_qa_example(tokens, "Where was he born?", passage, start, start + len("Memphis"))
    first, last = row["start_positions"][0], row["end_positions"][0]
    assert tokens.decode(row["input_ids"][first : last + 1]).replace(" ", "") in ("memphis", "Memphis")
    assert first > row["token_type_ids"].index(1) + 3
    nothing = qa.encode_qa_example(tokens, "Where was he born?", passage, -1, -1)
    assert (nothing["start_positions"], nothing["end_positions"]) == ([0], [0])
    assert len(qa.encode_qa_example(tokens, "Where?", passage * 60, -1, -1)["input_ids"]) == qa.MAX_TOKENS


def test_one_article_in_fifty_is_held_out() -> None:
    titles = [f"Article_{index}" for index in range(5000)]
    assert sum(map(is_held_out, titles)) == pytest.approx(100, abs=30)


def train_and_record(monkeypatch: pytest.MonkeyPatch, data: Path, out: Path, steps: int) -> list[dict[str, Any]]:
    """Train, and return the batches that were fed."""
    batches_fed = []

    def record(*arguments: Any) -> Iterator[dict[str, torch.Tensor]]:
        for batch in make_batches(*arguments):
            batches_fed.append(batch)
            yield batch

    monkeypatch.setattr(qa, "make_batches", record)
    qa.train_extractive_qa(data, out, replace(Schedule(steps=4, batch=4, autocast="off"), steps=steps))
    return batches_fed


def test_training_is_deterministic_resumes_and_leaves_out_held_out_articles(
    data: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qa, "is_held_out", lambda title: title == "Elvis_Presley")
    whole = train_and_record(monkeypatch, data, tmp_path / "whole", 4)
    again = train_and_record(monkeypatch, data, tmp_path / "again", 2) + train_and_record(
        monkeypatch, data, tmp_path / "again", 4
    )
    assert len(whole) == len(again) == 4
    for batch, resumed in zip(whole, again, strict=True):
        assert all(torch.equal(batch[name], resumed[name]) for name in batch)
    tokens = backbone.load_tokenizer()
    texts = [tokens.decode(ids) for batch in whole for ids in batch["input_ids"]]
    assert not any("presley" in text.lower() for text in texts)
    model = BertForQuestionAnswering.from_pretrained(tmp_path / "whole")
    assert model.config.max_position_embeddings == 256
