"""Starting, naming, limiting and losing a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groundwire.runtime.calls import Answer, GenerateQuestions
from groundwire.runtime.errors import DeviceError, GroundwireError, ModelError
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.ort.device import Device, start_device
from tests.support import cuda_double

LOAD = """
import sys
from groundwire.runtime.calls import Answer
from groundwire.runtime.local import LocalRuntime
from tests.support import cuda_double

def answer(runtime, count=1):
    return runtime.run("qa", [Answer(f"when {i}?", ("Groundwire was warmed up in 2026.",)) for i in range(count)], 8)
"""


def run_python(code: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, in which what is set up once for each process has not happened."""
    command = [sys.executable, "-W", "default", "-c", LOAD + code, *map(str, arguments)]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def ask(runtime: LocalRuntime, count: int = 1) -> list[object]:
    return list(
        runtime.run("qa", [Answer(f"when {i}?", ("Groundwire was warmed up in 2026.",)) for i in range(count)], 8)
    )


def test_auto_takes_the_gpu_and_names_what_it_computes_with(bundle: Path) -> None:
    identity = LocalRuntime.load(bundle, device="auto").identity
    assert (identity.device, identity.kernel) == ("cuda", "onnxruntime-1.31.1+6af1a932e/sm_90")


def test_a_strict_runtime_says_so(bundle: Path) -> None:
    identity = LocalRuntime.load(bundle, device="cuda", strict=True).identity
    assert identity.kernel == "onnxruntime-1.31.1+6af1a932e/sm_90/strict"


def test_without_cudas_libraries_auto_takes_the_cpu_and_says_why(bundle: Path) -> None:
    code = "print(LocalRuntime.load(sys.argv[1], threads=1).identity.device)"
    done = run_python(code, bundle, LD_LIBRARY_PATH="")
    assert done.stdout == "cpu\n"
    assert "device='auto' takes the CPU" in done.stderr
    assert "libcublasLt.so.13: cannot open shared object file" in done.stderr


def test_the_libraries_of_another_folder_of_packages_are_found(tmp_path: Path) -> None:
    """As PyTorch's are, when ONNX Runtime is in a folder of its own."""
    cuda_double.spread(tmp_path / "packages", tmp_path / "driver")
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(tmp_path / "packages")])
    code = "from groundwire.runtime.ort.device import Device, start_device; print(start_device(Device('cuda')))"
    done = run_python(code, LD_LIBRARY_PATH=str(tmp_path / "driver"), PYTHONPATH=path)
    assert done.stdout == "None\n", done.stderr


def test_without_cudnn_the_gpu_does_not_start(bundle: Path, tmp_path: Path) -> None:
    """The provider loads without cuDNN, and decoders would fail at their first call."""
    for library in Path(os.environ["LD_LIBRARY_PATH"].partition(":")[0]).iterdir():
        if "cudnn" not in library.name:
            (tmp_path / library.name).symlink_to(library)
    done = run_python("LocalRuntime.load(sys.argv[1], device='cuda')", bundle, LD_LIBRARY_PATH=str(tmp_path))
    assert "DeviceError: device='cuda': CUDAExecutionProvider did not start" in done.stderr
    assert "cuDNN" in done.stderr


def test_doctor_starts_the_providers() -> None:
    done = run_python("from groundwire.cli import main; sys.argv[1:] = ['doctor']; main()", COLUMNS="400")
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "double, compute capability 9.0, driver for CUDA 13.0; can use cuda, tensorrt" in rows["gpu"]
    assert "starts onnxruntime-1.31.1+6af1a932e/sm_90 captures graphs: 1 captured, 0 uncaptured" in rows["cuda"]
    assert "device='tensorrt' needs the Python package tensorrt: No module named" in rows["tensorrt"]


def test_the_second_gpu(bundle: Path) -> None:
    code = """
with cuda_double.count() as counts:
    answer(LocalRuntime.load(sys.argv[1], device="cuda:1"))
print(counts.launches > 0, counts.total("set-device:1").times > 0)
"""
    assert run_python(code, bundle, CUDA_DOUBLE_DEVICES="2").stdout == "True True\n"
    with pytest.raises(DeviceError, match=r"device='cuda:1': .*Invalid device ID: 1"):
        start_device(Device("cuda", 1))


def test_float32_products_are_not_rounded_to_tf32(runtime: LocalRuntime) -> None:
    with cuda_double.count() as counts:
        runtime.run("qg", [GenerateQuestions("2026", "Groundwire was warmed up in 2026.")], 8)
    assert counts.total("cublas-math-mode:tf32").times == 0


def test_a_memory_limit_holds_for_all_graphs_together(bundle: Path) -> None:
    code = """
runtime = LocalRuntime.load(sys.argv[1], device="cuda", device_memory_mb=12)
small, large = answer(runtime, 8), []
try:
    answer(runtime, 512)
except Exception as error:
    print(type(error).__name__, "smaller than requested" in str(error))
answer(runtime, 8)
print(cuda_double.live_bytes() <= 14 << 20)
try:
    LocalRuntime.load(sys.argv[1], device="cuda", device_memory_mb=13)
except Exception as error:
    print(type(error).__name__, error)
"""
    done = run_python(code, bundle)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["ModelError True", "True"], done.stderr
    assert lines[2].startswith("DeviceError device_memory_mb=13: this process has already limited cuda to 12 MiB")


def test_want_of_memory_is_a_failure_of_the_batch(runtime: LocalRuntime) -> None:
    ask(runtime)
    with cuda_double.limit_memory(0), pytest.raises(ModelError, match=r"qa\.onnx failed on cuda: "):
        ask(runtime, 512)
    assert not any(isinstance(outcome, GroundwireError) for outcome in ask(runtime))


def test_a_lost_device_is_an_error_of_the_device(runtime: LocalRuntime) -> None:
    with (
        cuda_double.lost_device(),
        pytest.raises(DeviceError, match=r"qa\.onnx failed on cuda, and so does everything"),
    ):
        ask(runtime)
