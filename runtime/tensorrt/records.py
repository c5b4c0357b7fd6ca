"""What a bundle says about the engines that were built of it: ``engines/KEY/engines.json``.

An engine runs where the compute capability, the GPU and the version of TensorRT are those it was built with, and while
the graph and the weights are those it was built of. It is code for a GPU, so the manifest does not list it, and a hub
never brings it: what is fetched is what the manifest lists.

An engine of TensorRT-RTX runs on every GPU of the compute capabilities that it was built for, or is portable; it is
tied to the version of the library. Its folder has the name of both: ``rtx-1.7.1.116-portable``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..bundles.bundle import Bundle
from ..bundles.decode import decode_json
from ..bundles.external_data import find_external_files
from ..bundles.manifest import Parity, ShapePlan, Target
from ..errors import BundleError, DeviceError
from ..ort.device import DeviceKind
from .library import PORTABLE_FROM

FOLDER = "engines"
FILE = "engines.json"
TIMINGS = "timings.cache"
"""What TensorRT has measured of kernels in all builds of a folder, in its own format."""
Shapes = list[tuple[int, int]]
"""Least, usual and largest shape of a profile."""
Ranges = Mapping[str, tuple[int, int, int]]
"""Least, usual and largest size of each axis by its name in the graph, and of each input that is a size."""


class EngineRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One engine."""

    file: str
    sha256: str
    target: str
    """Digest of what it was built of: graph, weights and plan."""
    parity: Parity | None = None
    """How far it is from its checkpoint on the machine that built it; None for TensorRT-RTX, which builds without a
    GPU."""
    batch_spread: float | None = None
    """The largest difference of a logit of one text between batches; None where it was not run."""


class Engines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The engines of one folder."""

    gpu: str
    """The name of the GPU that built them; empty for TensorRT-RTX."""
    tensorrt: str
    created_with: str
    engines: dict[str, EngineRecord]
    """By the graph's file name."""


class FoundEngine(NamedTuple):
    """An engine's record, and its file."""

    record: EngineRecord
    path: Path


def list_shapes(plan: ShapePlan) -> list[Shapes]:
    """The shapes of each profile of a plan, of every input alike."""
    return [[(rows, profile.width) for rows in (1, profile.usual_rows, profile.max_rows)] for profile in plan.profiles]


def digest_graph(bundle: Bundle, graph: str, shapes: ShapePlan | Ranges | None) -> str:
    """What an engine is built of: it changes with the graph, its weights and its shapes."""
    files = [graph, *sorted(find_external_files(bundle.file(graph)))]
    content = [[bundle.manifest.files[name].sha256 for name in files], shapes]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:16]


def read_engines(bundle: Bundle, folder: str) -> Engines | None:
    """The engines of a folder; None when there are none, BundleError for a damaged file."""
    path = bundle.directory / FOLDER / folder / FILE
    if not path.is_file():
        return None

    def say(reason: str) -> BundleError:
        return BundleError(
            f"{path} is damaged: {reason}. Delete the folder and run groundwire bundle compile {bundle.directory}"
        )

    return decode_json(path.read_bytes(), Engines, say)


def name_rtx_folder(version: str, capabilities: Sequence[tuple[int, int]]) -> str:
    """The folder of engines of TensorRT-RTX: ``rtx-1.7.1.116-sm_86-sm_89``, or ``rtx-1.7.1.116-portable``."""
    names = [f"sm_{major}{minor}" for major, minor in capabilities] or ["portable"]
    return "-".join(["rtx", version, *names])


def choose_rtx_folder(bundle: Bundle, graph: str, version: str, capability: tuple[int, int]) -> str:
    """The folder with an engine of ``graph`` that runs on a compute capability: built for it by name, else portable.

    Without one, the folder that would have it.
    """
    exact = name_rtx_folder(version, [capability])
    suffix = exact.rpartition("-")[2]
    paths = sorted((bundle.directory / FOLDER).glob(f"rtx-{version}-sm_*/{FILE}"))
    names = [path.parent.name for path in paths if suffix in path.parent.name.split("-")]
    if capability >= PORTABLE_FROM:
        names.append(name_rtx_folder(version, ()))
    engines = {name: read_engines(bundle, name) for name in names}
    return next((name for name, built in engines.items() if built is not None and graph in built.engines), exact)


def find_engine_record(
    bundle: Bundle, target: Target, folder: str, gpu: str, kind: DeviceKind = "tensorrt"
) -> FoundEngine:
    """The engine of a target for this machine; DeviceError, which names the command that builds it, without one."""
    engines = read_engines(bundle, folder)
    record = None if engines is None else engines.engines.get(target.graph)
    if engines is None or record is None:
        others = sorted(path.parent.name for path in (bundle.directory / FOLDER).glob(f"*/{FILE}"))
        reason = f"has no engine for {folder}" + (f" (only for {', '.join(others)})" if others else "")
    elif engines.gpu != gpu:
        reason = f"was built on another GPU ({engines.gpu}; this is {gpu})"
    elif record.target != digest_graph(bundle, target.graph, target.plan):
        reason = "was built of another graph, or other weights"
    elif Path(record.file).name != record.file:
        reason = f"names a file outside its folder ({record.file!r})"
    else:
        return FoundEngine(record, bundle.directory / FOLDER / folder / record.file)
    raise DeviceError(
        f"{target.graph} {reason}, and the runtime builds none, because that takes minutes. Build it: groundwire "
        f"bundle compile {bundle.directory} --device {kind}; or use device='cuda'."
    )
