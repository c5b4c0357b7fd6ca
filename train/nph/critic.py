"""Trains Neural Path Hunter's critic: which words of a response do the triples and the history not support?

A token classifier (O, B, I) over the pair (linearised triples and history, response), trained on corrupted dialogues
(``corruption``) made from FB15k-237. A response is hallucinated as soon as one token is. The embedded critic is
MiniLM cut to four layers; the paper trains RoBERTa-large on OpenDialKG (``PAPER``), and any encoder checkpoint can be
the base.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer, BertForTokenClassification, PreTrainedModel

from groundwire.runtime.calls import ClassifiedTokens, ClassifyTokens
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.triples import SEPARATOR, linearise

from ..common import backbone
from ..common.calls import run_calls
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches, write_report
from . import opendialkg, small_talk
from .corruption import LABELS, CorruptedDialogue, CorruptionKind, Corruptor, keep_clean, label_tokens
from .corruption import PAPER as PAPER_MIX
from .templates import GraphDialogue, TemplateDialogues
from .triple_index import Split

ROLE = "critic"
LAYERS = 4
LR, BATCH = 2e-4, 16
"""Peak learning rate and examples per step of the embedded critic."""
MAX_TOKENS = 144
"""Tokens of a training example; triples that the response does not state are removed from longer ones."""
WINDOW = 256
"""Tokens the critic reads at once in service, and of a training example that cannot be made shorter."""
EPOCH = 100_000
"""Examples between two shuffles; all are drawn anew each time."""
IDLE_SHARE, SILENT_SHARE = 0.06, 0.06
"""Shares of the examples: responses that mention no entity, and dialogues without their history."""
UNLABELLED = -100
"""Label of tokens that are not classified: special tokens, triples, history."""
THRESHOLD = 0.5
"""Probability of B and I together from which a token is flagged."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CriticPreset:
    """Hyper-parameters of a critic."""

    base: str
    """Checkpoint to start from."""
    lr: float
    epochs: int
    """Passes over the corrupted training set."""


PAPER = CriticPreset("roberta-large", lr=2e-5, epochs=5)
"""The paper's appendix D: Adam, two hours on one V100; its data are OpenDialKG, corrupted by ``corruption.PAPER``."""


class CriticOutcome(NamedTuple):
    """A critic's flags on the tokens of one response, and the true ones."""

    kind: CorruptionKind
    truth: tuple[bool, ...]
    """Whether each token is part of a hallucinated mention."""
    flagged: tuple[bool, ...]
    """Whether the critic flags each token."""
    mentions_flagged: tuple[bool, ...]
    """Whether each hallucinated mention has a flagged token."""


class Critic(Protocol):
    """Scores each response's tokens: (start, end, probability that the token is hallucinated)."""

    def __call__(self, cases: Sequence[CorruptedDialogue]) -> list[list[tuple[int, int, float]]]:
        """One list per case, in order."""
        ...


def make_premise(dialogue: GraphDialogue) -> str:
    """The text that a response is checked against: triples, then turns, joined as ``linearise`` joins triples.

    One text and not one per turn, because a token classifier supports what any of its premises supports: a turn that
    names an entity would support every claim about it.
    """
    return SEPARATOR.join(filter(None, (linearise(dialogue.triples), *dialogue.history)))


def build_critic(base: str | Path | None = None, layers: int = LAYERS, start: Path | None = None) -> PreTrainedModel:
    """The model before training: the first ``layers`` of MiniLM or of ``start``, or all layers of ``base``."""
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    model: PreTrainedModel
    if base is not None:
        model = AutoModelForTokenClassification.from_pretrained(base, **names)
    else:
        model = BertForTokenClassification.from_pretrained(start or backbone.PATH, num_hidden_layers=layers, **names)
    return model


