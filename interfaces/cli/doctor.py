"""``groundwire doctor``: shows what this installation can do."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, distributions, version

import onnxruntime as ort
import typer
from rich.markup import escape
from rich.table import Table

from groundwire.runtime.bundles.bundle import SHIPPED, Bundle, embedded
from groundwire.runtime.capture.probe import probe_captures
from groundwire.runtime.errors import DeviceError, GroundwireError
from groundwire.runtime.ort.device import (
    PROVIDERS,
    Device,
    compute_capability,
    find_driver,
    name_gpu,
    name_kernels,
    start_device,
)
from groundwire.runtime.ort.processor import processor_features
from groundwire.runtime.resources import usable_cores
from groundwire.runtime.tensorrt.library import runs_on, start_tensorrt

from . import display

PACKAGES = (
    "groundwire",
    "onnxruntime",
    "onnxruntime-gpu",
    "numpy",
    "tokenizers",
    "spacy",
    "tensorrt-cu13",
    "tensorrt-rtx-cu13-libs",
)


def doctor() -> None:
    """Print versions, processor, devices, known installation problems, and whether the embedded bundles are intact.

    Exits with 1 if a bundle is damaged or there is an installation problem; a device or a bundle that is not installed
    is fine. Paste the output into a bug report.

        groundwire doctor
    """
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name in PACKAGES:
        table.add_row(name, _find_version(name))
    table.add_row("python", f"{platform.python_version()} on {platform.platform()}")
    table.add_row("processor", f"{usable_cores()} usable, {', '.join(processor_features()) or 'features unknown'}")
    table.add_row("gpu", _describe_gpu())
    for kind in PROVIDERS:
        table.add_row(kind, _check_device(Device(kind)))
    problems = _find_problems()
    for problem in problems:
        table.add_row("[red]problem[/]", escape(problem))
    is_damaged = False
    for name in dict.fromkeys((*SHIPPED, *embedded())):
        try:
            table.add_row(f"bundle {name}", _check_bundle(name))
        except GroundwireError as error:
            is_damaged = True
            table.add_row(f"bundle {name}", f"[red]{escape(str(error))}[/]")
    display.output_console().print(table)
    if problems or is_damaged:
        raise typer.Exit(1)


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "[dim]not installed[/]"


def _describe_gpu() -> str:
    """The first GPU, as its driver names it, and the devices that its compute capability is enough for."""
    digits = compute_capability(0)
    if not digits:
        return "[dim]none, or no driver[/]"
    capability = int(digits[:-1]), int(digits[-1])
    able = [kind for kind in PROVIDERS if kind != "cpu" and runs_on(kind, capability)]
    text = f"{name_gpu(0)}, compute capability {digits[:-1]}.{digits[-1]}, driver for CUDA {find_driver()}"
    return escape(f"{text}; can use {', '.join(able) or 'none of the devices'}")


def _check_device(device: Device) -> str:
    """Whether it starts: ONNX Runtime lists the providers it was built with, whatever libraries they miss."""
    if device.provider not in ort.get_available_providers():
        return f"[dim]no {device.provider}[/]"
    try:
        (start_tensorrt if device.runs_engines else start_device)(device)
    except DeviceError as error:
        return f"[red]{escape(str(error))}[/]"
    return f"[green]starts[/] {name_kernels(device)}{_check_captures(device)}".rstrip()


def _check_captures(device: Device) -> str:
    """What becomes of a small graph that is captured on a GPU."""
    if device.kind != "cuda":
        return ""
    try:
        counts = probe_captures(device)
    except GroundwireError as error:
        return f" [red]{escape(str(error))}[/]"
    text = f"captures graphs: {counts.captured} captured, {counts.uncaptured} uncaptured, {counts.failed} failed"
    return f" {text}" if counts.captured and not counts.failed else f" [red]{text}[/]"


def _find_problems() -> list[str]:
    folders: dict[str, set[str]] = {"onnxruntime": set(), "onnxruntime-gpu": set()}
    for distribution in distributions():
        folders.get(str(distribution.metadata["Name"]).lower(), set()).add(str(distribution.locate_file("")))
    # Builds in different folders do not meet: Python imports the first on its path.
    if folders["onnxruntime"] & folders["onnxruntime-gpu"]:
        return [
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other: "
            "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
        ]
    return []


def _check_bundle(name: str) -> str:
    """What an embedded bundle has; GroundwireError if a file of it is damaged."""
    if name not in embedded():
        return f"[dim]not installed: pip install groundwire-{name}, or bundles/packaging/{name} in a checkout[/]"
    bundle = Bundle.open(name)
    bundle.verify()
    manifest = bundle.manifest
    size_mb = manifest.size / 1e6
    return f"[green]intact[/], {size_mb:.1f} MB, digest {manifest.digest()}, roles {', '.join(manifest.roles)}"
