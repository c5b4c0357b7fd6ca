"""Trains Neural Path Hunter's critic: which words of a response do the triples and the history not support?

A token classifier (O, B, I) over the pair (linearised triples and history, response), trained on corrupted dialogues
(``corruption``) made from FB15k-237. A response is hallucinated as soon as one token is. The embedded critic is
MiniLM cut to four layers; the paper trains RoBERTa-large on OpenDialKG (``PAPER``, with ``DialogueCorpus.OPENDIALKG``),
and any encoder checkpoint can be the base.
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

from groundwire.engine import Engine
from groundwire.engine.metrics.critic import flag_tokens
from groundwire.engine.schema.explanations import FlaggedToken
from groundwire.repair import Critic, KnowledgeGraph
from groundwire.runtime.calls import ClassifiedTokens, ClassifyTokens
from groundwire.runtime.errors import GroundwireError, Unreadable
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.triples import SEPARATOR, linearise

from ..common import backbone
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches, write_report
from ..common.triple_index import Split
from . import opendialkg, small_talk
from .corruption import (
    LABELS,
    CorruptedDialogue,
    CorruptionKind,
    CorruptionRecipe,
    Corruptor,
    Span,
    keep_clean,
    label_tokens,
)
from .dialogue_corpus import DialogueCorpus
from .templates import GraphDialogue

ROLE = "critic"
MAX_TOKENS = 144
"""Tokens of a training example; triples that the response does not state are removed from longer ones."""
WINDOW = 256
"""Tokens the critic reads at once in service, and of a training example that cannot be made shorter."""
EPOCH = 100_000
"""Examples between two shuffles; all are drawn anew each time."""
UNLABELLED = -100
"""Label of tokens that are not classified: special tokens, triples, history."""
THRESHOLD = 0.5
"""Probability of B and I together from which a token is flagged."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CriticRecipe:
    """Model size, data and hyper-parameters. The defaults are the embedded critic's."""

    base: str | None = None
    """Encoder checkpoint to start from; None is MiniLM, whose word embeddings then stay frozen."""
    layers: int | None = 4
    """Layers of it that are kept, from the bottom; None keeps all."""
    lr: float = 2e-4
    """Peak learning rate."""
    batch: int = 16
    """Examples per step."""
    steps: int = 900
    corruption: CorruptionRecipe = CorruptionRecipe.EMBEDDED
    idle: float = 0.06
    """Share of the examples whose response mentions no entity."""
    silent: float = 0.06
    """Share of the examples without their history."""


PAPER = CriticRecipe(
    "roberta-large", layers=None, lr=2e-5, steps=14_571, corruption=CorruptionRecipe.INTRIN_EXTRIN, idle=0.0, silent=0.0
)
"""The paper's appendix D: RoBERTa-large and Adam; the steps are its five epochs of 23,314 dialogues, each once
unchanged and once corrupted. It does not say how many examples a step has."""


class CriticOutcome(NamedTuple):
    """A critic's flags on the tokens and entities of one response, and the true ones."""

    kind: CorruptionKind
    truth: tuple[bool, ...]
    """Whether each token is part of a hallucinated mention."""
    flagged: tuple[bool, ...]
    """Whether the critic flags each token."""
    mentions_flagged: tuple[bool, ...]
    """Whether each hallucinated mention has a flagged token."""
    entities: frozenset[Span] = frozenset()
    """The first and the last token of each hallucinated mention."""
    entities_flagged: frozenset[Span] = frozenset()
    """Those of each entity that the critic flags."""


class CriticModel(Protocol):
    """Flags each response's tokens."""

    def __call__(self, cases: Sequence[CorruptedDialogue]) -> list[Sequence[FlaggedToken]]:
        """One list per case, in order."""
        ...


def make_premise(dialogue: GraphDialogue) -> str:
    """The text that a response is checked against: triples, then turns, joined as ``linearise`` joins triples.

    One text and not one per turn, because a token classifier supports what any of its premises supports: a turn that
    names an entity would support every claim about it.
    """
    return SEPARATOR.join(filter(None, (linearise(dialogue.triples), *dialogue.history)))


