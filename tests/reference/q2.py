"""Q² by its definition: PyTorch models, one call at a time, without batches or caches.

Written from the table of the authors' code. Slow and obvious, for texts that fit the models' windows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from groundwire.engine.schema.options import Q2Options
from groundwire.runtime.bundles.manifest import Template
from groundwire.runtime.calls import BeamSearch, Greedy, TextSpan
from groundwire.runtime.models.span_finder import SpanFinder

from .text_match import clean, fold_accents, token_f1


@dataclass(frozen=True)
class Question:
    """A question about a span, and its result."""

    span: TextSpan
    rank: int
    text: str
    response_answer: str
    discarded: str = ""
    knowledge_answer: str | None = None
    f1: float | None = None
    nli: str | None = None
    value: float | None = None


@dataclass(frozen=True)
class Scored:
    """A response's score, its questions, and the end-to-end label where no question was valid."""

    spans: tuple[TextSpan, ...]
    questions: tuple[Question, ...]
    fallback: str | None
    value: float


class Q2Reference:
    """Q² on the checkpoints ``qg``, ``qa`` and ``nli`` of a directory and a span finder."""

    def __init__(self, checkpoints: Path, finder: SpanFinder) -> None:
        self._finder = finder
        self._qg, self._qg_tokens = _load(AutoModelForSeq2SeqLM, checkpoints / "qg")
        self._qa, self._qa_tokens = _load(AutoModelForQuestionAnswering, checkpoints / "qa")
        self._nli, self._nli_tokens = _load(AutoModelForSequenceClassification, checkpoints / "nli")

    @property
    def template(self) -> Template:
        """What the question generator reads: a pair if its encoder distinguishes two texts, else one text."""
        paired = self._qg.config.model_type == "encoder-decoder"
        return Template("{answer}", "{context}") if paired else Template("answer: {answer}  context: {context}")

    def score(self, response: str, knowledge: str, options: Q2Options) -> Scored:
        """The mean over the valid questions, or the end-to-end label."""
        if options.spans is None:
            spans = self._finder.find(response)
        else:
            spans = tuple(TextSpan(response[start:end], start, end) for start, end in options.spans)
        questions = []
        for span in spans:
            for rank, text in enumerate(self.generate(span.text, response, options.decoding)):
                question = self._ask(span, rank, text, response, knowledge, options)
                questions.append(question)
                if not question.discarded and options.questions == "single":
                    break
        values = [question.value for question in questions if question.value is not None]
        if values:
            return Scored(spans, tuple(questions), None, sum(values) / len(values))
        label = self.classify(knowledge.lower(), response.lower())
        value = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}[label]
        return Scored(spans, tuple(questions), label, value)

    def _ask(self, span: TextSpan, rank: int, text: str, response: str, knowledge: str, options: Q2Options) -> Question:
        response_answer = self.answer(text, response)
        question = Question(span, rank, text, response_answer or "")
        if options.personal_filter and self._finder.is_personal(text):
            return replace(question, discarded="personal")
        if not response_answer:
            return replace(question, discarded="no_answer_in_response")
        fold = fold_accents if options.fold_accents else str
        if clean(fold(response_answer)) != clean(fold(span.text)):
            return replace(question, discarded="other_answer_in_response")
        knowledge_answer = self.answer(text, knowledge)
        if not knowledge_answer:
            return replace(question, f1=0.0, value=0.0)
        f1 = token_f1(fold(knowledge_answer), fold(span.text))
        question = replace(question, knowledge_answer=knowledge_answer, f1=f1, value=f1)
        if f1 == 1 or not options.nli:
            return question
        label = self.classify(f"{text} {knowledge_answer}.", f"{text} {span.text}.")
        return replace(question, nli=label, value={"entailment": 1.0, "contradiction": 0.0}.get(label, f1))

    @torch.no_grad()
    def generate(self, answer: str, context: str, decoding: Any) -> list[str]:
        """Questions whose answer in ``context`` is ``answer``, best first."""
        if self.template.second is not None:
            source = self._qg_tokens(answer, context, return_tensors="pt")
        else:
            text = f"answer: {answer}  context: {context}"
            source = self._qg_tokens(text, return_tensors="pt", return_token_type_ids=False)
        search: dict[str, Any] = {"max_new_tokens": decoding.max_new_tokens, "do_sample": False}
        match decoding:
            case BeamSearch():
                search |= {"num_beams": decoding.num_beams, "num_return_sequences": decoding.num_return_sequences}
                search["no_repeat_ngram_size"] = decoding.no_repeat_ngram_size
                search["early_stopping"] = decoding.early_stopping
            case Greedy():
                search |= {"num_beams": 1}
            case _:
                raise ValueError(
                    f"{type(decoding).__name__} draws its own random numbers; there is no reference for it"
                )
        sequences = self._qg.generate(**source, **search)
        texts = (self._qg_tokens.decode(ids, skip_special_tokens=True).strip() for ids in sequences)
        return [text.removeprefix("question: ").strip() for text in texts]

    @torch.no_grad()
    def answer(self, question: str, passage: str) -> str | None:
        """The words from the best start to the best end, each chosen by itself; None means "no answer".

        An end before its start gives "", and so does a range that touches a special token. A range of the question has
        the question's words.
        """
        pair = self._qa_tokens(question, passage, return_tensors="pt", return_offsets_mapping=True)
        offsets = pair.pop("offset_mapping")[0].tolist()
        owners = pair.sequence_ids()
        out = self._qa(**pair)
        start, end = int(out.start_logits[0].argmax()), int(out.end_logits[0].argmax())
        if start == end == 0:
            return None
        chosen = set(owners[start : end + 1])
        if len(chosen) != 1 or None in chosen:
            return ""
        text = (question, passage)[chosen.pop()]
        return text[offsets[start][0] : offsets[end][1]].strip()

    @torch.no_grad()
    def classify(self, premise: str, hypothesis: str) -> str:
        """entailment, neutral or contradiction."""
        logits = self._nli(**self._nli_tokens(premise, hypothesis, return_tensors="pt")).logits[0]
        return str(self._nli.config.id2label[int(logits.argmax())]).lower()


def _load(kind: Any, folder: Path) -> tuple[Any, Any]:
    return kind.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
