"""Writing bundles: graphs over one shared ``weights.bin``, each bundle replaced as a whole or not at all.

A weight is addressed by its content, so an initializer that several graphs hold, the word embeddings of a common
encoder for example, is stored once; so is a tokenizer. Classifiers whose graphs differ in their heads alone become one
graph with an output for each. Adding a role rewrites the directory beside the old one and
swaps the two.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec
import onnx_ir as ir

from groundwire.runtime.bundles.bundle import MANIFEST, RECORDED, Bundle, sha256
from groundwire.runtime.bundles.decode import SCHEMA
from groundwire.runtime.bundles.manifest import (
    Canary,
    ClassifierRole,
    FileEntry,
    Head,
    JudgeRole,
    LanguageModelRole,
    Manifest,
    ReferenceRole,
    Role,
    SpansRole,
    TokenClassifierRole,
)
from groundwire.runtime.errors import ExportError
from groundwire.runtime.parity.recorded import read_answers, write_answers
from groundwire.runtime.version import VERSION

from .passes.chunked_head import TABLE
from .passes.join import join_graphs, select_output

Canaries: TypeAlias = dict[str, tuple[Canary, ...]]
"""By role, what its models compute of the warm-up calls."""
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
    reference: bytes | None = None
    """The checkpoint's logits on the fixed texts (``runtime/parity/reference.py``)."""
    unchanged: bool = False
    """Whether the bundle has the role's own graphs already."""
    tree: Path | None = None
    """Directory to copy to ``record.path``: a spaCy pipeline."""
    finish: Callable[[Path], None] = lambda copy: None
    """Called with the path of the copy of ``tree``, before its files are listed."""


@dataclass(frozen=True)
class Title:
    """The fields of the manifest that describe the bundle as a whole."""

    name: str
    version: str = "1"
    license: str = "that of each role's source"
    created_with: str = f"groundwire {VERSION}"


def describe_head(name: str, graph: ir.Model) -> Head:
    """Return the record of a head's ``graph``, to be saved as ``name``; ``write`` fills in the offset of its table."""
    table = graph.graph.initializers[TABLE].const_value
    assert table is not None
    offset = table.offset if isinstance(table, ir.ExternalTensor) else None
    blocks, rows, width = table.shape.numpy()
    return Head(name, WEIGHTS, offset or 0, (blocks, rows, width))


def title_of(manifest: Manifest) -> Title:
    """Return the title of an existing bundle."""
    return Title(manifest.name, manifest.version, manifest.license)


def check_target(out: Path, roles: Iterable[str], *, force: bool) -> Bundle | None:
    """Return the bundle in ``out``, or None; ExportError when writing ``roles`` there would overwrite something."""
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


