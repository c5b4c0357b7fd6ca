"""Trains extractive question answering with "no answer", on SQuAD, QAMR and unanswerable questions by people.

Half of the windows are one to four sentences: knowledge snippets are usually short. The others are whole paragraphs, or
as many of their sentences as the model reads at once. About two fifths of the examples are unanswerable. Most of them
are from SQuAD 2.0: people wrote them about the paragraph that they are paired with. The others are made from answerable
questions, in two ways. The window may lack the answer: then it is sentences of the same article that share many words
with the question. Or the question may ask for something that the window does not say: a name, a number or a word of a
set is replaced in it, or it is negated. The label of an unanswerable question is position 0 for both ends, as in
SQuAD 2.0 models.

The articles that ``is_held_out`` selects are not trained on: they are the development set.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from transformers import BertForQuestionAnswering, PreTrainedTokenizerFast

from groundwire.evaluate.twins.negation import negate

from ..common import backbone
from ..common.corpus import Question, Squad, is_held_out, read_rows
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches
from ..synthesis import perturbations

ANSWERABLE = "squad1_train.jsonl.gz"
UNANSWERABLE = "more/reading_squad2_unanswerable.jsonl.gz"
QAMR = "more/reading_qamr.jsonl.gz"
QAMR_SHARE = 0.5
"""Share of the QAMR questions that are used: each of its sentences has dozens."""

MAX_TOKENS = 256
FILL = dict.fromkeys((*backbone.INPUTS, "start_positions", "end_positions"), 0)
MADE_UNANSWERABLE = 0.15
"""Share of the answerable questions that are made unanswerable."""
ALTERED = 0.6
"""Share of those in which the question is altered, and not the window."""
SHORT_WINDOWS = 0.5
"""Share of the windows that are one to four sentences."""
_SHORT_SENTENCES = (1, 1, 2, 2, 3, 4)
ALL_SENTENCES = 1000
"""More sentences than any paragraph has."""
_MAX_CHARACTERS = 980
"""About 220 tokens of English, so that a window and its question are rarely truncated."""


def train_extractive_qa(data: Path, out: Path, schedule: Schedule, lr: float = 1e-4, start: Path | None = None) -> None:
    """Train from MiniLM, or from the checkpoint ``start``, and save a ``BertForQuestionAnswering`` in ``out``."""
    squad = read_qa_sets(data)
    tokens = backbone.load_tokenizer()
    questions = [question for question in squad.questions if not is_held_out(squad.titles[question.paragraph])]

    def make(index: int, rng: random.Random) -> Row:
        return encode_qa_example(tokens, *make_qa_example(squad, questions[index], rng))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(questions), make, FILL, schedule, start)

    # Without dropout a step took 28 % less processor time (6.2 s, not 8.6), and a run sees most questions once at most.
    model = BertForQuestionAnswering.from_pretrained(
        start or backbone.PATH, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    fit(
        model,
        [ParameterGroup(backbone.freeze_word_embeddings(model), lr)],
        feed,
        lambda m, batch: m(**batch).loss,
        schedule,
        out,
    )
    model.save_pretrained(out)
    tokens.save_pretrained(out)


def read_qa_sets(data: Path, *, qamr: bool = True) -> Squad:
    """All questions of the recipe: SQuAD 1.1, the unanswerable ones of SQuAD 2.0, and a share of QAMR's.

    SQuAD 1.1 must be in ``data``; the other sets are left out where their files are missing. ``qamr=False`` leaves out
    QAMR.
    """
    squad = Squad.read(data / ANSWERABLE)
    if (data / UNANSWERABLE).is_file():
        squad = squad.add_questions(read_rows(data / UNANSWERABLE))
    if qamr and (data / QAMR).is_file():
        rows = list(read_rows(data / QAMR))
        squad = squad.add_questions(random.Random(3).sample(rows, int(len(rows) * QAMR_SHARE)))
    return squad


def make_qa_example(squad: Squad, question: Question, rng: random.Random) -> tuple[str, str, int, int]:
    """One training example: question, window, and the answer's character range (-1, -1 when the window lacks it)."""
    sentences = rng.choice(_SHORT_SENTENCES) if rng.random() < SHORT_WINDOWS else ALL_SENTENCES
    window, start = cut_qa_window(squad, question, sentences, rng)
    if not question.answers:
        return question.text, window, -1, -1
    if rng.random() < MADE_UNANSWERABLE:
        altered = alter_question(squad, question, rng) if rng.random() < ALTERED else None
        if altered is not None:
            return altered, window, -1, -1
        passage = squad.find_distractor(question, sentences, rng)
        if passage:
            return question.text, passage, -1, -1
    return question.text, window, start, start + len(question.answer)


def cut_qa_window(squad: Squad, question: Question, sentences: int, rng: random.Random) -> tuple[str, int]:
    """A window of so many sentences around the question's anchor, and the anchor's offset in it.

    It has fewer sentences where they are too long for the model.
    """
    for count in (sentences, *(fewer for fewer in (7, 5, 4, 3, 2, 1) if fewer < sentences)):
        window, start = squad.cut_window(question, count, rng)
        if len(window) <= _MAX_CHARACTERS:
            break
    return window, start


def alter_question(squad: Squad, question: Question, rng: random.Random) -> str | None:
    """The question with another name, number or word of a set, or negated; None where no change applies.

    Other names come from the same article, because unrelated names would be easy to notice.
    """
    article = squad.articles[squad.titles[question.paragraph]]
    paragraphs = [question.paragraph, *rng.sample(article, min(2, len(article)))]
    changes: list[Callable[[], str | None]] = [
        lambda: perturbations.replace_name(
            question.text, [n for i in paragraphs for n in perturbations.find_names(squad.contexts[i])], rng
        ),
        lambda: perturbations.replace_number(question.text, rng),
        lambda: perturbations.replace_word(question.text, rng),
        lambda: negate(question.text, rng),
    ]
    # A negation applies nearly always, so it comes last most of the time.
    order = [*rng.sample(changes[:3], 3), changes[3]] if rng.random() < 0.7 else rng.sample(changes, 4)
    return next((altered for change in order if (altered := change()) is not None), None)


def encode_qa_example(tokens: PreTrainedTokenizerFast, question: str, passage: str, start: int, end: int) -> Row:
    """Token ids and start/end positions of an example; both positions are 0 when the passage has no answer."""
    encoded = tokens(question, passage, truncation="only_second", max_length=MAX_TOKENS, return_offsets_mapping=True)
    offsets = encoded["offset_mapping"]
    inside = [
        i
        for i, sequence in enumerate(encoded.sequence_ids())
        if sequence == 1 and start >= 0 and offsets[i][0] < end and offsets[i][1] > start
    ]
    row: Row = {name: encoded[name] for name in backbone.INPUTS}
    return row | {"start_positions": [inside[0] if inside else 0], "end_positions": [inside[-1] if inside else 0]}
