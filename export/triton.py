"""``groundwire export triton``: the graphs of a bundle as a model repository of the Triton Inference Server.

A model of the repository is a graph under the name that an engine with ``LoadOptions(backend="kserve")`` asks for.
Configurations are written in protobuf's text format, as ``model_config.proto`` of Triton has them; the
README of the ONNX Runtime backend names its parameters.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.external_data import find_external_files
from groundwire.runtime.bundles.manifest import EncoderRole, PassRole, Precision, ShapePlan
from groundwire.runtime.errors import ExportError
from groundwire.runtime.kserve.names import name_model
from groundwire.runtime.kserve.specs import GraphSpec, TensorSpec, read_graph_spec
from groundwire.runtime.models.graphs import check_plan

DeviceKind: TypeAlias = Literal["cpu", "cuda", "tensorrt"]
MAX_ROWS = 64
"""Rows of one batch, at most: no request of the backend ``kserve`` has more, and Triton refuses larger ones."""
MAX_ROWS_GPU = 256
"""Rows of a batch that Triton joins from several requests on a GPU."""
QUEUE_DELAY_US = 500
"""How long a request on a GPU waits for others. On a CPU, none: a larger batch does not gain time there."""
WORKSPACE_BYTES = 1 << 30
ENGINES = "/var/cache/triton-engines"
"""The folder on the server in which TensorRT's engines are kept from start to start."""
_QUANTIZED = ("int8", "mixed")


class RepositoryModel(NamedTuple):
    """A graph as a model of the repository."""

    name: str
    graph: str
    device: DeviceKind
    """What runs it: int8 graphs for the CPU run on it, whatever the others do."""
    precision: Precision
    spec: GraphSpec
    instances: int
    plan: ShapePlan | None
    """The shapes of a graph that TensorRT runs."""

    @property
    def max_batch_size(self) -> int:
        """Rows that Triton may join; 0 for a graph whose inputs do not all begin with the batch."""
        if not self.spec.is_batched:
            return 0
        return MAX_ROWS if self.device == "cpu" else MAX_ROWS_GPU


def write_repository(
    bundle: Bundle, out: Path, device: DeviceKind = "cpu", *, instances: int = 1, force: bool = False
) -> list[RepositoryModel]:
    """Write a model repository of the graphs that a kind of device runs, and return its models.

    ``instances`` of each graph run at the same time, on each GPU. Raises ExportError when ``out`` has files, unless
    ``force``, or when the bundle has no graph for TensorRT; BundleError for a damaged bundle.
    """
    if instances < 1:
        raise ExportError(f"instances={instances}; at least one instance must run.")
    bundle.verify()
    models = _choose_models(bundle, device, instances)
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not force:
        raise ExportError(f"{out} is there already; pass --force to add to it, or choose another folder.")
    for model in models:
        version = out / model.name / "1"
        version.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bundle.file(model.graph), version / "model.onnx")
        for weights in find_external_files(bundle.file(model.graph)):
            (version / weights).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(bundle.file(weights), version / weights)
        (out / model.name / "config.pbtxt").write_text(write_config(model), encoding="utf-8")
    return models


def write_config(model: RepositoryModel) -> str:
    """Return the ``config.pbtxt`` of a model."""
    lines = [f'name: "{model.name}"', 'backend: "onnxruntime"', f"max_batch_size: {model.max_batch_size}"]
    for kind, tensors in (("input", model.spec.inputs), ("output", model.spec.outputs)):
        for tensor in tensors:
            lines += [f"{kind} {{", *_describe_tensor(tensor, batched=model.max_batch_size > 0), "}"]
    if model.max_batch_size:
        delay = 0 if model.device == "cpu" else QUEUE_DELAY_US
        lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}")
    processor = "KIND_CPU" if model.device == "cpu" else "KIND_GPU"
    lines.append(f"instance_group {{ count: {model.instances} kind: {processor} }}")
    if model.device == "cpu":
        # Instances share the cores; one thread each for graphs this small, as on a machine without Triton.
        lines.append('parameters { key: "intra_op_thread_count" value { string_value: "1" } }')
    if model.plan is not None:
        lines += ["optimization { execution_accelerators { gpu_execution_accelerator {", '  name: "tensorrt"']
        for key, value in _accelerate(model, model.plan).items():
            lines.append(f'  parameters {{ key: "{key}" value: "{value}" }}')
        lines.append("} } }")
    return "\n".join(lines) + "\n"


def _choose_models(bundle: Bundle, device: DeviceKind, instances: int) -> list[RepositoryModel]:
    """The graphs that a device runs, each once."""
    models: dict[str, RepositoryModel] = {}
    precisions = bundle.manifest.precisions_on(device, served=True)
    for name, role in bundle.manifest.roles.items():
        target = role.find_target(device) if isinstance(role, PassRole) else None
        if device == "tensorrt" and isinstance(role, EncoderRole) and target is None:
            raise ExportError(
                f"The role {name!r} has no target for TensorRT. Add it: groundwire export {name} --source "
                f"{role.source} --target tensorrt --precision fp16 --out {bundle.directory}; or choose --target cuda."
            )
        runs_on: DeviceKind = device
        if target is None and device != "cpu":
            runs_on = "cpu" if precisions.get(name) in _QUANTIZED else "cuda"
        plan = None
        if device == "tensorrt" and isinstance(role, PassRole) and target is not None:
            plan = check_plan(bundle, role, target)
        for graph in role.graph_files if target is None else (target.graph,):
            spec = read_graph_spec(bundle.file(graph))
            precision = precisions[name]
            models[graph] = RepositoryModel(name_model(bundle, graph), graph, runs_on, precision, spec, instances, plan)
    return list(models.values())


def _describe_tensor(tensor: TensorSpec, *, batched: bool) -> list[str]:
    shape = [size if isinstance(size, int) else -1 for size in tensor.shape][1 if batched else 0 :]
    lines = [f'  name: "{tensor.name}"', f"  data_type: TYPE_{tensor.datatype.name}"]
    # Triton has no tensors of no dimension.
    lines.append(f"  dims: [ {', '.join(map(str, shape or [1]))} ]")
    return lines if shape else [*lines, "  reshape { shape: [ ] }"]


def _accelerate(model: RepositoryModel, plan: ShapePlan) -> Mapping[str, object]:
    """The parameters of TensorRT: one profile spans all shapes, for the backend takes no more."""
    widest, rows = plan.widths[-1], model.max_batch_size
    shapes = {"min": (1, plan.widths[0]), "opt": (min(plan.usual_rows, rows), plan.widths[0]), "max": (rows, widest)}
    profiles = {
        f"trt_profile_{name}_shapes": ",".join(f"{tensor.name}:{count}x{width}" for tensor in model.spec.inputs)
        for name, (count, width) in shapes.items()
    }
    return {
        # Of fp8, which the backend has no mode for, the products are in the graph.
        "precision_mode": {"fp32": "FP32", "int8": "INT8"}.get(model.precision, "FP16"),
        "max_workspace_size_bytes": WORKSPACE_BYTES,
        "trt_layer_norm_fp32_fallback": 1,
        "trt_engine_cache_enable": 1,
        "trt_engine_cache_path": ENGINES,
        **profiles,
    }
