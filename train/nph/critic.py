"""Neural Path Hunter's critic: which words of a response do the triples and the history not support?

A token classifier (O, B, I) over the pair (linearised triples and history, response), trained on ``nph_data``'s
corruptions of dialogues made from FB15k-237. A response is hallucinated as soon as one token is. The embedded critic is
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
from transformers import AutoModelForTokenClassification, AutoTokenizer, BertForTokenClassification

from groundwire.runtime.calls import ClassifiedTokens, ClassifyTokens
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.triples import SEPARATOR, linearise
from groundwire.train.common import backbone
from groundwire.train.common.loop import Group, Row, Schedule, batches, fit, write_report

from . import opendialkg, small_talk
from .corruption import LABELS, Corrupted, Corruptor, Kind, clean, labels
from .corruption import PAPER as PAPER_MIX
from .templates import GraphDialogue, Templates
from .triple_index import Split

ROLE = "critic"
LAYERS = 4
LR, BATCH = 2e-4, 16
"""Peak learning rate and examples per step of the embedded critic."""
MAX_TOKENS = 144
"""Of a training example; triples that the response does not state are left out of longer ones."""
WINDOW = 256
"""Tokens the critic reads at once in service, and of a training example that cannot be made shorter."""
EPOCH = 100_000
"""Examples between two shuffles; all are drawn anew each time."""
IDLE_SHARE, SILENT_SHARE = 0.06, 0.06
"""Of the examples: responses that mention nothing, and dialogues whose history is not given."""
UNLABELLED = -100
"""Label of what is not tagged: special tokens, triples, history."""
THRESHOLD = 0.5
"""Probability of B and I together from which a token is flagged."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Preset:
    """Hyper-parameters of a critic."""

    base: str
    """Checkpoint to start from."""
    lr: float
    epochs: int
    """Passes over the corrupted training set."""


PAPER = Preset("roberta-large", lr=2e-5, epochs=5)
"""The paper's appendix D: Adam, two hours on one V100; its data are OpenDialKG corrupted as in ``nph_data.PAPER``."""


class Judged(NamedTuple):
    """What a critic says of the tokens of one response, and what is true."""

    kind: Kind
    truth: tuple[bool, ...]
    """Whether each token belongs to a hallucinated mention."""
    found: tuple[bool, ...]
    mentions: tuple[bool, ...]
    """Whether each hallucinated mention has a flagged token."""


class Critic(Protocol):
    """Gives each response's tokens as (start, end, probability that it is hallucinated)."""

    def __call__(self, cases: Sequence[Corrupted]) -> list[list[tuple[int, int, float]]]:
        """One list per case, in order."""
        ...


def premise(dialogue: GraphDialogue) -> str:
    """What the response is held against, in one text: the triples and then the turns, as ``linearise`` joins triples.

    One text and not one per turn, because a tagger supports what any of its premises supports: a turn that names an
    entity would excuse every claim about it.
    """
    return SEPARATOR.join(filter(None, (linearise(dialogue.triples), *dialogue.history)))


def build(base: str | Path | None = None, layers: int = LAYERS, start: Path | None = None) -> torch.nn.Module:
    """The tagger before training: the first ``layers`` of MiniLM or of ``start``, or all of the checkpoint ``base``."""
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    model: torch.nn.Module
    if base is not None:
        model = AutoModelForTokenClassification.from_pretrained(base, **names)
    else:
        model = BertForTokenClassification.from_pretrained(start or backbone.PATH, num_hidden_layers=layers, **names)
    return model


