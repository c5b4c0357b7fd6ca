"""Trains Neural Path Hunter's entity retriever on dialogues about a knowledge graph.

Some of a response's entities are masked and have to be found among their neighbours in the graph: ``examples`` makes
the calls, ``batches`` their tensors, and ``loss`` the loss. This module has the initialisation and the run.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from transformers import BertModel

from groundwire.export.roles.retriever import EntityRetriever, RetrieverConfig
from groundwire.export.roles.retriever.model import RetrieverBlock

from ..common import backbone
from ..common.loop import ParameterGroup, Schedule, fit, write_report
from .batches import ENCODER_INPUTS, DialogueSource, RetrieverBatcher, draw_batches, load_text_encoder
from .compgcn import GraphMemory, use_graph_memory
from .dialogue_corpus import DialogueCorpus
from .evaluate import measure_retriever
from .examples import RetrievalExamples
from .loss import RetrieverLoss, RetrieverRecipe

ABOUT = 2.0
"""Initial weight of the mean of the words before a mention in its query, relative to the mention's own state."""
POSITIONS = 256
"""Rows kept of MiniLM's 512 positions."""


def build_retriever(recipe: RetrieverRecipe, counts: torch.Tensor | None = None) -> EntityRetriever:
    """The model before training, from MiniLM's first layers and its word embeddings, which stay frozen.

    ``counts`` [V] are the expected frequencies of the tokens of a response.
    """
    source = BertModel.from_pretrained(backbone.PATH, add_pooling_layer=False)
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
    positions = "embeddings.position_embeddings.weight"
    state[positions] = state[positions][: bert["max_position_embeddings"]]
    encoder_state = model.encoder.state_dict()
    model.encoder.load_state_dict({name: state.get(name, value) for name, value in encoder_state.items()})
    causal, width = model.causal, model.width
    with torch.no_grad():
        causal.positions.weight.copy_(state[positions] + state["embeddings.token_type_embeddings.weight"][0])
        causal.norm_in.load_state_dict(source.embeddings.LayerNorm.state_dict())
        for block in causal.blocks:
            assert isinstance(block, RetrieverBlock)
            for part in (block.query, block.key, block.grow):
                torch.nn.init.normal_(part.weight, std=0.02)
                part.bias.zero_()
            block.shrink.weight.zero_()
            block.shrink.bias.zero_()
            # Uniform attention takes the mean of the words read so far, the topic of the dialogue: candidates that
            # share words with it score higher from the first step on.
            block.value.weight.copy_(torch.eye(width))
            block.value.bias.zero_()
            block.output.weight.copy_(ABOUT * torch.eye(width))
            block.output.bias.zero_()
        # A mention's own state passes unchanged; the weights of the entity chosen before it start near 0.
        torch.nn.init.normal_(model.joint.weight, std=0.01)
        model.joint.weight[:, width:] += torch.eye(width)
        model.joint.bias.zero_()
        # Σ e_a · q · e_c with e = 1 + 0.3 x̂: mostly q · x̂_c at first, and not a product of three texts.
        model.memory_norm.weight.fill_(0.3)
        model.memory_norm.bias.fill_(1.0)
        if counts is not None:
            model.frequency.copy_((counts + 0.5).log() - (counts + 0.5).sum().log())
    backbone.freeze_word_embeddings(model)
    return model


