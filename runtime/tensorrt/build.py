"""Builds the engine of one graph with TensorRT."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..bundles.manifest import ShapePlan
from ..errors import DeviceError
from .library import Messages, find_title
from .records import Ranges, list_shapes


class Built(NamedTuple):
    """An engine, and what was measured for it."""

    engine: bytes
    """The serialized engine."""
    timings: bytes
    """TensorRT's timings of kernels, of this build and of the builds whose timings it was given; empty where it keeps
    none."""


def build_engine(
    tensorrt: Any,
    graph: Path,
    shapes: ShapePlan | Ranges,
    timings: bytes | None = b"",
    capabilities: Sequence[tuple[int, int]] = (),
) -> Built:
    """Build the engine of a graph, strongly typed, with one profile for each width of a plan, or one of ranges.

    Products of float32 stay float32 (no TF32), as when the graph was compared with its checkpoint.

    Args:
        tensorrt: The Python module of TensorRT or TensorRT-RTX.
        graph: The ONNX file, with its weights beside it.
        shapes: The widths and the rows of its batches, or the range of each axis.
        timings: The timings of an earlier build: kernels that they have are not measured again. TensorRT does not take
            the timings of another version or another kind of GPU, and measures then. None for TensorRT-RTX, which
            measures nothing.
        capabilities: The compute capabilities that TensorRT-RTX builds for, such as (8, 9); none for a portable engine.

    Returns:
        The engine, and the timings for the next build.

    Raises:
        DeviceError: TensorRT refuses the graph or finds no kernels.
    """
    title = find_title(tensorrt)
    messages = Messages(tensorrt)
    builder = tensorrt.Builder(messages.logger)
    network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(network, messages.logger)
    if not parser.parse_from_file(str(graph)):
        errors = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
        raise DeviceError(f"{title} cannot read {graph}: {errors or messages.take()}. Use device='cuda' for this role.")
    config = builder.create_builder_config()
    config.clear_flag(tensorrt.BuilderFlag.TF32)
    if capabilities:
        config.num_compute_capabilities = len(capabilities)
        for index, (major, minor) in enumerate(capabilities):
            config.set_compute_capability(getattr(tensorrt.ComputeCapability, f"SM{major}{minor}"), index)
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    for least, usual, most in list_shapes(shapes) if isinstance(shapes, ShapePlan) else ():
        profile = builder.create_optimization_profile()
        for tensor in inputs:
            profile.set_shape(tensor.name, least, usual, most)
        if config.add_optimization_profile(profile) < 0:
            raise DeviceError(f"{title} refuses the shapes {least} to {most} of {graph}: {messages.take()}.")
    if not isinstance(shapes, ShapePlan):
        profile = builder.create_optimization_profile()
        for tensor in inputs:
            _set_ranges(profile, tensor, shapes)
        if config.add_optimization_profile(profile) < 0:
            raise DeviceError(f"{title} refuses the shapes {shapes} of {graph}: {messages.take()}.")
    cache = None if timings is None else _set_timings(config, timings)
    messages.take()  # of timings that it did not take
    content = builder.build_serialized_network(network, config)
    if content is None:
        raise DeviceError(f"{title} built no engine of {graph}: {messages.take()}. Use device='cuda' for this role.")
    return Built(bytes(content), b"" if cache is None else bytes(cache.serialize()))


def _set_ranges(profile: Any, tensor: Any, ranges: Ranges) -> None:
    """Give a profile the shapes of an input, or the values of an input that is a size."""
    if tensor.is_shape_tensor:
        profile.set_shape_input(tensor.name, *((value,) for value in ranges[tensor.name]))
        return
    axes = [
        ranges[tensor.get_dimension_name(axis)] if size < 0 else (size, size, size)
        for axis, size in enumerate(tensor.shape)
    ]
    profile.set_shape(tensor.name, *zip(*axes, strict=True))


def _set_timings(config: Any, timings: bytes) -> Any:
    """The cache that a build reads and adds to: with ``timings`` if TensorRT takes them, empty otherwise; None if it
    takes none."""
    for content in (timings, b""):
        cache = config.create_timing_cache(content)
        if cache is not None and config.set_timing_cache(cache, ignore_mismatch=False):
            return cache
    return None
