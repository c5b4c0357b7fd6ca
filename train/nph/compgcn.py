"""The paper's other memory: entity vectors of a graph convolution, CompGCN (Vashishth et al. 2020).

Every node gathers from its neighbours what they are composed with the relation to (here their product), over triples,
inverse triples and itself, each with a matrix of its own. Vectors begin as the causal language model's pooled states of
the entities' and relations' texts, and are trained to predict the relation between two entities (DistMult). The
paper finds this memory far worse than texts (its table 4); it is here for that comparison and in no bundle.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from groundwire.export.roles.retriever import EntityRetriever
from groundwire.runtime.bundle import RetrieverRole
from groundwire.runtime.models.retriever import Retriever, Vector
from groundwire.runtime.tokenization import TextEncoder, Window
from groundwire.runtime.triples import Triple, readable

from .loss import Loss

EDGES, PREDICTED = 8192, 512
"""Triples drawn for one step: those that messages go along, and those whose relation is predicted."""


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
        entities, relations = self.entities, self.relations
        degree = torch.ones(len(entities)).index_add(0, torch.cat([subject, thing]), torch.ones(2 * len(edges)))
        for along, against, own, related in zip(self.along, self.against, self.own, self.related, strict=True):
            gathered = own(entities * self.loop)
            gathered = gathered.index_add(0, thing, along(entities[subject] * relations[relation]))
            gathered = gathered.index_add(0, subject, against(entities[thing] * relations[relation]))
            entities = torch.tanh(gathered / degree.unsqueeze(1))
            relations = related(relations)
        return entities, relations


class GraphMemory:
    """The vectors of a graph's entities by name."""

    def __init__(self, names: Sequence[str], vectors: Tensor) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        self.vectors = vectors
        """[N, D]"""

    @classmethod
    def learn(
        cls, model: EntityRetriever, encoder: TextEncoder, triples: Sequence[Triple], steps: int, seed: int = 13
    ) -> GraphMemory:
        """Run CompGCN over ``triples`` for ``steps`` steps of relation prediction."""
        names = list(dict.fromkeys(end for triple in triples for end in (triple.subject, triple.object)))
        kinds = list(dict.fromkeys(triple.predicate for triple in triples))
        place, kind = ({name: number for number, name in enumerate(row)} for row in (names, kinds))
        edges = torch.tensor([[place[t.subject], kind[t.predicate], place[t.object]] for t in triples])
        network = CompGCN(texts(model, encoder, names), texts(model, encoder, [readable(name) for name in kinds]))
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        rng = random.Random(seed)
        for _ in range(steps):
            drawn = torch.tensor(rng.sample(range(len(edges)), min(EDGES, len(edges))))
            predicted = edges[drawn[:PREDICTED]]
            # What is predicted sends no message.
            entities, relations = network(edges[drawn[PREDICTED:]] if len(drawn) > PREDICTED else edges[drawn])
            scores = (entities[predicted[:, 0]] * entities[predicted[:, 2]]) @ relations.t()
            loss = nn.functional.cross_entropy(scores, predicted[:, 1])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            drawn = torch.tensor(rng.sample(range(len(edges)), min(4 * EDGES, len(edges))))
            return cls(names, network(edges[drawn])[0].detach())


class GraphRetriever(EntityRetriever):
    """A retriever whose memory is a table of entities, which training may change further."""

    table: nn.Parameter
    places: Mapping[str, int]

    @classmethod
    def of(cls, model: EntityRetriever, memory: GraphMemory) -> GraphRetriever:
        """``model`` with ``memory`` in place of texts; its configuration must remember names alone."""
        made = cls(model.config)
        made.load_state_dict(model.state_dict())
        for name, parameter in model.named_parameters():
            made.get_parameter(name).requires_grad = parameter.requires_grad
        made.table = nn.Parameter(memory.vectors.clone())
        made.places = memory.places
        return made

    def known(self, nodes: Tensor) -> Tensor:
        """The memory's vectors [M, D] of ``nodes`` [M], places in the table."""
        vectors: Tensor = self.memory_norm(self.table[nodes])
        return vectors


class GraphLoss(Loss):
    """The loss of a retriever whose memory is a table."""

    def memory(self, model: EntityRetriever, batch: Mapping[str, Tensor]) -> Tensor:
        """As ``Loss.memory``."""
        assert isinstance(model, GraphRetriever)
        return model.known(batch["nodes"])


class GraphLookup(Retriever):
    """The runtime's retriever with a table in place of its memory graph."""

    def __init__(self, role: RetrieverRole, like: Retriever, model: GraphRetriever) -> None:
        super().__init__(role, (like._states, like._query, like._memory), like._encoder, like._profile)
        self._table = model

    @torch.inference_mode()
    def _remember(self, windows: Mapping[str, Window]) -> dict[str, Vector]:
        names = list(windows)
        nodes = torch.tensor([self._table.places[name] for name in names], dtype=torch.int64)
        return dict(zip(names, self._table.known(nodes).numpy(), strict=True))


@torch.inference_mode()
def texts(model: EntityRetriever, encoder: TextEncoder, names: Sequence[str], batch: int = 256) -> Tensor:
    """What the causal model sees in names [N, D], before the memory's norm is trained on them."""
    found = []
    for start in range(0, len(names), batch):
        rows = [encoder.encode_plain(name).ids[:32] or [0] for name in names[start : start + batch]]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        vectors = model.remember(ids, mask)
        found.append((vectors - model.memory_norm.bias) / model.memory_norm.weight)
    # Not inference tensors: they become parameters.
    return torch.cat(found).clone()
