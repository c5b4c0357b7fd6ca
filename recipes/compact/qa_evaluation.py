"""Measures extractive QA, as a checkpoint or in a bundle, and chooses its null threshold.

A question counts as answered when the best span's start and end logits exceed the logits of "no answer" by more than
the threshold. Spans, windows and scores follow the runtime's rule ``joint``, whose threshold is 0. The threshold is
chosen on the recipe's held-out articles; SQuAD 2.0's development set is only measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import BertForQuestionAnswering
from transformers.data.metrics.squad_metrics import compute_exact, compute_f1

from groundwire.runtime import _native
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ExtractiveQARole
from groundwire.runtime.models.extractive_qa import MAX_ANSWER_TOKENS
from groundwire.runtime.ort.session import Array, DeviceProfile, Graph, Session, forward
from groundwire.runtime.texts.tokenization import TextEncoder

from ..common.corpus import Question, Squad, is_held_out
from . import qa

STRIDE = 128
"""Tokens that neighbouring windows share, as in the bundle."""
SHORT_SENTENCES = (1, 2, 3)
_PROFILE = DeviceProfile.of("cpu", None)


class BestSpan(NamedTuple):
    """The best span of a passage; ``score`` is its start and end logits minus the logits of "no answer"."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class QAMeasures:
    """Exact match, token F1 and accuracies at one null threshold, in per cent."""

    threshold: float
    questions: int
    exact: float
    f1: float
    f1_answerable: float
    """Token F1 on the answerable questions; "no answer" gives 0."""
    no_answer_accuracy: float
    """Share of the unanswerable questions that are not answered."""

    @property
    def balanced(self) -> float:
        """F1 if half of the questions were unanswerable, as in SQuAD 2.0's development set."""
        return (self.f1_answerable + self.no_answer_accuracy) / 2


class TorchGraph:
    """A checkpoint with the interface of the runtime's graphs."""

    inputs = ("input_ids", "attention_mask", "token_type_ids")
    outputs = ("start_logits", "end_logits")
    plan = None

    def __init__(self, model: BertForQuestionAnswering) -> None:
        self._model = model.eval()
        self.input_types = dict.fromkeys(self.inputs, "tensor(int64)")

    @torch.inference_mode()
    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Start and end logits."""
        output = self._model(**{name: torch.from_numpy(value) for name, value in feeds.items()})
        return [output.start_logits.numpy(), output.end_logits.numpy()]


def evaluate_extractive_qa(source: Path, data: Path, sample: int = 0) -> dict[str, Any]:
    """Measure a checkpoint, or the role ``qa`` of a bundle, on held-out articles and SQuAD 2.0's development set.

    The held-out articles are read in whole paragraphs (``held_out``) and in windows of one to three sentences
    (``held_out_short``). ``sample`` bounds the questions of each set, drawn with a fixed seed; 0 takes all. Each set is
    measured at threshold 0, and at the threshold that is best on ``held_out``. ``best`` is the highest F1 that any
    threshold gives on SQuAD 2.0, to compare with publications; nothing may be chosen by it.
    """
    graph, encoder = load_extractive_qa(source)
    sets = {
        "held_out": read_held_out_questions(data),
        "held_out_short": read_held_out_questions(data, SHORT_SENTENCES),
        "squad2_dev": read_dev_questions(data),
    }
    report: dict[str, Any] = {"source": str(source)}
    threshold = 0.0
    for name, examples in sets.items():
        if sample and sample < len(examples):
            examples = random.Random(5).sample(examples, sample)
        questions = [question for question, _ in examples]
        spans = find_best_spans(graph, encoder, [(question.text, passage) for question, passage in examples])
        if name == "held_out":
            threshold = choose_threshold(questions, spans)
        report[name] = {"at_0": asdict(measure_spans(questions, spans, 0.0))}
        report[name]["at_chosen"] = asdict(measure_spans(questions, spans, threshold))
        if name == "squad2_dev":
            best = choose_threshold(questions, spans, lambda measures: measures.f1)
            report[name]["best"] = asdict(measure_spans(questions, spans, best))
    return report


def load_extractive_qa(source: Path) -> tuple[Graph, TextEncoder]:
    """Open a checkpoint, or the role ``qa`` of a bundle; ValueError when the bundle has no such role."""
    if not (source / "bundle.json").is_file():
        model = BertForQuestionAnswering.from_pretrained(source)
        return TorchGraph(model), TextEncoder.load(source / "tokenizer.json", qa.MAX_TOKENS)
    bundle = Bundle.open(source)
    role = bundle.manifest.roles.get("qa")
    if not isinstance(role, ExtractiveQARole):
        raise ValueError(f"{source} has no extractive QA; give a bundle with the role 'qa', or a checkpoint.")
    session = Session.load(bundle.file(role.graph), _PROFILE)
    return session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)


def read_held_out_questions(data: Path, sentences: Sequence[int] = ()) -> list[tuple[Question, str]]:
    """The SQuAD questions of the held-out articles, each with its paragraph.

    With ``sentences``, each has a window of one of those lengths instead, drawn with a fixed seed.
    """
    squad = qa.read_qa_sets(data, qamr=False)
    rng = random.Random(11)
    return [
        (question, qa.cut_qa_window(squad, question, rng.choice(sentences or (qa.ALL_SENTENCES,)), rng)[0])
        for question in squad.questions
        if is_held_out(squad.titles[question.paragraph])
    ]


def read_dev_questions(data: Path) -> list[tuple[Question, str]]:
    """The questions of SQuAD 2.0's development set, each with its paragraph."""
    squad = Squad.read(data / "squad2_dev.jsonl.gz")
    return [(question, squad.contexts[question.paragraph]) for question in squad.questions]


