"""The entity retriever of Neural Path Hunter (Dziri et al. 2021, section 3.3) in PyTorch.

::

    facts, history, masked response ── masked LM ── pooled per mention ─┐ h_i
                                       entity chosen before it ─────────┤ e_{i-1}
                                                              W [e_{i-1}, h_i]
    history, response with one slot per mention ── causal LM, W[…] at the slots ── q_i
    an entity's text ── the same causal LM, pooled ── norm ── its place in the memory, e

    score(anchor, i, candidate) = Σ e_anchor · q_i · e_candidate / √width                     (DistMult)

The paper's models are RoBERTa and GPT-2. Here both are small and share one table of words. The causal model's layers
are GPT-2's: norms before the blocks, so that the vector at a slot reaches the query unchanged.

Differences from the paper, each because a small model must learn from few steps: the memory is normalised, with a bias
that starts at 1, so that DistMult starts as a product of query and entity instead of one of three texts; entities can
be remembered with the triples that join them to their anchor (``paths``).

The paper's other memory, a table that CompGCN makes of a graph (``nodes``), is looked up by an entity's tokens, so that
its graph takes what the other takes; entities that are not in the table are remembered by their text.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import BertConfig, BertModel

CONFIG, WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True)
class RetrieverConfig:
    """What determines the model's shape, and how its inputs are made."""

    encoder: dict[str, Any]
    """The masked language model's ``BertConfig``."""
    layers: int = 1
    """Layers of the causal language model."""
    inner: int = 768
    """Width of its feed-forward blocks."""
    pooling: Literal["mean", "max"] = "mean"
    """How a mention's states become one: the authors' code takes the mean, the paper says the maximum."""
    memory_pooling: Literal["mean", "max"] = "mean"
    """The same for the tokens of an entity."""
    paths: bool = True
    """Remember an entity with the triples that join it to its anchor."""
    turns: int = 3
    """Last turns of the history that are read."""
    max_tokens: int = 256
    masked: bool = True
    """False puts a learned constant in place of the masked model's states: the ablation "w/o MLM"."""
    nodes: int = 0
    """Entities in the memory's table; 0 remembers texts alone."""


