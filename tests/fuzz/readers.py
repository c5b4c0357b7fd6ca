"""Fuzz a reader of files: python -m tests.fuzz.readers TARGET [options of libFuzzer] [corpus].

A file that a reader cannot use is a GroundwireError; any other exception, a crash, or 25 seconds for one input fails.
Needs atheris. A failing input is written to the current folder, or to ``-artifact_prefix``; given as the last argument,
it runs alone.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import atheris

from groundwire.files.reading import read_lines
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.calibration import Calibration
from groundwire.runtime.bundles.decode import decode_json
from groundwire.runtime.bundles.external_data import find_external_files
from groundwire.runtime.errors import BundleError, GroundwireError

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-readers-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
ROOT = Path(__file__).resolve().parents[2]
COMPACT = ROOT / "bundles" / "compact"
MAX_SEED = 20_000
"""Bytes of a seed: what is longer is slow to mutate."""


def _write(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def read_rows(name: str) -> Callable[[bytes], None]:
    """Return a target that reads all lines of a file called ``name``."""

    def read(data: bytes) -> None:
        with read_lines(_write(name, data)) as lines:
            for _ in lines:
                pass

    return read


def read_manifest(data: bytes) -> None:
    """Open the bundle whose manifest is ``data``; its files are those of no bundle."""
    _write("bundle.json", data)
    Bundle.open(FOLDER)


def read_calibration(data: bytes) -> None:
    """Decode a calibration file."""
    decode_json(data, Calibration, BundleError)


def read_graph(data: bytes) -> None:
    """Look for external data in an ONNX graph."""
    find_external_files(_write("graph.onnx", data))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "json_lines": read_rows("a.jsonl"),
    "gzip": read_rows("a.jsonl.gz"),
    "csv": read_rows("a.csv"),
    "parquet": read_rows("a.parquet"),
    "manifest": read_manifest,
    "calibration": read_calibration,
    "graph": read_graph,
}


def make_seeds() -> dict[str, bytes]:
    """Return a valid input of each target."""
    row = {"id": "1", "response": "Honey is blue.", "knowledge": ["Honey is golden."], "history": ["Hi"], "triples": []}
    lines = (json.dumps(row) + "\n").encode() * 2
    return {
        "json_lines": lines,
        "gzip": gzip.compress(lines),
        "csv": b'id,response,knowledge\n1,"Honey ""is"" blue.",Honey\n2,a,"b\nc"\n',
        "parquet": make_table(row),
        "manifest": (COMPACT / "bundle.json").read_bytes()[:MAX_SEED],
        "calibration": json.dumps({"fitted_on": ["a"], "rows": 1, "fusions": [], "scales": {}}).encode(),
        "graph": make_graph(),
    }


def make_table(row: dict[str, object]) -> bytes:
    """Return a Parquet file with ``row``, without the column of no type."""
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([{name: value for name, value in row.items() if value}]), file)
    return file.getvalue()


def make_graph() -> bytes:
    """Return an ONNX graph whose tensor is in another file."""
    from groundwire.runtime.bundles.protobuf import encode_message

    entry = encode_message(13, encode_message(1, b"location") + encode_message(2, b"weights.bin"))
    return encode_message(7, encode_message(5, entry))


def instrument() -> None:
    """Instrument the functions of the readers: atheris cannot do that at the import of an editable installation."""
    for name in [name for name in sys.modules if name.startswith(("groundwire.files", "groundwire.runtime"))]:
        module = sys.modules[name]
        classes = [item for item in vars(module).values() if isinstance(item, type) and item.__module__ == name]
        for owner in (module, *classes):
            for item in vars(owner).values():
                function = getattr(item, "__func__", item)
                if isinstance(function, FunctionType) and function.__module__ == name:
                    atheris.instrument_func(function)


def main() -> None:
    """Run one target; libFuzzer ends the process."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"Give one of these targets: {', '.join(TARGETS)}.")
    target = TARGETS[name]
    seeds = FOLDER / "seeds"
    seeds.mkdir()
    (seeds / name).write_bytes(make_seeds()[name])

    def check(data: bytes) -> None:
        with contextlib.suppress(GroundwireError):
            target(data)

    check(make_seeds()[name])  # what is imported late is instrumented too
    instrument()
    arguments = sys.argv[2:]
    runs_alone = any(Path(argument).is_file() for argument in arguments)
    atheris.Setup([sys.argv[0], *arguments, *([] if runs_alone else [str(seeds)])], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
