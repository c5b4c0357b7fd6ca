"""Measures a reader on labelled development sets and on sources that are held out of training, in float32."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from sklearn.metrics import roc_auc_score

from ..common import backbone
from ..common.corpus import read_rows
from ..common.loop import Row, collate
from ..compact.multitask_examples import MultitaskExample
from ..compact.multitask_model import HEADS, IGNORED, TOKEN_HEAD
from ..tools import ToolPairs, read_turns
from ..written import WrittenPairs
from .feed import FILL
from .loss import compute_head_logits
from .model import SENTENCE_HEAD, SENTENCE_IDS, STATES_NOTHING, UNSUPPORTED, Reader, load_reader
from .rows import AnswerRow, encode_answer
from .tools_source import draw_tool_pair
from .worlds_source import draw_world_pair, load_worlds
from .written_source import draw_written_pair

Array: TypeAlias = np.ndarray[Any, Any]
DrawPair: TypeAlias = Callable[[int, random.Random], tuple[AnswerRow, AnswerRow]]
"""Draws a pair of about so many words."""
DEVELOPMENT = ("fever_symmetric_dev", "q2_wow_600", "begin_wow_dev", "begin_wow_test", "begin_tc_dev")
LIMIT = 320
"""Tokens of a row; longer knowledge is cut."""
LENGTHS = {"1": (1, 1), "2-3": (2, 3), "4-7": (4, 7), "8+": (8, 10_000)}
"""Answers by number of sentences."""
WORLD_WORDS = (60, 110, 180)
"""Words of the knowledge and response of held-out worlds and documents, in turn."""
TOOL_TOKENS = 3
"""Tokens of turns of tools for each of ``WORLD_WORDS``: a log has many signs."""
THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader says about an answer, and the labels."""

    label: int
    """1 for consistent."""
    whole: float
    """Log-odds of consistent."""
    nli: float
    """Log-probability of entailment."""
    sentences: Array
    """Probability of each sentence label, [S, 3]."""
    sentence_labels: Array
    """[S], ``IGNORED`` for unknown."""
    tokens: Array
    """Log-probability of each label of the answer's tokens, [T, C]."""
    token_labels: Array

    @property
    def worst_sentence(self) -> float:
        """The largest probability of unsupported."""
        return float(self.sentences[:, UNSUPPORTED].max(initial=0.0))

    @property
    def worst_token(self) -> float:
        """The least log-probability of supported."""
        return float(self.tokens[:, 0].min(initial=0.0))


def measure_reader(
    run: Path, bench: Path, count: int = 300, pairs: int = 200, threads: int = 0, data: Path | None = None
) -> dict[str, Any]:
    """The figures of a run, going on or finished; also written to ``run/measure-{step}.json``.

    Args:
        run: The run's directory.
        bench: Directory with the sets of ``DEVELOPMENT``; missing sets are left out.
        count: Rows of each set at most.
        pairs: Pairs of each source that is held out; 0 leaves them out.
        threads: CPU threads; 0 leaves torch's default.
        data: Directory with the training sets, for turns of services that training lacks; None leaves them out.
    """
    if threads:
        torch.set_num_threads(threads)
    reader = load_reader(run)
    step = int(torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True, mmap=True)["step"])
    report: dict[str, Any] = {"step": step}
    for name in DEVELOPMENT:
        path = bench / f"{name}.jsonl"
        if path.is_file():
            rows = choose_rows(list(read_rows(path)), count)
            report[name] = describe(read_answers(reader, [make_bench_answer(row) for row in rows]))
    if pairs:
        for name, draw in list_held_sources(data).items():
            report[f"{name}_dev"] = measure_source(reader, draw, pairs)
    (run / f"measure-{step}.json").write_text(json.dumps(report, indent=1) + "\n")
    return report


def list_held_sources(data: Path | None) -> dict[str, DrawPair]:
    """The sources that are kept out of training, by name: worlds, written documents, and turns of tools of ``data``."""
    worlds, written = load_worlds("dev"), WrittenPairs.read("dev")
    turns = read_turns(data, "dev") if data is not None else []
    tools = ToolPairs(turns) if turns else None
    return {
        "worlds": partial(draw_world_pair, worlds),
        "written": partial(draw_written_pair, written),
        **({"tools": lambda words, rng: draw_tool_pair(tools, TOOL_TOKENS * words, rng)} if tools else {}),
    }


def measure_source(reader: Reader, draw: DrawPair, pairs: int, seed: int = 7) -> dict[str, Any]:
    """The figures on pairs that ``draw`` draws, and the share of them that each head ranks right."""
    drawn = [
        draw(WORLD_WORDS[index % len(WORLD_WORDS)], random.Random(seed * 1_000_003 + index)) for index in range(pairs)
    ]
    readings = read_answers(reader, [answer for pair in drawn for answer in pair])
    good, bad = readings[::2], readings[1::2]
    pairs_read = [pair for pair in zip(good, bad, strict=True) if pair[0].label != pair[1].label]
    count = len(pairs_read)
    ranked = {
        "whole": sum(a.whole > b.whole for a, b in pairs_read) / count,
        "worst_sentence": sum(a.worst_sentence < b.worst_sentence for a, b in pairs_read) / count,
    }
    return {**describe(readings), "ranked": {name: _round(value) for name, value in ranked.items()}}


