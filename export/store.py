"""Writing bundles: graphs over one shared ``weights.bin``, put in place at once or not at all.

A weight is addressed by its content, so an initializer that several graphs hold, the word embeddings of a common
encoder for example, is stored once. Adding a role rewrites the directory beside the old one and swaps the two.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import onnx_ir as ir

from groundwire.runtime.bundle import (
    MANIFEST,
    SCHEMA,
    Bundle,
    FileEntry,
    GeneratorRole,
    Manifest,
    Role,
    SpansRole,
    sha256,
)
from groundwire.runtime.errors import ExportError

WEIGHTS = "weights.bin"
INLINE_BYTES = 64 * 1024
"""Initializers up to this size stay inside their graph."""
ALIGNMENT = 64
"""Bytes: offsets in ``weights.bin`` are multiples of a cache line."""


@dataclass(frozen=True)
class RoleFiles:
    """A role's record and what it needs on disk."""

    record: Role
    graphs: Mapping[str, ir.Model] = field(default_factory=dict)
    """By file name; weights inside."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Small files by name: tokenizers."""
    tree: Path | None = None
    """A directory copied to ``record.path``: a spaCy pipeline."""


def _program() -> str:
    try:
        return f"groundwire {version('groundwire')}"
    except PackageNotFoundError:  # a source tree that is not installed
        return "groundwire"


@dataclass(frozen=True)
class Title:
    """What the manifest says about a bundle as a whole."""

    name: str
    version: str = "1"
    license: str = "that of each role's source"
    created_with: str = field(default_factory=_program)


def title_of(manifest: Manifest) -> Title:
    """The title of a bundle that gains roles."""
    return Title(manifest.name, manifest.version, manifest.license)


def check_target(out: Path, roles: Iterable[str], *, force: bool) -> Bundle | None:
    """The bundle that ``out`` holds already, or None; ExportError when writing ``roles`` there would lose something."""
    if not out.exists():
        return None
    if not out.is_dir() or (any(out.iterdir()) and not (out / MANIFEST).is_file()):
        raise ExportError(f"{out} exists and is not a bundle; choose another --out, nothing there is overwritten.")
    if not any(out.iterdir()):
        return None
    bundle = Bundle.open(out)
    taken = [role for role in roles if role in bundle.manifest.roles]
    if taken and not force:
        raise ExportError(
            f"{out} has the role{'s' if len(taken) > 1 else ''} {', '.join(taken)} already; "
            "pass --force (force=True) to replace, or choose another --out."
        )
    return bundle


def write(out: Path, title: Title, roles: Mapping[str, RoleFiles], *, force: bool = False) -> Bundle:
    """Write ``roles`` to the bundle ``out``, beside the roles it has already; return the bundle opened.

    Everything is written to a temporary sibling directory that replaces ``out`` in the end, so a failure leaves ``out``
    as it was. ExportError as ``check_target`` says.
    """
    old = check_target(out, roles, force=force)
    kept = {name: record for name, record in (old.manifest.roles if old else {}).items() if name not in roles}
    with _replacing(out) as folder:
        unlisted = _copy_unlisted(old, folder) if old else set()
        graphs = {name: graph.clone() for role in roles.values() for name, graph in role.graphs.items()}
        for record in kept.values():
            assert old is not None
            graphs |= _keep(old, record, folder)
        _write_graphs(folder, graphs)
        for role in roles.values():
            for name, text in role.texts.items():
                (folder / name).write_text(text, encoding="utf-8")
            if role.tree is not None and isinstance(role.record, SpansRole):
                shutil.copytree(role.tree, folder / role.record.path)
        written = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        manifest = Manifest(
            schema=SCHEMA,
            name=title.name,
            version=title.version,
            license=title.license,
            created_with=title.created_with,
            roles=dict(sorted((kept | {name: role.record for name, role in roles.items()}).items())),
            files={
                path.as_posix(): FileEntry((folder / path).stat().st_size, sha256(folder / path))
                for path in written
                if path not in unlisted
            },
        )
        (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        Bundle.open(folder)
    return Bundle.open(out)


def _write_graphs(folder: Path, graphs: Mapping[str, ir.Model]) -> None:
    """Save the graphs and, once each, the weights that are too large to stay inside them."""
    places: dict[bytes, tuple[int, int]] = {}
    with (folder / WEIGHTS).open("wb") as file:
        for name in sorted(graphs):
            for value in graphs[name].graph.initializers.values():
                tensor = value.const_value
                if tensor is None or tensor.nbytes <= INLINE_BYTES:
                    continue
                content = tensor.tobytes()
                key = hashlib.sha256(f"{tensor.dtype.name}{tensor.shape}".encode() + content).digest()
                if key not in places:
                    file.write(b"\0" * (-file.tell() % ALIGNMENT))
                    places[key] = (file.tell(), len(content))
                    file.write(content)
                offset, length = places[key]
                value.const_value = ir.ExternalTensor(
                    WEIGHTS,
                    offset,
                    length,
                    tensor.dtype,
                    shape=ir.Shape(tensor.shape.numpy()),
                    name=str(value.name),
                    base_dir=folder,
                )
    if not places:
        (folder / WEIGHTS).unlink()
    for name, graph in graphs.items():
        ir.save(graph, folder / name)


def _keep(old: Bundle, record: Role, folder: Path) -> dict[str, ir.Model]:
    """Copy the files of a role that stays; return its graphs, whose weights are still in the old directory."""
    if isinstance(record, SpansRole):
        shutil.copytree(old.file(record.path), folder / record.path)
        return {}
    shutil.copy2(old.file(record.tokenizer), folder / record.tokenizer)
    return {name: ir.load(old.file(name)) for name in graph_files(record)}


def graph_files(record: Role) -> tuple[str, ...]:
    """File names of a role's graphs."""
    match record:
        case SpansRole():
            return ()
        case GeneratorRole():
            return record.encoder, record.decoder
        case _:
            return (record.graph,)


def _copy_unlisted(old: Bundle, folder: Path) -> set[Path]:
    """Copy what people put beside the bundle, a README say; return those paths, relative."""
    listed = {*old.manifest.files, MANIFEST}
    found = {path.relative_to(old.directory) for path in old.directory.rglob("*") if path.is_file()}
    unlisted = {path for path in found if path.as_posix() not in listed}
    for path in unlisted:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(old.directory / path, folder / path)
    return unlisted


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """A temporary directory beside ``out`` that takes its place when the block succeeds and vanishes when it fails."""
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    fresh, former = work / "new", work / "old"
    try:
        fresh.mkdir()
        yield fresh
        if out.exists():
            out.replace(former)
        try:
            fresh.replace(out)
        except OSError:
            if former.exists():
                former.replace(out)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
