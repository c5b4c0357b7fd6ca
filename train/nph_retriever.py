"""Neural Path Hunter's entity retriever, trained on dialogues made from a knowledge graph.

Some of a response's entities are masked and have to be found again among their neighbours in the graph. The loss is the
paper's: the causal language model's on the response, plus λ times NCE over the true triple and negatives, which are the
other candidates of the neighbourhood (SANS, Ahrabian et al. 2020), the true entities of the batch's other mentions, or
both. What was chosen before a mention is the truth while it trains (teacher forcing).

A masked name keeps its number of word pieces in service, where it is a wrong name. So in training another entity
stands at the mention before it is masked, and its length tells nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertModel

from groundwire.export.retriever import EntityRetriever, RetrieverConfig
from groundwire.export.retriever.model import distmult
from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.cloze import Cloze, cloze, joins, remembered
from groundwire.runtime.text import TextEncoder
from groundwire.runtime.triples import Triple, upright

from . import trunk
from .loop import Group, Schedule, fit, write_report
from .nph_graph import TripleIndex
from .nph_templates import GraphDialogue, Mention, Templates

Negatives = Literal["sans", "batch", "both", "none"]
ABOUT = 2.0
"""What the mean of the words before a mention counts in its query at first, beside the mention's own state."""
POSITIONS = 256
"""Rows kept of MiniLM's 512 positions."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is trained, and on what. The defaults are those of the embedded bundle."""

    layers: int = 2
    """Of MiniLM's six, in the masked language model."""
    causal_layers: int = 1
    inner: int = 384
    """Width of the causal model's feed-forward blocks; MiniLM's is 1,536."""
    pooling: Literal["mean", "max"] = "mean"
    memory_pooling: Literal["mean", "max"] = "mean"
    paths: bool = True
    """Remember entities with the triples that join them to their anchors; the paper's memory has their names alone."""
    turns: int = 3
    max_tokens: int = 128
    negatives: Negatives = "both"
    sans: int = 8
    """Candidates per mention at most, the true one included: every one is a text to read."""
    weight: float = 4.0
    """λ: what NCE counts beside the language model's loss. The paper has 0.5 and thousands of steps."""
    words: int = 96
    """Words of a batch that the language model's loss looks at, drawn at random; 0 takes all."""
    aligned: int = 640
    """Examples for the first guess of how a mention's state becomes a query (``align``); 0 leaves it out."""
    lr: float = 4e-4
    masked: bool = True
    """False: the ablation "w/o MLM"."""
    memory: Literal["text", "compgcn"] = "text"
    """``compgcn``: the paper's other memory, a table of a graph's entities (``nph_compgcn``)."""
    graph_steps: int = 100
    """Steps of relation prediction that such a table is made with."""
    all_mentions: bool = False
    """Mask every entity of a response, as the paper does in training, instead of some."""


PAPER = Recipe(
    layers=6, causal_layers=6, inner=1536, memory_pooling="max", paths=False, negatives="sans", sans=51, lr=6.25e-5,
    all_mentions=True, words=0, aligned=0, weight=0.5,
)  # fmt: skip
"""The paper's hyper-parameters (with a batch of 16): λ 0.5, 50 negatives of the neighbourhood, three turns."""


class Example(NamedTuple):
    """A call whose answers are known."""

    call: Retrieve
    truth: tuple[str, ...]
    """The entity behind each mention."""
    gold: tuple[int, ...]
    """The candidate that the response states, by mention."""


