"""PyTorch modules as ONNX graphs held in memory."""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
import torch
from onnx_ir.passes import common
from transformers.activations import FastGELUActivation, NewGELUActivation

from .masks import traceable_masks

OPSET = 20
"""The newest operator set of the tracing exporter: LayerNormalization and Gelu are single nodes in it."""


def trace(
    module: torch.nn.Module,
    inputs: Sequence[tuple[str, torch.Tensor, dict[int, str]]],
    outputs: Sequence[tuple[str, dict[int, str]]],
) -> ir.Model:
    """Trace ``module`` on example inputs; each name comes with its dynamic axes."""
    axes = {name: dims for name, _, dims in inputs} | dict(outputs)
    with (
        tempfile.TemporaryDirectory(prefix="groundwire-") as folder,
        quiet(),
        torch.no_grad(),
        with_single_activations(module),
        without_scripted_branch(module),
        traceable_masks(),
    ):
        path = Path(folder, "model.onnx")
        torch.onnx.export(
            module,
            tuple(example for _, example, _ in inputs),
            str(path),  # a model beyond protobuf's 2 GiB goes to several files, beside a name but not beside a Path
            dynamo=False,
            opset_version=OPSET,
            # Folding would give every weight a copy per use and an anonymous name; passes/fold.py merges equal ones.
            do_constant_folding=False,
            input_names=[name for name, _, _ in inputs],
            output_names=[name for name, _ in outputs],
            dynamic_axes=axes,
        )
        return tidy(ir.from_proto(onnx.load(path)))


def tidy(model: ir.Model) -> ir.Model:
    """Make constants initializers and remove Identity and unused nodes, which every later pass relies on.

    Dropping Identity matters most for ALBERT: its layers reach one set of shared weights through Identity nodes, and a
    quantizer that does not look through them leaves all layers but the first in float.
    """
    for step in (
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.IdentityEliminationPass(),
        common.CommonSubexpressionEliminationPass(),
        common.RemoveUnusedNodesPass(),
        common.RemoveInitializersFromInputsPass(),
    ):
        step(model)
    return model


@contextmanager
def with_single_activations(model: torch.nn.Module) -> Iterator[None]:
    """Make GELUs that transformers computes step by step (``gelu_new``) one operator while ``model`` is traced.

    The formula is the same; and the int8 pass knows the lower bound of that operator.
    """
    swapped = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, (NewGELUActivation, FastGELUActivation))
    ]
    try:
        for parent, name, _ in swapped:
            setattr(parent, name, torch.nn.GELU(approximate="tanh"))
        yield
    finally:
        for parent, name, child in swapped:
            setattr(parent, name, child)


@contextmanager
def without_scripted_branch(model: torch.nn.Module) -> Iterator[None]:
    """Keep DeBERTa's scripted branch out of the graph while ``model`` is traced.

    ``build_rpos`` is compiled with an ``if`` for queries and keys of different lengths, which no encoder has; traced,
    it becomes a subgraph that later passes cannot read. Only its other branch is needed.
    """
    modules = {sys.modules[type(part).__module__] for part in model.modules()}
    branching = [(module, module.build_rpos) for module in modules if hasattr(module, "build_rpos")]
    try:
        for module, _ in branching:
            module.build_rpos = lambda query, key, relative, *sizes: relative  # type: ignore[attr-defined]
        yield
    finally:
        for module, scripted in branching:
            module.build_rpos = scripted  # type: ignore[attr-defined]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the tracer: it is used on purpose, and the parity report checks what it warns about."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "optimum", "transformers")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
