"""Adapts a bundle: from labelled rows to a new bundle directory, and a report of the gain."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from groundwire.engine import Request
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle, sha256
from groundwire.runtime.bundles.manifest import ClassifierRole, FileEntry
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.loading import load_group
from groundwire.runtime.ort.session import DeviceProfile

from ..calibration.fusion import FusionOptions
from ..datasets.examples import Example
from ..scores.scoring import APART, ScoringSettings, score_sets
from .detector import DetectorAnswers, find_detector
from .fitting import Material
from .head import HeadChange
from .report import AdaptationReport, measure_adaptation
from .rows import check_labels, select_rows, split_folds

REPORT = "report.json"
"""The report in the new bundle."""
ROLE = "detector.consistency"
METRICS = ("fast",)
DOCUMENTS = ("README*", "LICENSE*", "NOTICE*")
"""Files of a bundle that its manifest does not list and a copy keeps."""

Watch = Callable[[str, int, int], None]
"""Called with the stage, how much of it is done, and how much there is."""


def adapt_bundle(
    sets: Mapping[str, Sequence[Example]],
    out: Path,
    run: Path,
    bundle: str | Path = "compact",
    *,
    role: str = ROLE,
    metrics: tuple[str, ...] = METRICS,
    options: FusionOptions | None = None,
    threads: int | None = None,
    repeats: int = 1000,
    watch: Watch = lambda stage, done, total: None,
) -> AdaptationReport:
    """Fit a detector's head and the calibration of ``bundle`` to labelled rows; write the new bundle ``out``.

    ``out`` gets the report too. ``run`` keeps the scores of the rows, so that a stopped call resumes; it is the only
    place where anything about single rows is written. ``options`` say how calibrations are fitted.
    InvalidRequest when ``out`` is not empty, for rows that are too few or of one label, and for a bundle without the
    detector ``role``; ExportError when its graph has no linear head.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidRequest(f"{out} exists and is not empty; choose another --out, nothing there is overwritten.")
    opened = Bundle.open(bundle)
    find_detector(opened, role)
    settings = ScoringSettings(bundle, "cpu", threads, tuple(dict.fromkeys((*metrics, role))), APART)
    check_labels(sets)
    scored = score_sets(sets, run, settings, watch)
    rows, counts = select_rows(sets, scored.sets, role)
    options = options or FusionOptions()
    folds = split_folds(rows, options.seed)
    requests = [row.example.request for row in rows]
    with _stage(out) as folder:
        _copy(opened, folder)
        outputs, answers = _read_answers(
            Bundle.open(folder), role, requests, threads, lambda done: watch("reading", done, len(rows))
        )
        computed = tuple(dict.fromkeys(name for row in rows for name in row.score.metrics))
        material = Material(rows, folds, answers, role, computed, opened.manifest.calibration, options)
        # The products are small: on two threads they take three times as long, and six times the processor time.
        with threadpool_limits(1):
            report, fit = measure_adaptation(
                material, counts, repeats, lambda done, total: watch("fitting", done, total)
            )
        report = msgspec.structs.replace(report, bundle=f"{opened.manifest.name}@{opened.manifest.digest()}")
        if (change := fit.change(fit.chosen)) is not None:
            _write_head(folder, role, dict(zip(outputs, answers.widths, strict=True)), change)
        Bundle.open(folder).calibrate(fit.calibrations[fit.chosen])
        (folder / REPORT).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
        Bundle.open(folder).verify()
    return report


@contextmanager
def _stage(out: Path) -> Iterator[Path]:
    """Yield a temporary directory beside ``out`` that becomes it when the block succeeds."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        folder = Path(work, "new")
        folder.mkdir()
        yield folder
        folder.replace(out)


def _copy(bundle: Bundle, folder: Path) -> None:
    unlisted = {path.name for pattern in DOCUMENTS for path in bundle.directory.glob(pattern) if path.is_file()}
    for name in (MANIFEST, *bundle.manifest.files, *sorted(unlisted)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bundle.directory / name, folder / name)


def _read_answers(
    bundle: Bundle, role: str, requests: Sequence[Request], threads: int | None, watch: Callable[[int], None]
) -> tuple[tuple[str, ...], DetectorAnswers]:
    """The names of what the head reads, and what it reads of the requests."""
    from groundwire.export.linear_head import expose_features

    record = find_detector(bundle, role)
    graph = bundle.directory / "features.onnx"  # beside the weights
    try:
        outputs = expose_features(bundle.file(record.graph), record.output, graph)
        profile = DeviceProfile.of("cpu", threads)
        return outputs, DetectorAnswers.read(bundle, role, graph, outputs, requests, profile, watch)
    finally:
        graph.unlink(missing_ok=True)


def _write_head(folder: Path, role: str, widths: Mapping[str, int], change: HeadChange) -> None:
    """Write the change into the role's graph, and what the manifest says of both.

    ``widths`` are the widths of what the head reads, by name, in the order of the change.
    """
    from groundwire.export.linear_head import add_to_head

    bundle = Bundle.open(folder)
    record = find_detector(bundle, role)
    supported = np.array([label in record.supported for label in record.labels], dtype=np.float32)
    parts = np.split(change.weight.astype(np.float32), np.cumsum([*widths.values()])[:-1])
    weights = {name: part[:, None] * supported for name, part in zip(widths, parts, strict=True)}
    graph = bundle.file(record.graph)
    add_to_head(graph, record.output, weights, np.float32(change.shift) * supported)
    manifest = bundle.manifest
    # The checkpoint's logits, and graphs for other devices, are of the head as it was.
    changed: ClassifierRole = msgspec.structs.replace(
        record, parity=None, reference=msgspec.UNSET, targets=msgspec.UNSET
    )
    bundle = bundle.rewrite(
        msgspec.structs.replace(
            manifest,
            name=f"{manifest.name}-adapted",
            roles={**manifest.roles, role: changed},
            files={**manifest.files, record.graph: FileEntry(graph.stat().st_size, sha256(graph))},
        )
    )
    profile = DeviceProfile.of("cpu", None)
    models = {role: load_group((role,), {role: (changed, bundle)}, profile)}
    canaries = manifest.canaries or {}
    bundle.record({**canaries, **LocalRuntime(bundle, profile, models).record_canaries()})