class Examples:
    """Makes calls of dialogues."""

    def __init__(self, index: TripleIndex, *, sans: int = 12, all_mentions: bool = False) -> None:
        """``index`` is the graph that further neighbours come from; ``sans`` bounds the candidates of a mention."""
        self._index = index
        self._sans = sans
        self._all = all_mentions

    def make(self, dialogue: GraphDialogue, rng: random.Random) -> Example | None:
        """Mask some of the stated entities of a response; None when no triple holds any of them."""
        stated = answerable(dialogue)
        if not stated:
            return None
        count = len(stated) if self._all else rng.choice((1, 1, 1, 2, len(stated)))
        chosen = sorted(rng.sample(stated, min(count, len(stated))), key=lambda mention: mention.start)
        return self.masking(dialogue, chosen, [self._stranger(dialogue, mention, rng) for mention in chosen], rng)

    def masking(
        self, dialogue: GraphDialogue, chosen: Sequence[Mention], names: Sequence[str], rng: random.Random
    ) -> Example:
        """The call that asks for the mentions ``chosen`` where ``names`` stand in their places."""
        context = self._context(dialogue, chosen)
        triples = list(dict.fromkeys(map(upright, dialogue.triples)))
        known = set(triples)
        for mention in chosen:
            for anchor in _anchors(mention, context):
                triples += [t for t in self._more(anchor, mention, rng) if t not in known]
                known.update(triples)
        candidates, gold = [], []
        for mention in chosen:
            own = self._candidates(mention, context, triples, rng)
            candidates.append(tuple(own))
            # Any triple that holds the entity and a node of the context will do.
            gold.append(next(at for at, one in enumerate(own) if one.entity == mention.entity))
        response, places = _replaced(dialogue.response, chosen, names)
        call = Retrieve(dialogue.history, tuple(triples), response, places, tuple(candidates))
        return Example(call, tuple(mention.entity for mention in chosen), tuple(gold))

    def _context(self, dialogue: GraphDialogue, chosen: Sequence[Mention]) -> tuple[str, ...]:
        """Entities that history and the rest of the response name, and that a triple holds."""
        said = " ".join(dialogue.history).casefold()
        named = dict.fromkeys(mention.entity for mention in dialogue.mentions if mention not in chosen)
        ends = dict.fromkeys(end for triple in dialogue.triples for end in (triple.subject, triple.object))
        return tuple(end for end in ends if end in named or end.casefold() in said)

    def _candidates(
        self, mention: Mention, context: Sequence[str], triples: Sequence[Triple], rng: random.Random
    ) -> list[Candidate]:
        anchors = set(_anchors(mention, context))
        found = dict.fromkeys(
            Candidate(one, other)
            for triple in triples
            for one, other in ((triple.subject, triple.object), (triple.object, triple.subject))
            if one in anchors
        )
        true = [one for one in found if one.entity == mention.entity]
        rest = [one for one in found if one.entity != mention.entity]
        kept = true[:2] + rng.sample(rest, min(len(rest), max(1, self._sans - len(true[:2]))))
        rng.shuffle(kept)
        return kept

    def _more(self, anchor: str, mention: Mention, rng: random.Random) -> list[Triple]:
        """Other triples of an anchor, none that would make another entity right."""
        parts = {(triple.predicate, triple.object == mention.entity) for triple in mention.triples}
        near = list(self._index.about(anchor))
        near = rng.sample(near, min(len(near), self._sans))
        return [
            triple
            for triple in near
            if (triple.predicate, triple.subject == anchor) not in parts
            and mention.entity not in (triple.subject, triple.object)
        ][: rng.randrange(self._sans // 2 + 1)]

    def _stranger(self, dialogue: GraphDialogue, mention: Mention, rng: random.Random) -> str:
        """Another name, mostly of the same type, as a hallucination would be."""
        peer = self._index.peer(mention.entity, {mention.entity}, rng)
        triple = rng.choice(dialogue.triples)
        return peer if peer is not None and rng.random() < 0.8 else rng.choice((triple.subject, triple.object))


def answerable(dialogue: GraphDialogue) -> list[Mention]:
    """The mentions whose entity a triple holds that the response states."""
    return [
        mention
        for mention in dialogue.mentions
        if any(mention.entity in (triple.subject, triple.object) for triple in mention.triples)
    ]


def _anchors(mention: Mention, context: Sequence[str]) -> tuple[str, ...]:
    """The context nodes, and where none of them is the other end of what is stated, that end."""
    held = [(triple.subject, triple.object) for triple in mention.triples]
    ends = {end for pair in held if mention.entity in pair for end in pair} - {mention.entity}
    nodes = tuple(node for node in context if node != mention.entity)
    return nodes if ends & set(nodes) else (*nodes, *sorted(ends)[:1])


def _replaced(
    response: str, chosen: Sequence[Mention], names: Sequence[str]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The response with other names at the mentions, and where they stand."""
    out, at, places = "", 0, []
    for mention, name in zip(chosen, names, strict=True):
        out += response[at : mention.start]
        places.append((len(out), len(out) + len(name)))
        out += name
        at = mention.end
    return out + response[at:], tuple(places)


def build(recipe: Recipe, counts: torch.Tensor | None = None) -> EntityRetriever:
    """The model before training, from MiniLM's first layers and its words, which stay frozen.

    ``counts`` [V] tell how often each token is to be expected in a response.
    """
    source = BertModel.from_pretrained(trunk.PATH, add_pooling_layer=False)
    bert = source.config.to_dict() | {
        "num_hidden_layers": recipe.layers,
        "max_position_embeddings": min(POSITIONS, source.config.max_position_embeddings),
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    model = EntityRetriever(
        RetrieverConfig(
            encoder=bert,
            layers=recipe.causal_layers,
            inner=recipe.inner,
            pooling=recipe.pooling,
            memory_pooling=recipe.memory_pooling,
            paths=recipe.paths,
            turns=recipe.turns,
            max_tokens=recipe.max_tokens,
            masked=recipe.masked,
        )
    )
    state = source.state_dict()
    places = "embeddings.position_embeddings.weight"
    state[places] = state[places][: bert["max_position_embeddings"]]
    own = model.encoder.state_dict()
    model.encoder.load_state_dict({name: state.get(name, value) for name, value in own.items()})
    causal, width = model.causal, model.width
    with torch.no_grad():
        causal.positions.weight.copy_(state[places] + state["embeddings.token_type_embeddings.weight"][0])
        causal.norm_in.load_state_dict(source.embeddings.LayerNorm.state_dict())
        for block in causal.blocks:
            for part in (block.query, block.key, block.grow):
                torch.nn.init.normal_(part.weight, std=0.02)
                part.bias.zero_()
            block.shrink.weight.zero_()
            block.shrink.bias.zero_()
            # Attention without a preference takes the mean of the words read so far, which is what the dialogue is
            # about: candidates that share words with it stand out from the first step on.
            block.value.weight.copy_(torch.eye(width))
            block.value.bias.zero_()
            block.output.weight.copy_(ABOUT * torch.eye(width))
            block.output.bias.zero_()
        # A mention's own state passes as it is; what was chosen before it has to prove its worth.
        torch.nn.init.normal_(model.joint.weight, std=0.01)
        model.joint.weight[:, width:] += torch.eye(width)
        model.joint.bias.zero_()
        # Σ e_a · q · e_c with e = 1 + 0.3 x̂: mostly q · x̂_c at first, and not a product of three texts.
        model.memory_norm.weight.fill_(0.3)
        model.memory_norm.bias.fill_(1.0)
        if counts is not None:
            model.frequency.copy_((counts + 0.5).log() - (counts + 0.5).sum().log())
    trunk.freeze_words(model)
    return model


def encoder(max_tokens: int) -> TextEncoder:
    """The trunk's tokenizer as the runtime reads with it."""
    return TextEncoder(Tokenizer.from_str(trunk.content()), max_tokens)


@torch.no_grad()
def align(model: EntityRetriever, batches: Iterable[Mapping[str, torch.Tensor]], ridge: float = 0.1) -> None:
    """Let the joint send a mention's state to where its entity differs from the other candidates.

    By least squares over ``batches``, with a ridge of ``ridge`` times the mean variance of the states: a start in which
    "directed by [MASK]" already points to directors.
    """
    width = model.width
    moments, products = torch.zeros(width + 1, width + 1), torch.zeros(width + 1, width)
    gain, shift = model.memory_norm.weight, model.memory_norm.bias
    for batch in batches:
        memory = (model.remember(batch["texts"], batch["text_mask"]) - shift) / gain
        hidden = model.states(*(batch[name] for name in trunk_inputs()))
        own = model.pool(hidden, batch["members"])[batch["row"], batch["place"]]
        real = (batch["candidates"] >= 0).float().unsqueeze(-1)
        right = batch["right"].float().unsqueeze(-1)
        entities = memory[batch["candidates"].clamp(min=0)]
        wrong = real - right
        rest = (entities * wrong).sum(1) / wrong.sum(1).clamp(min=1)
        aim = (entities * right).sum(1) / right.sum(1) - rest
        known = torch.cat([own, torch.ones(len(own), 1)], dim=1)[wrong.sum(1).squeeze(1) > 0]
        aim = aim[wrong.sum(1).squeeze(1) > 0]
        moments += known.t() @ known
        products += known.t() @ aim
    count = moments[-1, -1]
    scale = ridge * moments.diagonal()[:-1].mean()
    penalty = torch.diag(torch.cat([scale.expand(width), (count * 1e-6).reshape(1)]))
    solved = torch.linalg.solve(moments + penalty, products)
    # As large as a word is, on average.
    made = (moments @ solved * solved).sum() / count / width
    solved *= ((model.causal.norm_in.weight.square().mean()) / made).sqrt()
    model.joint.weight[:, width:] = solved[:-1].t()
    model.joint.bias.copy_(solved[-1])


class Batcher:
    """Examples as tensors."""

    def __init__(self, config: RetrieverConfig, places: Mapping[str, int] | None = None) -> None:
        """``places``: where a memory that is a table holds each entity; every batch then has ``nodes`` [M]."""
        self._places = places
        self._encoder = encoder(config.max_tokens)
        tokens = trunk.tokenizer()
        self._mask, self._pad = int(tokens.mask_token_id), int(tokens.pad_token_id)
        self._config = config

    def cloze(self, example: Example) -> Cloze:
        """The example's inputs."""
        return cloze(self._encoder, example.call, self._mask, self._config.turns)

    def __call__(self, examples: Sequence[Example], inputs: Sequence[Cloze]) -> dict[str, torch.Tensor]:
        """B examples with Q mentions in all, whose candidates and anchors are M different texts.

        ``input_ids``, ``attention_mask``, ``token_type_ids``, ``members`` [B, T]; ``causal_ids``, ``slots``,
        ``targets`` [B, T']; ``row``, ``place`` [Q]: which slot of which text a mention is; ``previous`` [Q]: the text
        of what was true before it, -1 for nothing; ``texts``, ``text_mask`` [M, L]; ``anchors``, ``candidates`` [Q, C]:
        texts, -1 for padding; ``right`` [Q, C]; ``gold`` [Q].
        """
        texts: dict[str, int] = {}
        table: dict[str, list[list[int]]] = {name: [] for name in ("anchors", "candidates", "right")}
        flat: dict[str, list[int]] = {name: [] for name in ("row", "place", "previous", "gold")}
        for number, example in enumerate(examples):
            joined = joins(example.call.triples)
            previous = -1
            for mention, own in enumerate(example.call.candidates):
                known = [texts.setdefault(remembered(one, joined, paths=self._config.paths), len(texts)) for one in own]
                table["anchors"].append([texts.setdefault(one.anchor, len(texts)) for one in own])
                table["candidates"].append(known)
                table["right"].append([int(one.entity == example.truth[mention]) for one in own])
                flat["row"].append(number)
                flat["place"].append(mention)
                flat["previous"].append(previous)
                previous = known[example.gold[mention]]
                flat["gold"].append(example.gold[mention])
        ids = [self._encoder.plain(text).ids[: self._config.max_tokens] for text in texts]
        members = [_members(cloze) for cloze in inputs]
        slots = [_slots(cloze) for cloze in inputs]
        return {
            "input_ids": _padded([cloze.window.ids for cloze in inputs], self._pad),
            "attention_mask": _padded([[1] * len(cloze.window.ids) for cloze in inputs], 0),
            "token_type_ids": _padded([cloze.window.type_ids for cloze in inputs], 0),
            "members": _padded(members, 0),
            "causal_ids": _padded([cloze.ids for cloze in inputs], self._pad),
            "slots": _padded(slots, 0),
            "targets": _padded([_targets(cloze) for cloze in inputs], -100),
            "texts": _padded(ids, self._pad),
            "text_mask": _padded([[1] * len(row) for row in ids], 0),
            **({} if self._places is None else {"nodes": torch.tensor([self._places[text] for text in texts])}),
            **{name: torch.tensor(values) for name, values in flat.items()},
            "anchors": _padded(table["anchors"], -1),
            "candidates": _padded(table["candidates"], -1),
            "right": _padded(table["right"], 0),
        }


def collated(batcher: Batcher, examples: Sequence[Example]) -> dict[str, torch.Tensor]:
    """A batch of examples."""
    return batcher(examples, [batcher.cloze(example) for example in examples])


def feed(
    source: Templates, make: Examples, batcher: Batcher, schedule: Schedule, start: int, block: int = 8
) -> Iterator[dict[str, torch.Tensor]]:
    """Batches from step ``start`` on: a function of the seed and the step alone, of similar lengths."""
    for first in range(start - start % block, schedule.steps, block):
        rng = random.Random(schedule.seed * 1_000_003 + first)
        drawn: list[tuple[Example, Cloze]] = []
        while len(drawn) < schedule.batch * block:
            example = make.make(source.draw(rng), rng)
            if example is not None:
                drawn.append((example, batcher.cloze(example)))
        drawn.sort(key=lambda pair: len(pair[1].window.ids))
        plan = list(range(block))
        rng.shuffle(plan)
        for step, number in enumerate(plan, first):
            if start <= step < schedule.steps:
                part = drawn[number * schedule.batch : (number + 1) * schedule.batch]
                yield batcher([example for example, _ in part], [inputs for _, inputs in part])


@dataclass(frozen=True)
class Loss:
    """The loss of a batch by its parts."""

    recipe: Recipe

    def __call__(self, model: torch.nn.Module, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """MLE + λ NCE."""
        assert isinstance(model, EntityRetriever)
        language, contrast, _ = self.parts(model, batch)
        return language if self.recipe.negatives == "none" else language + self.recipe.weight * contrast

    def memory(self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The vectors [M, D] of a batch's texts."""
        return model.remember(batch["texts"], batch["text_mask"])

    def parts(
        self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The language model's loss, NCE's, and the scores [Q, C] of all candidates, -inf at padding."""
        memory = self.memory(model, batch)
        hidden = model.states(*(batch[name] for name in trunk_inputs()))
        own = model.pool(hidden, batch["members"])
        row, place = batch["row"], batch["place"]
        before = torch.where(
            (batch["previous"] >= 0).unsqueeze(1), memory[batch["previous"].clamp(min=0)], torch.zeros_like(memory[:1])
        )
        previous = torch.zeros_like(own).index_put((row, place), before.to(own.dtype))
        states = model.read(batch["causal_ids"], batch["slots"], torch.cat([previous, own], dim=-1))
        at = (batch["slots"] > 0).nonzero()
        queries = states[at[:, 0], at[:, 1]]

        wanted = batch["targets"] >= 0
        if self.recipe.words and model.training:
            # Every word of a batch is a product with the whole vocabulary.
            order = torch.rand(wanted.shape, device=wanted.device).masked_fill(~wanted, -1.0)
            least = order.flatten().topk(min(self.recipe.words, int(wanted.sum()))).values[-1]
            wanted = wanted & (order >= least)
        language = torch.nn.functional.cross_entropy(model.logits(states[wanted]).float(), batch["targets"][wanted])

        real = batch["candidates"] >= 0
        anchors, entities = (memory[batch[name].clamp(min=0)] for name in ("anchors", "candidates"))
        scores = distmult(anchors, queries.unsqueeze(1), entities).float().masked_fill(~real, -math.inf)
        right = batch["right"].bool()
        every, positive = scores, right
        if self.recipe.negatives in ("batch", "both"):
            gold = batch["gold"].unsqueeze(1)
            anchor = anchors.gather(1, gold.unsqueeze(-1).expand(-1, 1, anchors.shape[-1]))
            truth = batch["candidates"].gather(1, gold).squeeze(1)
            others = distmult(anchor, queries.unsqueeze(1), memory[truth].unsqueeze(0)).float()
            # An entity that is true of several mentions is no negative of any; nor is a mention's own.
            same = truth.unsqueeze(0) == truth.unsqueeze(1)
            candidate = (truth.reshape(1, -1, 1) == batch["candidates"].unsqueeze(1)).any(-1)
            others = others.masked_fill(same | candidate, -math.inf)
            kept = scores if self.recipe.negatives == "both" else scores.masked_fill(~right, -math.inf)
            every = torch.cat([kept, others], dim=1)
            positive = torch.cat([right, torch.zeros_like(others, dtype=torch.bool)], dim=1)
        contrast = (every.logsumexp(1) - every.masked_fill(~positive, -math.inf).logsumexp(1)).mean()
        return language, contrast, scores


def train(
    data: Path,
    out: Path,
    schedule: Schedule,
    recipe: Recipe | None = None,
    measured: int = 100,
    start: Path | None = None,
) -> None:
    """Train and save the model and its tokenizer in ``out``, measured on ``measured`` responses in ``report.json``.

    ``start`` is the checkpoint of an earlier run to go on from. ValueError for a recipe whose memory is a table: there
    is nothing to export it to.
    """
    from .nph_evaluate import measure

    recipe = recipe or Recipe()
    if recipe.memory != "text":
        raise ValueError(
            f"A retriever with the memory {recipe.memory!r} is for comparison; ablate-retriever trains it."
        )
    model = learn(Templates.read(data), out, schedule, recipe, start)
    model.save(out)
    trunk.tokenizer().save_pretrained(out)
    found = measure(model, Templates.read(data, "dev"), measured, recipe)
    write_report(out, {"steps": schedule.steps, "batch": schedule.batch, "seed": schedule.seed, **found})


def learn(
    source: Templates, out: Path, schedule: Schedule, recipe: Recipe, start: Path | None = None
) -> EntityRetriever:
    """The model after training on dialogues of ``source``; ``out`` holds the state of the run."""
    torch.manual_seed(schedule.seed)
    make = Examples(source.index, sans=recipe.sans, all_mentions=recipe.all_mentions)
    if start is None:
        model = build(recipe, token_counts(source))
    else:
        model = EntityRetriever.load(start)
        trunk.freeze_words(model)
    loss = Loss(recipe)
    batcher = Batcher(model.config)
    if start is None and recipe.aligned and not (out / "checkpoint.pt").exists():
        first = Schedule(steps=max(1, recipe.aligned // 16), batch=min(16, schedule.batch), seed=schedule.seed + 1)
        align(model.eval(), feed(source, make, batcher, first, 0))
    if recipe.memory == "compgcn":
        from .nph_compgcn import GraphLoss, GraphMemory, GraphRetriever

        memory = GraphMemory.learn(model, encoder(recipe.max_tokens), source.index.triples, recipe.graph_steps)
        model, loss = GraphRetriever.of(model, memory), GraphLoss(recipe)
        batcher = Batcher(model.config, memory.places)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fit(
        model,
        [Group(trained, recipe.lr)],
        lambda start: feed(source, make, batcher, schedule, start),
        loss,
        schedule,
        out,
    )
    return model


def token_counts(source: Templates, count: int = 2000, seed: int = 3) -> torch.Tensor:
    """How often each token occurs in ``count`` responses [V]."""
    rng, tokens = random.Random(seed), trunk.tokenizer()
    told = [token for _ in range(count) for token in tokens(source.draw(rng).response)["input_ids"]]
    return torch.bincount(torch.tensor(told), minlength=len(tokens))


def trunk_inputs() -> tuple[str, str, str]:
    """Inputs of the masked language model, in the order of its arguments."""
    return "input_ids", "attention_mask", "token_type_ids"


def _members(inputs: Cloze) -> list[int]:
    row = [0] * len(inputs.window.ids)
    for number, own in enumerate(inputs.mentions, 1):
        for place in own:
            row[place] = number
    return row


def _slots(inputs: Cloze) -> list[int]:
    row = [0] * len(inputs.ids)
    for number, place in enumerate(inputs.slots, 1):
        row[place] = number
    return row


def _targets(inputs: Cloze) -> list[int]:
    """The next word at every place of the response; -100 before it, and where a mention comes next."""
    # Response and last separator, each mention one place.
    told = inputs.window.sequence_ids.count(1) + 1 - sum(len(own) - 1 for own in inputs.mentions)
    begin = len(inputs.ids) - told
    out = [-100] * len(inputs.ids)
    for place in range(max(0, begin - 1), len(inputs.ids) - 1):
        if place + 1 not in inputs.slots:
            out[place] = inputs.ids[place + 1]
    return out


def _padded(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    table = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return torch.from_numpy(table)
