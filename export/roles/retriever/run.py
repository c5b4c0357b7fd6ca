"""The runtime's retriever over PyTorch modules, or over graphs that are still in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from tokenizers import Tokenizer

from groundwire.runtime.bundles.manifest import RetrieverRole
from groundwire.runtime.errors import ExportError
from groundwire.runtime.models.retriever import Retriever
from groundwire.runtime.ort.session import Array, DeviceProfile
from groundwire.runtime.texts.tokenization import TextEncoder

from ...session import Arrays, CpuSession
from .graphs import modules
from .model import EntityRetriever

INPUTS = (
    ("input_ids", "attention_mask", "token_type_ids"),
    ("input_ids", "slots", "pairs", "last"),
    ("input_ids", "attention_mask"),
)
"""Of encoder, query and memory, in the order of the modules' arguments."""
MASK = "[MASK]"
PROFILE = DeviceProfile.of("cpu", 1)


class Runs:
    """A function of arrays with the interface of a session."""

    def __init__(self, inputs: Sequence[str], run: Callable[[Mapping[str, Array]], list[Array]]) -> None:
        self.inputs = tuple(inputs)
        self.outputs: tuple[str, ...] = ()
        self.plan = None
        self.input_types = dict.fromkeys(inputs, "tensor(float)")
        self.run = run


def retriever_of(
    model: EntityRetriever,
    role: RetrieverRole,
    tokenizer: str,
    sessions: Sequence[CpuSession] = (),
    extra: Sequence[Arrays] = (),
) -> Retriever:
    """Return the runtime's retriever over ``model``, or over ``sessions`` of its graphs, each fed its ``extra`` inputs
    too.

    ``tokenizer`` is the content of a ``tokenizer.json``.
    """
    runs: list[Runs] = []
    if sessions:
        for session, more in zip(sessions, extra or [{}] * len(sessions), strict=True):
            runs.append(_wrap_session(session, more))
    else:
        runs = [_wrap_module(module, inputs) for module, inputs in zip(modules(model), INPUTS, strict=True)]
    encoder, query, memory = runs
    return Retriever(
        role, (encoder, query, memory), TextEncoder(Tokenizer.from_str(tokenizer), role.max_tokens), PROFILE
    )


def record(model: EntityRetriever, tokenizer: str, max_tokens: int | None = None) -> RetrieverRole:
    """Return the role's record of a model without a bundle; ``max_tokens`` None takes the configuration's.

    ExportError when the tokenizer has no mask token.
    """
    config = model.config
    mask_id = Tokenizer.from_str(tokenizer).token_to_id(MASK)
    if mask_id is None:
        raise ExportError(f"The tokenizer has no {MASK}, which replaces a mention; give a BERT tokenizer.")
    return RetrieverRole(
        source="",
        architecture=type(model).__name__,
        precision="fp32",
        tokenizer="",
        max_tokens=max_tokens or config.max_tokens,
        pad_id=model.bert.pad_token_id or 0,
        encoder="",
        query="",
        memory="",
        width=model.width,
        mask_id=mask_id,
        pooling=config.pooling,
        paths=config.paths,
        turns=config.turns,
    )


def _wrap_session(session: CpuSession, extra: Arrays) -> Runs:
    def run(feeds: Mapping[str, Array]) -> list[Array]:
        outputs = session({**feeds, **extra})
        return [outputs[name] for name in session.outputs]

    return Runs(session.inputs, run)


def _wrap_module(module: torch.nn.Module, inputs: Sequence[str]) -> Runs:
    device = next(module.parameters()).device

    @torch.inference_mode()
    def run(feeds: Mapping[str, Array]) -> list[Array]:
        arrays = (torch.from_numpy(np.ascontiguousarray(feeds[name])).to(device) for name in inputs)
        return [module(*arrays).float().cpu().numpy()]

    return Runs(inputs, run)
