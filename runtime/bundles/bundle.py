"""Bundles: the directories that hold exported models, and their manifest ``bundle.json``.

Nothing of a bundle is executed: graphs are ONNX, tokenizers JSON, the spaCy pipeline is config and msgpack. No path of
a bundle leaves its directory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence, Set
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from ..errors import BundleError
from . import hub
from .calibration import Calibration
from .decode import decode_versioned
from .external_data import find_external_files
from .manifest import Canary, FileEntry, Manifest

MANIFEST, RECORDED = hub.MANIFEST, hub.RECORDED
MAX_MANIFEST_BYTES = 1 << 24
"""A larger manifest is refused unread; the embedded ones have some kilobytes."""
_DOCUMENT = re.compile(r"(README|LICENSE|NOTICE)[^/]*|[^/]*\.(md|txt)|report\.json|engines/.*")
"""Files that need not be listed: texts for people, and TensorRT's engines, which are built here for one GPU."""
ENTRY_POINTS = "groundwire.bundles"
"""A package brings a bundle by an entry point of this group: the bundle's name, and the dotted path of its folder."""
CHECKOUT = Path(__file__).resolve().parents[2] / "bundles"
"""The bundles of a checkout, which are taken before the bundles of packages; an installation has no such folder."""
SHIPPED = ("compact", "reader", "nph", "generator")
"""The bundles that ship with Groundwire, each in a package of its own: ``groundwire-compact`` and so on."""
COMPANIONS = {"compact": "reader"}
"""Bundles that load with another one where they are installed, by the name of the other."""


