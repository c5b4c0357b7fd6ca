#!/usr/bin/env bash
# Runs a Python module of this checkout on a machine that has a GPU, PyTorch and transformers, and no access to packages:
#     bench/gpu/host.sh WHEELS bench.gpu_all --out gpu_all.json
# WHEELS is a folder with what that machine lacks, for its Python: wheels, archives (*.tar.xz, *.tar.xz.part*) of
# unpacked ones, and a wheel of groundwire, for its native module alone (pip wheel --no-deps .). Without that wheel the
# module is built, with scikit-build-core, nanobind, cmake and a C++ compiler. docs/guides/gpu.md says how to fill it.
# Installs what is missing into SITE (default: /tmp/groundwire-site), outside of the machine's own packages. Whatever the
# machine has in any version stays, so that its PyTorch and transformers go on to work; onnxruntime-gpu comes before its
# onnxruntime. A large set of wheels may come in several calls:  bench/gpu/host.sh WHEELS  alone only installs.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
site=${SITE:-/tmp/groundwire-site}
wheels=$(realpath "${1:?a folder of wheels}")
shift
mkdir -p "$site"
export PYTHONPATH="$PWD:$site${PYTHONPATH:+:$PYTHONPATH}"

shopt -s nullglob
mapfile -t missing < <("$python" - "$wheels"/*.whl <<'PYTHON'
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

names = {Path(wheel).name.split("-")[0] for wheel in sys.argv[1:]}
for wheel in sys.argv[1:]:
    name, version = Path(wheel).name.split("-")[:2]
    if name == "onnxruntime" and "onnxruntime_gpu" in names:
        continue  # the same module; the files of the CPU build would take the place of the GPU's
    try:
        there = distribution(name).version
    except PackageNotFoundError:
        if name != "groundwire":
            print(wheel)
    else:
        if there != version:
            print(f"{name} {there} is there and stays; {version} is not installed.", file=sys.stderr)
PYTHON
)
if ((${#missing[@]})); then
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
        --upgrade --target "$site" "${missing[@]}"
fi
for archive in "$wheels"/*.tar.xz; do
    tar -xJf "$archive" -C "$site"
done
parts=("$wheels"/*.part*)
if ((${#parts[@]})); then
    cat "${parts[@]}" | tar -xJ -C "$site"
fi
(($#)) || exit 0

native() { "$python" -c "import groundwire.runtime._native" 2>/dev/null; }
if ! native; then
    own=("$wheels"/groundwire-*.whl)
    if ((${#own[@]} == 0)); then
        built=$(mktemp -d)
        "$python" -m pip wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check -w "$built" .
        own=("$built"/groundwire-*.whl)
    fi
    "$python" - "${own[0]}" runtime <<'PYTHON'
import pathlib
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    (name,) = [name for name in wheel.namelist() if name.startswith("groundwire/runtime/_native.") and name[-4:] != ".pyi"]
    pathlib.Path(sys.argv[2], pathlib.Path(name).name).write_bytes(wheel.read(name))
PYTHON
    native || "$python" -c "import groundwire.runtime._native"
fi
exec "$python" -m "$@"
