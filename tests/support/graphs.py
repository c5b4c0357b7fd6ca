"""Graphs of tiny checkpoints, their inputs, and a driver of a generator's graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.passes import fold_transposes
from groundwire.export.roles import generation
from groundwire.export.session import CpuSession
from groundwire.runtime.decoding.beam_cache import BeamCache

Array = npt.NDArray[Any]


Loader = Callable[[str, str], Checkpoint]
"""Loads the tiny checkpoint of a kind and a family."""
_GRAPHS: dict[str, tuple[ir.Model, ir.Model]] = {}


def graphs(loaded: Checkpoint, family: str) -> tuple[ir.Model, ir.Model]:
    """Float graphs of a family, traced once."""
    if family not in _GRAPHS:
        pair = generation.build_generation_graphs(generation.split_model(loaded.model))
        for graph in pair:
            fold_transposes(graph)
        _GRAPHS[family] = pair
    encoder, decoder = _GRAPHS[family]
    return encoder.clone(), decoder.clone()


class Stepper:
    """Drives the graphs as a beam search would, and keeps each beam's whole sequence."""

    def __init__(self, pair: tuple[ir.Model, ir.Model], batch: dict[str, Array], start: int) -> None:
        self._decoder = CpuSession(pair[1])
        self._batch = batch
        sources = len(batch["input_ids"])
        self._states: dict[str, Array] = dict(CpuSession(pair[0])(batch))
        for name in self._decoder.inputs:
            if name.startswith("past."):
                heads, width = self._decoder.shape(name)[2::2]
                self._states[name] = np.zeros((sources, 1, heads, 0, width), self._decoder.dtype(name))
        self.sequences = np.full((sources, 1, 1), start, np.int64)
        self._parents = np.zeros((sources, 1), np.int64)

    def step(self, count: int) -> dict[str, Array]:
        """Scores and candidates of every beam."""
        feed = {
            **self._states,
            "tokens": self.sequences[:, :, -1],
            "parents": self._parents,
            "cross_mask": self._batch["attention_mask"],
            "count": np.array([count]),
        }
        output = self._decoder(feed)
        self._states |= {name.replace("present", "past"): output[name] for name in output if "present" in name}
        return output

    def choose(self, parents: Array, tokens: Array) -> None:
        """Continue beam ``parents[b, k]`` of the last step with ``tokens[b, k]`` as beam k."""
        kept = np.take_along_axis(self.sequences, parents[:, :, None], axis=1)
        self.sequences = np.concatenate((kept, tokens[:, :, None]), axis=2)
        self._parents = parents


class FusedStepper:
    """Drives a fused step graph as ``Stepper`` drives the other, with so many beams from the first step on."""

    def __init__(
        self, pair: tuple[ir.Model, ir.Model], batch: dict[str, Array], start: int, beams: int, positions: int
    ) -> None:
        self._decoder = CpuSession(pair[1])
        self._batch = batch
        sources = len(batch["input_ids"])
        self._states: dict[str, Array] = dict(CpuSession(pair[0])(batch))
        for name in self._decoder.inputs:
            if name.startswith("past."):
                heads, width = self._decoder.shape(name)[1::2]
                # Positions that were not written are not read.
                content = np.full((sources * beams, heads, positions, width), np.nan, self._decoder.dtype(name))
                self._states[name] = content
        self._cache = BeamCache(sources, beams, positions)
        self.sequences = np.full((sources, beams, 1), start, np.int64)
        self._parents = np.zeros((sources, beams), np.int64)

    def step(self, count: int) -> dict[str, Array]:
        """Scores and candidates of every beam."""
        self._cache.start_step(self._parents)
        feed = {
            **self._states,
            "tokens": self.sequences[:, :, -1],
            "cache_indirection": self._cache.table,
            "past_sequence_length": np.array([self._cache.length], np.int32),
            "cross_mask": self._batch["attention_mask"],
            "count": np.array([count]),
        }
        output = self._decoder(feed)
        self._states |= {name.replace("present", "past"): output[name] for name in output if "present" in name}
        self._cache.end_step()
        return output

    def choose(self, parents: Array, tokens: Array) -> None:
        """As ``Stepper.choose``."""
        kept = np.take_along_axis(self.sequences, parents[:, :, None], axis=1)
        self.sequences = np.concatenate((kept, tokens[:, :, None]), axis=2)
        self._parents = parents


def batch_of(loaded: Checkpoint, rows: int = 3, width: int = 9) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    ids = rng.integers(6, 200, (rows, width))
    mask = np.ones_like(ids)
    mask[1, 6:] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (np.arange(width) > 4) * mask}


def inputs(rows: int = 4, width: int = 13, pad: int = 1) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    ids = rng.integers(6, 200, (rows, width))
    mask = np.ones_like(ids)
    mask[1, 8:] = 0
    ids[mask == 0] = pad
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": (np.arange(width) > 5) * mask}
