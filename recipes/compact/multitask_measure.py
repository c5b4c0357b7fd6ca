"""Measures the multi-task NLI model: each head on held-out examples, and on labelled development sets."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from ..common import backbone
from ..common.corpus import read_rows
from ..common.loop import Row, collate
from .multitask_examples import (
    CLAIM_TOKENS,
    FILL,
    MAX_TOKENS,
    WORDS_PER_TOKEN,
    MultitaskExample,
    MultitaskExamples,
    make_public_example,
)
from .multitask_model import HEADS, IGNORED, TOKEN_HEAD, MultitaskNLI, list_untrained_heads, load_multitask_nli

Logits = dict[str, list[np.ndarray[Any, Any]]]
"""The logits of the rows by head: [C], for the token head [T, C]."""
DEVELOPMENT = ("fever_symmetric_dev", "begin_wow_dev")
"""Labelled sets that a model may be chosen with."""


def measure_multitask_nli(source: Path, data: Path, bench: Path | None, count: int) -> dict[str, Any]:
    """The figures of a run or of its checkpoints: its heads on held-out examples, and on the sets in ``bench``.

    The figures of the heads in ``untrained``, which the checkpoints lack, come from one random head: from the states
    of a trained backbone it can reach any ROC-AUC, far from 0.5 on either side, and says nothing about the model.
    """
    torch.manual_seed(0)
    model, examples = load_multitask_nli(source), MultitaskExamples.read(data, "dev")
    report = {"untrained": list_untrained_heads(source), **measure_heads(model, examples, count)}
    return report if bench is None else {**report, **measure_development_sets(model, examples, bench)}


def measure_heads(model: MultitaskNLI, examples: MultitaskExamples, count: int, seed: int = 7) -> dict[str, Any]:
    """Accuracy of every head on ``count`` held-out examples; of consistency also ROC-AUC and accuracy by kind.

    The sources of contrasts compare the two halves of pairs (``measure_pairs``).
    """
    rngs = [random.Random(seed * 1_000_003 + index) for index in range(count)]
    drawn = {
        "nli": [make_public_example("nli_train", examples.public.draw(rng)[1][0]) for rng in rngs],
        "consistency": [examples.draw_made(rng) for rng in rngs],
        "verifiability": [examples.draw_sentence(rng) for rng in rngs],
    }
    report: dict[str, Any] = {}
    for head, chosen in drawn.items():
        rows = _encode(examples, chosen)
        logits = np.stack(compute_logits(model, rows)[head])
        labels = np.array([row[head][0] for row in rows])
        right = logits.argmax(axis=1) == labels
        report[head] = {"examples": count, "accuracy": round(float(right.mean()), 4)}
        if head == "consistency":
            report[head]["roc_auc"] = round(float(roc_auc_score(labels, logits[:, 1] - logits[:, 0])), 4)
            kinds = np.array([example.source for example in chosen])
            report[head]["by_kind"] = {
                kind: round(float(right[kinds == kind].mean()), 4) for kind in sorted(set(kinds))
            }
    words = int((MAX_TOKENS - CLAIM_TOKENS) * WORDS_PER_TOKEN)
    for source, draw in examples.contrasts.items():
        pairs = [draw(words, random.Random(seed * 1_000_003 + index)) for index in range(count)]
        report[source] = measure_pairs(model, examples, pairs)
    return report


def measure_pairs(
    model: MultitaskNLI, examples: MultitaskExamples, drawn: Sequence[tuple[MultitaskExample, MultitaskExample]]
) -> dict[str, Any]:
    """How well pairs of a supported and an unsupported response are distinguished, and unsupported words marked.

    - ``consistency``, ``nli``: the share of pairs whose supported half is more consistent, or more entailed;
    - ``token_f1``: F1 of flagged tokens, ``span_f1`` of runs of them that begin and end where a span does;
    - ``caught``: unsupported halves with a flagged token in a span, of those whose spans are known; ``clean``:
      supported halves without a flag;
    - ``reason``: the share of flagged tokens of spans that are flagged for the right reason;
    - ``by_kind``: consistency and caught for each kind of edit.
    """
    rows = _encode(examples, (half for pair in drawn for half in pair))
    logits = compute_logits(model, rows)
    scores = {
        "consistency": np.array([row[0] - row[1] for row in logits["consistency"]]).reshape(-1, 2),
        "nli": np.array([_log_softmax(row)[0] for row in logits["nli"]]).reshape(-1, 2),
    }
    ranked = {name: values[:, 0] > values[:, 1] for name, values in scores.items()}
    gold = [np.array(row[TOKEN_HEAD]) for row in rows]
    flagged = [np.where(g == IGNORED, IGNORED, row.argmax(-1)) for g, row in zip(gold, logits[TOKEN_HEAD], strict=True)]
    hits = np.array([((f > 0) & (g > 0)).any() for f, g in zip(flagged, gold, strict=True)]).reshape(-1, 2)
    marked = np.array([(g > 0).any() for g in gold]).reshape(-1, 2)[:, 1]
    flags = np.array([(f > 0).any() for f in flagged]).reshape(-1, 2)
    flat, flat_gold = np.concatenate(flagged), np.concatenate(gold)
    both = (flat > 0) & (flat_gold > 0)
    runs = [(set(_list_runs(f)), set(_list_runs(g))) for f, g in zip(flagged, gold, strict=True)]
    right = sum(len(marked & wanted) for marked, wanted in runs)
    kinds = np.array([supported.source for supported, _ in drawn])
    return {
        "pairs": len(drawn),
        **{name: _round(values.mean()) for name, values in ranked.items()},
        "token_f1": _round(2 * both.sum() / max(1, (flat > 0).sum() + (flat_gold > 0).sum())),
        "span_f1": _round(2 * right / max(1, sum(len(marked) + len(wanted) for marked, wanted in runs))),
        "caught": _round(hits[marked, 1].mean()) if marked.any() else None,
        "clean": _round(1 - flags[:, 0].mean()),
        "reason": _round((flat == flat_gold)[both].mean()) if both.any() else None,
        "by_kind": {
            kind: {
                "pairs": int((kinds == kind).sum()),
                "consistency": _round(ranked["consistency"][kinds == kind].mean()),
                "caught": _round(hits[marked & (kinds == kind), 1].mean()) if marked[kinds == kind].any() else None,
            }
            for kind in sorted(set(kinds))
        },
    }


def measure_development_sets(model: MultitaskNLI, examples: MultitaskExamples, bench: Path) -> dict[str, Any]:
    """ROC-AUC of every head on the labelled sets of ``DEVELOPMENT`` in ``bench``.

    Rows of begin_wow_dev whose knowledge is in begin_wow_test are left out; case and spaces are ignored.
    """
    report: dict[str, Any] = {}
    for name in DEVELOPMENT:
        data = list(read_rows(bench / f"{name}.jsonl"))
        test = bench / f"{name.replace('_dev', '_test')}.jsonl"
        if name.startswith("begin"):
            tested = {_normalize(row["knowledge"]) for row in read_rows(test)}
            data = [row for row in data if _normalize(row["knowledge"]) not in tested]
        rows = _encode(examples, (MultitaskExample(row["knowledge"], row["response"], name, {}, ()) for row in data))
        logits = compute_logits(model, rows)
        labels = [row["label"] for row in data]
        scores = {
            "consistency": [row[0] - row[1] for row in logits["consistency"]],
            "nli": [_log_softmax(row)[0] for row in logits["nli"]],
            TOKEN_HEAD: [
                _log_softmax(table)[np.array(row[TOKEN_HEAD]) != IGNORED, 0].min()
                for row, table in zip(rows, logits[TOKEN_HEAD], strict=True)
            ],
        }
        report[name] = {
            "rows": len(data),
            **{head: _round(roc_auc_score(labels, values)) for head, values in scores.items()},
        }
    return report


@torch.inference_mode()
def compute_logits(model: MultitaskNLI, rows: Sequence[Row], batch: int = 32) -> Logits:
    """The logits of each row, in order; rows of similar length are computed together."""
    model.eval()
    device = next(model.parameters()).device
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]["input_ids"]))
    out: dict[str, dict[int, np.ndarray[Any, Any]]] = {name: {} for name in (*HEADS, TOKEN_HEAD)}
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        padded = collate([rows[index] for index in chosen], FILL)
        logits = model(**{name: padded[name].to(device) for name in backbone.INPUTS})
        for name, table in logits.items():
            for index, values in zip(chosen, table.float().cpu().numpy(), strict=True):
                out[name][index] = values[: len(rows[index]["input_ids"])] if name == TOKEN_HEAD else values
    return {name: [values[index] for index in range(len(rows))] for name, values in out.items()}


def _normalize(text: str) -> str:
    return " ".join(text.lower().split())


def _encode(examples: MultitaskExamples, chosen: Iterable[MultitaskExample]) -> list[Row]:
    rows = [examples.encode(example) for example in chosen]
    return [row for row in rows if row is not None]


def _list_runs(labels: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """First and last index of each run of flagged tokens."""
    flags = np.concatenate([[0], (labels > 0).astype(int), [0]])
    edges = np.flatnonzero(np.diff(flags))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _log_softmax(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: np.ndarray[Any, Any] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def _round(value: float) -> float:
    return round(float(value), 4)
