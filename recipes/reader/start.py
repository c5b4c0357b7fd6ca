"""Keeps what a run of the reader has learned in a small file, from which another run can start.

Only the trained weights are kept, because the frozen ones are the publisher's: matrices as int8 with a scale for each
row, the rest in half precision. Rounding moves a weight by at most 1/254 of the largest in its row, which the first
steps of the next run make good.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from .model import FROZEN_LAYERS

SCALES = ".scales"
"""After the name of a matrix: its scales."""
LEVELS = 127


def write_start(run: Path, out: Path, frozen_layers: int = FROZEN_LAYERS) -> None:
    """Write the trained weights of a run's last checkpoint.

    Args:
        run: Directory with ``checkpoint.pt``.
        out: The file, ``*.safetensors``.
        frozen_layers: Lowest layers that the run did not train.
    """
    weights = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True, mmap=True)["model"]
    frozen = ("backbone.embeddings.", *(f"backbone.encoder.layer.{index}." for index in range(frozen_layers)))
    weights = {name: value for name, value in weights.items() if not name.startswith(frozen)}
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(quantize(weights), out)


def quantize(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights, matrices as int8 with scales."""
    packed = {}
    for name, value in weights.items():
        if value.dim() < 2:
            packed[name] = value.half()
            continue
        scales = value.abs().amax(1, keepdim=True).clamp(min=1e-12) / LEVELS
        packed[name] = (value / scales).round().to(torch.int8)
        packed[name + SCALES] = scales.squeeze(1)
    return packed


def read_start(path: Path) -> dict[str, torch.Tensor]:
    """Read the weights of ``write_start``, in float32."""
    packed = load_file(path)
    return {
        name: value.float() * packed[name + SCALES][:, None] if name + SCALES in packed else value.float()
        for name, value in packed.items()
        if not name.endswith(SCALES)
    }
