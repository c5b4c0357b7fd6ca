"""Export: load, convert, optimize, quantize, verify, save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import onnx_ir as ir

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole
from groundwire.runtime.errors import ExportError, GroundwireError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.loading import load_group
from groundwire.runtime.ort.session import DeviceProfile

from . import store
from .options import RoleOptions
from .passes import fold_transposes
from .precision import reduce_precision
from .roles.kind import CommonFields, CopiedKind
from .roles.names import check_kind
from .roles.question_generator import apply_shortlist
from .roles.registry import find_kind
from .store import RoleFiles, Title
from .targets import adapt_graphs, add_target, check_same_checkpoint, check_targets, describe_target, read_role
from .verify.encoder import EncoderReference

Stage: TypeAlias = Literal["load", "convert", "optimize", "quantize", "verify", "save"]
Watcher: TypeAlias = Callable[[str, Stage], None]
"""Called with the role and the stage that begins."""


def export_role(
    role: str,
    options: RoleOptions,
    out: str | Path,
    *,
    title: Title | None = None,
    force: bool = False,
    watch: Watcher = lambda role, stage: None,
) -> Bundle:
    """Export one checkpoint into a bundle, which is created if it does not exist.

    The bundle records what its models compute here of their warm-up calls, for ``Engine.warmup`` to compare with.

    Args:
        role: The part that the model plays: ``qa``, ``nli``, ``detector.NAME``, …
        options: The checkpoint, and how it is converted.
        out: Directory of the bundle. It does not change if an error is raised.
        title: Name, version and license of the bundle; None keeps those it has, or names it like its directory.
        force: Whether a role that the bundle has is replaced.
        watch: Called with the role and the stage that begins.

    Returns:
        The bundle.

    Raises:
        ExportError: The checkpoint does not fit, the role exists and ``force`` is not set, the labels are unknown, or
            the
            exported model does not run.
        ParityError: No precision passes the gate.
    """
    return export_bundle({role: options}, out, title=title, force=force, watch=watch)


def export_bundle(
    roles: Mapping[str, RoleOptions],
    out: str | Path,
    *,
    title: Title | None = None,
    force: bool = False,
    watch: Watcher = lambda role, stage: None,
) -> Bundle:
    """Export several checkpoints into a bundle at once.

    >>> export_bundle(preset("paper-q2"), "bundles/q2", title=Title("paper-q2"))  # doctest: +SKIP

    Args:
        roles: The options by role.
        out: As for ``export_role``.
        title: As for ``export_role``.
        force: As for ``export_role``.
        watch: As for ``export_role``.

    Returns:
        The bundle.

    Raises:
        ExportError: As for ``export_role``.
        ParityError: As for ``export_role``.
    """
    target = Path(out)
    added = {role: options.target for role, options in roles.items() if options.target is not None}
    old = store.check_target(target, roles.keys() - added.keys(), force=force)
    for role, options in roles.items():
        check_kind(role, options)
    check_targets(roles, old, force=force)
    if title is None:
        title = store.title_of(old.manifest) if old else Title(target.resolve().name)
    files = {role: _export_files(role, options, old, partial(watch, role)) for role, options in roles.items()}
    for role in roles:
        watch(role, "save")
    changed = [role for role, written in files.items() if not written.unchanged]
    return store.write(target, title, files, force=True, record_canaries=partial(_record_canaries, roles=changed))


def shorten_role(bundle: str | Path, role: str, tokens: Sequence[str]) -> Bundle:
    """Let the question generator ``role`` of a bundle choose only among ``tokens`` and the tokens of its source.

    The bundle loses its calibration, which was fitted on other questions. Raises ExportError as ``apply_shortlist``
    does, for a role that is not a question generator, and for a role that has a shortlist already; the bundle does not
    change if it raises.
    """
    opened = Bundle.open(bundle)
    record = opened.manifest.roles.get(role)
    if not isinstance(record, QuestionGeneratorRole):
        raise ExportError(f"{bundle} has no question generator {role!r}.")
    if record.shortlist is not None:
        raise ExportError(
            f"{role!r} of {bundle} chooses among {record.shortlist} tokens already; export its checkpoint again."
        )
    graphs = {name: ir.load(opened.file(name)) for name in record.graph_files}
    tokenizer = opened.file(record.tokenizer).read_text(encoding="utf-8")
    files = apply_shortlist(RoleFiles(record, graphs, tokenizer), tokens)
    title = store.title_of(opened.manifest)
    record_canaries = partial(_record_canaries, roles=[role])
    return store.write(opened.directory, title, {role: files}, force=True, record_canaries=record_canaries)


def _record_canaries(bundle: Bundle, roles: Iterable[str]) -> store.Canaries:
    """What the models of these roles compute here of their warm-up calls; ExportError if one cannot run."""
    profile = DeviceProfile.of("cpu", None)
    records = {role: (bundle.manifest.roles[role], bundle) for role in roles}
    try:
        models = {name: load_group((name,), records, profile) for name in records}
        return LocalRuntime(bundle, profile, models).record_canaries()
    except GroundwireError as error:
        raise ExportError(f"The exported models do not run, so nothing was written: {error}") from error


def _export_files(role: str, options: RoleOptions, old: Bundle | None, watch: Callable[[Stage], None]) -> RoleFiles:
    kind = find_kind(role)
    watch("load")
    if isinstance(kind, CopiedKind):
        return kind.copy(role, options)
    checkpoint = kind.load(options)
    watch("convert")
    conversion = kind.convert(role, checkpoint, options)
    watch("optimize")
    graphs = tuple(conversion.graphs.values())
    for graph in graphs:
        fold_transposes(graph)
    watch("quantize")
    reference = kind.reference(checkpoint, conversion.template)
    float_modules = [checkpoint.float_modules] * len(graphs)
    reduce = partial(reduce_precision, on_verify=lambda: watch("verify"))
    target = options.target
    if target is not None:
        of_target, in_float = adapt_graphs(target, graphs), float_modules
        if conversion.build_fused_step is not None and target == "cuda":
            # Ranges alone decide what stays float32 in a fused step: it converts wherever the types change.
            of_target, in_float = (*of_target[:-1], conversion.build_fused_step()), [*float_modules[:-1], ()]
        verified = reduce(of_target, reference, options, keep_in_half=in_float)
        added = describe_target(role, target, verified, checkpoint.max_tokens)
        if old is not None and role in old.manifest.roles:
            check_same_checkpoint(role, old, reference)
            return add_target(read_role(old, role), target, *added)
        options = replace(options, target=None, precision="fp16")
    verified = reduce(graphs, reference, options, keep_in_half=float_modules)
    common = CommonFields(
        source=checkpoint.name,
        revision=checkpoint.revision,
        architecture=checkpoint.architecture,
        precision=verified.precision,
        tokenizer=f"{role}.tokenizer.json",
        max_tokens=checkpoint.max_tokens,
        pad_id=checkpoint.pad_id,
        parity=verified.parity,
    )
    named = dict(zip(conversion.graphs, verified.graphs, strict=True))
    logits = reference.logits.encode() if isinstance(reference, EncoderReference) else None
    files = conversion.finish(RoleFiles(conversion.make_record(common), named, checkpoint.tokenizer, logits))
    return files if target is None else add_target(files, target, *added)
