"""The training examples of the multi-task NLI model: two rows at a time, which stay in one batch.

Two rows of a group differ in little: a supported response and its edited copy, or two labelled hypotheses of one
premise. So the contrast is in the gradient of every step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from groundwire.evaluate.twins.edits import EditedSpan

from ..common import backbone
from ..common.corpus import Squad, read_rows, word_coverage
from ..common.loop import Row
from ..synthesis import pairs, weak_labels
from ..synthesis.answer_pairs import AnswerPairs
from ..synthesis.chat_style import ChatStyle
from ..synthesis.fact_pairs import FactPairs
from ..synthesis.harmless import HarmlessResponses
from ..synthesis.minimal_pairs import GroundedPair, MinimalPairs
from ..synthesis.opposite_facts import OppositeFacts
from ..synthesis.pairs import NEAR, ConsistencyPair, ConsistencyPairs
from ..synthesis.question_pairs import QuestionPair, QuestionPairs
from ..synthesis.typed_names import read_names
from ..synthesis.verifiability import VerifiabilitySentences
from .multitask_model import HEADS, IGNORED, NOT_ENTAILMENT, TOKEN_HEAD, TOKEN_LABELS
from .public_pairs import ENTAILMENT, SETS, LabelledPair, PublicPairs
from .public_pairs import NOT_ENTAILMENT as UNSPECIFIED

SHARES = {
    **{"minimal": 0.22, "questions": 0.16, "facts": 0.14, "public": 0.33},
    **{"harmless": 0.04, "made": 0.02, "comparison": 0.03, "verifiability": 0.06},
}
"""Shares of the groups, by source."""
INFERENCE_LABELS: dict[str, str] = {
    "consistent": "entailment",
    **dict.fromkeys(("answer", "response", "knowledge", "negation"), "contradiction"),
    **dict.fromkeys(("unsupported", "addition", "random"), "neutral"),
}
"""The inference label of a pair of ``synthesis.pairs``, by its kind; the other kinds determine none."""
MAX_TOKENS, LONG_TOKENS, LONG = 128, 192, 0.15
"""Tokens of a row, of a long one, and the share of groups whose rows may be long."""
CLAIM_TOKENS = 32
"""Tokens that a response and the separators take, about."""
WORDS_PER_TOKEN = 0.72
ATTEMPTS = 12
"""Groups drawn until one fits the window; the last is cut."""
FILL = {
    **dict.fromkeys((*backbone.INPUTS, *HEADS), 0),
    TOKEN_HEAD: IGNORED,
}


@dataclass(frozen=True, slots=True)
class MultitaskExample:
    """A text or pair and its labels; a head whose label is None is not trained."""

    first: str
    second: str | None
    source: str
    """How it was made."""
    labels: Mapping[str, str]
    """By head for whole pairs."""
    spans: tuple[EditedSpan, ...] | None = None
    """Unsupported characters of the second text; None leaves its tokens without a label."""


Draw: TypeAlias = Callable[[int, random.Random], tuple[MultitaskExample, MultitaskExample]]
"""Draws two examples with a knowledge of so many words at most."""


class MultitaskExamples:
    """Draws the examples of all heads."""

    def __init__(
        self,
        public: PublicPairs,
        comparisons: AnswerPairs | None,
        consistency: ConsistencyPairs,
        sentences: VerifiabilitySentences,
        minimal: MinimalPairs,
        harmless: HarmlessResponses,
        questions: QuestionPairs | None = None,
        facts: FactPairs | None = None,
    ) -> None:
        """``comparisons`` are pairs in the form that Q² asks; None for none, as for ``questions`` and ``facts``."""
        self.public = public
        self.consistency = consistency
        """Pairs of the sources that dialogues go wrong in."""
        self._minimal = minimal
        self._comparisons = comparisons
        self._sentences = sentences
        self._harmless = harmless
        self._tokens = backbone.load_tokenizer()
        self.contrasts: dict[str, Draw] = {"minimal": partial(_draw_grounded, minimal)}
        """What draws two examples that differ in little, by source: a supported and an unsupported one."""
        if questions is not None:
            self.contrasts["questions"] = partial(_draw_questions, questions)
        if facts is not None:
            self.contrasts["facts"] = partial(_draw_grounded, facts)
        self._draws: dict[str, Draw] = {
            **self.contrasts,
            "public": self._draw_public,
            "harmless": self._draw_harmless,
            "made": lambda _, rng: (self.draw_made(rng), self.draw_made(rng)),
            "verifiability": lambda _, rng: (self.draw_sentence(rng), self.draw_sentence(rng)),
        }
        if comparisons is not None:
            self._draws["comparison"] = lambda _, rng: (self._draw_comparison(rng), self._draw_comparison(rng))

    @classmethod
    def read(cls, data: Path, split: str = "train") -> MultitaskExamples:
        """From a directory of training sets; ``split`` is train, or dev for unseen articles, triples and pairs.

        The sentences of chat have no development split: their labels come from rules, and agreement with the rules on
        other sentences would say little more.
        """
        squad = Squad.read(data / f"squad1_{split}.jsonl.gz")
        sentences = VerifiabilitySentences.read(data, squad)
        style = ChatStyle(sentences.non_verifiable)
        questions = [row["question"] for row in read_rows(data / "query_wellformedness_train.jsonl.gz")]
        questions += [question.text for question in squad.questions]
        minimal = MinimalPairs.read(data, squad, style, split)
        facts = FactPairs(
            OppositeFacts(read_names(data), split), lambda words, rng: minimal.draw_knowledge(words, rng)[0], style
        )
        return cls(
            PublicPairs.read(data, split),
            AnswerPairs(squad) if split == "train" else None,
            ConsistencyPairs.read(data, squad, style, split),
            sentences,
            minimal,
            HarmlessResponses(sentences.non_verifiable, questions, style),
            QuestionPairs.read(data, style, split),
            facts,
        )

    def make(self, _: int, rng: random.Random) -> tuple[Row, Row]:
        """The rows of a group of a source drawn by its share; it depends on ``rng`` alone."""
        return self.draw(rng.choices(list(self._draws), [SHARES[name] for name in self._draws])[0], rng)

    def draw(self, source: str, rng: random.Random) -> tuple[Row, Row]:
        """The rows of a group of ``source``, as long as the window that is drawn for it, or shorter."""
        limit = LONG_TOKENS if rng.random() < LONG else MAX_TOKENS
        for attempt in range(ATTEMPTS):
            group = self._draws[source](int((limit - CLAIM_TOKENS) * WORDS_PER_TOKEN), rng)
            first, second = (self.encode(example, limit, cut=attempt == ATTEMPTS - 1) for example in group)
            if first is not None and second is not None:
                return first, second
        raise AssertionError("the last attempt is cut to the window")

    def encode(self, example: MultitaskExample, limit: int = LONG_TOKENS, *, cut: bool = True) -> Row | None:
        """The row of an example; None for more than ``limit`` tokens, unless the longer text may be ``cut``."""
        truncation = {"truncation": "longest_first", "max_length": limit} if cut else {}
        encoded = self._tokens(example.first, example.second, return_offsets_mapping=True, **truncation)
        if len(encoded["input_ids"]) > limit:
            return None
        row: Row = {name: encoded[name] for name in backbone.INPUTS}
        for head, labels in HEADS.items():
            label = example.labels.get(head)
            unspecified = NOT_ENTAILMENT if label == UNSPECIFIED else None
            row[head] = [IGNORED if label is None else unspecified or labels.index(label)]
        row[TOKEN_HEAD] = [
            IGNORED if example.spans is None or sequence != 1 else _find_token_label(example.spans, start, end)
            for sequence, (start, end) in zip(encoded.sequence_ids(0), encoded["offset_mapping"], strict=True)
        ]
        return row

    def draw_made(self, rng: random.Random) -> MultitaskExample:
        """Draw a pair of ``synthesis.pairs``."""
        pair: ConsistencyPair = self.consistency.draw(rng)
        labels = {"consistency": pair.label}
        if pair.kind in INFERENCE_LABELS:
            labels["nli"] = INFERENCE_LABELS[pair.kind]
        spans = () if pair.kind == "consistent" else None
        return MultitaskExample(pair.knowledge, pair.response, pair.kind, labels, spans)

    def draw_sentence(self, rng: random.Random) -> MultitaskExample:
        """Draw a sentence for the head verifiability."""
        text, label = self._sentences.draw(rng)
        return MultitaskExample(text, None, "sentence", {"verifiability": label})

    def _draw_public(self, _: int, rng: random.Random) -> tuple[MultitaskExample, MultitaskExample]:
        name, (first, second) = self.public.draw(rng)
        return make_public_example(name, first), make_public_example(name, second)

    def _draw_comparison(self, rng: random.Random) -> MultitaskExample:
        assert self._comparisons is not None
        premise, hypothesis, label = self._comparisons.draw(rng)
        return MultitaskExample(premise, hypothesis, "comparison", {"nli": label})

    def _draw_harmless(self, words: int, rng: random.Random) -> tuple[MultitaskExample, MultitaskExample]:
        """A response that claims nothing, and the same without knowledge, or a fact of a chat that the knowledge lacks.

        Whether it is consistent, people see differently: BEGIN calls it not attributable, others find nothing wrong. So
        the head consistency learns nothing from it; that no word of it is unsupported, and that it states nothing, is
        clear.
        """
        knowledge, topic = self._minimal.draw_knowledge(words, rng)
        text, kind = self._harmless.draw(topic, rng)
        first = MultitaskExample(knowledge, text, kind, {}, ())
        alone = MultitaskExample(text, None, kind, {"verifiability": weak_labels.LABELS[1]})
        if rng.random() < 0.5:
            return first, alone
        fact = rng.choice(self._sentences.verifiable)
        if word_coverage(fact, knowledge) >= NEAR:
            return first, alone
        return first, MultitaskExample(knowledge, fact, "chat_fact", {"consistency": pairs.LABELS[1], "nli": "neutral"})


def _draw_grounded(
    pairs_of: MinimalPairs | FactPairs, words: int, rng: random.Random
) -> tuple[MultitaskExample, MultitaskExample]:
    supported, unsupported = pairs_of.draw(words, rng)
    return make_grounded_example(supported), make_grounded_example(unsupported)


def _draw_questions(
    questions: QuestionPairs, words: int, rng: random.Random
) -> tuple[MultitaskExample, MultitaskExample]:
    return make_question_examples(questions.draw(words, rng))


def make_grounded_example(pair: GroundedPair) -> MultitaskExample:
    """The example of one half of a minimal pair."""
    labels = {"consistency": pairs.LABELS[not pair.supported]}
    if pair.inference is not None:
        labels["nli"] = pair.inference
    return MultitaskExample(pair.knowledge, pair.response, pair.kind, labels, pair.spans)


def make_question_examples(pair: QuestionPair) -> tuple[MultitaskExample, MultitaskExample]:
    """The examples of both halves of a pair of statements."""
    halves = ((ENTAILMENT, pair.supported, ()), (UNSPECIFIED, pair.unsupported, pair.spans))
    first, second = (
        MultitaskExample(
            pair.knowledge,
            response,
            pair.kind,
            {"consistency": pairs.LABELS[label != ENTAILMENT], **({} if pair.aside else {"nli": label})},
            spans,
        )
        for label, response, spans in halves
    )
    return first, second


def make_public_example(name: str, pair: LabelledPair) -> MultitaskExample:
    """The example of a pair of a public set, with the labels of the heads that the set trains."""
    entailed = pair.label == ENTAILMENT
    labels = {"nli": pair.label}
    if SETS[name].consistency:
        labels["consistency"] = pairs.LABELS[not entailed]
    return MultitaskExample(pair.premise, pair.hypothesis, name, labels, () if entailed and SETS[name].tokens else None)


def _find_token_label(spans: tuple[EditedSpan, ...], start: int, end: int) -> int:
    """The label of the token of characters ``start`` to ``end``: the reason of the span that it is in."""
    reason = next((span.reason for span in spans if span.start < end and start < span.end), TOKEN_LABELS[0])
    return TOKEN_LABELS.index(reason)
