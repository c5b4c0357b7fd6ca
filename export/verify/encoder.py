"""Extractive QA models, classifiers, token classifiers and readers against their checkpoints.

Logits are compared, at the real tokens where each token has one. ``runtime/parity/parity.py`` says what the decisions
are; the logits go into the bundle too, where a device that has no checkpoint compares its graphs with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch

from groundwire.runtime.bundles.manifest import Parity
from groundwire.runtime.parity.parity import Compared, ModelOutputs, collect_outputs
from groundwire.runtime.parity.reference import ReferenceLogits
from groundwire.runtime.texts.tokenization import Window

from ..checkpoint import Checkpoint
from ..session import Array, Arrays, CpuSession
from ..tokens import Batch
from .outcome import SessionOpener

PROBED = 2
"""Batches that a probe runs."""
RunModel: TypeAlias = Callable[[Batch], Sequence[torch.Tensor]]
"""The outputs of a checkpoint for a batch."""


class EncoderReference:
    """The logits of an encoder's checkpoint; ``compared`` selects the decisions."""

    def __init__(self, batches: list[Batch], compared: Compared, run: RunModel, per_token: tuple[bool, ...]) -> None:
        """``per_token`` says for each output whether it is one of tokens."""
        self._batches = batches
        self._compared = compared
        self._per_token = per_token
        answers = [[value.numpy() for value in run(batch)] for batch in batches]
        self._texts = self._split(answers, batches)
        self._outcome = collect_outputs(compared, self._texts)

    @classmethod
    def of_pretrained(cls, checkpoint: Checkpoint, batches: list[Batch], compared: Compared) -> EncoderReference:
        """The logits of a transformers model: extractive QA, classifier or token classifier."""

        def run(batch: Batch) -> Sequence[Any]:
            output = checkpoint.model(**tensors(checkpoint, batch))
            return (output.start_logits, output.end_logits) if compared == "spans" else (output.logits,)

        return cls(batches, compared, run, {"spans": (True, True), "token_labels": (True,)}.get(compared, (False,)))

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        """As ``Reference.compare``."""
        (graph,) = graphs
        session = open_session(graph)
        answers = [list(session(batch).values()) for batch in self._batches]
        return self._outcome.parity(self._collect(answers, self._batches), len(self._texts))

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``."""
        batches = self._batches[:: len(self._batches) // PROBED]
        answers = [list(sessions[0]({**batch, **extra[0]}).values()) for batch in batches]
        return self._collect(answers, batches).logits

    @property
    def logits(self) -> ReferenceLogits:
        """The logits as the bundle keeps them."""
        windows = []
        for batch in self._batches:
            rows = zip(batch["input_ids"], batch["token_type_ids"], batch["attention_mask"], strict=True)
            for ids, types, mask in rows:
                read, kinds = ids[mask == 1].tolist(), types[mask == 1].tolist()
                windows.append(Window(read, kinds, [None] * len(read), [(0, 0)] * len(read)))
        return ReferenceLogits(windows, self._texts, self._per_token)

    def _collect(self, answers: list[list[Array]], batches: list[Batch]) -> ModelOutputs:
        return collect_outputs(self._compared, self._split(answers, batches))

    def _split(self, answers: list[list[Array]], batches: list[Batch]) -> list[list[Array]]:
        """Return the outputs of each text, without padding."""
        texts = []
        for batch, outputs in zip(batches, answers, strict=True):
            for row, mask in enumerate(batch["attention_mask"]):
                texts.append(
                    [
                        output[row][mask == 1] if of_tokens else output[row]
                        for output, of_tokens in zip(outputs, self._per_token, strict=True)
                    ]
                )
        return texts


def tensors(checkpoint: Checkpoint, batch: Batch) -> dict[str, torch.Tensor]:
    """Return the tensors of ``batch`` that the checkpoint's encoder takes."""
    config = getattr(checkpoint.model.config, "encoder", checkpoint.model.config)
    kinds = ("token_type_ids",) if getattr(config, "type_vocab_size", 0) > 1 else ()
    return {name: torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask", *kinds)}