class Bundle:
    """An opened bundle: its directory and its manifest."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest

    @classmethod
    def open(cls, where: str | Path) -> Bundle:
        """Read the manifest of the bundle at ``where``: a directory, the name of an embedded bundle, or
        ``hf://org/name@revision``, which is downloaded once (``runtime/bundles/hub.py``).

        Raises BundleError when there is none, when it is damaged or of another schema, or when a file is missing, lies
        outside the directory, or has another size than the manifest says. ``verify`` compares the digests too.
        """
        directory = locate(where)
        path = directory / MANIFEST
        try:
            if path.is_file() and path.stat().st_size > MAX_MANIFEST_BYTES:
                raise BundleError(f"{path} has more than {MAX_MANIFEST_BYTES:,} bytes, so it is no manifest.")
            # A pipe or a device would be read without an end.
            raw = path.read_bytes() if path.is_file() or not path.exists() else b""
        except OSError as error:
            raise BundleError(
                f"{directory} is not a bundle: {MANIFEST} cannot be read ({error.strerror}). "
                "Give a directory written by `groundwire export`, or the name of an embedded bundle: "
                f"{', '.join(embedded()) or 'none'}."
            ) from error

        def say(reason: str) -> BundleError:
            return BundleError(f"{path} is damaged: {reason}. {_say_repair(directory)}")

        manifest = decode_versioned(raw, Manifest, path, say)
        bundle = cls(directory, manifest)
        for name, entry in manifest.files.items():
            if not bundle.file(name).is_file():
                raise BundleError(f"{directory / name} is no file, although the manifest lists it as one.")
            size = bundle.file(name).stat().st_size
            if size != entry.bytes:
                raise BundleError(
                    f"{directory / name} has {size} bytes; the manifest says {entry.bytes}. "
                    f"The file is damaged or incomplete. {_say_repair(directory)}"
                )
        return bundle

    def file(self, name: str) -> Path:
        """The path of a file that the manifest lists; BundleError when it is not listed or not there."""
        path = self.directory / name
        listed = name in self.manifest.files or any(other.startswith(f"{name}/") for other in self.manifest.files)
        if not listed or ".." in Path(name).parts or Path(name).is_absolute() or "\0" in name:
            raise BundleError(
                f"{self.directory / MANIFEST} does not list the file {name!r} that one of its roles uses."
            )
        try:
            inside = path.resolve(strict=True).is_relative_to(self.directory.resolve())
        except (OSError, RuntimeError) as error:
            raise BundleError(
                f"{path} is missing, although the manifest lists it. {_say_repair(self.directory)}"
            ) from error
        if not inside:
            raise BundleError(f"{path} is a link that leaves the bundle; copy the file into its place.")
        return path

    def calibrate(self, calibration: Calibration | None) -> Bundle:
        """Write another calibration, or none, into the manifest, and return the bundle as it is then.

        The manifest is replaced in one step; BundleError when its directory cannot be written.
        """
        return self.rewrite(msgspec.structs.replace(self.manifest, calibration=calibration))

    def record(self, canaries: dict[str, tuple[Canary, ...]], answers: bytes | None = None) -> Bundle:
        """Write what ``warmup`` compares with into the manifest, as ``calibrate`` does, and what ``certify`` compares
        with into the bundle: the content of ``recorded.py``; None for none."""
        manifest = msgspec.structs.replace(self.manifest, canaries=canaries, recorded=msgspec.UNSET)
        path = self.directory / RECORDED
        if answers is None:
            path.unlink(missing_ok=True)
            return self.rewrite(manifest)
        try:
            path.write_bytes(answers)
        except OSError as error:
            raise BundleError(f"{path} cannot be written ({error.strerror}); copy the bundle.") from error
        entry = FileEntry(len(answers), hashlib.sha256(answers).hexdigest())
        return self.rewrite(msgspec.structs.replace(manifest, recorded=entry))

    def read_recorded(self) -> bytes | None:
        """The content of the recorded answers; None where there are none. BundleError when it is not as recorded."""
        if not isinstance(self.manifest.recorded, FileEntry):
            return None
        path = self.directory / RECORDED
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BundleError(f"{path} cannot be read ({error.strerror}): restore it.") from error
        if hashlib.sha256(content).hexdigest() != self.manifest.recorded.sha256:
            raise BundleError(f"{path} was changed after it was recorded: restore it, or record the bundle again.")
        return content

    def rewrite(self, manifest: Manifest) -> Bundle:
        """Write another manifest, as ``calibrate`` does."""
        path = self.directory / MANIFEST
        partial = path.with_suffix(".part")
        try:
            partial.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
            partial.replace(path)
        except OSError as error:
            raise BundleError(
                f"{path} cannot be written ({error.strerror}); copy the bundle, or write a file."
            ) from error
        return Bundle(self.directory, manifest)

    def select_roles(self, names: Set[str]) -> Bundle:
        """Return the bundle with these of its roles alone; nothing is written."""
        roles = {name: role for name, role in self.manifest.roles.items() if name in names}
        canaries = {name: canary for name, canary in (self.manifest.canaries or {}).items() if name in names}
        return Bundle(self.directory, msgspec.structs.replace(self.manifest, roles=roles, canaries=canaries))

    def verify(self) -> None:
        """Compare every file with its digest, and look for files that the manifest does not list.

        BundleError names the first file that differs, with both digests; a file that is there but not listed; or a
        graph whose weights are in a file that is not listed.
        """
        for path in sorted(self.directory.rglob("*")):
            name = path.relative_to(self.directory).as_posix()
            if path.is_dir() and not path.is_symlink():
                continue
            if name not in self.manifest.files and name not in (MANIFEST, RECORDED) and not _DOCUMENT.fullmatch(name):
                raise BundleError(
                    f"{path} is there, but the manifest does not list it. Remove it, or export the bundle again."
                )
        for name, entry in self.manifest.files.items():
            digest = sha256(self.file(name))
            if digest != entry.sha256:
                raise BundleError(
                    f"{self.directory / name} has SHA-256 {digest[:16]}…; the manifest says {entry.sha256[:16]}…. "
                    f"The file was changed after the export. {_say_repair(self.directory)}"
                )
        self.read_recorded()
        for role in self.manifest.roles.values():
            for graph in (*role.graph_files, *role.target_files):
                for location in sorted(find_external_files(self.file(graph)) - self.manifest.files.keys()):
                    raise BundleError(
                        f"{self.directory / graph} keeps weights in {location!r}, which the manifest does not list."
                    )


def open_bundles(bundle: str | Path, extra: Sequence[str | Path] = ()) -> list[Bundle]:
    """Open a bundle and further ones, and the companion of the first if it is installed and shares no role with them.

    An ``extra`` ``ROLE=BUNDLE`` opens this role alone, in place of the role of that name in the bundles before
    it. Raises BundleError as ``Bundle.open`` does, and for a role that such a bundle lacks.
    """
    opened = [Bundle.open(bundle)]
    for name in extra:
        role, where = split_role(name)
        added = Bundle.open(where)
        if role:
            if role not in added.manifest.roles:
                has = ", ".join(added.manifest.roles)
                raise BundleError(f"{added.directory} has no role {role!r}; name one of {has}.")
            opened = [other.select_roles(other.manifest.roles.keys() - {role}) for other in opened]
            added = added.select_roles({role})
        opened.append(added)
    companion = COMPANIONS.get(bundle) if isinstance(bundle, str) else None
    if companion in embedded():
        added = Bundle.open(str(companion))
        if not any(added.manifest.roles.keys() & other.manifest.roles.keys() for other in opened):
            opened.append(added)
    return opened


def split_role(extra: str | Path) -> tuple[str, str | Path]:
    """The role, empty for all of them, and the bundle that an ``extra`` names.

    >>> split_role("nli=my-bundle"), split_role("my-bundle")
    (('nli', 'my-bundle'), ('', 'my-bundle'))
    """
    role, equals, where = extra.partition("=") if isinstance(extra, str) else ("", "", "")
    is_pair = role and equals and "/" not in role and not Path(extra).exists()
    return (role, where) if is_pair else ("", extra)


def embedded() -> tuple[str, ...]:
    """Names of the embedded bundles, in the checkout and in installed packages."""
    in_checkout = (path.parent.name for path in CHECKOUT.glob(f"*/{MANIFEST}"))
    return tuple(sorted({*in_checkout, *(entry.name for entry in entry_points(group=ENTRY_POINTS))}))


def check_exists(where: str | Path) -> None:
    """Raise BundleError unless ``where`` names a directory or an embedded bundle; the hub is not asked."""
    if not str(where).startswith(hub.PREFIX):
        locate(where)


def locate(where: str | Path) -> Path:
    """The directory ``where`` names: an embedded bundle's name, a path, or ``hf://org/name@revision`` on the hub."""
    if isinstance(where, str) and where.startswith(hub.PREFIX):
        return hub.fetch(where)
    path = Path(where)
    if isinstance(where, str) and where in embedded():
        return _find_embedded(where)
    if not path.is_dir():
        if where in SHIPPED:
            raise BundleError(f"The bundle {where!r} is not installed: pip install groundwire-{where}")
        packages = " ".join(f"groundwire-{name}" for name in SHIPPED)
        raise BundleError(
            f"No bundle {str(where)!r}: it is neither a directory nor an embedded bundle "
            f"({', '.join(embedded()) or f'none is installed: pip install {packages}'})."
        )
    return path


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _say_repair(directory: Path) -> str:
    """What to do about a file that is damaged: a bundle that a package has brought is installed again."""
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            brought = Path(next(iter(entry.load().__path__)))
        except (ImportError, AttributeError):
            continue
        if entry.dist and brought.resolve() == directory.resolve():
            return f"Install the bundle again: pip install --force-reinstall {entry.dist.name}"
    return "Restore the file, or export the bundle again."


def _find_embedded(name: str) -> Path:
    if (CHECKOUT / name / MANIFEST).is_file():
        return CHECKOUT / name
    entry = entry_points(group=ENTRY_POINTS)[name]
    try:
        return Path(next(iter(entry.load().__path__)))
    except (ImportError, AttributeError) as error:
        package = entry.dist.name if entry.dist else entry.value
        raise BundleError(
            f"The package {package}, which brings the bundle {name!r}, is damaged: {error}. "
            f"Install it again: pip install --force-reinstall {package}"
        ) from error
