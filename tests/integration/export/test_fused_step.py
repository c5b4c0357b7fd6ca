"""The decoder step for CUDA: on the CPU provider in float32 it gives what the other step gives."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.passes import fold_transposes
from groundwire.export.roles.generation import build_fused_step, split_model
from groundwire.export.verify.generation import start_id
from tests.support import models
from tests.support.graphs import FusedStepper, Loader, Stepper, batch_of, graphs

FAMILIES = sorted(models.ENCODER_DECODERS)


def build_fused(loaded: Checkpoint, family: str) -> tuple[ir.Model, ir.Model]:
    encoder, _ = graphs(loaded, family)
    step = build_fused_step(split_model(loaded.model).step)
    fold_transposes(step)
    return encoder, step


@pytest.mark.parametrize("beams", [1, 3, 8])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_gives_the_candidates_of_the_other_graph(load: Loader, family: str, beams: int) -> None:
    """Beams continue each other crosswise, so every position is read from another row than the step's own."""
    loaded = load("question_generator", family)
    batch, start, steps = batch_of(loaded), start_id(loaded.model), 20
    plain = Stepper(graphs(loaded, family), batch, start)
    fused = FusedStepper(build_fused(loaded, family), batch, start, beams, steps + 3)
    rng = np.random.default_rng(beams)
    shape = len(batch["input_ids"]), beams
    differences = []
    for past in range(steps):
        expected, computed = plain.step(6), fused.step(6)
        before = expected["scores"].shape[1]
        scores, candidates = (computed[name][:, :before] for name in ("scores", "candidates"))
        differences.append(np.abs(scores - expected["scores"]).max())
        assert np.array_equal(candidates[..., 0], expected["candidates"][..., 0]), past
        parents = rng.integers(0, before, shape)
        chosen = rng.integers(0, 6, shape)
        tokens = np.take_along_axis(
            np.take_along_axis(expected["candidates"], parents[:, :, None], 1), chosen[:, :, None], 2
        )[..., 0]
        plain.choose(parents, tokens)
        fused.choose(parents, tokens)
    assert max(differences) < 1e-4 < expected["scores"].std()