class NodeTable(nn.Module):
    """Vectors of a graph's entities, by their tokens."""

    MODULUS = 2**43 - 57
    """A prime: remainders of 512 tokens add up to less than 2**53, because ONNX Runtime sums integers as doubles."""
    FACTOR = 6364136223846

    def __init__(self, nodes: int, width: int, positions: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.zeros(nodes, width))
        self.register_buffer("keys", torch.zeros(nodes, dtype=torch.int64))
        powers = torch.tensor([pow(self.FACTOR, position + 1, self.MODULUS) for position in range(positions)])
        self.register_buffer("powers", powers, persistent=False)

    def hash_tokens(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return a key [M] of each text's tokens [M, T], whatever it is padded with."""
        index = torch.arange(input_ids.shape[1], device=input_ids.device)
        terms = (input_ids + 1) * attention_mask * self.get_buffer("powers")[index] % self.MODULUS
        return terms.sum(1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, otherwise: Tensor) -> Tensor:
        """Return vectors [M, D] of texts [M, T]: the table's, or ``otherwise`` [M, D] where it has none."""
        keys = self.hash_tokens(input_ids, attention_mask)
        matches = (keys.unsqueeze(1) == self.get_buffer("keys")).to(torch.int32)
        has_node = matches.amax(1, keepdim=True) > 0
        return torch.where(has_node, self.vectors[matches.argmax(1)].to(otherwise.dtype), otherwise)


class RetrieverBlock(nn.Module):
    """A layer of GPT-2: causal attention and feed-forward, each with a norm before it and a residual."""

    def __init__(self, width: int, heads: int, inner: int, eps: float) -> None:
        super().__init__()
        self.heads = heads
        # A number, which a traced size would not be: an exported graph would compute it on the host.
        self.scale = (width // heads) ** -0.5
        self.attention_norm = nn.LayerNorm(width, eps=eps)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.feed_norm = nn.LayerNorm(width, eps=eps)
        self.grow, self.shrink = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """Return states [B, T, D]; ``bias`` [T, T] is added to the scores."""
        batch, tokens, width = x.shape
        normed = self.attention_norm(x)
        query, key, value = (
            part(normed).reshape(batch, tokens, self.heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) * self.scale + bias
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.output(mixed)
        out: Tensor = x + self.shrink(nn.functional.gelu(self.grow(self.feed_norm(x))))
        return out


class Causal(nn.Module):
    """The causal language model, without word embeddings of its own."""

    def __init__(self, config: RetrieverConfig, bert: BertConfig) -> None:
        super().__init__()
        width, eps = bert.hidden_size, bert.layer_norm_eps
        self.positions = nn.Embedding(bert.max_position_embeddings, width)
        self.norm_in, self.norm_out = nn.LayerNorm(width, eps=eps), nn.LayerNorm(width, eps=eps)
        self.blocks = nn.ModuleList(
            RetrieverBlock(width, bert.num_attention_heads, config.inner, eps) for _ in range(config.layers)
        )

    def forward(self, words: Tensor) -> Tensor:
        """Return states [B, T, D] of word vectors [B, T, D]; right padding needs no mask."""
        tokens = words.shape[1]
        index = torch.arange(tokens, device=words.device)
        x = self.norm_in(words + self.positions(index))
        bias = (index.unsqueeze(0) > index.unsqueeze(1)).to(torch.float32) * -1e9
        for block in self.blocks:
            x = block(x, bias)
        states: Tensor = self.norm_out(x)
        return states


class EntityRetriever(nn.Module):
    """Masked and causal language model, their joint, and the memory's norm."""

    _keep_in_fp32_modules: tuple[str, ...] = ()

    def __init__(self, config: RetrieverConfig) -> None:
        super().__init__()
        self.config = config
        bert = BertConfig.from_dict(config.encoder)
        # The plain attention, as the exporter traces it.
        bert._attn_implementation = "eager"
        self.bert = bert
        width = bert.hidden_size
        self.encoder = BertModel(bert, add_pooling_layer=False)
        self.causal = Causal(config, bert)
        self.joint = nn.Linear(2 * width, width)
        self.memory_norm = nn.LayerNorm(width, eps=bert.layer_norm_eps)
        self.table = NodeTable(config.nodes, width, bert.max_position_embeddings) if config.nodes else None
        self.blank = nn.Parameter(torch.zeros(width), requires_grad=not config.masked)
        self.decode = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=bert.layer_norm_eps))
        self.frequency = nn.Parameter(torch.zeros(bert.vocab_size))

    @property
    def width(self) -> int:
        """Numbers of a state, a query and an entity."""
        return int(self.bert.hidden_size)

    def states(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return hidden states [B, T, D] of the masked text; of "w/o MLM" the learned constant everywhere."""
        if not self.config.masked:
            # The inputs are not used, but its graph must have them.
            nothing = 0 * (input_ids + attention_mask + token_type_ids)
            return self.blank + nothing.unsqueeze(-1).to(self.blank.dtype)
        hidden: Tensor = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        return hidden

    def words(self, ids: Tensor) -> Tensor:
        """Return word vectors [B, T, D]."""
        vectors: Tensor = self.encoder.embeddings.word_embeddings(ids)
        return vectors

    def read(self, input_ids: Tensor, slots: Tensor, pairs: Tensor) -> Tensor:
        """Return causal states [B, T, D] of a text whose mentions are slots.

        ``slots`` [B, T] is 0 at words and k at the k-th mention's slot; ``pairs`` [B, M, 2 D] hold the entity chosen
        before each mention beside the mention's own state.
        """
        joined = self.joint(pairs)
        joined = torch.cat([torch.zeros_like(joined[:, :1]), joined], dim=1)
        index = slots.unsqueeze(-1).expand(-1, -1, self.width)
        at_slots = joined.gather(1, index)
        states: Tensor = self.causal(torch.where(slots.unsqueeze(-1) > 0, at_slots, self.words(input_ids)))
        return states

    def query(self, input_ids: Tensor, slots: Tensor, pairs: Tensor, last: Tensor) -> Tensor:
        """As ``read``, but only the state [B, D] at the position ``last`` [B] of each text."""
        states = self.read(input_ids, slots, pairs)
        index = last.reshape(-1, 1, 1).expand(-1, 1, self.width)
        return states.gather(1, index).reshape(-1, self.width)

    def remember(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the memory's vectors [N, D] of entities' texts [N, T]."""
        states = self.causal(self.words(input_ids))
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        if self.config.memory_pooling == "max":
            pooled = (states - (1 - mask) * 1e4).amax(dim=1)
        else:
            pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
        if self.table is not None:
            pooled = self.table(input_ids, attention_mask, pooled)
        vectors: Tensor = self.memory_norm(pooled)
        return vectors

    def pool(self, hidden: Tensor, members: Tensor) -> Tensor:
        """Return mentions [B, M, D] of states [B, T, D]: ``members`` [B, T] is k at a token of the k-th mention,
        else 0.

        Mentions that a text lacks are zeros.
        """
        count = max(1, int(members.max()))
        mask = (members.unsqueeze(1) == torch.arange(1, count + 1, device=members.device).reshape(1, -1, 1)).to(
            hidden.dtype
        )
        if self.config.pooling == "max":
            spread = hidden.unsqueeze(1) - (1 - mask).unsqueeze(-1) * 1e4
            return spread.amax(dim=2) * mask.amax(dim=2, keepdim=True)
        mean: Tensor = mask @ hidden / mask.sum(dim=2, keepdim=True).clamp(min=1)
        return mean

    def logits(self, states: Tensor) -> Tensor:
        """Return logits of the next word, [..., V]."""
        logits: Tensor = self.decode(states) @ self.encoder.embeddings.word_embeddings.weight.t() + self.frequency
        return logits

    def keep_positions(self, positions: int) -> None:
        """Keep the first ``positions`` rows of both position tables: positions beyond the window are not stored."""
        embeddings = self.encoder.embeddings
        count = min(positions, self.bert.max_position_embeddings)
        for owner, name in ((embeddings, "position_embeddings"), (self.causal, "positions")):
            table = getattr(owner, name).weight.detach()[:count]
            setattr(owner, name, nn.Embedding(count, self.width, _weight=table.clone()))
        for name in ("position_ids", "token_type_ids"):
            embeddings.register_buffer(name, getattr(embeddings, name)[:, :count], persistent=False)

    def save(self, folder: Path) -> None:
        """Write configuration and weights."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {"architectures": [type(self).__name__], **asdict(self.config)}
        (folder / CONFIG).write_text(json.dumps(content, indent=1) + "\n")
        save_file({name: value.contiguous() for name, value in self.state_dict().items()}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> EntityRetriever:
        """Read what ``save`` wrote, in evaluation mode; OSError, KeyError or ValueError for anything else."""
        content = json.loads((folder / CONFIG).read_text())
        if content.pop("architectures", None) != [cls.__name__]:
            raise ValueError(f"{folder / CONFIG} does not describe an {cls.__name__}.")
        model = cls(RetrieverConfig(**content))
        model.load_state_dict(load_file(folder / WEIGHTS))
        return model.eval()


def distmult(anchors: Tensor, queries: Tensor, entities: Tensor) -> Tensor:
    """Return scores [...] of vectors [..., D] that broadcast against each other."""
    scores: Tensor = (anchors * queries * entities).sum(-1) / anchors.shape[-1] ** 0.5
    return scores
