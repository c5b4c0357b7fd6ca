"""Triton's own protobuf reads the configurations of ``groundwire export triton``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundwire.export.triton import MAX_ROWS, write_repository
from groundwire.runtime.bundles.bundle import Bundle, embedded
from tests.support.adapters import load
from tests.support.tensorrt_targets import add_targets

proto = load("tritonclient.grpc.model_config_pb2")
text_format = load("google.protobuf.text_format")
pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")


def parse(path: Path) -> Any:
    """The configuration, as Triton reads it."""
    return text_format.Parse(path.read_text(encoding="utf-8"), proto.ModelConfig())


def test_triton_parses_the_configurations(tmp_path: Path) -> None:
    for model in write_repository(Bundle.open("compact"), tmp_path, instances=2):
        config = parse(tmp_path / model.name / "config.pbtxt")
        assert (config.name, config.backend) == (model.name, "onnxruntime")
        assert [tensor.name for tensor in config.input] == [tensor.name for tensor in model.spec.inputs]
        assert [tensor.name for tensor in config.output] == [tensor.name for tensor in model.spec.outputs]
        batched = 1 if config.max_batch_size else 0
        for tensor, spec in zip(
            (*config.input, *config.output), (*model.spec.inputs, *model.spec.outputs), strict=True
        ):
            assert len(tensor.dims) == len(spec.shape) - batched
            assert all(
                size == (wanted if isinstance(wanted, int) else -1)
                for size, wanted in zip(tensor.dims, spec.shape[batched:], strict=True)
            )
        assert config.HasField("dynamic_batching") == bool(batched)
        (group,) = config.instance_group
        assert (group.count, group.kind) == (2, group.KIND_CPU)
    assert config.max_batch_size in (0, MAX_ROWS)


def test_triton_parses_the_parameters_of_tensorrt(tmp_path: Path) -> None:
    bundle = add_targets(Bundle.open("compact"))
    models = {model.graph: model for model in write_repository(bundle, tmp_path, "tensorrt")}
    config = parse(tmp_path / models["detector.consistency.onnx"].name / "config.pbtxt")
    assert config.instance_group[0].kind == config.instance_group[0].KIND_GPU
    (accelerator,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert accelerator.parameters["precision_mode"] == "FP16"
    shapes = "input_ids:256x512,attention_mask:256x512,token_type_ids:256x512"
    assert accelerator.parameters["trt_profile_max_shapes"] == shapes
    assert config.dynamic_batching.max_queue_delay_microseconds > 0
