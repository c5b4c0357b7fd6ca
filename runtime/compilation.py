"""Builds the engines of a bundle: of TensorRT on the machine that will run them, where each is compared with its
checkpoint; of TensorRT-RTX on any machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .bundles.bundle import Bundle, sha256
from .bundles.manifest import PassRole, ReferenceRole, Target, TargetName
from .errors import BundleError
from .models.graphs import check_plan, place_role
from .ort.device import Device
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
    digest_target,
    name_rtx_folder,
    read_engines,
)

R = TypeVar("R")


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
    targets = _list_targets(bundle, "tensorrt")
    folder = bundle.directory / FOLDER / name
    present = read_engines(bundle, name)
    records = present.engines if present is not None and present.gpu == gpu else {}
    if force:
        (folder / TIMINGS).unlink(missing_ok=True)

    def build(role_name: str, role: PassRole, target: Target, path: Path) -> tuple[Certified, EngineRecord | None]:
        report = _build_certified(tensorrt, bundle, role_name, role, target, device, path)
        if report.failures:
            return report, None
        record = EngineRecord(
            path.name, sha256(path), digest_target(bundle, target), report.parity, report.batch_spread
        )
        return report, record

    engines = Engines(gpu, str(tensorrt.__version__), created_with, records)
    return _update(bundle, folder, engines, targets, build, force=force, watch=watch)


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
        The size of each engine in bytes by role, None for an engine that was there.

    Raises:
        DeviceError: TensorRT-RTX is missing, does not build for a capability, or refuses a graph.
        BundleError: The bundle has no target, or its folder cannot be written.
    """
    rtx = import_library("tensorrt-rtx")
    numbers = parse_capabilities(rtx, capabilities)
    targets = _list_targets(bundle, "tensorrt-rtx")
    version = str(rtx.__version__)
    name = name_rtx_folder(version, numbers)

    def build(role_name: str, role: PassRole, target: Target, path: Path) -> tuple[int, EngineRecord]:
        plan = check_plan(bundle, role, target)
        built = build_engine(rtx, bundle.file(target.graph), plan, None, numbers)
        _write_file(path, built.engine)
        return len(built.engine), EngineRecord(path.name, sha256(path), digest_target(bundle, target))

    present = read_engines(bundle, name)
    engines = Engines("", version, created_with, {} if present is None else present.engines)
    return _update(bundle, bundle.directory / FOLDER / name, engines, targets, build, force=force, watch=watch)


def _list_targets(bundle: Bundle, kind: TargetName) -> dict[str, tuple[PassRole, Target]]:
    """The targets for a kind of device by role, with the role; BundleError when there are none."""
    targets: dict[str, tuple[PassRole, Target]] = {}
    for name, role in bundle.manifest.roles.items():
        if isinstance(role, PassRole) and (target := role.find_target(kind)) is not None:
            targets[name] = role, target
    if not targets:
        raise BundleError(
            f"{bundle.directory} has no target for {LIBRARIES[kind].title}. Export one: groundwire export ROLE "
            f"--source ID_OR_DIR --target {kind} --precision fp16 --out {bundle.directory}"
        )
    return targets


def _update(
    bundle: Bundle,
    folder: Path,
    engines: Engines,
    targets: Mapping[str, tuple[PassRole, Target]],
    build: Callable[[str, PassRole, Target, Path], tuple[R, EngineRecord | None]],
    *,
    force: bool,
    watch: Callable[[str], None],
) -> dict[str, R | None]:
    """Build what ``engines`` lacks of the targets, and write the record after each; what ``build`` reports by role."""
    reports: dict[str, R | None] = {}
    records = engines.engines
    for name, (role, target) in targets.items():
        old = records.get(target.graph)
        if old is not None and not force and old.target == digest_target(bundle, target):
            reports[name] = None
            continue
        watch(name)
        reports[name], record = build(name, role, target, folder / f"{Path(target.graph).stem}.engine")
        records = {graph: other for graph, other in records.items() if graph != target.graph}
        if record is not None:
            records[target.graph] = record
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
