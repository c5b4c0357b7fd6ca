"""Prompts of a language model that reads a document: document, history and response, drawn from SQuAD and chats."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..common.corpus import Question, Squad, find_sentence_bounds, read_topical_chat
from .chat_style import ChatStyle
from .pairs import shorten_sentence
from .qa_to_statement import make_statement


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of a prompt; an empty document or history is left out together with its template."""

    document: str
    history: str
    response: str


class PromptSampler:
    """Draws prompts from encyclopedia articles, with questions about them and responses from them, and from chats."""

    def __init__(self, squad: Squad, dialogues: Sequence[Sequence[str]]) -> None:
        """``dialogues`` are the turns of chats; they may be empty."""
        self.questions = squad.questions
        self._squad = squad
        self._dialogues = [turns for turns in dialogues if len(turns) > 1]
        self._style = ChatStyle([turn for turns in self._dialogues for turn in turns if len(turn.split()) <= 6])

    @classmethod
    def read(cls, data: Path, split: str = "train") -> PromptSampler:
        """From a directory of training sets; ``split`` is train or dev, which has no chats."""
        chats = read_topical_chat(data / "topical_chat.jsonl.gz") if split == "train" else ()
        return cls(Squad.read(data / f"squad1_{split}.jsonl.gz"), list(chats))

    def draw(self, rng: random.Random, words: int = 0) -> Prompt:
        """Draw a prompt with its document, with another, or with none; a document of up to ``words`` words where given.

        Its length beyond a few sentences comes from other paragraphs of the article, before and after.
        """
        if self._dialogues and rng.random() < 0.2:
            turns = rng.choice(self._dialogues)
            index = rng.randrange(1, len(turns))
            prompt = Prompt("", "\n".join(turns[max(0, index - rng.randint(1, 3)) : index]), turns[index])
            return (
                Prompt(self.draw_other_document(rng, words=words), prompt.history, prompt.response)
                if rng.random() < 0.5
                else prompt
            )
        question = rng.choice(self.questions)
        prompt = self.draw_grounded(question, rng, words)
        dice = rng.random()
        document = (
            "" if dice < 0.27 else self.draw_other_document(rng, question, words) if dice < 0.42 else prompt.document
        )
        return Prompt(document, prompt.history if rng.random() < 0.9 else "", prompt.response)

    def draw_grounded(self, question: Question, rng: random.Random, words: int = 0) -> Prompt:
        """Draw a document around the answer, the question or an earlier text as history, and a supported response."""
        squad = self._squad
        context = squad.contexts[question.paragraph]
        window, start = squad.cut_window(question, rng.choice((1, 2, 2, 3, 4)), rng)
        dice, history = rng.random(), question.text
        response = make_statement(question.text, question.answer, context, question.start, rng)
        if dice < 0.4:
            response = shorten_sentence(_find_sentence(window, start), window, rng)
        elif "?" in response or dice > 0.9:
            # The history has already asked the question.
            response = rng.choice(("{}.", "it was {}.", "i think it's {}.", "{}, i believe.")).format(question.answer)
        if rng.random() < 0.4:
            history = self._draw_earlier(question, rng)
        document = self._surround(question.paragraph, window.strip(), words, rng)
        return Prompt(document, history, self._style.style_response(response, rng))

    def draw_other_document(self, rng: random.Random, question: Question | None = None, words: int = 0) -> str:
        """Draw sentences that do not answer ``question``: half of the time from its own article."""
        squad = self._squad
        near = squad.find_distractor(question, rng.randint(1, 4), rng) if question and rng.random() < 0.5 else None
        if question and near:
            return self._surround(question.paragraph, near.strip(), words, rng)
        other = rng.choice(self.questions)
        return self._surround(other.paragraph, squad.cut_window(other, rng.randint(1, 4), rng)[0].strip(), words, rng)

    def _surround(self, paragraph: int, text: str, words: int, rng: random.Random) -> str:
        """``text`` between other paragraphs of its article, as far as they fit into ``words`` words; one is left out.

        The paragraph that is left out is the text's own, which may say the same.
        """
        squad, parts, room = self._squad, [text], words - len(text.split())
        members = squad.articles[squad.titles[paragraph]]
        for index in rng.sample(members, len(members)) if room > 0 else ():
            room -= len(squad.contexts[index].split())
            if room < 0:
                break
            if index != paragraph:
                parts.insert(rng.choice((0, len(parts))), squad.contexts[index])
        return " ".join(parts)

    def _draw_earlier(self, question: Question, rng: random.Random) -> str:
        """Draw a sentence of the paragraph before the answer, or a turn of any chat."""
        if self._dialogues and rng.random() < 0.4:
            return rng.choice(rng.choice(self._dialogues))
        ended = [(a, b) for a, b in self._squad.bounds[question.paragraph] if b <= question.start]
        if not ended:
            return question.text
        a, b = rng.choice(ended)
        return self._squad.contexts[question.paragraph][a:b].strip()


def _find_sentence(window: str, start: int) -> str:
    return next((window[a:b].strip() for a, b in find_sentence_bounds(window) if a <= start < b), window.strip())
