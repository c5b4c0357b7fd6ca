"""``groundwire doctor``: what this installation can do."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

import onnxruntime as ort
from rich.markup import escape
from rich.table import Table

from groundwire.runtime.bundle import Bundle, embedded
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.ort.session import PROVIDERS, usable_cores

from . import common

CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "asimd", "i8mm")


def doctor() -> None:
    """Print versions, processor, devices and the embedded bundles, and what is wrong with them."""
    console = common.stdout()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    packages = ("groundwire", "onnxruntime", "onnxruntime-gpu", "numpy", "tokenizers", "spacy", "tensorrt")
    for name in packages:
        table.add_row(name, _version(name))
    table.add_row("python", f"{platform.python_version()} on {platform.platform()}")
    table.add_row("processor", f"{usable_cores()} usable, {', '.join(_cpu_features()) or 'features unknown'}")
    available = ort.get_available_providers()
    for device, provider in PROVIDERS.items():
        table.add_row(device, "[green]available[/]" if provider in available else f"[dim]no {provider}[/]")
    for problem in _problems():
        table.add_row("[red]problem[/]", escape(problem))
    for name in embedded():
        table.add_row(f"bundle {name}", _bundle(name))
    console.print(table)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "[dim]not installed[/]"


def _cpu_features() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    words = set(text.split())
    return [feature for feature in CPU_FEATURES if feature in words]


def _problems() -> list[str]:
    names = {str(found.metadata["Name"]).lower() for found in distributions()}
    found = []
    if {"onnxruntime", "onnxruntime-gpu"} <= names:
        found.append(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other: "
            "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
        )
    return found


def _bundle(name: str) -> str:
    try:
        opened = Bundle.open(name)
        opened.verify()
    except GroundwireError as error:
        return f"[red]{escape(str(error))}[/]"
    size = opened.manifest.size / 1e6
    return (
        f"[green]intact[/], {size:.1f} MB, digest {opened.manifest.digest()}, roles {', '.join(opened.manifest.roles)}"
    )
