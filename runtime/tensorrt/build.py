"""Builds the engine of one graph with TensorRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import DeviceError
from ..manifest import ShapePlan
from .library import Messages
from .records import list_shapes


def build_engine(tensorrt: Any, graph: Path, plan: ShapePlan) -> bytes:
    """The serialized engine of a graph, strongly typed, with one profile for each width of its plan.

    Products of float32 stay float32 (no TF32), as when the graph was compared with its checkpoint. DeviceError when
    TensorRT refuses the graph or finds no kernels.
    """
    messages = Messages(tensorrt)
    builder = tensorrt.Builder(messages.logger)
    network = builder.create_network(1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = tensorrt.OnnxParser(network, messages.logger)
    if not parser.parse_from_file(str(graph)):
        errors = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
        raise DeviceError(f"TensorRT cannot read {graph}: {errors or messages.take()}.")
    config = builder.create_builder_config()
    config.clear_flag(tensorrt.BuilderFlag.TF32)
    names = [network.get_input(index).name for index in range(network.num_inputs)]
    for least, usual, most in list_shapes(plan):
        profile = builder.create_optimization_profile()
        for name in names:
            profile.set_shape(name, least, usual, most)
        if config.add_optimization_profile(profile) < 0:
            raise DeviceError(f"TensorRT refuses the shapes {least} to {most} of {graph}: {messages.take()}.")
    content = builder.build_serialized_network(network, config)
    if content is None:
        raise DeviceError(f"TensorRT built no engine of {graph}: {messages.take()}.")
    return bytes(content)
