"""What was certified on a device is what ``device='auto'`` takes there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from groundwire.cli import bundle as commands
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.errors import DeviceError
from groundwire.runtime.ort.device import Device
from groundwire.runtime.parity import certified
from groundwire.runtime.parity.certified import FILE, choose_certified, record_certified
from groundwire.runtime.parity.certify import Certified
from groundwire.runtime.parity.parity import Parity

CPU, CUDA, RTX = Device("cpu"), Device("cuda"), Device("tensorrt-rtx")


class Machine:
    """A machine whose devices start, with the versions that it names."""

    def __init__(self) -> None:
        self.kernels, self.engines = "onnxruntime-1.31.1/sm_89", "1.7.1.116"
        self.lost: set[str] = set()

    def start(self, device: Device) -> None:
        if device.kind in self.lost:
            raise DeviceError(f"{device} did not start")

    def load_library(self, kind: str) -> Any:
        self.start(Device(kind))  # type: ignore[arg-type]
        return SimpleNamespace(__version__=self.engines)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(certified, "name_kernels", lambda device: machine.kernels)
    monkeypatch.setattr(certified, "import_library", machine.load_library)
    for name in ("start_device", "start_tensorrt"):
        monkeypatch.setattr(certified, name, machine.start)
    monkeypatch.setattr(certified, "choose_device", lambda choice, precisions: CPU)
    return machine


@pytest.fixture
def bundle(tiny_bundle: Path, tmp_path: Path) -> Bundle:
    return Bundle.open(shutil.copytree(tiny_bundle, tmp_path / "bundle"))


def test_auto_takes_what_was_certified(bundle: Bundle, machine: Machine) -> None:
    assert choose_certified("auto", [bundle]) == CPU
    record_certified(bundle, CUDA)
    assert choose_certified("auto", [bundle]) == CUDA
    record_certified(bundle, RTX)
    assert choose_certified("auto", [bundle]) == RTX
    machine.lost.add("tensorrt-rtx")
    assert choose_certified("auto", [bundle]) == CUDA
    Bundle.open(bundle.directory).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda machine, bundle: setattr(machine, "kernels", "onnxruntime-1.31.2/sm_89"),
        lambda machine, bundle: setattr(machine, "engines", "1.8.0"),
        lambda machine, bundle: setattr(
            bundle,
            "manifest",
            msgspec.structs.replace(bundle.manifest, files=dict(list(bundle.manifest.files.items())[1:])),
        ),
        lambda machine, bundle: (bundle.directory / FILE).write_bytes(b"{}"),
        lambda machine, bundle: (bundle.directory / FILE).write_bytes(b"damaged"),
        lambda machine, bundle: (bundle.directory / FILE).write_bytes(b'{"\xff": 1}'),
        lambda machine, bundle: (bundle.directory / FILE).write_bytes(b"[" * 100_000),
    ],
)
def test_what_was_certified_of_something_else_does_not_count(
    bundle: Bundle, machine: Machine, change: Callable[[Machine, Bundle], None]
) -> None:
    record_certified(bundle, RTX)
    change(machine, bundle)
    assert choose_certified("auto", [bundle]) == CPU


def test_every_bundle_must_be_certified(bundle: Bundle, tmp_path: Path, machine: Machine) -> None:
    other = Bundle.open(shutil.copytree(bundle.directory, tmp_path / "other"))
    record_certified(bundle, CUDA)
    assert choose_certified("auto", [bundle, other]) == CPU
    record_certified(other, CUDA)
    assert choose_certified("auto", [bundle, other]) == CUDA


@pytest.mark.parametrize(
    ("failures", "compared", "kept"), [((), True, True), (("logit error",), True, False), ((), False, False)]
)
def test_the_command_keeps_that_every_model_passed(
    bundle: Bundle,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    failures: tuple[str, ...],
    compared: bool,
    kept: bool,
) -> None:
    report = Certified(Parity(64, 0.0, 1.0, 1.0), 0.0, failures)
    reports = [("nli", report), ("qg", report if compared else None)]
    monkeypatch.setattr(commands, "certify_each", lambda *arguments, **settings: iter(reports))
    monkeypatch.setattr(commands, "start_device", machine.start)
    done = CliRunner().invoke(commands.app, ["certify", str(bundle.directory), "--device", "cuda"])
    assert done.exit_code == len(failures)
    assert (choose_certified("auto", [bundle]) == CUDA) == kept
