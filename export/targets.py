"""Graphs of a checkpoint for one kind of device, beside a role's own graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import onnx_ir as ir

from groundwire.runtime.bundle import Bundle
from groundwire.runtime.errors import ExportError
from groundwire.runtime.manifest import EncoderRole, Plan, Target, TargetName
from groundwire.runtime.ort.ladder import list_widths
from groundwire.runtime.reference import ReferenceLogits

from .options import RequestedPrecision, RoleOptions
from .passes.attention import fuse_attention
from .passes.operators import adapt_operators, find_unsupported
from .precision import Lowered
from .roles.names import TARGET_KINDS, find_kind_name
from .store import RoleFiles
from .verify.encoder import EncoderReference

PRECISIONS: dict[TargetName, tuple[RequestedPrecision, ...]] = {
    "cuda": ("fp32", "fp16"),
    "tensorrt": ("fp32", "fp16", "fp8", "int8"),
}
"""What a target's graph may be asked to be."""
MAX_TOKENS, MAX_ROWS, USUAL_ROWS = 32768, 512, 16
"""Of a batch: as many as other graphs get on a GPU, and the rows of a few requests, which kernels are chosen for."""
_SAME = 1e-3
"""Largest difference of a logit between two runs of one checkpoint."""


def make_plan(max_tokens: int) -> Plan:
    """Return the shapes of a TensorRT graph whose window is ``max_tokens``; each width is a shape profile."""
    return Plan(list_widths(max_tokens), MAX_TOKENS, MAX_ROWS, USUAL_ROWS)


def check_targets(roles: Mapping[str, RoleOptions], old: Bundle | None, *, force: bool) -> None:
    """Raise ExportError unless each role may get the target that is asked for, in the bundle as it is."""
    for role, options in roles.items():
        target = options.target
        if target is None:
            if options.precision == "fp8":
                raise ExportError("precision='fp8' needs a target that computes with it: --target tensorrt.")
            continue
        if find_kind_name(role) not in TARGET_KINDS:
            raise ExportError(f"{role!r} has no targets; those of {', '.join(TARGET_KINDS)} have.")
        if options.precision not in PRECISIONS[target]:
            raise ExportError(
                f"precision={options.precision!r} is not for the target {target}; choose "
                f"{', '.join(PRECISIONS[target])}."
            )
        record = old.manifest.roles.get(role) if old is not None else None
        if old is not None and isinstance(record, EncoderRole) and record.find_target(target) and not force:
            raise ExportError(
                f"{role!r} of {old.directory} has the target {target} already; pass --force (force=True) to replace it."
            )


def adapt_graphs(target: TargetName, graphs: Sequence[ir.Model]) -> tuple[ir.Model, ...]:
    """Return copies of float32 graphs with operators that a target has."""
    copies = tuple(graph.clone() for graph in graphs)
    for graph in copies:
        if target == "tensorrt":
            adapt_operators(graph)
        else:
            fuse_attention(graph)
    return copies


def describe_target(role: str, name: TargetName, lowered: Lowered, max_tokens: int) -> tuple[Target, ir.Model]:
    """Return the record of a target's graph, and the graph; ExportError for operators that TensorRT does not have."""
    (graph,) = lowered.graphs
    plan = None
    if name == "tensorrt":
        plan = make_plan(max_tokens)
        if unsupported := find_unsupported(graph):
            raise ExportError(
                f"TensorRT cannot run the graph of {role!r}: {'; '.join(unsupported[:5])}. Use --target cuda, or "
                "another checkpoint."
            )
    return Target(f"{role}.{name}.onnx", lowered.precision, lowered.parity, plan), graph


def check_same_checkpoint(role: str, bundle: Bundle, reference: EncoderReference) -> None:
    """Raise ExportError unless a bundle's role is of the checkpoint of ``reference``, by its logits."""
    advice = f"Export {role!r} again with --force and without --target, then add the target."
    record = bundle.manifest.roles[role]
    if not isinstance(record, EncoderRole) or not isinstance(record.reference, str):
        raise ExportError(f"{bundle.directory} has no reference logits of {role!r} to compare with. {advice}")
    old = ReferenceLogits.read(bundle.file(record.reference))
    new = reference.logits
    same = [window.ids for window in old.windows] == [window.ids for window in new.windows] and all(
        left.shape == right.shape and np.allclose(left, right, atol=_SAME)
        for before, now in zip(old.outputs, new.outputs, strict=True)
        for left, right in zip(before, now, strict=True)
    )
    if not same:
        raise ExportError(
            f"{role!r} of {bundle.directory} is of another checkpoint: its logits on the fixed texts differ. {advice}"
        )


def read_role(bundle: Bundle, role: str) -> RoleFiles:
    """Return the files of a bundle's role as they are."""
    record = bundle.manifest.roles[role]
    assert isinstance(record, EncoderRole)
    assert isinstance(record.reference, str)
    graphs = {name: ir.load(bundle.file(name)) for name in (*record.graph_files, *record.target_files)}
    tokenizer = bundle.file(record.tokenizer).read_text(encoding="utf-8")
    return RoleFiles(record, graphs, tokenizer, bundle.file(record.reference).read_bytes(), unchanged=True)


def add_target(files: RoleFiles, name: TargetName, target: Target, graph: ir.Model) -> RoleFiles:
    """Return a role's files with a target more."""
    record = files.record
    assert isinstance(record, EncoderRole)
    targets = {**(record.targets or {}), name: target}
    return dataclasses.replace(
        files, record=msgspec.structs.replace(record, targets=targets), graphs={**files.graphs, target.graph: graph}
    )
