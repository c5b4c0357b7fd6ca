"""The paper's other memory: entity vectors of a graph convolution, CompGCN (Vashishth et al. 2020).

Every node gathers the compositions (here the products) of its neighbours with the relations, over triples, inverse
triples and itself, each with a matrix of its own. Vectors start as the causal language model's pooled states of the
entities' and relations' texts, and are trained to predict the relation between two entities (DistMult). The paper finds
this memory far worse than texts (its table 4); it is here for that comparison.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from groundwire.export.roles.retriever import EntityRetriever
from groundwire.runtime.texts.tokenization import TextEncoder
from groundwire.runtime.triples import Triple, readable

EDGES, PREDICTED = 8192, 512
"""Triples drawn for one step, and how many of them have their relation predicted; messages go along the others."""


class CompGCN(nn.Module):
    """Rounds of message passing over vectors of entities [N, D] and relations [R, D]."""

    def __init__(self, entities: Tensor, relations: Tensor, rounds: int = 1) -> None:
        super().__init__()
        self.entities, self.relations = nn.Parameter(entities.clone()), nn.Parameter(relations.clone())
        width = entities.shape[1]
        self.along, self.against, self.own, self.related = (
            nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(rounds)) for _ in range(4)
        )
        self.loop = nn.Parameter(torch.ones(width))
        for part in (*self.along, *self.against, *self.own, *self.related):
            nn.init.eye_(part.weight)

    def forward(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Entities [N, D] and relations [R, D] after all rounds over ``edges`` [E, 3]: subject, relation, object."""
        subject, relation, thing = edges.unbind(1)
        entities: Tensor = self.entities
        relations: Tensor = self.relations
        degree = torch.ones(len(entities)).index_add(0, torch.cat([subject, thing]), torch.ones(2 * len(edges)))
        for along, against, to_self, related in zip(self.along, self.against, self.own, self.related, strict=True):
            gathered = to_self(entities * self.loop)
            gathered = gathered.index_add(0, thing, along(entities[subject] * relations[relation]))
            gathered = gathered.index_add(0, subject, against(entities[thing] * relations[relation]))
            entities = torch.tanh(gathered / degree.unsqueeze(1))
            relations = related(relations)
        return entities, relations


class GraphMemory:
    """The vectors of a graph's entities by name."""

    def __init__(self, names: Sequence[str], vectors: Tensor) -> None:
        self.nodes = {name: node for node, name in enumerate(names)}
        self.vectors = vectors
        """[N, D]"""

    @classmethod
    def learn(
        cls, model: EntityRetriever, encoder: TextEncoder, triples: Sequence[Triple], steps: int, seed: int = 13
    ) -> GraphMemory:
        """Run CompGCN over ``triples`` for ``steps`` steps of relation prediction."""
        names = list(dict.fromkeys(end for triple in triples for end in (triple.subject, triple.object)))
        predicates = list(dict.fromkeys(triple.predicate for triple in triples))
        node, relation = ({name: number for number, name in enumerate(row)} for row in (names, predicates))
        edges = torch.tensor([[node[t.subject], relation[t.predicate], node[t.object]] for t in triples])
        network = CompGCN(
            encode_names(model, encoder, names), encode_names(model, encoder, [readable(name) for name in predicates])
        )
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        rng = random.Random(seed)
        for _ in range(steps):
            drawn = torch.tensor(rng.sample(range(len(edges)), min(EDGES, len(edges))))
            predicted = edges[drawn[:PREDICTED]]
            # Predicted triples send no message.
            entities, relations = network(edges[drawn[PREDICTED:]] if len(drawn) > PREDICTED else edges[drawn])
            scores = (entities[predicted[:, 0]] * entities[predicted[:, 2]]) @ relations.t()
            loss = nn.functional.cross_entropy(scores, predicted[:, 1])
            torch.autograd.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            drawn = torch.tensor(rng.sample(range(len(edges)), min(4 * EDGES, len(edges))))
            return cls(names, network(edges[drawn])[0].detach())


@torch.no_grad()
def use_graph_memory(model: EntityRetriever, encoder: TextEncoder, memory: GraphMemory) -> EntityRetriever:
    """``model`` with ``memory`` before its texts; the vectors are trained further.

    Of entities with the same tokens the first counts. The model must remember names alone (``paths``).
    """
    retriever = EntityRetriever(replace(model.config, nodes=len(memory.nodes)))
    retriever.load_state_dict(model.state_dict(), strict=False)
    for name, parameter in model.named_parameters():
        retriever.get_parameter(name).requires_grad = parameter.requires_grad
    table = retriever.table
    assert table is not None
    table.vectors.copy_(memory.vectors)
    for node, name in enumerate(memory.nodes):
        ids = torch.tensor([encoder.encode_plain(name).ids[: model.config.max_tokens]])
        table.get_buffer("keys")[node] = table.hash_tokens(ids, torch.ones_like(ids))[0]
    return retriever


@torch.inference_mode()
def encode_names(model: EntityRetriever, encoder: TextEncoder, names: Sequence[str], batch: int = 256) -> Tensor:
    """The causal model's vectors [N, D] of names, without the gain and the bias of the memory's norm."""
    parts = []
    for start in range(0, len(names), batch):
        rows = [encoder.encode_plain(name).ids[:32] or [0] for name in names[start : start + batch]]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        vectors = model.remember(ids, mask)
        parts.append((vectors - model.memory_norm.bias) / model.memory_norm.weight)
    # A clone, because inference tensors cannot become parameters.
    return torch.cat(parts).clone()
