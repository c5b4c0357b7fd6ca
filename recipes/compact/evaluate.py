"""Measures a bundle: every number of ``bundles/compact/README.md``, through the engine that ships.

Only development and test sets are read here; none of their examples may be trained on.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.progress import track
from sklearn.metrics import roc_auc_score
from transformers.data.metrics.squad_metrics import compute_exact, compute_f1

from groundwire.engine import Engine
from groundwire.engine.schema.explanations import Q2Explanation
from groundwire.engine.text.normalization import match_answers
from groundwire.runtime.calls import Answer, Answered, AnswerRule, BeamSearch, Classified, Classify, GenerateQuestions
from groundwire.runtime.local import LocalRuntime

from ..common.calls import run_calls
from ..common.corpus import Question, Squad, read_rows

_WINDOWS = 512


def evaluate_compact_bundle(bundle: Path, data: Path, bench: Path | None, sample: int = 0) -> dict[str, Any]:
    """Measure the roles of ``bundle`` on ``data``, and Q² on ``bench`` when it is given.

    ``sample`` bounds the questions, pairs and responses of each set, drawn with a fixed seed; 0 takes all.
    """
    runtime = LocalRuntime.load(bundle)
    report: dict[str, Any] = {
        "bundle": runtime.identity.bundle,
        "digest": runtime.identity.digest,
        "squad2_dev": measure_extractive_qa(runtime, data, sample),
        "nli_test": measure_nli(runtime, data / "nli_test.jsonl.gz", sample),
        "question_generation": measure_question_generation(runtime, data, sample or 1000),
    }
    if bench is not None:
        with Engine(runtime) as engine:
            report["q2_wow_600"] = measure_q2(engine, bench / "q2_wow_600.jsonl", sample)
    return report


def measure_extractive_qa(runtime: LocalRuntime, data: Path, sample: int) -> dict[AnswerRule, dict[str, float]]:
    """SQuAD 2.0 dev: exact match, token F1, and the accuracy of "no answer" on the unanswerable half, in per cent.

    One report per rule of picking an answer (``AnswerRule``); the model reads the texts once for both.
    """
    squad = Squad.read(data / "squad2_dev.jsonl.gz")
    chosen = _sample(squad.questions, sample)
    answers: dict[AnswerRule, list[Answered]] = {rule: [] for rule in get_args(AnswerRule)}
    for part in _parts(chosen, 64, "squad2"):
        pairs = [(question.text, (squad.contexts[question.paragraph],)) for question in part]
        outcomes = run_calls(
            runtime, "qa", [Answer(*pair, rule) for rule in answers for pair in pairs], Answered, _WINDOWS
        )
        for number, rule_answers in enumerate(answers.values()):
            rule_answers += outcomes[number * len(part) : (number + 1) * len(part)]
    return {rule: _score_answers(chosen, outcomes) for rule, outcomes in answers.items()}


def _score_answers(questions: Sequence[Question], answers: Sequence[Answered]) -> dict[str, float]:
    exact, f1, unanswerable = [], [], []
    for question, answer in zip(questions, answers, strict=True):
        if not question.answers:
            right = float(answer.status != "answered")
            unanswerable.append(right)
            exact.append(right)
            f1.append(right)
        else:
            exact.append(max(compute_exact(gold, answer.text) for gold in question.answers))
            f1.append(max(compute_f1(gold, answer.text) for gold in question.answers))
    return {
        "questions": len(questions),
        "exact": _percent(exact),
        "f1": _percent(f1),
        "no_answer_accuracy": _percent(unanswerable),
    }


def measure_nli(runtime: LocalRuntime, path: Path, sample: int) -> dict[str, Any]:
    """Accuracy of the three-way labels, in per cent, over all pairs and by source."""
    rows = _sample(list(read_rows(path)), sample)
    right: dict[str, list[float]] = {"all": []}
    for part in _parts(rows, 64, "nli"):
        calls = [Classify("nli", (row["premise"],), row["hypothesis"]) for row in part]
        for row, classified in zip(part, run_calls(runtime, "nli", calls, Classified, _WINDOWS), strict=True):
            for key in ("all", row["source"].split("/")[0]):
                right.setdefault(key, []).append(float(classified.label == row["label"]))
    return {"pairs": len(rows), "accuracy": {key: _percent(values) for key, values in right.items()}}


def measure_question_generation(runtime: LocalRuntime, data: Path, sample: int) -> dict[str, float]:
    """How many generated questions extractive QA answers with their own span, on unseen SQuAD sentences, in per cent.

    ``first_answerable`` counts the best question of each beam, ``any_answerable`` whether at least one of the beam's
    five questions is answered so: the share of spans that Q² can use.
    """
    squad = Squad.read(data / "squad1_dev.jsonl.gz")
    rng = random.Random(7)
    pairs = [(question.answer, squad.cut_window(question, 1, rng)[0]) for question in _sample(squad.questions, sample)]
    first, any_, length = [], [], []
    for part in _parts(pairs, 16, "questions"):
        calls = [GenerateQuestions(answer, text, BeamSearch()) for answer, text in part]
        beams = run_calls(runtime, "qg", calls, tuple, _WINDOWS)
        questions = [Answer(q.text, (text,)) for (_, text), beam in zip(part, beams, strict=True) for q in beam]
        answers = iter(run_calls(runtime, "qa", questions, Answered, _WINDOWS))
        for (answer, _), beam in zip(part, beams, strict=True):
            valid = [match_answers(next(answers).text, answer, folded=False) for _ in beam]
            first.append(float(valid[0]))
            any_.append(float(any(valid)))
            length.append(len(beam[0].text.split()))
    return {
        "spans": len(pairs),
        "first_answerable": _percent(first),
        "any_answerable": _percent(any_),
        "words_per_question": float(np.mean(length)),
    }


def measure_q2(engine: Engine, path: Path, sample: int) -> dict[str, Any]:
    """Q² and its ablation on labelled responses: ROC-AUC, and accuracy at the threshold 0.5 with its 95 % interval."""
    rows = _sample(list(read_rows(path)), sample)
    labels = np.array([row["label"] for row in rows])
    scores = list(track(engine.score_many(rows, metrics=["q2", "q2_no_nli"]), "q2", len(rows), transient=True))
    report: dict[str, Any] = {"responses": len(rows)}
    for name in ("q2", "q2_no_nli"):
        values = np.array([score.metrics[name].value for score in scores], dtype=float)
        right = (values >= 0.5) == labels
        report[name] = {
            "roc_auc": round(float(roc_auc_score(labels, values)), 4),
            "roc_auc_95": _interval(lambda keep, v=values: roc_auc_score(labels[keep], v[keep]), len(rows)),
            "accuracy": round(float(right.mean()), 4),
            "accuracy_95": _interval(lambda keep, r=right: r[keep].mean(), len(rows)),
        }
    explanations = [score.metrics["q2"].explanation for score in scores]
    explained = [e for e in explanations if isinstance(e, Q2Explanation)]
    questions = [c for e in explained for c in e.questions if c.kept]
    report["responses_with_a_question"] = _percent(e.fallback is None for e in explained)
    report["questions_kept"] = len(questions)
    report["no_answer_in_knowledge"] = _percent(c.knowledge_answer is None for c in questions)

    return report


def _interval(measure: Any, count: int, times: int = 1000) -> list[float]:
    rng = np.random.default_rng(11)
    values = [measure(rng.integers(0, count, count)) for _ in range(times)]
    return [round(float(v), 4) for v in np.percentile(values, [2.5, 97.5])]


def _sample(rows: Any, count: int) -> list[Any]:
    rows = list(rows)
    return rows if not count or count >= len(rows) else random.Random(5).sample(rows, count)


def _parts(rows: list[Any], size: int, label: str) -> Iterable[list[Any]]:
    numbered = groupby(enumerate(rows), key=lambda item: item[0] // size)
    parts = [[row for _, row in group] for _, group in numbered]
    yield from track(parts, label, transient=True)


def _percent(values: Iterable[float]) -> float:
    return round(100 * float(np.mean(list(values))), 2)