def find_best_spans(graph: Graph, encoder: TextEncoder, pairs: Sequence[tuple[str, str]]) -> list[BestSpan]:
    """The best span of every (question, passage), over all windows of the passage."""
    windows, owners = [], []
    for index, (question, passage) in enumerate(pairs):
        passage_windows = encoder.encode_windows(question, passage, 1, STRIDE)
        windows += passage_windows
        owners += [index] * len(passage_windows)
    best = [BestSpan("", -np.inf)] * len(pairs)
    for rows, _, (start, end) in forward(graph, windows, 0, _PROFILE):
        limits = np.array([windows[row].tokens_of(1) for row in rows], dtype=np.int64)
        first, last = np.ascontiguousarray(limits[:, 0]), np.ascontiguousarray(limits[:, 1])
        starts, ends, scores, nulls = _native.best_spans(start, end, first, last, MAX_ANSWER_TOKENS, 1)
        for row, a, b, score in zip(rows, starts[:, 0], ends[:, 0], scores[:, 0] - nulls, strict=True):
            index, offsets = owners[row], windows[row].offsets
            if a >= 0 and score > best[index].score:
                best[index] = BestSpan(pairs[index][1][offsets[a][0] : offsets[b][1]].strip(), float(score))
    return best


def measure_spans(questions: Sequence[Question], spans: Sequence[BestSpan], threshold: float) -> QAMeasures:
    """The measures when spans that score above ``threshold`` are answers."""
    return _measure_at(*_compare_with_gold(questions, spans), threshold)


def choose_threshold(
    questions: Sequence[Question],
    spans: Sequence[BestSpan],
    aim: Callable[[QAMeasures], float] = lambda measures: measures.balanced,
) -> float:
    """The threshold, in steps of 0.1 from -10 to 10, with the highest ``aim``; among equals the threshold nearest 0."""
    compared = _compare_with_gold(questions, spans)
    return max(
        (round(0.1 * step, 1) for step in range(-100, 101)),
        key=lambda threshold: (aim(_measure_at(*compared, threshold)), -abs(threshold)),
    )


def _compare_with_gold(questions: Sequence[Question], spans: Sequence[BestSpan]) -> tuple[Array, Array, Array, Array]:
    """Per question: its span's score, the span's exact match and F1, and whether the question is answerable."""
    rows = []
    for question, span in zip(questions, spans, strict=True):
        exact = max((compute_exact(gold, span.text) for gold in question.answers), default=0)
        f1 = max((compute_f1(gold, span.text) for gold in question.answers), default=0.0)
        rows.append((span.score, exact, f1, bool(question.answers)))
    scores, exact_matches, f1s, answerable = np.array(rows, dtype=float).T
    return scores, exact_matches, f1s, answerable.astype(bool)


def _measure_at(scores: Array, exact: Array, f1: Array, answerable: Array, threshold: float) -> QAMeasures:
    answered = scores > threshold
    right_null = ~answerable & ~answered
    return QAMeasures(
        threshold,
        len(scores),
        _percent(np.where(answered & answerable, exact, right_null)),
        _percent(np.where(answered & answerable, f1, right_null)),
        _percent((f1 * answered)[answerable]),
        _percent(~answered[~answerable]),
    )


def _percent(values: Array) -> float:
    return round(100 * float(values.mean()), 2) if len(values) else float("nan")
