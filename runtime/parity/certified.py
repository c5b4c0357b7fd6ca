"""On which devices a bundle was certified here: ``engines/certified.json``, which ``device='auto'`` reads.

That counts for what was run: the files of the bundle, the compute capability and the libraries.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from ..bundles.bundle import Bundle
from ..bundles.decode import decode_json
from ..errors import DeviceError
from ..ort.device import Device, DeviceChoice, DeviceKind, choose_device, name_kernels, parse_device, start_device
from ..tensorrt.library import import_library, start_tensorrt

FILE = "engines/certified.json"
PREFERRED: tuple[DeviceKind, ...] = ("tensorrt-rtx", "tensorrt", "cuda")
"""Kinds of devices that are certified, the quickest first."""


class CertifiedRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ran when the models of a bundle passed."""

    digest: str
    """Of the bundle."""
    kernels: str
    """Versions of the libraries, and the compute capability."""


def record_certified(bundle: Bundle, device: Device) -> None:
    """Keep that all models of a bundle have passed on a GPU; nothing is kept where the bundle cannot be written."""
    certified = {**_read(bundle), device.kind: _make(bundle, device)}
    path = bundle.directory / FILE
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(msgspec.json.encode(certified))


def choose_certified(choice: DeviceChoice, bundles: Sequence[Bundle]) -> Device:
    """The device for ``choice``, started; ``auto`` takes one that all bundles were certified on, before what
    ``choose_device`` takes. Raises as ``choose_device``."""
    if parse_device(choice) is None:
        for kind in PREFERRED:
            device = Device(kind)
            with contextlib.suppress(DeviceError):
                if all(_read(bundle).get(kind) == _make(bundle, device) for bundle in bundles):
                    (start_tensorrt if device.runs_engines else start_device)(device)
                    return device
    precisions = [value for bundle in bundles for value in bundle.manifest.precisions_on("cuda").values()]
    return choose_device(choice, precisions)


def _make(bundle: Bundle, device: Device) -> CertifiedRun:
    """What would run here; DeviceError without the library of engines."""
    kernels = name_kernels(device)
    if device.runs_engines:
        kernels += f"/{device.kind}-{import_library(device.kind).__version__}"
    return CertifiedRun(bundle.manifest.digest(), kernels)


def _read(bundle: Bundle) -> dict[str, CertifiedRun]:
    """What was certified, by kind of device; nothing without the file, or where another version wrote it."""
    try:
        return decode_json((bundle.directory / FILE).read_bytes(), dict[str, CertifiedRun], ValueError)
    except (OSError, ValueError):
        return {}