def train_critic(
    data: Path,
    out: Path,
    schedule: Schedule,
    lr: float = LR,
    base: str | None = None,
    measured: int = 1000,
    start: Path | None = None,
) -> None:
    """Train and save a token classifier and its tokenizer in ``out``, measured in ``out/report.json``.

    ``data`` holds FB15k-237. ``start`` is a checkpoint of another recipe that started from MiniLM: one that has learnt
    to find in one text what the other says, as MiniLM, made for single sentences, has not. The word embeddings stay
    frozen; with ``base``, any encoder, all weights are trained, and ``PAPER`` has the learning rate.
    """
    torch.manual_seed(schedule.seed)
    tokens = backbone.load_tokenizer() if base is None else AutoTokenizer.from_pretrained(base, use_fast=True)
    model = build_critic(base, start=start)
    examples = CriticExamples.read(data)
    names = list(tokens.model_input_names)
    fill = dict.fromkeys(names, 0) | {"input_ids": tokens.pad_token_id or 0, "labels": UNLABELLED}

    def make(index: int, rng: random.Random) -> Row:
        return encode_case(tokens, examples.draw(rng))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(EPOCH, make, fill, schedule, start)

    trained = backbone.freeze_word_embeddings(model) if base is None else list(model.parameters())
    fit(model, [ParameterGroup(trained, lr)], feed, lambda m, batch: m(**batch).loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    held_out = CriticExamples.read(data, "test").sample(measured)
    report = {
        "steps": schedule.steps,
        "seed": schedule.seed,
        "fb15k237_test": measure_critic(wrap_critic_model(model, tokens), held_out),
    }
    write_report(out, report)


class CriticExamples:
    """Draws dialogues, corrupted or not."""

    def __init__(self, dialogues: Callable[[random.Random], GraphDialogue], corruptor: Corruptor) -> None:
        self._dialogues = dialogues
        self._corruptor = corruptor

    @classmethod
    def read(cls, data: Path, split: Split = "train") -> CriticExamples:
        """Template dialogues about FB15k-237; the development and test splits have other triples and other phrases."""
        templates = TemplateDialogues.read(data, split)
        return cls(templates.draw, Corruptor(templates.index))

    def draw(self, rng: random.Random) -> CorruptedDialogue:
        """One example."""
        dialogue = self._dialogues(rng)
        if rng.random() < IDLE_SHARE:
            return keep_clean(msgspec.structs.replace(dialogue, response=rng.choice(small_talk.IDLE), mentions=()))
        case = self._corruptor.draw(dialogue, rng)
        supported = all(mention.triples for mention in case.original.mentions)
        if supported and case.kind != "unseen" and rng.random() < SILENT_SHARE:
            return msgspec.structs.replace(case, dialogue=msgspec.structs.replace(case.dialogue, history=()))
        return case

    def sample(self, count: int, seed: int = 7) -> list[CorruptedDialogue]:
        """``count`` examples, the same for the same seed."""
        return [self.draw(random.Random(seed * 1_000_003 + i)) for i in range(count)]


def encode_case(tokens: Any, case: CorruptedDialogue) -> Row:
    """The ids of a case, and the labels of its response's tokens."""
    dialogue = case.dialogue
    stated = set(case.original.stated_triples())
    removable = [triple for triple in dialogue.triples if triple not in stated]
    while True:
        encoded = tokens(
            make_premise(dialogue),
            dialogue.response,
            truncation="only_first",
            max_length=WINDOW,
            return_offsets_mapping=True,
        )
        if len(encoded["input_ids"]) <= MAX_TOKENS or not removable:
            break
        dropped = removable.pop()
        kept = tuple(triple for triple in dialogue.triples if triple != dropped)
        dialogue = msgspec.structs.replace(dialogue, triples=kept)
    owners = encoded.sequence_ids()
    response_tokens = [token for token, owner in enumerate(owners) if owner == 1]
    token_labels = [UNLABELLED] * len(owners)
    offsets = [encoded["offset_mapping"][token] for token in response_tokens]
    for token, label in zip(response_tokens, label_tokens(offsets, case.flagged), strict=True):
        token_labels[token] = label
    return {name: list(encoded[name]) for name in tokens.model_input_names} | {"labels": token_labels}


def wrap_critic_model(model: torch.nn.Module, tokens: Any, batch: int = 32) -> Critic:
    """A critic that runs a PyTorch model."""

    @torch.inference_mode()
    def criticise(cases: Sequence[CorruptedDialogue]) -> list[list[tuple[int, int, float]]]:
        scored = []
        device = next(model.parameters()).device
        for at in range(0, len(cases), batch):
            part = cases[at : at + batch]
            encoded = tokens(
                [make_premise(case.dialogue) for case in part],
                [case.dialogue.response for case in part],
                padding=True,
                truncation="only_first",
                max_length=WINDOW,
                return_offsets_mapping=True,
                return_tensors="pt",
            )
            logits = model(**{name: encoded[name].to(device) for name in tokens.model_input_names}).logits
            probabilities = 1.0 - logits.float().softmax(-1)[..., 0]
            for row in range(len(part)):
                response_tokens = [i for i, owner in enumerate(encoded.sequence_ids(row)) if owner == 1]
                spans = encoded["offset_mapping"][row].tolist()
                scored.append([(spans[i][0], spans[i][1], float(probabilities[row, i])) for i in response_tokens])
        return scored

    return criticise


def load_critic(bundle: Path, windows: int = 64) -> Critic:
    """The critic of a bundle's role ``critic``; it raises the runtime's error for a response that it cannot read."""
    runtime = LocalRuntime.load(bundle)

    def criticise(cases: Sequence[CorruptedDialogue]) -> list[list[tuple[int, int, float]]]:
        calls = [ClassifyTokens(ROLE, (make_premise(case.dialogue),), case.dialogue.response) for case in cases]
        scored = []
        for answer in run_calls(runtime, ROLE, calls, ClassifiedTokens, windows):
            supported = answer.labels.index(LABELS[0])
            scored.append([(token.start, token.end, 1.0 - token.probabilities[supported]) for token in answer.tokens])
        return scored

    return criticise


def evaluate_critic(bundle: Path, data: Path, count: int = 1000) -> dict[str, Any]:
    """Measure a bundle's critic on held-out dialogues and, where ``data`` has them, on corrupted turns of OpenDialKG.

    ``words`` is ``flag_unknown_words``, for comparison.
    """
    critic = load_critic(bundle)
    sets = {"fb15k237_test": CriticExamples.read(data, "test").sample(count)}
    if (data / "nc_opendialkg_turns.jsonl.gz").exists():
        turns, index = opendialkg.read_opendialkg(data)
        corruptor = Corruptor(index)
        sets["opendialkg_test"] = [corruptor.draw(t, random.Random(i), PAPER_MIX) for i, t in enumerate(turns[:count])]
    return {
        name: {"critic": measure_critic(critic, cases), "words": measure_critic(flag_unknown_words, cases)}
        for name, cases in sets.items()
    }


def flag_unknown_words(cases: Sequence[CorruptedDialogue]) -> list[list[tuple[int, int, float]]]:
    """A critic without a model: it flags each capitalised word and number that the triples and the history lack."""
    scored = []
    for case in cases:
        known = set(_WORD.findall(make_premise(case.dialogue).lower()))
        words = [(m.start(), m.end(), m.group()) for m in _WORD.finditer(case.dialogue.response)]
        scored.append(
            [
                (start, end, float(not (word[0].islower() or word.lower() in known or start == 0)))
                for start, end, word in words
            ]
        )
    return scored


def measure_critic(critic: Critic, cases: Sequence[CorruptedDialogue], threshold: float = THRESHOLD) -> dict[str, Any]:
    """Precision, recall and F1 of a critic, 0–1; see ``score_outcomes``."""
    outcomes = []
    for case, tokens in zip(cases, critic(cases), strict=True):
        truth = tuple(label > 0 for label in label_tokens([(start, end) for start, end, _ in tokens], case.flagged))
        flagged = tuple(probability >= threshold for _, _, probability in tokens)
        mentions = tuple(
            any(start < end and a < end and start < b for (a, b, probability) in tokens if probability >= threshold)
            for start, end in case.flagged
        )
        outcomes.append(CriticOutcome(case.kind, truth, flagged, mentions))
    return score_outcomes(outcomes)


def score_outcomes(outcomes: Sequence[CriticOutcome]) -> dict[str, Any]:
    """Precision and recall of a critic's flags.

    ``token`` and ``response`` have precision, recall and F1 of what is flagged (a response is flagged when one of its
    tokens is), ``mention_recall`` the share of hallucinated mentions with a flagged token, ``response_recall`` the
    recall by the kind of corruption, ``clean_flagged`` the share of clean responses that are flagged.
    """
    tokens: Counter[tuple[bool, bool]] = Counter()
    responses: Counter[tuple[bool, bool]] = Counter()
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        tokens.update(zip(outcome.truth, outcome.flagged, strict=True))
        responses[any(outcome.truth), any(outcome.flagged)] += 1
        by_kind[outcome.kind].append(any(outcome.flagged))
    mentions = [flags for outcome in outcomes for flags in outcome.mentions_flagged]
    flagged_clean = by_kind.pop("clean", [])
    return {
        "responses": len(outcomes),
        "token": _score_counts(tokens),
        "response": _score_counts(responses),
        "mention_recall": _mean_share(mentions),
        "response_recall": {kind: _mean_share(flags) for kind, flags in sorted(by_kind.items())},
        "clean_flagged": _mean_share(flagged_clean),
    }


def _score_counts(counts: Counter[tuple[bool, bool]]) -> dict[str, float]:
    """Precision, recall and F1; the keys of ``counts`` are (true, flagged)."""
    hits, false_positives, false_negatives = counts[True, True], counts[False, True], counts[True, False]
    return {
        "precision": round(hits / max(1, hits + false_positives), 4),
        "recall": round(hits / max(1, hits + false_negatives), 4),
        "f1": round(2 * hits / max(1, 2 * hits + false_positives + false_negatives), 4),
    }


def _mean_share(flags: Sequence[bool]) -> float:
    return round(sum(flags) / max(1, len(flags)), 4)
