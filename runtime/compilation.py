"""Builds the TensorRT engines of a bundle on the machine that will run them, and compares each with its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from .bundles.bundle import Bundle, sha256
from .bundles.manifest import EncoderRole, Target
from .errors import BundleError
from .models.graphs import check_plan, place_role
from .ort.device import Device
from .ort.session import DeviceProfile
from .parity.certify import Certified, certify_graph
from .tensorrt.build import build_engine
from .tensorrt.engine import TensorRTEngine
from .tensorrt.library import name_key, start_tensorrt
from .tensorrt.records import FILE, FOLDER, TIMINGS, EngineRecord, Engines, digest_target, read_engines


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
    targets: dict[str, tuple[EncoderRole, Target]] = {}
    for role_name, role in bundle.manifest.roles.items():
        if isinstance(role, EncoderRole) and (target := role.find_target("tensorrt")) is not None:
            targets[role_name] = role, target
    if not targets:
        raise BundleError(
            f"{bundle.directory} has no target for TensorRT. Export one: groundwire export ROLE --source ID_OR_DIR "
            f"--target tensorrt --precision fp16 --out {bundle.directory}"
        )
    folder = bundle.directory / FOLDER / name
    present = read_engines(bundle, name)
    records = present.engines if present is not None and present.gpu == gpu else {}
    if force:
        (folder / TIMINGS).unlink(missing_ok=True)
    reports: dict[str, Certified | None] = {}
    for role_name, (role, target) in targets.items():
        old = records.get(target.graph)
        if old is not None and not force and old.target == digest_target(bundle, target):
            reports[role_name] = None
            continue
        watch(role_name)
        path = folder / f"{Path(target.graph).stem}.engine"
        report = _build(tensorrt, bundle, role_name, role, target, device, path)
        reports[role_name] = report
        records = {graph: record for graph, record in records.items() if graph != target.graph}
        if not report.failures:
            record = EngineRecord(
                path.name, sha256(path), digest_target(bundle, target), report.parity, report.batch_spread
            )
            records = {**records, target.graph: record}
        _write(folder, Engines(gpu, str(tensorrt.__version__), created_with, dict(sorted(records.items()))))
    return reports


def _build(
    tensorrt: Any, bundle: Bundle, name: str, role: EncoderRole, target: Target, device: Device, path: Path
) -> Certified:
    timings = path.with_name(TIMINGS)
    measured = timings.read_bytes() if timings.is_file() else b""
    built = build_engine(tensorrt, bundle.file(target.graph), check_plan(bundle, role, target), measured)
    partial = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(built.timings)
        partial.replace(timings)
        partial.write_bytes(built.engine)
    except OSError as error:
        raise BundleError(
            f"{partial} cannot be written ({error.strerror}); copy the bundle to a folder of yours."
        ) from error
    placed, profile = place_role(name, role, DeviceProfile.of(device, None))
    assert isinstance(placed, EncoderRole)
    try:
        report = certify_graph(bundle, placed, TensorRTEngine.open(tensorrt, partial, target, device), profile)
        if not report.failures:
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return report


def _write(folder: Path, engines: Engines) -> None:
    partial = folder / f"{FILE}.part"
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(engines), indent=2) + b"\n")
    partial.replace(folder / FILE)
