"""Question and response generators against their checkpoints.

Both follow the checkpoint's greedy path. The log-probabilities of the checkpoint's 32 best tokens at every step are
compared, as a beam search reads them; the decision is the best token. A response generator's graphs decode plainly
here, each context as a source: PMI-Decode's rule only adds float32 arithmetic on these numbers, at every precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from groundwire.runtime.bundles.manifest import Parity
from groundwire.runtime.errors import ExportError
from groundwire.runtime.parity.parity import ModelOutputs

from ..checkpoint import Checkpoint
from ..session import Arrays, CpuSession
from ..texts import EXAMPLES
from ..tokens import Batch, Ids
from .encoder import tensors
from .outcome import SessionOpener

STEPS = 16
"""Greedy tokens per text."""
SEEN = 32
"""Tokens per step whose log-probabilities are compared."""


class GenerationReference:
    """A generating checkpoint's greedy path and the log-probabilities along it."""

    def __init__(self, checkpoint: Checkpoint, batches: list[Batch]) -> None:
        model = checkpoint.model
        ends = torch.tensor(eos_ids(model))
        self._batches: list[Batch] = []
        self._paths: list[Ids] = []
        self._seen: list[Ids] = []
        numbers, choices = [], []
        for batch in batches:
            source = (_Encoded if model.config.is_encoder_decoder else _Prompted)(checkpoint, batch)
            path = source.first
            for _ in range(STEPS):
                logits = source.logits(path)
                path = torch.cat((path, logits[:, -1:].argmax(-1)), dim=1)
                if torch.isin(path[:, 1:], ends).any(1).all():
                    break
            best = logits.log_softmax(-1).topk(min(SEEN, logits.shape[-1]))
            # A step counts until the path's first end token, that one included.
            ended = torch.isin(path[:, 1:], ends).long().cumsum(1)
            live = torch.cat((torch.zeros_like(ended[:, :1]), ended[:, :-1]), dim=1) == 0
            self._batches.append(source.read)
            self._paths.append(np.where(live.numpy(), path[:, :-1].numpy(), -1))
            self._seen.append(best.indices.numpy())
            numbers.append(best.values[live].numpy())
            choices.append(best.indices[..., 0][live].numpy())
        self._outcome = ModelOutputs(np.concatenate(numbers).ravel(), np.concatenate(choices))
        self._vocabulary = logits.shape[-1]

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        """As ``Reference.compare``."""
        encoder, decoder = (open_session(graph) for graph in graphs)
        numbers, choices = [], []
        for batch, path, seen in zip(self._batches, self._paths, self._seen, strict=True):
            steps = [_order_by_token(step) for step in self._walk(encoder, decoder, batch, path)]
            scores, live = np.concatenate(steps, axis=1), path >= 0
            numbers.append(np.take_along_axis(scores, seen, axis=-1)[live])
            choices.append(scores.argmax(-1)[live])
        outputs = ModelOutputs(np.concatenate(numbers).ravel(), np.concatenate(choices))
        return self._outcome.parity(outputs, len(EXAMPLES))

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``: the first batch."""
        encoder, decoder = sessions
        batch, path, seen = self._batches[0], self._paths[0], self._seen[0]
        steps = self._walk(encoder, decoder, {**batch, **extra[0]}, path, extra[1])
        scores = np.concatenate([_order_by_token(step) for step in steps], axis=1)
        probed: npt.NDArray[np.float32] = np.take_along_axis(scores, seen, axis=-1)[path >= 0].ravel()
        return probed

    def _walk(
        self, encoder: CpuSession, decoder: CpuSession, batch: Arrays, path: Ids, extra: Arrays = MappingProxyType({})
    ) -> Iterator[Arrays]:
        """Yield the outputs of every decoding step along ``path`` [B, S], whose unused tail is -1."""
        sources, steps = path.shape
        states: dict[str, npt.NDArray[Any]] = dict(encoder(batch))
        fused = "cache_indirection" in decoder.inputs
        for name in decoder.inputs:
            if name.startswith("past."):
                heads, width = decoder.shape(name)[-3::2]
                shape = (sources, heads, steps, width) if fused else (sources, 1, heads, 0, width)
                states[name] = np.zeros(shape, decoder.dtype(name))
        fixed: dict[str, npt.NDArray[Any]] = {
            "cache_indirection": np.zeros((sources, 1, steps), np.int32),
            "parents": np.zeros((sources, 1), np.int64),
            "cross_mask": batch["attention_mask"],
            "count": np.array([self._vocabulary]),
            # A response generator's graph takes these too; with these values it decodes plainly.
            "alpha": np.zeros(sources, np.float32),
            "top_p": np.ones(sources, np.float32),
            "banned": np.full((sources, 1, 1), -1),
        }
        for past, tokens in enumerate(np.maximum(path, 0).T):
            length = np.array([past], np.int32)
            step = decoder({**states, **fixed, **extra, "tokens": tokens[:, None], "past_sequence_length": length})
            yield step
            states |= {name.replace("present", "past"): step[name] for name in step if name.startswith("present")}


class _Encoded:
    """The sources of an encoder-decoder."""

    def __init__(self, checkpoint: Checkpoint, batch: Batch) -> None:
        self.read = batch
        """What the encoder graph reads."""
        self._model = checkpoint.model
        source = tensors(checkpoint, batch)
        self._mask = source["attention_mask"]
        self._encoded = self._model.get_encoder()(**source)
        self.first = torch.full((len(self._mask), 1), start_id(self._model))
        """[B, 1] The token before the first generated one."""

    def logits(self, path: torch.Tensor) -> torch.Tensor:
        """Return logits [B, S, V] after every token of ``path`` [B, S]."""
        output: torch.Tensor = self._model(
            encoder_outputs=self._encoded, attention_mask=self._mask, decoder_input_ids=path, use_cache=False
        ).logits
        return output


class _Prompted:
    """The prompts of a causal model: the first pass reads all but the last token, and the steps continue from that."""

    def __init__(self, checkpoint: Checkpoint, batch: Batch) -> None:
        self._model = checkpoint.model
        self._ids = torch.from_numpy(batch["input_ids"])
        mask = batch["attention_mask"].copy()
        self._last = torch.from_numpy(mask.sum(1, keepdims=True) - 1)
        np.put_along_axis(mask, self._last.numpy(), 0, axis=1)
        self.read: Batch = {**batch, "attention_mask": mask}
        self.first = self._ids.gather(1, self._last)

    def logits(self, path: torch.Tensor) -> torch.Tensor:
        """As ``_Encoded.logits``. No token before the padding attends to it."""
        positions = self._last + torch.arange(path.shape[1])
        whole = torch.nn.functional.pad(self._ids, (0, path.shape[1])).scatter(1, positions, path)
        logits: torch.Tensor = self._model(input_ids=whole, use_cache=False).logits
        return logits.gather(1, positions.unsqueeze(-1).expand(-1, -1, logits.shape[-1]))


def _order_by_token(step: Arrays) -> npt.NDArray[np.float32]:
    """Return log-probabilities [B, 1, V] in the order of the vocabulary."""
    scores = np.empty_like(step["scores"])
    np.put_along_axis(scores, step["candidates"], step["scores"], axis=-1)
    return scores


def start_id(model: Any) -> int:
    """Return the token that every target starts with; ExportError when the checkpoint does not name it."""
    for config in (model.generation_config, model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            token = getattr(config, name, None)
            if token is not None:
                return int(token)
    raise ExportError("The checkpoint names no decoder_start_token_id; set it in its generation_config.json.")


def eos_ids(model: Any) -> tuple[int, ...]:
    """Return the tokens that end a target; ExportError when the checkpoint names none."""
    for config in (model.generation_config, model.config):
        tokens = getattr(config, "eos_token_id", None)
        if tokens is not None:
            return tuple(tokens) if isinstance(tokens, (list, tuple)) else (int(tokens),)
    raise ExportError("The checkpoint names no eos_token_id; set it in its generation_config.json.")
