"""Readers: labels of an answer, of its sentences and of its tokens by one graph.

No library has such models, so the recipe that trains one gives the loaded model in a ``ReaderGraph``,
``ReaderSettings.checkpoint``. The model takes ``input_ids``, ``attention_mask`` and ``pooling`` [B, S, T], the weight
of each token in each sentence, and returns the logits by head. The graph makes ``pooling`` of ``token_type_ids`` [B,
T], which number the sentences: so all inputs have two axes, as other encoders' inputs have, and a sentence's logits are
an output of each of its tokens, [B, T, L].
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from groundwire.runtime.bundles.manifest import ReaderHead, ReaderRole, Template
from groundwire.runtime.errors import ExportError

from ..checkpoint import Checkpoint
from ..options import ReaderSettings, RoleOptions
from ..texts import EXAMPLES
from ..tokens import Batch, Batcher
from ..trace import trace
from ..verify.encoder import EncoderReference
from ..verify.examples import ROWS
from .kind import CommonFields, Conversion, ExportKind

NAME = "reader"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TEMPLATE = Template("{premise}", "{history}{hypothesis}")


class ReaderGraph(nn.Module):
    """A reader whose sentences are numbered by ``token_type_ids``; outputs are a tuple."""

    def __init__(self, model: nn.Module, heads: Mapping[str, ReaderHead]) -> None:
        """``heads`` are the outputs in order."""
        super().__init__()
        self.model = model
        self.heads = dict(heads)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of each head: [B, L] of answers, [B, T, L] of tokens, and of each token's sentence."""
        same = (token_type_ids[:, :, None] == token_type_ids[:, None, :]).float()
        weights = same * attention_mask[:, None, :].float()
        pooling = weights / weights.sum(-1, keepdim=True).clamp(min=1.0)
        logits = self.model(input_ids, attention_mask, pooling)
        return tuple(logits[name] for name in self.heads)


def _load(options: RoleOptions) -> Checkpoint:
    checkpoint = options.read(ReaderSettings).checkpoint
    if checkpoint is None or not isinstance(checkpoint.model, ReaderGraph):
        raise ExportError(
            f"{options.source!r}: a reader is exported by the recipe that trains it: python -m groundwire.recipes "
            "reader bundle --run RUN --out BUNDLE."
        )
    return checkpoint


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file = f"{role}.onnx"
    reader: ReaderGraph = checkpoint.model

    def record(common: CommonFields) -> ReaderRole:
        common["architecture"] = type(reader.model).__name__
        return ReaderRole(
            **common,
            graph=file,
            heads=reader.heads,
            template=TEMPLATE,
            turn_end=options.read(ReaderSettings).turn_end,
        )

    mask = torch.ones(2, 5, dtype=torch.int64)
    mask[1, 4] = 0  # padding, so that no mask is left out of the graph
    numbers = torch.tensor([[0, 0, 1, 2, 2], [0, 1, 1, 2, 0]])
    examples = dict(zip(INPUTS, (torch.arange(2, 12).reshape(2, 5), mask, numbers), strict=True))
    axes = {0: "batch_size", 1: "sequence_length"}
    graph = trace(
        reader,
        [(name, examples[name], axes) for name in INPUTS],
        [(name, {0: "batch_size"} if head.unit == "answer" else axes) for name, head in reader.heads.items()],
    )
    return Conversion({file: graph}, TEMPLATE, record)


def _build_reference(checkpoint: Checkpoint, template: Template) -> EncoderReference:
    reader: ReaderGraph = checkpoint.model

    def run(batch: Batch) -> tuple[Tensor, ...]:
        outputs: tuple[Tensor, ...] = reader(*(torch.from_numpy(batch[name]) for name in INPUTS))
        return outputs

    per_token = tuple(head.unit != "answer" for head in reader.heads.values())
    return EncoderReference(_make_batches(checkpoint), "heads", run, per_token)


def _make_batches(checkpoint: Checkpoint) -> list[Batch]:
    """The fixed texts: every other answer has a second claim, about another passage."""
    pairs = [
        (example.passage, (example.claim, following.claim) if index % 2 else (example.claim,))
        for index, (example, following) in enumerate(pairwise((*EXAMPLES, EXAMPLES[0])))
    ]
    batcher = Batcher(checkpoint.tokenizer, checkpoint.pad_id, checkpoint.max_tokens)
    tokenizer = Tokenizer.from_str(checkpoint.tokenizer)
    pairs.sort(key=lambda pair: len(pair[0]))
    batches = []
    for first in range(0, len(pairs), ROWS):
        chosen = [(passage, " ".join(claims)) for passage, claims in pairs[first : first + ROWS]]
        batch = batcher(list(chosen))
        numbers = np.zeros_like(batch["input_ids"])
        for row, (_, claims) in enumerate(pairs[first : first + ROWS]):
            encoding = tokenizer.encode(*chosen[row])
            for index, (sequence, (start, _)) in enumerate(zip(encoding.sequence_ids, encoding.offsets, strict=True)):
                if sequence == 1:
                    numbers[row, index] = 1 + (start > len(claims[0]))
        batches.append(batch | {"token_type_ids": numbers})
    return batches


KIND = ExportKind(NAME, _load, _convert, _build_reference)