@torch.no_grad()
def align_joint(model: EntityRetriever, batches: Iterable[Mapping[str, torch.Tensor]], ridge: float = 0.1) -> None:
    """Set the joint to map a mention's state to the difference of its entity from the other candidates.

    By least squares over ``batches``, with a ridge of ``ridge`` times the mean variance of the states: from the start
    "directed by [MASK]" points to directors.
    """
    width = model.width
    moments, products = torch.zeros(width + 1, width + 1), torch.zeros(width + 1, width)
    gain, shift = model.memory_norm.weight, model.memory_norm.bias
    for batch in batches:
        memory = (model.remember(batch["texts"], batch["text_mask"]) - shift) / gain
        hidden = model.states(*(batch[name] for name in ENCODER_INPUTS))
        states = model.pool(hidden, batch["members"])[batch["row"], batch["slot"]]
        real = (batch["candidates"] >= 0).float().unsqueeze(-1)
        right = batch["right"].float().unsqueeze(-1)
        entities = memory[batch["candidates"].clamp(min=0)]
        wrong = real - right
        rest = (entities * wrong).sum(1) / wrong.sum(1).clamp(min=1)
        aim = (entities * right).sum(1) / right.sum(1) - rest
        inputs = torch.cat([states, torch.ones(len(states), 1)], dim=1)[wrong.sum(1).squeeze(1) > 0]
        aim = aim[wrong.sum(1).squeeze(1) > 0]
        moments += inputs.t() @ inputs
        products += inputs.t() @ aim
    count = moments[-1, -1]
    scale = ridge * moments.diagonal()[:-1].mean()
    penalty = torch.diag(torch.cat([scale.expand(width), (count * 1e-6).reshape(1)]))
    solved = torch.linalg.solve(moments + penalty, products)
    # Scaled to the mean size of a word vector.
    size = (moments @ solved * solved).sum() / count / width
    solved *= ((model.causal.norm_in.weight.square().mean()) / size).sqrt()
    model.joint.weight[:, width:] = solved[:-1].t()
    model.joint.bias.copy_(solved[-1])


def train_retriever(
    data: Path,
    out: Path,
    schedule: Schedule,
    recipe: RetrieverRecipe | None = None,
    measured: int = 100,
    start: Path | None = None,
    dialogues: DialogueCorpus = DialogueCorpus.TEMPLATES,
) -> None:
    """Train and save the model and its tokenizer in ``out``, measured on ``measured`` responses in ``report.json``.

    ``start`` is the checkpoint of an earlier run to continue from. InvalidRequest for ``dialogues`` that are not in
    ``data``.
    """
    recipe = recipe or RetrieverRecipe()
    source, dev_source = dialogues.read(data), dialogues.read(data, "dev")
    model = fit_retriever(source, out, schedule, recipe, start)
    save_retriever(model, out)
    report = measure_retriever(model, dev_source, measured, recipe)
    settings = {"dialogues": dialogues.value, "steps": schedule.steps, "batch": schedule.batch, "seed": schedule.seed}
    write_report(out, settings | report)


def save_retriever(model: EntityRetriever, out: Path) -> None:
    """Write a checkpoint that ``groundwire export`` takes: the model and its tokenizer."""
    model.save(out)
    backbone.load_tokenizer().save_pretrained(out)


def fit_retriever(
    source: DialogueSource, out: Path, schedule: Schedule, recipe: RetrieverRecipe, start: Path | None = None
) -> EntityRetriever:
    """Train a model on dialogues of ``source`` and return it; ``out`` holds the state of the run."""
    torch.manual_seed(schedule.seed)
    make = RetrievalExamples(source.index, sans=recipe.sans, all_mentions=recipe.all_mentions)
    if start is None:
        model = build_retriever(recipe, count_dialogue_tokens(source))
    else:
        model = EntityRetriever.load(start)
        backbone.freeze_word_embeddings(model)
    loss = RetrieverLoss(recipe)
    batcher = RetrieverBatcher(model.config)
    if start is None and recipe.aligned and not (out / "checkpoint.pt").exists():
        first = Schedule(steps=max(1, recipe.aligned // 16), batch=min(16, schedule.batch), seed=schedule.seed + 1)
        align_joint(model.eval(), draw_batches(source, make, batcher, first, 0))
    if recipe.memory == "compgcn":
        encoder = load_text_encoder(recipe.max_tokens)
        memory = GraphMemory.learn(model, encoder, source.index.triples, recipe.graph_steps)
        model = use_graph_memory(model, encoder, memory)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fit(
        model,
        [ParameterGroup(trained, recipe.lr)],
        lambda start: draw_batches(source, make, batcher, schedule, start),
        loss,
        schedule,
        out,
    )
    return model


def count_dialogue_tokens(source: DialogueSource, count: int = 2000, seed: int = 3) -> torch.Tensor:
    """How often each token occurs in ``count`` responses [V]."""
    rng, tokens = random.Random(seed), backbone.load_tokenizer()
    token_ids = [token for _ in range(count) for token in tokens(source.draw(rng).response)["input_ids"]]
    return torch.bincount(torch.tensor(token_ids), minlength=len(tokens))
