"""The arithmetic of a model's run, counted on PyTorch's modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch


class Work(msgspec.Struct, frozen=True):
    """What a run has to do, at least."""

    tflop: float
    """Work of the products with weights; attention's own products, a few percent at these lengths, are left out."""
    weight_gb: float
    """Of weights that these products read, each once per product, whatever stays in a cache."""


def count_work(
    model: torch.nn.Module, run: Callable[[], Any], repeats: Callable[[str], tuple[int, int]], bytes_of_weight: int
) -> Work:
    """Count the products with weights of one ``run`` of ``model``.

    ``repeats`` says of a module's name how many times as many rows the real run has, and how often it reads the
    weights, for each time in ``run``.
    """
    flop = read = 0

    def watch(name: str) -> Callable[..., None]:
        rows, reads = repeats(name)

        def count(module: torch.nn.Linear, inputs: tuple[torch.Tensor, ...], _: Any) -> None:
            nonlocal flop, read
            size = module.weight.numel()
            flop += 2 * size * rows * (inputs[0].numel() // inputs[0].shape[-1])
            read += size * reads * bytes_of_weight

        return count

    hooks = [
        module.register_forward_hook(watch(name))
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    ]
    try:
        with torch.inference_mode():
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return Work(flop / 1e12, read / 1e9)


def once(name: str) -> tuple[int, int]:
    """Every module does in the real run what it does in this one."""
    return 1, 1


def find_repeats(beams: int, steps: int) -> Callable[[str], tuple[int, int]]:
    """The repeats of a T5 that reads each source once, and decodes ``steps`` tokens of ``beams`` sequences one after
    another."""

    def repeats(name: str) -> tuple[int, int]:
        if name.startswith("encoder.") or name.endswith(("EncDecAttention.k", "EncDecAttention.v")):
            return 1, 1
        return beams, steps

    return repeats


class Efficiency(msgspec.Struct, frozen=True):
    """A time beside the ceilings of the same run."""

    tflops: float
    gbs: float
    """Of weights read; above the ceiling where they stay in a cache."""
    fraction: float | None
    """Share of the ceiling that the run is nearest to; None where ceilings were not measured."""
    bound: str
    """The name of this ceiling: products or memory."""


def rate_work(work: Mapping[str, float], milliseconds: float, ceilings: Mapping[str, float] | None) -> Efficiency:
    """How near a run comes to the ceilings; the arguments are as their JSON has them."""
    tflops, gbs = (1000 * work[name] / milliseconds for name in ("tflop", "weight_gb"))
    if ceilings is None:
        return Efficiency(tflops, gbs, None, "")
    shares = {"products": tflops / ceilings["half_tflops"], "memory": gbs / ceilings["copy_gbs"]}
    bound = max(shares, key=lambda name: shares[name])
    return Efficiency(tflops, gbs, shares[bound], bound)
