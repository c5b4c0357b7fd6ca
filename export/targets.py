"""Graphs of a checkpoint for one kind of device, beside a role's own graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import onnx_ir as ir

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import (
    EmbedderRole,
    GeneratorTarget,
    LanguageModelRole,
    QuestionGeneratorRole,
    ReferenceRole,
    ShapePlan,
    Target,
    TargetName,
    TargetRole,
)
from groundwire.runtime.capture.shapes import list_widths
from groundwire.runtime.errors import ExportError
from groundwire.runtime.parity.parity import Gate
from groundwire.runtime.parity.reference import ReferenceLogits

from .options import QuestionGeneratorSettings, RoleOptions
from .passes.attention import fuse_attention
from .passes.inputs import fuse_inputs
from .passes.operators import adapt_operators, find_unsupported
from .precision import VerifiedGraphs
from .roles.names import BLOCK_KINDS, TARGET_KINDS, find_kind_name, list_precisions
from .store import RoleFiles
from .verify.encoder import EncoderReference
from .verify.outcome import ReferenceOutputs

MAX_TOKENS, MAX_ROWS, USUAL_ROWS = 32768, 512, 16
"""Tokens and rows of a batch: as many as other graphs get on a GPU, and few rows, which kernels are chosen for."""
_SAME = 1e-3
"""Largest difference of a logit between two runs of one checkpoint."""


def make_plan(max_tokens: int) -> ShapePlan:
    """Return the shapes of a graph for engines whose window is ``max_tokens``; each width is a shape profile."""
    return ShapePlan(list_widths(max_tokens), MAX_TOKENS, MAX_ROWS, USUAL_ROWS)


def check_targets(roles: Mapping[str, RoleOptions], old: Bundle | None, *, force: bool) -> None:
    """Raise ExportError unless each role may get the target that is asked for, in the bundle as it is."""
    for role, options in roles.items():
        target = options.target
        if options.precision == "int4" and (target is not None or find_kind_name(role) not in BLOCK_KINDS):
            raise ExportError(
                f"precision='int4' is for the own graphs of {', '.join(BLOCK_KINDS)}; choose int8 or fp16 for "
                f"{role!r}{f' on {target}' if target else ''}."
            )
        if target is None:
            if options.precision == "fp8":
                raise ExportError(
                    "precision='fp8' needs a target that computes with it: --target tensorrt or tensorrt-rtx."
                )
            continue
        if find_kind_name(role) not in TARGET_KINDS[target]:
            raise ExportError(f"{role!r} has no target {target}; those of {', '.join(TARGET_KINDS[target])} have.")
        if options.read(QuestionGeneratorSettings).shortlist:
            raise ExportError(f"shortlist: the target {target} of {role!r} chooses among the whole vocabulary.")
        allowed = list_precisions(role, target)
        if options.precision not in allowed:
            raise ExportError(
                f"precision={options.precision!r} is not for the target {target} of {role!r}; choose "
                f"{', '.join(allowed)}."
            )
        record = old.manifest.roles.get(role) if old is not None else None
        if old is not None and isinstance(record, TargetRole) and target in (record.targets or {}) and not force:
            raise ExportError(
                f"{role!r} of {old.directory} has the target {target} already; pass --force (force=True) to replace it."
            )


def adapt_graphs(target: TargetName, graphs: Sequence[ir.Model]) -> tuple[ir.Model, ...]:
    """Return copies of float32 graphs with operators that a target has."""
    copies = tuple(graph.clone() for graph in graphs)
    for graph in copies:
        if target == "tensorrt":
            adapt_operators(graph)
        elif target == "cuda":
            fuse_attention(graph)
            fuse_inputs(graph)
            _forget_shapes(graph)
    return copies


def _forget_shapes(model: ir.Model) -> None:
    """Leave shapes to ONNX Runtime, which joins a sum and its norm where shapes are equal: shapes that were inferred
    before operators were fused name equal sizes differently."""
    outputs = set(model.graph.outputs)
    for node in model.graph:
        for value in node.outputs:
            if value not in outputs:
                value.shape = None


def describe_target(
    role: str, name: TargetName, verified: VerifiedGraphs, max_tokens: int
) -> tuple[Target | GeneratorTarget, dict[str, ir.Model]]:
    """Return the record of a target and its graphs by file; ExportError for operators that TensorRT does not have."""
    if len(verified.graphs) == 2:
        files = f"{role}.encoder.{name}.onnx", f"{role}.decoder.{name}.onnx"
        named = dict(zip(files, verified.graphs, strict=True))
        return GeneratorTarget(*files, verified.precision, verified.parity), named
    (graph,) = verified.graphs
    plan = None
    if name != "cuda" and find_kind_name(role) != "language_model":
        plan = make_plan(max_tokens)
        # TensorRT-RTX reads the graph where its engine is built, on any machine, and says itself what it refuses.
        if name == "tensorrt" and (unsupported := find_unsupported(graph)):
            raise ExportError(
                f"TensorRT cannot run the graph of {role!r}: {'; '.join(unsupported[:5])}. Use --target cuda, or "
                "another checkpoint."
            )
    target = Target(f"{role}.{name}.onnx", verified.precision, verified.parity, plan)
    return target, {target.graph: graph}


def check_same_checkpoint(role: str, bundle: Bundle, reference: ReferenceOutputs) -> None:
    """Raise ExportError unless a bundle's role is of the checkpoint of ``reference``: by the logits that the bundle
    keeps, or of other kinds by what their own graphs give."""
    advice = f"Export {role!r} again with --force and without --target, then add the target."
    record = bundle.manifest.roles[role]
    if isinstance(record, QuestionGeneratorRole) and record.shortlist is not None:
        raise ExportError(f"{role!r} of {bundle.directory} chooses among {record.shortlist} tokens. {advice}")
    if isinstance(record, LanguageModelRole) and len(record.graph_files) > 1:
        raise ExportError(
            f"{role!r} of {bundle.directory} has a head of its own, which no target shares. Export the target into "
            "another bundle: --out."
        )
    if isinstance(record, QuestionGeneratorRole | EmbedderRole | LanguageModelRole):
        same = _agrees(record, bundle, reference)
    elif not isinstance(record, ReferenceRole) or not isinstance(record.reference, str):
        raise ExportError(f"{bundle.directory} has no reference logits of {role!r} to compare with. {advice}")
    else:
        assert isinstance(reference, EncoderReference)
        same = _equals(ReferenceLogits.read(bundle.file(record.reference)), reference.logits)
    if not same:
        raise ExportError(
            f"{role!r} of {bundle.directory} is of another checkpoint: its logits on the fixed texts differ. {advice}"
        )


def _agrees(
    record: QuestionGeneratorRole | EmbedderRole | LanguageModelRole, bundle: Bundle, reference: ReferenceOutputs
) -> bool:
    """Whether a role's own graphs pass the gate of their precision."""
    try:
        parity = reference.compare([ir.load(bundle.file(name)) for name in record.graph_files])
    except Exception:  # ONNX Runtime's exceptions share no public base; a graph of other sizes fails
        return False
    waived = record.parity is not None and record.parity.gate == "waived"
    return waived or not Gate.of(record.precision).failures(parity)


