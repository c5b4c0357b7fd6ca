"""Writing bundles: graphs over one shared ``weights.bin``, put in place at once or not at all.

A weight is addressed by its content, so an initializer that several graphs hold, the word embeddings of a common
encoder for example, is stored once; so is a tokenizer. Adding a role rewrites the directory beside the old one and
swaps the two.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import onnx_ir as ir

from groundwire.runtime.bundle import (
    MANIFEST,
    Bundle,
    FileEntry,
    Head,
    LanguageModelRole,
    Manifest,
    QuestionGeneratorRole,
    ResponseGeneratorRole,
    RetrieverRole,
    Role,
    SpansRole,
    sha256,
)
from groundwire.runtime.errors import ExportError
from groundwire.runtime.upgrade import SCHEMA

from .passes.chunked_head import TABLE

WEIGHTS = "weights.bin"
INLINE_BYTES = 1024
"""Initializers up to this size stay inside their graph."""
ALIGNMENT = 64
"""Bytes: offsets in ``weights.bin`` are multiples of a cache line."""


@dataclass(frozen=True)
class RoleFiles:
    """A role's record and what it needs on disk."""

    record: Role
    graphs: Mapping[str, ir.Model] = field(default_factory=dict)
    """By file name; weights inside."""
    tokenizer: str | None = None
    """Content of ``tokenizer.json``."""
    tree: Path | None = None
    """A directory copied to ``record.path``: a spaCy pipeline."""
    finish: Callable[[Path], None] = lambda copy: None
    """Told where the copy of ``tree`` stands, before its files are listed."""


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


def head(name: str, graph: ir.Model) -> Head:
    """The record of a head's ``graph``, which will be saved as ``name``; ``write`` says where its table stands."""
    table = graph.graph.initializers[TABLE].const_value
    assert table is not None
    offset = table.offset if isinstance(table, ir.ExternalTensor) else None
    blocks, rows, width = table.shape.numpy()
    return Head(name, WEIGHTS, offset or 0, (blocks, rows, width))


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
            if role.tree is not None and isinstance(role.record, SpansRole):
                shutil.copytree(role.tree, folder / role.record.path)
                role.finish(folder / role.record.path)
        texts = {name: (record, _tokenizer(old, record)) for name, record in kept.items()}
        texts |= {name: (role.record, role.tokenizer) for name, role in roles.items()}
        records = _with_places(_write_tokenizers(folder, texts), graphs)
        written = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        manifest = Manifest(
            schema=SCHEMA,
            name=title.name,
            version=title.version,
            license=title.license,
            created_with=title.created_with,
            # Fitted on the values of the models that it was fitted on: another model makes it wrong, one more does not.
            calibration=old.manifest.calibration if old and len(kept) == len(old.manifest.roles) else None,
            roles=dict(sorted(records.items())),
            files={
                path.as_posix(): FileEntry((folder / path).stat().st_size, sha256(folder / path))
                for path in written
                if path not in unlisted
            },
        )
        (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        Bundle.open(folder)
    return Bundle.open(out)


def _tokenizer(bundle: Bundle | None, record: Role) -> str | None:
    if bundle is None or isinstance(record, SpansRole):
        return None
    return bundle.file(record.tokenizer).read_text(encoding="utf-8")


def _write_tokenizers(folder: Path, roles: Mapping[str, tuple[Role, str | None]]) -> dict[str, Role]:
    """Write each different tokenizer once, named after the first role that has it; the records say where it is."""
    names: dict[str, str] = {}
    records: dict[str, Role] = {}
    for role, (record, content) in sorted(roles.items()):
        if content is not None and not isinstance(record, SpansRole):
            record = msgspec.structs.replace(record, tokenizer=names.setdefault(content, f"{role}.tokenizer.json"))
        records[role] = record
    for content, name in names.items():
        (folder / name).write_text(content, encoding="utf-8")
    return records


def _with_places(roles: Mapping[str, Role], graphs: Mapping[str, ir.Model]) -> dict[str, Role]:
    """The records with the places that the tables of heads have got."""
    return {
        role: msgspec.structs.replace(record, head=head(record.head.graph, graphs[record.head.graph]))
        if isinstance(record, LanguageModelRole) and isinstance(record.head, Head)
        else record
        for role, record in roles.items()
    }


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
                # Type and shape are the graph's: it may read the same bytes as blocks, or as unsigned.
                key = hashlib.sha256(content).digest()
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
    return {name: ir.load(old.file(name)) for name in graph_files(record)}


def graph_files(record: Role) -> tuple[str, ...]:
    """File names of a role's graphs."""
    match record:
        case SpansRole():
            return ()
        case QuestionGeneratorRole() | ResponseGeneratorRole():
            return record.encoder, record.decoder
        case RetrieverRole():
            return record.encoder, record.query, record.memory
        case LanguageModelRole(head=Head(graph=head)):
            return record.graph, head
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
