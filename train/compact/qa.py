"""Trains extractive question answering with "no answer", on SQuAD 1.1 and unanswerable questions made from it.

A window is one to nine sentences: knowledge snippets are usually short, paragraphs are not. Nearly half of the examples
are unanswerable, in two ways. The window may lack the answer: then it is sentences of the same article that share many
words with the question. Or the question may ask for something that the window does not say, as the questions that
people wrote for SQuAD 2.0 do: a name, a number or a word of a set is replaced in it, or it is negated. The label of an
unanswerable question is position 0 for both ends, as in SQuAD 2.0 models.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from transformers import BertForQuestionAnswering, PreTrainedTokenizerFast

from ..common import backbone
from ..common.corpus import Question, Squad
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches
from ..synthesis import perturbations
from ..synthesis.negation import negate

MAX_TOKENS = 160
FILL = dict.fromkeys((*backbone.INPUTS, "start_positions", "end_positions"), 0)
UNANSWERABLE = 0.45
ALTERED = 0.6
"""Share of the unanswerable ones in which the question is altered, and not the window."""
_SENTENCES = (1, 1, 1, 2, 2, 3, 5, 9)


def train_extractive_qa(
    data: Path, out: Path, schedule: Schedule, lr: float = 1.5e-4, start: Path | None = None
) -> None:
    """Train from MiniLM, or from the checkpoint ``start``, and save a ``BertForQuestionAnswering`` in ``out``."""
    squad = Squad.read(data / "squad1_train.jsonl.gz")
    tokens = backbone.load_tokenizer()
    questions = squad.questions

    def make(index: int, rng: random.Random) -> Row:
        return encode_qa_example(tokens, *make_qa_example(squad, questions[index], rng.choice(_SENTENCES), rng))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(questions), make, FILL, schedule, start)

    model = BertForQuestionAnswering.from_pretrained(start or backbone.PATH)
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


def make_qa_example(squad: Squad, question: Question, sentences: int, rng: random.Random) -> tuple[str, str, int, int]:
    """One training example: question, window, and the answer's character range (-1, -1 when the window lacks it)."""
    if rng.random() < UNANSWERABLE:
        altered = alter_question(squad, question, rng) if rng.random() < ALTERED else None
        if altered is not None:
            return altered, squad.cut_window(question, sentences, rng)[0], -1, -1
        passage = squad.find_distractor(question, min(sentences, 4), rng)
        if passage:
            return question.text, passage, -1, -1
    passage, start = squad.cut_window(question, sentences, rng)
    return question.text, passage, start, start + len(question.answer)


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