def _equals(old: ReferenceLogits, new: ReferenceLogits) -> bool:
    return [window.ids for window in old.windows] == [window.ids for window in new.windows] and all(
        left.shape == right.shape and np.allclose(left, right, atol=_SAME)
        for before, now in zip(old.outputs, new.outputs, strict=True)
        for left, right in zip(before, now, strict=True)
    )


def read_role(bundle: Bundle, role: str) -> RoleFiles:
    """Return the files of a bundle's role as they are."""
    record = bundle.manifest.roles[role]
    assert isinstance(record, TargetRole)
    graphs = {name: ir.load(bundle.file(name)) for name in (*record.graph_files, *record.target_files)}
    tokenizer = bundle.file(record.tokenizer).read_text(encoding="utf-8")
    reference = None
    if isinstance(record, ReferenceRole) and isinstance(record.reference, str):
        reference = bundle.file(record.reference).read_bytes()
    return RoleFiles(record, graphs, tokenizer, reference, unchanged=True)


def add_target(
    files: RoleFiles, name: TargetName, target: Target | GeneratorTarget, graphs: Mapping[str, ir.Model]
) -> RoleFiles:
    """Return a role's files with a target more."""
    record = files.record
    assert isinstance(record, TargetRole)
    targets: dict[str, Target | GeneratorTarget] = {**(record.targets or {}), name: target}  # type: ignore[dict-item]
    return dataclasses.replace(
        files, record=msgspec.structs.replace(record, targets=targets), graphs={**files.graphs, **graphs}
    )