def build_critic(recipe: CriticRecipe, start: Path | None = None) -> PreTrainedModel:
    """The model before training: the first layers of ``recipe.base``, or of ``start`` or MiniLM."""
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}}
    layers = {} if recipe.layers is None else {"num_hidden_layers": recipe.layers}
    model: PreTrainedModel
    if recipe.base is not None:
        model = AutoModelForTokenClassification.from_pretrained(recipe.base, **names, **layers)
    else:
        model = BertForTokenClassification.from_pretrained(start or backbone.PATH, **names, **layers)
    return model


def train_critic(
    data: Path,
    out: Path,
    schedule: Schedule,
    recipe: CriticRecipe = CriticRecipe(),
    measured: int = 1000,
    start: Path | None = None,
    dialogues: DialogueCorpus = DialogueCorpus.TEMPLATES,
) -> None:
    """Train and save a token classifier and its tokenizer in ``out``, measured in ``out/report.json``.

    ``schedule`` has the number of steps and of examples per step. ``start`` is a checkpoint of another recipe that
    started from MiniLM: a model that has learnt to find in one text what the other says, as MiniLM, made for single
    sentences, has not. MiniLM's word embeddings stay frozen; of another ``recipe.base`` all weights are trained.
    InvalidRequest when ``data`` lacks the files of ``dialogues``.
    """
    torch.manual_seed(schedule.seed)
    examples = CriticExamples.read(data, recipe=recipe, dialogues=dialogues)
    is_minilm = recipe.base is None
    tokens = backbone.load_tokenizer() if is_minilm else AutoTokenizer.from_pretrained(recipe.base, use_fast=True)
    model = build_critic(recipe, start)
    names = list(tokens.model_input_names)
    fill = dict.fromkeys(names, 0) | {"input_ids": tokens.pad_token_id or 0, "labels": UNLABELLED}

    def make(index: int, rng: random.Random) -> Row:
        return encode_case(tokens, examples.draw(rng))

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(EPOCH, make, fill, schedule, start)

    trained = backbone.freeze_word_embeddings(model) if is_minilm else list(model.parameters())
    fit(model, [ParameterGroup(trained, recipe.lr)], feed, lambda m, batch: m(**batch).loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    held_out = CriticExamples.read(data, "test", recipe, dialogues).sample(measured)
    report = {
        "steps": schedule.steps,
        "seed": schedule.seed,
        "dialogues": dialogues.value,
        "corruption": recipe.corruption.value,
        dialogues.held_out: measure_critic(wrap_critic_model(model, tokens), held_out),
    }
    write_report(out, report)


class CriticExamples:
    """Draws dialogues, corrupted or not."""

    def __init__(
        self, dialogues: Callable[[random.Random], GraphDialogue], corruptor: Corruptor, recipe: CriticRecipe
    ) -> None:
        self._dialogues = dialogues
        self._corruptor = corruptor
        self._recipe = recipe

    @classmethod
    def read(
        cls,
        data: Path,
        split: Split = "train",
        recipe: CriticRecipe = CriticRecipe(),
        dialogues: DialogueCorpus = DialogueCorpus.TEMPLATES,
    ) -> CriticExamples:
        """Examples of a recipe; the development and test splits of templates have other triples and other phrases."""
        source = dialogues.read(data, split)
        return cls(source.draw, Corruptor(source.index), recipe)

    def draw(self, rng: random.Random) -> CorruptedDialogue:
        """One example."""
        dialogue = self._dialogues(rng)
        if rng.random() < self._recipe.idle:
            return keep_clean(msgspec.structs.replace(dialogue, response=rng.choice(small_talk.IDLE), mentions=()))
        case = self._corruptor.draw(dialogue, rng, self._recipe.corruption.corruption)
        supported = all(mention.triples for mention in case.original.mentions)
        if supported and case.kind != "unseen" and rng.random() < self._recipe.silent:
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
        others = tuple(triple for triple in dialogue.triples if triple != dropped)
        dialogue = msgspec.structs.replace(dialogue, triples=others)
    owners = encoded.sequence_ids()
    response_tokens = [token for token, owner in enumerate(owners) if owner == 1]
    token_labels = [UNLABELLED] * len(owners)
    offsets = [encoded["offset_mapping"][token] for token in response_tokens]
    for token, label in zip(response_tokens, label_tokens(offsets, case.flagged), strict=True):
        token_labels[token] = label
    return {name: list(encoded[name]) for name in tokens.model_input_names} | {"labels": token_labels}


def wrap_critic_model(model: torch.nn.Module, tokens: Any, batch: int = 32) -> CriticModel:
    """A critic that runs a PyTorch model."""

    @torch.inference_mode()
    def criticise(cases: Sequence[CorruptedDialogue]) -> list[Sequence[FlaggedToken]]:
        scored: list[Sequence[FlaggedToken]] = []
        device = next(model.parameters()).device
        for start in range(0, len(cases), batch):
            part = cases[start : start + batch]
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
            probabilities = logits.float().softmax(-1)
            for row in range(len(part)):
                response_tokens = [i for i, owner in enumerate(encoded.sequence_ids(row)) if owner == 1]
                spans = encoded["offset_mapping"][row].tolist()
                table = probabilities[row].tolist()
                scored.append(
                    [
                        FlaggedToken(spans[i][0], spans[i][1], 1.0 - table[i][0], table[i][1] > table[i][2])
                        for i in response_tokens
                    ]
                )
        return scored

    return criticise


def load_critic(bundle: Path, windows: int = 64) -> CriticModel:
    """The critic of a bundle's role ``critic``; a response in a script that it cannot read has no tokens."""
    runtime = LocalRuntime.load(bundle)
    info = runtime.role_info(ROLE)

    def criticise(cases: Sequence[CorruptedDialogue]) -> list[Sequence[FlaggedToken]]:
        calls = [ClassifyTokens(ROLE, (make_premise(case.dialogue),), case.dialogue.response) for case in cases]
        scored: list[Sequence[FlaggedToken]] = []
        for outcome in runtime.run(ROLE, calls, windows):
            if isinstance(outcome, GroundwireError) and not isinstance(outcome, Unreadable):
                raise outcome
            scored.append(flag_tokens(outcome, info) if isinstance(outcome, ClassifiedTokens) else ())
        return scored

    return criticise


def evaluate_critic(bundle: Path, data: Path, count: int = 1000) -> dict[str, Any]:
    """Measure a bundle's critic on held-out dialogues and, where ``data`` has them, on corrupted turns of OpenDialKG.

    ``words`` is ``flag_unknown_words``, for comparison. ``critique`` and ``critique_of_triples`` are the names that
    ``Critic`` returns for OpenDialKG's turns, with the whole graph and with each dialogue's triples.
    """
    critic = load_critic(bundle)

    def measure(cases: Sequence[CorruptedDialogue]) -> dict[str, Any]:
        return {"critic": measure_critic(critic, cases), "words": measure_critic(flag_unknown_words, cases)}

    report = {"fb15k237_test": measure(CriticExamples.read(data, "test").sample(count))}
    if opendialkg.has_opendialkg(data):
        turns, index = opendialkg.read_opendialkg(data)
        corruptor, corruption = Corruptor(index), CorruptionRecipe.INTRIN_EXTRIN.corruption
        cases = [corruptor.draw(t, random.Random(i), corruption) for i, t in enumerate(turns[:count])]
        with Engine.load(bundle) as engine:
            report["opendialkg_test"] = measure(cases) | {
                "critique": measure_critique(Critic(engine), cases, KnowledgeGraph.from_triples(index.triples)),
                "critique_of_triples": measure_critique(Critic(engine), cases),
            }
    return report


def measure_critique(
    critic: Critic, cases: Sequence[CorruptedDialogue], graph: KnowledgeGraph | None = None
) -> dict[str, Any]:
    """Precision, recall and F1, 0–1, of the names that a critique returns; one counts when its range is right.

    ``graph`` is what the critic looks into; None passes it each dialogue's triples.
    """
    entities: Counter[tuple[bool, bool]] = Counter()
    flagged_clean = []
    for case in cases:
        dialogue = case.dialogue
        knowledge = dialogue.triples if graph is None else graph
        critique = critic.critique(dialogue.response, knowledge, history=dialogue.history)
        flagged, truth = {(mention.start, mention.end) for mention in critique.mentions}, set(case.flagged)
        entities[True, True] += len(truth & flagged)
        entities[True, False] += len(truth - flagged)
        entities[False, True] += len(flagged - truth)
        if case.kind == "clean":
            flagged_clean.append(bool(flagged))
    return {
        "responses": len(cases),
        "entity": _score_counts(entities),
        "clean_flagged": _mean_share(flagged_clean),
    }


def flag_unknown_words(cases: Sequence[CorruptedDialogue]) -> list[Sequence[FlaggedToken]]:
    """A critic without a model: it flags each capitalised word and number that the triples and the history lack."""
    scored: list[Sequence[FlaggedToken]] = []
    for case in cases:
        premise_words = set(_WORD.findall(make_premise(case.dialogue).lower()))
        words = [(m.start(), m.end(), m.group()) for m in _WORD.finditer(case.dialogue.response)]
        scored.append(
            [
                FlaggedToken(start, end, float(not (word[0].islower() or word.lower() in premise_words or start == 0)))
                for start, end, word in words
            ]
        )
    return scored


def measure_critic(
    critic: CriticModel, cases: Sequence[CorruptedDialogue], threshold: float = THRESHOLD
) -> dict[str, Any]:
    """Precision, recall and F1 of a critic, 0–1; see ``score_outcomes``."""
    outcomes = []
    for case, tokens in zip(cases, critic(cases), strict=True):
        true_labels = label_tokens([(token.start, token.end) for token in tokens], case.flagged)
        flagged = [token for token in tokens if token.probability >= threshold and token.start < token.end]
        outcomes.append(
            CriticOutcome(
                case.kind,
                truth=tuple(label > 0 for label in true_labels),
                flagged=tuple(token.probability >= threshold for token in tokens),
                mentions_flagged=tuple(
                    any(token.start < end and start < token.end for token in flagged) for start, end in case.flagged
                ),
                entities=find_entities([label > 0 for label in true_labels], [label == 1 for label in true_labels]),
                entities_flagged=find_entities(
                    [token.probability >= threshold for token in tokens], [token.begins for token in tokens]
                ),
            )
        )
    return score_outcomes(outcomes)


def find_entities(flagged: Sequence[bool], begins: Sequence[bool]) -> frozenset[Span]:
    """The first and the last token of each run of flagged tokens, cut where one begins an entity.

    >>> sorted(find_entities([True, True, True, False, True], [False, False, True, True, False]))
    [(0, 1), (2, 2), (4, 4)]
    """
    entities: list[Span] = []
    for number, (is_flagged, is_first) in enumerate(zip(flagged, begins, strict=True)):
        if is_flagged and entities and entities[-1][1] == number - 1 and not is_first:
            entities[-1] = (entities[-1][0], number)
        elif is_flagged:
            entities.append((number, number))
    return frozenset(entities)


def score_outcomes(outcomes: Sequence[CriticOutcome]) -> dict[str, Any]:
    """Precision and recall of a critic's flags.

    ``token``, ``entity`` and ``response`` have precision, recall and F1 of what is flagged: an entity counts when its
    first and its last token are right, as in the paper's table 5, and a response is flagged when one of its tokens is.
    ``mention_recall`` is the share of hallucinated mentions with a flagged token, ``response_recall`` the recall by the
    kind of corruption, ``clean_flagged`` the share of clean responses that are flagged.
    """
    tokens: Counter[tuple[bool, bool]] = Counter()
    entities: Counter[tuple[bool, bool]] = Counter()
    responses: Counter[tuple[bool, bool]] = Counter()
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        tokens.update(zip(outcome.truth, outcome.flagged, strict=True))
        entities[True, True] += len(outcome.entities & outcome.entities_flagged)
        entities[True, False] += len(outcome.entities - outcome.entities_flagged)
        entities[False, True] += len(outcome.entities_flagged - outcome.entities)
        responses[any(outcome.truth), any(outcome.flagged)] += 1
        by_kind[outcome.kind].append(any(outcome.flagged))
    mentions = [flags for outcome in outcomes for flags in outcome.mentions_flagged]
    flagged_clean = by_kind.pop("clean", [])
    return {
        "responses": len(outcomes),
        "token": _score_counts(tokens),
        "entity": _score_counts(entities),
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