def write(
    out: Path,
    title: Title,
    roles: Mapping[str, RoleFiles],
    *,
    force: bool = False,
    record_canaries: Callable[[Bundle], Canaries] = lambda bundle: {},
) -> Bundle:
    """Write ``roles`` to the bundle ``out``, beside the roles that it already has; return the opened bundle.

    Everything is written to a temporary sibling directory that replaces ``out`` at the end, so a failure does not
    change ``out``. ``record_canaries`` is called with the bundle in that directory and returns the canaries of
    ``roles``; other roles keep theirs. Raises ExportError as ``check_target`` does, and what ``record_canaries``
    raises.
    """
    old = check_target(out, roles, force=force)
    other_roles = {name: record for name, record in (old.manifest.roles if old else {}).items() if name not in roles}
    same = {*other_roles, *(role for role, files in roles.items() if files.unchanged)}
    with _replace_directory(out) as folder:
        unlisted = _copy_unlisted(old, folder) if old else set()
        graphs_of = {
            role: {name: graph.clone() for name, graph in files.graphs.items()} for role, files in roles.items()
        }
        for role, record in other_roles.items():
            assert old is not None
            graphs_of[role] = _copy_role(old, record, folder)
        joined, graphs = _join_heads(other_roles | {role: files.record for role, files in roles.items()}, graphs_of)
        _write_graphs(folder, graphs)
        for files in roles.values():
            if files.tree is not None and isinstance(files.record, SpansRole):
                shutil.copytree(files.tree, folder / files.record.path)
                files.finish(folder / files.record.path)
        texts = {name: (joined[name], _read_tokenizer(old, record)) for name, record in other_roles.items()}
        texts |= {name: (joined[name], files.tokenizer) for name, files in roles.items()}
        records = _fill_offsets(_write_tokenizers(folder, texts), graphs)
        for name, content in _list_references(old, other_roles, roles).items():
            (folder / f"{name}.reference.npz").write_bytes(content)
            records[name] = msgspec.structs.replace(records[name], reference=f"{name}.reference.npz")
        written = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        manifest = Manifest(
            schema=SCHEMA,
            name=title.name,
            version=title.version,
            license=title.license,
            created_with=title.created_with,
            # A calibration is fitted on the values of these models: replacing one invalidates it, adding one does not.
            calibration=old.manifest.calibration if old and set(old.manifest.roles) <= same else None,
            roles=dict(sorted(records.items())),
            files={
                path.as_posix(): FileEntry((folder / path).stat().st_size, sha256(folder / path))
                for path in written
                if path not in unlisted
            },
        )
        (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        written_bundle = Bundle.open(folder)
        old_canaries = (old.manifest.canaries or {}) if old else {}
        canaries = {role: recorded for role, recorded in old_canaries.items() if role in same}
        canaries |= record_canaries(written_bundle)
        answers = {role: of_role for role, of_role in (read_answers(old) if old else {}).items() if role in same}
        if canaries:
            recorded_answers = write_answers(answers) if answers else None
            written_bundle.record(dict(sorted(canaries.items())), recorded_answers)
    return Bundle.open(out)


def _join_heads(
    records: Mapping[str, Role], graphs: Mapping[str, Mapping[str, ir.Model]]
) -> tuple[dict[str, Role], dict[str, ir.Model]]:
    """Let classifiers that share an encoder share a graph, named after the first of them; all records and graphs."""
    joined = dict(records)
    heads: dict[str, ir.Model] = {}
    named: dict[str, ir.Model] = {}
    for role, record in records.items():
        if isinstance(record, ClassifierRole | TokenClassifierRole) and not isinstance(record, JudgeRole):
            heads[role] = select_output(graphs[role][record.graph], record.output)
            named |= {name: graphs[role][name] for name in record.target_files}
        else:
            named |= graphs[role]
    for graph, names in join_graphs(heads):
        named[f"{names[0]}.onnx"] = graph
        for name in names:
            head = name if len(names) > 1 else msgspec.UNSET
            joined[name] = msgspec.structs.replace(joined[name], graph=f"{names[0]}.onnx", head=head)
    return joined, named


def _list_references(
    old: Bundle | None, other_roles: Mapping[str, Role], roles: Mapping[str, RoleFiles]
) -> dict[str, bytes]:
    """The reference logits of every role that has some."""
    references = {name: files.reference for name, files in roles.items() if files.reference is not None}
    for name, record in other_roles.items():
        if old is not None and isinstance(record, ReferenceRole) and isinstance(record.reference, str):
            references[name] = old.file(record.reference).read_bytes()
    return references


def _read_tokenizer(bundle: Bundle | None, record: Role) -> str | None:
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


def _fill_offsets(roles: Mapping[str, Role], graphs: Mapping[str, ir.Model]) -> dict[str, Role]:
    """The records with the places that the tables of heads have got."""
    return {
        role: msgspec.structs.replace(record, head=describe_head(record.head.graph, graphs[record.head.graph]))
        if isinstance(record, LanguageModelRole) and isinstance(record.head, Head)
        else record
        for role, record in roles.items()
    }


def _write_graphs(folder: Path, graphs: Mapping[str, ir.Model]) -> None:
    """Save the graphs, and once each the weights that are too large to stay inside them."""
    extents: dict[bytes, tuple[int, int]] = {}
    with (folder / WEIGHTS).open("wb") as file:
        for name in sorted(graphs):
            for value in graphs[name].graph.initializers.values():
                tensor = value.const_value
                if tensor is None or tensor.nbytes <= INLINE_BYTES:
                    continue
                content = tensor.tobytes()
                # Type and shape are the graph's: it may read the same bytes as blocks, or as unsigned.
                key = hashlib.sha256(content).digest()
                if key not in extents:
                    file.write(b"\0" * (-file.tell() % ALIGNMENT))
                    extents[key] = (file.tell(), len(content))
                    file.write(content)
                offset, length = extents[key]
                value.const_value = ir.ExternalTensor(
                    WEIGHTS,
                    offset,
                    length,
                    tensor.dtype,
                    shape=ir.Shape(tensor.shape.numpy()),
                    name=str(value.name),
                    base_dir=folder,
                )
    if not extents:
        (folder / WEIGHTS).unlink()
    for name, graph in graphs.items():
        ir.save(graph, folder / name)


def _copy_role(old: Bundle, record: Role, folder: Path) -> dict[str, ir.Model]:
    """Copy the files of a kept role; return its graphs, whose weights are still in the old directory."""
    if isinstance(record, SpansRole):
        shutil.copytree(old.file(record.path), folder / record.path)
        return {}
    return {name: ir.load(old.file(name)) for name in (*record.graph_files, *record.target_files)}


def _copy_unlisted(old: Bundle, folder: Path) -> set[Path]:
    """Copy files that the manifest does not list, such as a README; return their relative paths."""
    listed = {*old.manifest.files, MANIFEST, RECORDED}
    present = {path.relative_to(old.directory) for path in old.directory.rglob("*") if path.is_file()}
    unlisted = {path for path in present if path.as_posix() not in listed}
    for path in unlisted:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(old.directory / path, folder / path)
    return unlisted


@contextmanager
def _replace_directory(out: Path) -> Iterator[Path]:
    """Yield a temporary directory that replaces ``out`` when the block succeeds and is deleted when it fails."""
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
