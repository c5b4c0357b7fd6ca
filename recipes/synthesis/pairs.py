"""Makes labelled (knowledge, response) pairs for the consistency head, from data that allows to ship weights.

A response that its knowledge supports is made first: a statement from a SQuAD question and its answer (in other words
than the paragraph's), a sentence of the window, shortened perhaps, or two of them. Half of the time that is the
example, and half of the time it is corrupted in a way that dialogue models go wrong; the labels differ in nothing else:

- ``unsupported``: other sentences of the article that share its words become the knowledge;
- ``answer``: another answer of the same kind is in the statement;
- ``response``, ``knowledge``: a name, number or word of a set is replaced in one of the two;
- ``negation``: as in Conv-FEVER, in one of the two;
- ``addition``: a sentence from elsewhere in the article is added to the response;
- ``random``: the knowledge of another article.

Facts of chat, with other facts of the same chat as knowledge, and the pairs of the inference set are added.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from groundwire.evaluate.twins.negation import negate
from groundwire.metrics import sentences

from ..common.corpus import Question, Squad, read_rows, read_topical_chat, word_coverage, word_set
from . import perturbations
from .answer_pairs import answer_kind
from .chat_style import ChatStyle
from .qa_to_statement import make_statement
from .weak_labels import VERIFIABLE, SentenceParts, assign_weak_label

LABELS = ("consistent", "inconsistent")
SENTENCES = (1, 1, 1, 2, 2, 3, 4)
"""Lengths of the knowledge, in sentences."""
CORRUPTIONS = {
    **{"unsupported": 0.24, "answer": 0.18, "response": 0.2, "knowledge": 0.08, "negation": 0.12},
    **{"addition": 0.12, "random": 0.06},
}
"""How often each corruption is tried first."""
NEAR = 0.7
"""Share of its words from which a text may be supported by the text that contains them."""
_CLAIMS = 4
"""Claims of one chat that an example draws from."""
SHARES = {"squad": 0.65, "chat": 0.1, "inference": 0.25}


@dataclass(frozen=True, slots=True)
class ConsistencyPair:
    """An example; ``kind`` names how it was made."""

    knowledge: str
    response: str
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class _SupportedResponse:
    """A response that its window supports. ``question`` is what it answers, if it was made from a question."""

    paragraph: int
    window: str
    response: str
    question: Question | None = None
    seed: int = 0


class ConsistencyPairs:
    """Draws pairs, half of them consistent."""

    def __init__(
        self,
        squad: Squad,
        inference: Sequence[tuple[str, str, str]],
        dialogues: Sequence[Sequence[str]],
        style: ChatStyle,
    ) -> None:
        """``inference`` are (premise, hypothesis, label), ``dialogues`` the turns of chats; both may be empty."""
        self._squad = squad
        self._style = style
        self._answers: dict[tuple[str, str], list[str]] = {}
        for question in squad.questions:
            key = (squad.titles[question.paragraph], answer_kind(question.answer))
            self._answers.setdefault(key, []).append(question.answer)
        self._inference = {
            label: [row for row in inference if (row[2] == "entailment") == (label == "consistent")] for label in LABELS
        }
        by_chat = [_list_claims(turns) for turns in dialogues]
        self._claims_by_chat = [claims for claims in by_chat if len(claims) >= _CLAIMS]
        self._corruptions: dict[str, Callable[[_SupportedResponse, random.Random], tuple[str, str] | None]] = {
            "unsupported": self._corrupt_support,
            "answer": self._corrupt_answer,
            "response": self._corrupt_response,
            "knowledge": self._corrupt_knowledge,
            "negation": self._corrupt_by_negation,
            "addition": self._corrupt_by_addition,
            "random": self._corrupt_at_random,
        }
        sources = {"squad": self._draw_from_article, "chat": self._draw_from_chat, "inference": self._draw_inference}
        filled = {"squad": True, "chat": bool(self._claims_by_chat), "inference": all(self._inference.values())}
        self._sources = [(sources[name], share) for name, share in SHARES.items() if filled[name]]

    @classmethod
    def read(cls, data: Path, squad: Squad, style: ChatStyle, split: str = "train") -> ConsistencyPairs:
        """From a directory of training sets; ``split`` is train or dev, which has no dialogues."""
        rows = read_rows(data / f"nli_{split}.jsonl.gz")
        inference = [(row["premise"], row["hypothesis"], row["label"]) for row in rows]
        chats = read_topical_chat(data / "topical_chat.jsonl.gz") if split == "train" else ()
        return cls(squad, inference, list(chats), style)

    def draw(self, rng: random.Random) -> ConsistencyPair:
        """One example."""
        makers, shares = zip(*self._sources, strict=True)
        pair: ConsistencyPair = rng.choices(makers, shares)[0](rng)
        # The same style for both labels; an inference pair keeps its wording most of the time.
        if pair.kind != "inference" or rng.random() < 0.3:
            pair = replace(pair, response=self._style.style_response(pair.response, rng))
        return pair

    def _draw_inference(self, rng: random.Random) -> ConsistencyPair:
        label = rng.choice(LABELS)
        premise, hypothesis, _ = rng.choice(self._inference[label])
        return ConsistencyPair(premise, hypothesis, label, "inference")

    def _draw_from_chat(self, rng: random.Random) -> ConsistencyPair:
        """Draw a fact of a chat, with knowledge that contains it or not."""
        claims = rng.sample(rng.choice(self._claims_by_chat), _CLAIMS)
        response, others = claims[0], claims[1 : rng.randint(2, _CLAIMS)]
        if rng.random() < 0.5:
            return ConsistencyPair(_join_shuffled([response, *others[1:]], rng), response, "consistent", "chat")
        if rng.random() < 0.5:
            changed = self._perturb(
                response, [name for claim in claims[1:] for name in perturbations.find_names(claim)], rng
            )
            if changed is not None:
                return ConsistencyPair(_join_shuffled([response, *others[1:]], rng), changed, "inconsistent", "chat")
        return ConsistencyPair(_join_shuffled(others, rng), response, "inconsistent", "chat")

    def _draw_from_article(self, rng: random.Random) -> ConsistencyPair:
        supported = self._draw_supported(rng)
        if rng.random() < 0.5:
            return self._add_title(
                supported, ConsistencyPair(supported.window, supported.response, "consistent", "consistent"), rng
            )
        first = rng.choices(list(CORRUPTIONS), list(CORRUPTIONS.values()))[0]
        for name in (first, "response", "unsupported", "random"):
            corrupted = self._corruptions[name](supported, rng)
            if corrupted is not None:
                return self._add_title(
                    supported, ConsistencyPair(corrupted[0], corrupted[1], "inconsistent", name), rng
                )
        raise ValueError("All articles say the same, so nothing can be made inconsistent; give more articles.")

    def _add_title(self, supported: _SupportedResponse, pair: ConsistencyPair, rng: random.Random) -> ConsistencyPair:
        """The pair, sometimes with the title of its article before the knowledge."""
        if rng.random() >= 0.15:
            return pair
        title = self._squad.titles[supported.paragraph].replace("_", " ")
        return replace(pair, knowledge=f"{title} {pair.knowledge}")

    def _draw_supported(self, rng: random.Random) -> _SupportedResponse:
        squad, size = self._squad, rng.choice(SENTENCES)
        dice = rng.random()
        while dice < 0.5:
            question, seed = rng.choice(squad.questions), rng.getrandbits(32)
            response = self._make_statement(question, question.answer, seed)
            # A third of the questions fits no rule; fewer of those become a question with its answer.
            if len(question.answer.split()) <= 8 and ("?" not in response or rng.random() < 0.4):
                window, _ = squad.cut_window(question, size, rng)
                return _SupportedResponse(question.paragraph, window, response, question, seed)
        while True:
            paragraph = rng.randrange(len(squad.contexts))
            bounds, context = squad.bounds[paragraph], squad.contexts[paragraph]
            first = rng.randrange(len(bounds))
            chosen = bounds[first : first + size]
            window = context[chosen[0][0] : chosen[-1][1]].strip()
            parts = [shorten_sentence(context[a:b].strip(), window, rng) for a, b in chosen]
            rng.shuffle(parts)
            # Shorter parts were cut at an abbreviation.
            if all(len(part.split()) >= 5 for part in parts):
                return _SupportedResponse(paragraph, window, " ".join(parts[: 2 if dice > 0.88 else 1]))

    def _make_statement(self, question: Question, answer: str, seed: int) -> str:
        """The statement of a question and an answer; the same seed gives the same wording for any answer."""
        context = self._squad.contexts[question.paragraph]
        return make_statement(question.text, answer, context, question.start, random.Random(seed))

    def _corrupt_support(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        knowledge = self._find_unsupporting(supported, rng)
        return (knowledge, supported.response) if knowledge else None

    def _find_unsupporting(self, supported: _SupportedResponse, rng: random.Random) -> str | None:
        """Sentences of the same article that share words with the response but do not support it."""
        squad, size = self._squad, rng.choice(SENTENCES)
        if supported.question is not None:
            return squad.find_distractor(supported.question, size, rng)
        members = squad.articles[squad.titles[supported.paragraph]]
        best: tuple[float, str] | None = None
        for index in [supported.paragraph, *rng.sample(members, min(3, len(members)))]:
            bounds = squad.bounds[index]
            first = rng.randrange(len(bounds))
            chunk = bounds[first : first + size]
            text = squad.contexts[index][chunk[0][0] : chunk[-1][1]].strip()
            shared = word_coverage(supported.response, text)
            if shared < NEAR and (best is None or shared > best[0]):
                best = (shared, text)
        return best[1] if best else None

    def _corrupt_answer(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        if supported.question is None:
            return None
        answer = supported.question.answer
        alternatives = self._answers[self._squad.titles[supported.paragraph], answer_kind(answer)]
        alternatives = [
            text for text in alternatives if not word_set(text) & word_set(answer) and len(text.split()) <= 8
        ]
        # The harder half: answers that the knowledge gives to something else.
        near = [text for text in alternatives if text in supported.window]
        alternatives = near if near and rng.random() < 0.5 else alternatives
        return (
            (supported.window, self._make_statement(supported.question, rng.choice(alternatives), supported.seed))
            if alternatives
            else None
        )

    def _corrupt_response(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        changed = self._perturb(supported.response, self._list_article_names(supported, rng), rng)
        return (supported.window, changed) if changed is not None else None

    def _corrupt_knowledge(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        """Replace in the knowledge something that the response repeats."""
        if supported.question is not None:
            answer = supported.question.answer
            alternatives = self._answers[self._squad.titles[supported.paragraph], answer_kind(answer)]
            changed = perturbations.replace_text(supported.window, answer, alternatives, rng)
        else:
            shared = [name for name in perturbations.find_names(supported.window) if name in supported.response]
            old = rng.choice(shared) if shared else ""
            changed = perturbations.replace_text(supported.window, old, self._list_article_names(supported, rng), rng)
        return (changed, supported.response) if changed is not None else None

    def _corrupt_by_negation(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        if rng.random() < 0.7:
            response = negate(supported.response, rng)
            return (supported.window, response) if response is not None else None
        # Only knowledge of one sentence: a negation elsewhere in it might not concern the response.
        knowledge = negate(supported.window, rng) if supported.window.count(". ") == 0 else None
        return (knowledge, supported.response) if knowledge is not None else None

    def _corrupt_by_addition(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        other = self._find_unsupporting(supported, rng)
        if other is None:
            return None
        first, *_ = re.split(r"(?<=[.!?]) ", shorten_sentence(other, other, rng))
        if word_coverage(first, supported.window) >= NEAR:
            return None
        parts = [supported.response, first]
        rng.shuffle(parts)
        return supported.window, " ".join(parts)

    def _corrupt_at_random(self, supported: _SupportedResponse, rng: random.Random) -> tuple[str, str] | None:
        squad = self._squad
        for _ in range(20):
            other = rng.randrange(len(squad.contexts))
            if squad.titles[other] != squad.titles[supported.paragraph]:
                start, end = rng.choice(squad.bounds[other])
                return squad.contexts[other][start:end].strip(), supported.response
        return None

    def _list_article_names(self, supported: _SupportedResponse, rng: random.Random) -> list[str]:
        """Names of the article, to replace one by another."""
        members = self._squad.articles[self._squad.titles[supported.paragraph]]
        chosen = [supported.paragraph, *rng.sample(members, min(2, len(members)))]
        return [name for index in chosen for name in perturbations.find_names(self._squad.contexts[index])]

    def _perturb(self, text: str, alternatives: Sequence[str], rng: random.Random) -> str | None:
        changes: list[Callable[[], str | None]] = [
            lambda: perturbations.replace_name(text, alternatives, rng),
            lambda: perturbations.replace_number(text, rng),
            lambda: perturbations.replace_word(text, rng),
        ]
        rng.shuffle(changes)
        return next((changed for change in changes if (changed := change()) is not None), None)


_ASIDE = re.compile(r" ?\([^()]*\)")
_LEADING = re.compile(
    r"(?:However|In|On|At|By|For|From|During|After|Before|Since|As|With|Although|While|Thus|Also|Additionally|"
    r"Furthermore|Moreover)\b(?![^,]*\b(?:he|she|it|they|was|were|is|are|had)\b)[^,]{0,60}, (?=\w)"
)
_CLAUSE = re.compile(r"(?:,|;|,? (?=and|but|which|who|where|while|although|because|after|when)) ?(?=[a-z])")
_SUBJECT = re.compile(
    r"(?:The )?[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)* (?=(?:is|was|has|had|can|could|will|became|won|made)\b)"
)


def shorten_sentence(sentence: str, around: str, rng: random.Random) -> str:
    """``sentence`` as a speaker might repeat it: without asides or its later clauses, or with a pronoun as its subject.

    ``around`` is the text that contains it and determines the pronoun. A sentence is often left unchanged.
    """
    text = sentence
    if rng.random() < 0.5:
        text = _ASIDE.sub("", text)
    if rng.random() < 0.4:
        text = _LEADING.sub("", text, count=1)
    if rng.random() < 0.3:
        cuts = [match.start() for match in _CLAUSE.finditer(text) if len(text[: match.start()].split()) >= 6]
        text = text[: rng.choice(cuts)].rstrip(" ,;") + "." if cuts else text
    if rng.random() < 0.25:
        words_around = word_set(around)
        pronoun = next((p for p in ("he", "she", "they") if p in words_around), "it")
        text = _SUBJECT.sub(f"{pronoun} ", text, count=1) if _SUBJECT.match(text) else text
    return text if len(text.split()) >= 4 else sentence


def _list_claims(turns: Sequence[str]) -> list[str]:
    """The claims of a chat's sentences, without "did you know that"."""
    texts = [sentence.text for turn in turns for sentence in sentences(turn)]
    claims = [SentenceParts.of(text).cased for text in texts if assign_weak_label(text) == VERIFIABLE]
    return [f"{claim.rstrip(' .!?')}." for claim in dict.fromkeys(claims) if 5 <= len(claim.split()) <= 40]


def _join_shuffled(texts: list[str], rng: random.Random) -> str:
    rng.shuffle(texts)
    return " ".join(texts)
