"""Makes labelled sentences for the verifiability head of the multi-task NLI model: is there anything to check?

No training set is published, so the sentences come from sources whose label is clear (sentences of Wikipedia and
statements made from its questions are verifiable; questions are not) and from chat that the rules of ``weak_labels``
label. Half of the sentences drawn are verifiable, and both halves get the same chat style.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from groundwire.metrics import sentences

from ..common.corpus import Squad, read_rows, read_topical_chat
from ..common.treebanks import read_treebank
from .chat_style import ChatStyle
from .qa_to_statement import make_statement
from .question_pairs import read_polar_statements
from .weak_labels import NOT_VERIFIABLE, VERIFIABLE, assign_weak_label

CLAIMS = 0.4
"""Share of the verifiable sentences that are short facts, where there are any."""


class VerifiabilitySentences:
    """Draws sentences and their labels."""

    def __init__(
        self, squad: Squad, chat: Iterable[str], questions: Sequence[str], claims: Mapping[str, Sequence[str]] = {}
    ) -> None:
        """``chat`` are sentences for the rules to label; ``claims`` are short facts by source."""
        labelled: dict[str | None, list[str]] = {VERIFIABLE: [], NOT_VERIFIABLE: [], None: []}
        for sentence in dict.fromkeys(chat):
            labelled[assign_weak_label(sentence)].append(sentence)
        self.verifiable: list[str] = labelled[VERIFIABLE]
        """Sentences of chat with something to check."""
        self.non_verifiable: list[str] = labelled[NOT_VERIFIABLE]
        """Sentences of chat with nothing to check."""
        if not self.verifiable or not self.non_verifiable or not questions:
            raise ValueError("The chat holds no verifiable or no non-verifiable sentence, or there are no questions.")
        self._squad = squad
        self._questions = questions
        self._claims = [texts for texts in claims.values() if texts]
        self._style = ChatStyle(self.non_verifiable)

    @classmethod
    def read(cls, data: Path, squad: Squad) -> VerifiabilitySentences:
        """From Topical-Chat, EWT and GUM, and the questions of SQuAD and of the well-formedness set."""
        questions = [row["question"] for row in read_rows(data / "query_wellformedness_train.jsonl.gz")]
        asked = questions + [question.text for question in squad.questions]
        return cls(squad, read_chat_sentences(data), asked, read_claims(data))

    def draw(self, rng: random.Random) -> tuple[str, str]:
        """Draw a sentence and its label."""
        if rng.random() < 0.5:
            return self._draw_verifiable(rng), VERIFIABLE
        return self._draw_non_verifiable(rng), NOT_VERIFIABLE

    def _draw_verifiable(self, rng: random.Random) -> str:
        """Draw a verifiable sentence: plain, reported, or with an opinion in the same sentence."""
        dice = rng.random()
        if self._claims and rng.random() < CLAIMS:
            fact = rng.choice(rng.choice(self._claims))
        elif dice < 0.3:
            fact = rng.choice(self.verifiable)
        elif dice < 0.5:
            chosen = rng.choice(self._squad.questions)
            fact = make_statement(chosen.text, chosen.answer, self._squad.contexts[chosen.paragraph], chosen.start, rng)
        else:
            fact = self._draw_article_sentence(rng)
        if rng.random() < 0.2:
            opinion, bare = rng.choice(self.non_verifiable).rstrip(" .!?"), fact.rstrip(" .!?")
            fact = rng.choice((f"{opinion}, {fact}", f"{opinion} and {fact}", f"{bare}, {opinion}."))
        return self._style.style_sentence(fact, rng)

    def _draw_article_sentence(self, rng: random.Random) -> str:
        """Draw a sentence of SQuAD's paragraphs; short parts are mostly cut at an abbreviation, and are skipped."""
        while True:
            paragraph = rng.randrange(len(self._squad.contexts))
            start, end = rng.choice(self._squad.bounds[paragraph])
            fact = self._squad.contexts[paragraph][start:end].strip()
            if len(fact.split()) >= 4:
                return fact

    def _draw_non_verifiable(self, rng: random.Random) -> str:
        if rng.random() < 0.25:
            question = rng.choice(self._questions)
            return question.rstrip(" ?") if rng.random() < 0.2 else question
        text = rng.choice(self.non_verifiable)
        if rng.random() < 0.2:
            text = f"{text.rstrip(' .!?')}{rng.choice((', ', ' and '))}{rng.choice(self.non_verifiable)}"
        return self._style.style_sentence(text, rng, claim=False)


def read_claims(data: Path) -> dict[str, list[str]]:
    """Short facts in plain words, by source, as far as the files are there.

    They are claims of FEVER and Fool Me Twice, of science and of pictures, and answers to yes/no questions. Many
    answers speak to the reader: "you can buy it on Sundays".
    """
    sources = {
        "fever": ("nli_fever", ""),
        "fm2": ("nli_fm2", ""),
        "science": ("nli_curriculum_drop_help_cosmos", "curriculum/entailment_tree"),
        "pictures": ("nli_snli_mnli_dev", "snli"),
    }
    claims: dict[str, list[str]] = {"answers": read_polar_statements(data)}
    for source, (name, prefix) in sources.items():
        path = data / "more" / f"{name}.jsonl.gz"
        rows = read_rows(path) if path.is_file() else ()
        claims[source] = [row["hypothesis"] for row in rows if row.get("source", "").startswith(prefix)]
    return claims


def read_chat_sentences(data: Path) -> Iterator[str]:
    """Sentences of Topical-Chat's training dialogues, of EWT and of GUM."""
    for turns in read_topical_chat(data / "topical_chat.jsonl.gz"):
        for turn in turns:
            yield from (sentence.text for sentence in sentences(turn))
    for name in ("ud_ewt_train", "gum"):
        for sentence in read_treebank(data / f"{name}.conllu.gz"):
            if 2 <= len(sentence.words) <= 40:
                yield sentence.text