def train(
    data: Path,
    out: Path,
    schedule: Schedule,
    lr: float = LR,
    base: str | None = None,
    measured: int = 1000,
    start: Path | None = None,
) -> None:
    """Train and save a token classifier and its tokenizer in ``out``, measured in ``out/report.json``.

    ``data`` holds FB15k-237. ``start`` is a checkpoint of another recipe that began with MiniLM: one that has learnt to
    look up in one text what the other says, which MiniLM, made for single sentences, has not. The word embeddings stay
    frozen; with ``base``, any encoder, everything is trained, and ``PAPER`` has the rate.
    """
    torch.manual_seed(schedule.seed)
    tokens = backbone.tokenizer() if base is None else AutoTokenizer.from_pretrained(base, use_fast=True)
    model = build(base, start=start)
    examples = Examples.read(data)
    names = list(tokens.model_input_names)
    fill = dict.fromkeys(names, 0) | {"input_ids": tokens.pad_token_id or 0, "labels": UNLABELLED}

    def make(index: int, rng: random.Random) -> Row:
        return encode(tokens, examples.draw(rng))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return batches(EPOCH, make, fill, schedule, start)

    trained = backbone.freeze_words(model) if base is None else list(model.parameters())
    fit(model, [Group(trained, lr)], feed, lambda m, batch: m(**batch).loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    held_out = Examples.read(data, "test").sample(measured)
    report = {
        "steps": schedule.steps,
        "seed": schedule.seed,
        "fb15k237_test": measure(of_model(model, tokens), held_out),
    }
    write_report(out, report)


class Examples:
    """Draws dialogues, corrupted or not."""

    def __init__(self, dialogues: Callable[[random.Random], GraphDialogue], corruptor: Corruptor) -> None:
        self._dialogues = dialogues
        self._corruptor = corruptor

    @classmethod
    def read(cls, data: Path, split: Split = "train") -> Examples:
        """Template dialogues about FB15k-237; development and test have other triples and other phrases."""
        templates = Templates.read(data, split)
        return cls(templates.draw, Corruptor(templates.index))

    def draw(self, rng: random.Random) -> Corrupted:
        """One example."""
        dialogue = self._dialogues(rng)
        if rng.random() < IDLE_SHARE:
            return clean(msgspec.structs.replace(dialogue, response=rng.choice(small_talk.IDLE), mentions=()))
        case = self._corruptor.draw(dialogue, rng)
        stands = all(mention.triples for mention in case.original.mentions)
        if stands and case.kind != "unseen" and rng.random() < SILENT_SHARE:
            return msgspec.structs.replace(case, dialogue=msgspec.structs.replace(case.dialogue, history=()))
        return case

    def sample(self, count: int, seed: int = 7) -> list[Corrupted]:
        """``count`` examples, the same for the same seed."""
        return [self.draw(random.Random(seed * 1_000_003 + i)) for i in range(count)]


def encode(tokens: Any, case: Corrupted) -> Row:
    """The ids of a case and the label of every token of its response."""
    dialogue = case.dialogue
    stated = set(case.original.stated())
    spare = [triple for triple in dialogue.triples if triple not in stated]
    while True:
        encoded = tokens(
            premise(dialogue),
            dialogue.response,
            truncation="only_first",
            max_length=WINDOW,
            return_offsets_mapping=True,
        )
        if len(encoded["input_ids"]) <= MAX_TOKENS or not spare:
            break
        gone = spare.pop()
        kept = tuple(triple for triple in dialogue.triples if triple != gone)
        dialogue = msgspec.structs.replace(dialogue, triples=kept)
    owners = encoded.sequence_ids()
    own = [place for place, owner in enumerate(owners) if owner == 1]
    row = [UNLABELLED] * len(owners)
    offsets = [encoded["offset_mapping"][place] for place in own]
    for place, label in zip(own, labels(offsets, case.flagged), strict=True):
        row[place] = label
    return {name: list(encoded[name]) for name in tokens.model_input_names} | {"labels": row}


def of_model(model: torch.nn.Module, tokens: Any, batch: int = 32) -> Critic:
    """A model in training as a critic."""

    @torch.inference_mode()
    def judge(cases: Sequence[Corrupted]) -> list[list[tuple[int, int, float]]]:
        out = []
        place = next(model.parameters()).device
        for at in range(0, len(cases), batch):
            part = cases[at : at + batch]
            encoded = tokens(
                [premise(case.dialogue) for case in part],
                [case.dialogue.response for case in part],
                padding=True,
                truncation="only_first",
                max_length=WINDOW,
                return_offsets_mapping=True,
                return_tensors="pt",
            )
            logits = model(**{name: encoded[name].to(place) for name in tokens.model_input_names}).logits
            doubt = 1.0 - logits.float().softmax(-1)[..., 0]
            for row in range(len(part)):
                own = [i for i, owner in enumerate(encoded.sequence_ids(row)) if owner == 1]
                spans = encoded["offset_mapping"][row].tolist()
                out.append([(spans[i][0], spans[i][1], float(doubt[row, i])) for i in own])
        return out

    return judge


def of_bundle(bundle: Path, windows: int = 64) -> Critic:
    """The role ``critic`` of a bundle as a critic; raises the runtime's error for a response it cannot read."""
    runtime = LocalRuntime.load(bundle)

    def judge(cases: Sequence[Corrupted]) -> list[list[tuple[int, int, float]]]:
        calls = [ClassifyTokens(ROLE, (premise(case.dialogue),), case.dialogue.response) for case in cases]
        out = []
        for answer in runtime.run(ROLE, calls, windows):
            if not isinstance(answer, ClassifiedTokens):
                raise answer if isinstance(answer, Exception) else TypeError(answer)
            fine = answer.labels.index(LABELS[0])
            out.append([(token.start, token.end, 1.0 - token.probabilities[fine]) for token in answer.tokens])
        return out

    return judge


def evaluate(bundle: Path, data: Path, count: int = 1000) -> dict[str, Any]:
    """A bundle's critic on the held-out dialogues and, where ``data`` has it, on corrupted turns of OpenDialKG.

    ``words`` is a critic without a model, for comparison.
    """
    critic = of_bundle(bundle)
    sets = {"fb15k237_test": Examples.read(data, "test").sample(count)}
    if (data / "nc_opendialkg_turns.jsonl.gz").exists():
        turns, index = opendialkg.read(data)
        corruptor = Corruptor(index)
        sets["opendialkg_test"] = [corruptor.draw(t, random.Random(i), PAPER_MIX) for i, t in enumerate(turns[:count])]
    return {name: {"critic": measure(critic, cases), "words": measure(by_words, cases)} for name, cases in sets.items()}


def by_words(cases: Sequence[Corrupted]) -> list[list[tuple[int, int, float]]]:
    """The plainest critic: it doubts every capitalised word and number that the triples and the history lack."""
    out = []
    for case in cases:
        known = set(_WORD.findall(premise(case.dialogue).lower()))
        found = [(m.start(), m.end(), m.group()) for m in _WORD.finditer(case.dialogue.response)]
        out.append(
            [
                (start, end, float(not (word[0].islower() or word.lower() in known or start == 0)))
                for start, end, word in found
            ]
        )
    return out


def measure(critic: Critic, cases: Sequence[Corrupted], threshold: float = THRESHOLD) -> dict[str, Any]:
    """Precision, recall and F1 of a critic, 0–1; see ``figures``."""
    judged = []
    for case, tokens in zip(cases, critic(cases), strict=True):
        truth = tuple(label > 0 for label in labels([(start, end) for start, end, _ in tokens], case.flagged))
        found = tuple(doubt >= threshold for _, _, doubt in tokens)
        mentions = tuple(
            any(start < end and a < end and start < b for (a, b, doubt) in tokens if doubt >= threshold)
            for start, end in case.flagged
        )
        judged.append(Judged(case.kind, truth, found, mentions))
    return figures(judged)


def figures(judged: Sequence[Judged]) -> dict[str, Any]:
    """What the judgements are worth.

    ``token`` and ``response`` have precision, recall and F1 of what is flagged (a response is when one of its tokens
    is), ``mention_recall`` the share of hallucinated mentions with a flagged token, ``response_recall`` the recall by
    the kind of corruption, ``clean_flagged`` the share of clean responses that are flagged all the same.
    """
    tokens: Counter[tuple[bool, bool]] = Counter()
    responses: Counter[tuple[bool, bool]] = Counter()
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for one in judged:
        tokens.update(zip(one.truth, one.found, strict=True))
        responses[any(one.truth), any(one.found)] += 1
        by_kind[one.kind].append(any(one.found))
    mentions = [found for one in judged for found in one.mentions]
    flagged_clean = by_kind.pop("clean", [])
    return {
        "responses": len(judged),
        "token": _scores(tokens),
        "response": _scores(responses),
        "mention_recall": _share(mentions),
        "response_recall": {kind: _share(found) for kind, found in sorted(by_kind.items())},
        "clean_flagged": _share(flagged_clean),
    }


def _scores(counts: Counter[tuple[bool, bool]]) -> dict[str, float]:
    """Keys are (true, found)."""
    hits, wrong, missed = counts[True, True], counts[False, True], counts[True, False]
    return {
        "precision": round(hits / max(1, hits + wrong), 4),
        "recall": round(hits / max(1, hits + missed), 4),
        "f1": round(2 * hits / max(1, 2 * hits + wrong + missed), 4),
    }


def _share(found: Sequence[bool]) -> float:
    return round(sum(found) / max(1, len(found)), 4)
