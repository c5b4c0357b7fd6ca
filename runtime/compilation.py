"""Builds the engines of a bundle: of TensorRT on the machine that will run them, where each is compared with its
checkpoint; of TensorRT-RTX on any machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .bundles.bundle import Bundle, sha256
from .bundles.manifest import (
    LanguageModelRole,
    PassRole,
    QuestionGeneratorRole,
    ReferenceRole,
    Role,
    ShapePlan,
    Target,
)
from .errors import BundleError
from .models.graphs import check_plan, place_role
from .ort.device import Device, DeviceKind
from .ort.session import DeviceProfile
from .parity.certify import Certified, certify_graph
from .tensorrt.build import build_engine
from .tensorrt.engine import TensorRTEngine
from .tensorrt.library import LIBRARIES, import_library, name_key, parse_capabilities, start_tensorrt
from .tensorrt.records import (
    FILE,
    FOLDER,
    TIMINGS,
    EngineRecord,
    Engines,
    Ranges,
    digest_graph,
    name_rtx_folder,
    read_engines,
)

R = TypeVar("R")
EngineGraph = tuple[str, ShapePlan | Ranges]
"""The file of a graph, and the shapes of its engine."""
SOURCES, BEAMS, NEW_TOKENS, CANDIDATES, SCORED = (1, 4, 64), (1, 5, 16), (0, 16, 128), (1, 10, 32), (8, 256, 4096)
"""Least, usual and largest sizes of the engines of generators and language models: no device runs them yet, and the
largest are those of searches and batches elsewhere."""


def compile_bundle(
    bundle: Bundle,
    device: Device,
    *,
    created_with: str,
    force: bool = False,
    watch: Callable[[str], None] = lambda role: None,
) -> dict[str, Certified | None]:
    """Build an engine of each target for TensorRT that has none for this machine; with ``force``, of each.

    TensorRT's timings of kernels are kept beside the engines for later builds; ``force`` measures all of them again.

    Returns by role how its engine compares with its checkpoint, None for an engine that was there and fits. An engine
    that fails its gate is not kept. ``watch`` is called with each role that is built. Raises DeviceError when TensorRT
    cannot start, or refuses a graph; BundleError when the bundle has no target, or its folder cannot be written.
    """
    tensorrt = start_tensorrt(device)
    name, gpu = name_key(tensorrt, device)
    targets = {
        role_name: (role, target)
        for role_name, role in bundle.manifest.roles.items()
        if isinstance(role, PassRole) and (target := role.find_target("tensorrt")) is not None
    }
    graphs: dict[str, EngineGraph] = {
        role_name: (target.graph, check_plan(bundle, role, target)) for role_name, (role, target) in targets.items()
    }
    _check_any(graphs, bundle, "tensorrt")
    folder = bundle.directory / FOLDER / name
    present = read_engines(bundle, name)
    records = present.engines if present is not None and present.gpu == gpu else {}
    if force:
        (folder / TIMINGS).unlink(missing_ok=True)

    def build(role_name: str, path: Path) -> tuple[Certified, EngineRecord | None]:
        report = _build_certified(tensorrt, bundle, role_name, *targets[role_name], device, path)
        if report.failures:
            return report, None
        digest = digest_graph(bundle, *graphs[role_name])
        return report, EngineRecord(path.name, sha256(path), digest, report.parity, report.batch_spread)

    engines = Engines(gpu, str(tensorrt.__version__), created_with, records)
    return _update(bundle, folder, engines, graphs, build, force=force, watch=watch)


def compile_portable(
    bundle: Bundle,
    capabilities: Sequence[str] = (),
    *,
    created_with: str,
    force: bool = False,
    watch: Callable[[str], None] = lambda role: None,
) -> dict[str, int | None]:
    """Build an engine of each target for TensorRT-RTX that has none of this version; with ``force``, of each.

    It needs no GPU and no driver, so nothing is run and nothing is compared: ``certify`` does it where the engines run.

    Args:
        bundle: A bundle with targets for TensorRT-RTX.
        capabilities: The compute capabilities to build for, such as ``8.9``; none for engines that run on all of them
            from 8.0 on.
        created_with: Name and version of the program, for the record.
        force: Whether engines that are there are built again.
        watch: Called with each role that is built.

    Returns:
        The size of each engine in bytes by role (``qg.encoder``, ``qg.decoder`` of a question generator), None for an
        engine that was there.

    Raises:
        DeviceError: TensorRT-RTX is missing, does not build for a capability, or refuses a graph.
        BundleError: The bundle has no target, or its folder cannot be written.
    """
    rtx = import_library("tensorrt-rtx")
    numbers = parse_capabilities(rtx, capabilities)
    graphs = {
        name: graph
        for role, record in bundle.manifest.roles.items()
        for name, graph in _list_graphs(bundle, role, record)
    }
    _check_any(graphs, bundle, "tensorrt-rtx")
    version = str(rtx.__version__)
    folder = name_rtx_folder(version, numbers)

    def build(name: str, path: Path) -> tuple[int, EngineRecord]:
        graph, shapes = graphs[name]
        built = build_engine(rtx, bundle.file(graph), shapes, None, numbers)
        _write_file(path, built.engine)
        return len(built.engine), EngineRecord(path.name, sha256(path), digest_graph(bundle, graph, shapes))

    present = read_engines(bundle, folder)
    engines = Engines("", version, created_with, {} if present is None else present.engines)
    return _update(bundle, bundle.directory / FOLDER / folder, engines, graphs, build, force=force, watch=watch)


def _list_graphs(bundle: Bundle, name: str, role: Role) -> Iterator[tuple[str, EngineGraph]]:
    """Yield the graphs of a role for TensorRT-RTX, each with its name and shapes."""
    if isinstance(role, PassRole):
        if (target := role.find_target("tensorrt-rtx")) is not None:
            yield name, (target.graph, check_plan(bundle, role, target))
    elif isinstance(role, QuestionGeneratorRole):
        if (halves := (role.targets or {}).get("tensorrt-rtx")) is not None:
            width = _make_range(1, role.max_tokens)
            yield f"{name}.encoder", (halves.encoder, {"batch": SOURCES, "tokens": width})
            step = {"sources": SOURCES, "beams": BEAMS, "before": BEAMS, "past": NEW_TOKENS, "count": CANDIDATES}
            yield f"{name}.decoder", (halves.decoder, {**step, "width": width})
    elif isinstance(role, LanguageModelRole) and (target := (role.targets or {}).get("tensorrt-rtx")) is not None:
        width, past = _make_range(1, role.max_tokens), _make_range(8, role.max_tokens)
        sizes = {"batch": SOURCES, "sources": SOURCES, "texts": BEAMS, "width": width, "past": past, "scored": SCORED}
        yield name, (target.graph, sizes)


def _make_range(least: int, window: int) -> tuple[int, int, int]:
    most = max(least, window)
    return least, max(least, min(64, most)), most


def _check_any(graphs: Mapping[str, EngineGraph], bundle: Bundle, kind: DeviceKind) -> None:
    """Raise BundleError when there are no graphs for a kind of device."""
    if not graphs:
        raise BundleError(
            f"{bundle.directory} has no target for {LIBRARIES[kind].title}. Export one: groundwire export ROLE "
            f"--source ID_OR_DIR --target {kind} --precision fp16 --out {bundle.directory}"
        )


def _update(
    bundle: Bundle,
    folder: Path,
    engines: Engines,
    graphs: Mapping[str, EngineGraph],
    build: Callable[[str, Path], tuple[R, EngineRecord | None]],
    *,
    force: bool,
    watch: Callable[[str], None],
) -> dict[str, R | None]:
    """Build what ``engines`` lacks of the graphs, and write the record after each; what ``build`` reports by name."""
    reports: dict[str, R | None] = {}
    records = engines.engines
    for name, (graph, shapes) in graphs.items():
        old = records.get(graph)
        if old is not None and not force and old.target == digest_graph(bundle, graph, shapes):
            reports[name] = None
            continue
        watch(name)
        reports[name], record = build(name, folder / f"{Path(graph).stem}.engine")
        records = {file: other for file, other in records.items() if file != graph}
        if record is not None:
            records[graph] = record
        engines = msgspec.structs.replace(engines, engines=dict(sorted(records.items())))
        _write_file(folder / FILE, msgspec.json.format(msgspec.json.encode(engines), indent=2) + b"\n")
    return reports


def _build_certified(
    tensorrt: Any, bundle: Bundle, name: str, role: PassRole, target: Target, device: Device, path: Path
) -> Certified:
    timings = path.with_name(TIMINGS)
    measured = timings.read_bytes() if timings.is_file() else b""
    built = build_engine(tensorrt, bundle.file(target.graph), check_plan(bundle, role, target), measured)
    partial = path.with_suffix(".part")
    _write_file(timings, built.timings)
    _write_file(partial, built.engine)
    placed, profile = place_role(name, role, DeviceProfile.of(device, None))
    assert isinstance(placed, ReferenceRole)
    try:
        report = certify_graph(bundle, placed, TensorRTEngine.open(tensorrt, partial, target, device), profile)
        if not report.failures:
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return report


def _write_file(path: Path, content: bytes) -> None:
    """Write a file as a whole or not at all; BundleError when its folder cannot be written."""
    partial = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        raise BundleError(
            f"{partial} cannot be written ({error.strerror}); copy the bundle to a folder of yours."
        ) from error