def choose_rows(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """``count`` rows at equal distances, because some sets are sorted by label; all of them where there are fewer."""
    count = min(count, len(rows))
    return [rows[index * len(rows) // count] for index in range(count)]


def make_bench_answer(row: dict[str, Any]) -> AnswerRow:
    """The answer of a row of a labelled set, read without its history."""
    labels = {"consistency": HEADS["consistency"][not row["label"]]}
    return AnswerRow(MultitaskExample(row["knowledge"], row["response"], "", labels), ())


@torch.inference_mode()
def read_answers(reader: Reader, answers: Iterable[AnswerRow], batch: int = 16) -> list[Reading]:
    """What the reader says about each answer, in order; rows of similar length are read together."""
    reader.eval()
    device = next(reader.parameters()).device
    tokens = backbone.load_tokenizer()
    rows = [row for answer in answers if (row := encode_answer(tokens, answer, LIMIT, cut=True)) is not None]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]["input_ids"]))
    readings: dict[int, Reading] = {}
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        padded = collate([rows[index] for index in chosen], FILL)
        logits = compute_head_logits(reader, {name: value.to(device) for name, value in padded.items()})
        tables = {name: value.float().cpu().numpy() for name, value in logits.items()}
        for position, index in enumerate(chosen):
            readings[index] = _make_reading(rows[index], {name: table[position] for name, table in tables.items()})
    return [readings[index] for index in range(len(rows))]


def _make_reading(row: Row, logits: dict[str, Array]) -> Reading:
    length, count = len(row["input_ids"]), max(row[SENTENCE_IDS], default=0)
    inside = np.array(row[SENTENCE_IDS]) > 0
    return Reading(
        label=int(row["consistency"][0] == 0),
        whole=float(logits["consistency"][0] - logits["consistency"][1]),
        nli=float(log_softmax(logits["nli"])[0]),
        sentences=softmax(logits[SENTENCE_HEAD][:count], axis=-1),
        sentence_labels=np.array(row[SENTENCE_HEAD][:count]),
        tokens=log_softmax(logits[TOKEN_HEAD][:length], axis=-1)[inside],
        token_labels=np.array(row[TOKEN_HEAD])[inside],
    )


def describe(readings: Sequence[Reading]) -> dict[str, Any]:
    """ROC-AUC of each score, span F1 where spans are known, and false positives by number of sentences.

    A positive is an answer that is called inconsistent: a whole with log-odds below 0, or a sentence with a
    probability of unsupported above ``THRESHOLD``.
    """
    labels = np.array([reading.label for reading in readings])
    scores = {
        "whole": [reading.whole for reading in readings],
        "nli": [reading.nli for reading in readings],
        "worst_sentence": [-reading.worst_sentence for reading in readings],
        "worst_token": [reading.worst_token for reading in readings],
    }
    report: dict[str, Any] = {"rows": len(readings), "consistent": int(labels.sum())}
    report["roc_auc"] = {name: _auc(labels, np.array(values)) for name, values in scores.items()}
    sentence_labels = np.concatenate([reading.sentence_labels for reading in readings])
    unsupported = np.concatenate([reading.sentences[:, UNSUPPORTED] for reading in readings])
    stated = (sentence_labels != IGNORED) & (sentence_labels != STATES_NOTHING)
    if stated.any():
        report["roc_auc"]["sentence"] = _auc(sentence_labels[stated] != UNSUPPORTED, -unsupported[stated])
    labelled = [reading for reading in readings if (reading.token_labels != IGNORED).any()]
    if labelled:
        report["spans"] = measure_token_spans(labelled)
    report["by_sentences"] = {}
    for name, (least, most) in LENGTHS.items():
        members = [reading for reading in readings if least <= len(reading.sentences) <= most]
        if members:
            report["by_sentences"][name] = _count_errors(members)
    return report


def _count_errors(readings: Sequence[Reading]) -> dict[str, Any]:
    out: dict[str, Any] = {"rows": len(readings)}
    for label, name in ((1, "false_positive_rate"), (0, "false_negative_rate")):
        members = [reading for reading in readings if reading.label == label]
        if members:
            whole = np.array([reading.whole < 0 for reading in members]) == bool(label)
            sentence = np.array([reading.worst_sentence > THRESHOLD for reading in members]) == bool(label)
            out[name] = {"rows": len(members), "whole": _round(whole.mean()), "sentence": _round(sentence.mean())}
    return out


def measure_token_spans(readings: Sequence[Reading]) -> dict[str, float]:
    """F1 of flagged tokens, and of runs of them that begin and end where a span does."""
    flagged = [reading.tokens.argmax(-1) > 0 for reading in readings]
    gold = [reading.token_labels > 0 for reading in readings]
    flat, flat_gold = np.concatenate(flagged), np.concatenate(gold)
    runs = [(_find_runs(f), _find_runs(g)) for f, g in zip(flagged, gold, strict=True)]
    hits, both = sum(len(f & g) for f, g in runs), sum(len(f) + len(g) for f, g in runs)
    token_f1 = 2 * (flat & flat_gold).sum() / max(1, flat.sum() + flat_gold.sum())
    return {"token_f1": _round(token_f1), "span_f1": _round(2 * hits / max(1, both))}


def _find_runs(flags: Array) -> set[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return {(int(start), int(end)) for start, end in edges.reshape(-1, 2)}


def _auc(labels: Array, scores: Array) -> float | None:
    return _round(roc_auc_score(labels, scores)) if 0 < labels.sum() < len(labels) else None


def _round(value: float) -> float:
    return round(float(value), 4)
