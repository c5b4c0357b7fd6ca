"""Bundles on the Hugging Face hub: ``hf://org/name@revision``.

Files are downloaded into the hub's own cache, as its other libraries do, and the environment variables of
``huggingface_hub`` hold: ``HF_HOME``, ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``. That cache consists of links;
a bundle's files are hard-linked or copied from it to ``HF_HOME/groundwire``, one directory per commit.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from ..errors import BundleError
from .decode import decode_json

PREFIX = "hf://"
MANIFEST = "bundle.json"
RECORDED = "recorded.msgpack"
"""The file with the models' answers to fixed calls; the manifest says whether there is one."""
TIMEOUT_S = 5
"""Seconds that the hub has to answer the first request."""
_REFERENCE = re.compile(r"hf://(?P<name>[\w-][\w.-]*/[\w-][\w.-]*)(?:@(?P<revision>[\w-][\w./-]*))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class _Manifest(msgspec.Struct):
    files: dict[str, Any]
    recorded: dict[str, Any] | None = None


def fetch(reference: str) -> Path:
    """Return the local directory of the bundle ``hf://org/name@revision``, downloaded when it is not in the cache.

    The revision is a commit, tag or branch; without one it is ``main``. Where the hub does not answer, and with
    ``HF_HUB_OFFLINE=1``, the revision that the cache has is taken; a commit that is here needs no hub. Only files that
    the manifest lists are taken. Raises BundleError for a malformed reference, and when the bundle is neither on the
    hub nor in the cache, or is incomplete.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise BundleError(f"{reference!r} is no bundle on the hub; write hf://ORG/NAME or hf://ORG/NAME@REVISION.")
    name, revision = match["name"], match["revision"] or "main"
    try:
        from huggingface_hub import constants, hf_hub_download, snapshot_download
    except ImportError as error:
        raise BundleError(f"{reference} needs huggingface_hub; run: pip install 'groundwire[hub]'") from error
    folder = Path(constants.HF_HOME, "groundwire", name.replace("/", "--"))
    if _COMMIT.fullmatch(revision) and (folder / revision).is_dir():
        return folder / revision
    reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else ask_hub(constants.ENDPOINT)
    source = {"cache_dir": constants.HF_HUB_CACHE, "local_files_only": reason is not None}
    try:
        manifest = Path(hf_hub_download(name, MANIFEST, revision=revision, **source))
        commit = manifest.parent.name
        if (folder / commit).is_dir():
            return folder / commit
        files = [MANIFEST, *_read_files(reference, manifest)]
        snapshot = Path(snapshot_download(name, revision=commit, allow_patterns=files, **source))
    except (OSError, ValueError) as error:
        detail = (
            f"{reason}, and the cache ({constants.HF_HUB_CACHE}) does not have it" if reason else str(error).strip()
        )
        raise BundleError(
            f"The bundle {reference} cannot be fetched: {detail.splitlines()[0]}. Check the name and the revision, "
            f"that it has a {MANIFEST}, and that you may read it (HF_TOKEN)."
        ) from error
    if missing := [file for file in files if not (snapshot / file).is_file()]:
        raise BundleError(f"The bundle {reference} is incomplete: it lacks {missing[0]} ({reason or 'on the hub'}).")
    _keep(snapshot, files, folder / commit)
    return folder / commit


def ask_hub(endpoint: str) -> str | None:
    """Return why the hub does not answer, or None when it does; an error that it answers with counts as an answer.

    It is asked once, for ``TIMEOUT_S``: the hub's own libraries try for a minute.
    """
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=TIMEOUT_S):
            return None
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        reason = getattr(error, "reason", error)
        # The connection was made; the hub's libraries may trust other authorities.
        return None if isinstance(reason, ssl.SSLError) else f"the hub ({endpoint}) does not answer: {reason}"


def _read_files(reference: str, manifest: Path) -> list[str]:
    def say(reason: str) -> BundleError:
        return BundleError(f"The {MANIFEST} of {reference} is damaged: {reason}.")

    listed = decode_json(manifest.read_bytes(), _Manifest, say)
    files = [*listed.files, *([RECORDED] if listed.recorded is not None else [])]
    for file in files:
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or "\0" in file or "\\" in file:
            raise BundleError(f"The {MANIFEST} of {reference} lists {file!r}, which is outside the bundle.")
    return files


def _keep(snapshot: Path, files: list[str], directory: Path) -> None:
    """Make ``directory`` a copy of the files, all at once: hard links where the file system has them."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix="part-") as folder:
            part = Path(folder, "bundle")
            for file in files:
                target = part / file
                target.parent.mkdir(parents=True, exist_ok=True)
                original = (snapshot / file).resolve()
                try:
                    os.link(original, target)
                except OSError:
                    shutil.copyfile(original, target)
            try:
                part.rename(directory)
            except OSError:
                if not directory.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        raise BundleError(
            f"{directory} cannot be written ({error.strerror}); set HF_HOME to a folder of yours."
        ) from error
