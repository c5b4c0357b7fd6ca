"""Checks where checkpoints are before anything large is imported or downloaded. Needs no torch."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from groundwire.runtime.bundles.hub import ask_hub
from groundwire.runtime.errors import ExportError

from .options import RoleOptions

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def is_gguf(source: str) -> bool:
    """Return whether ``source`` is named as llama.cpp's format is."""
    return source.endswith(".gguf")


def is_alignscore(source: str) -> bool:
    """Return whether ``source`` is named as PyTorch Lightning names its checkpoints, and so AlignScore's."""
    return source.endswith(".ckpt")


def is_local(source: str) -> bool:
    """Return whether ``source`` is a directory, a GGUF file or AlignScore's; False for a hub id.

    Raises ExportError for a path that does not exist, for another file, and for what is neither a path nor a hub id.
    """
    path = Path(source)
    if path.is_dir() or (path.is_file() and (is_gguf(source) or is_alignscore(source))):
        return True
    if path.exists():
        raise ExportError(f"{source!r} is a file; give the directory that save_pretrained wrote, or a .gguf file.")
    if not _HUB_ID.fullmatch(source):
        raise ExportError(
            f"There is no directory {source!r}. Give a directory that save_pretrained wrote (model and tokenizer), or "
            "a hub id such as org/name."
        )
    return False


def check_hub(options: Sequence[RoleOptions]) -> None:
    """Check that every checkpoint is here or can be downloaded.

    When the hub does not answer but its cache has every checkpoint, Hugging Face's libraries are set to work offline,
    because otherwise they ask the hub many times for each file. Raises ExportError, naming the checkpoints that are
    missing, when the hub does not answer or ``HF_HUB_OFFLINE`` is set.
    """
    from huggingface_hub import constants

    remote = [role for role in options if not is_local(role.source)]
    missing = [role.source for role in remote if not _is_cached(role)]
    if not remote:
        return
    reason = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else ask_hub(constants.ENDPOINT)
    if reason is None:
        return
    if missing:
        raise ExportError(
            f"Not on this machine: {', '.join(dict.fromkeys(missing))}. {reason[0].upper()}{reason[1:]}. Connect to "
            "the hub, give a directory with --source or --replace ROLE=DIR, or copy a cache of the hub here (HF_HOME)."
        )
    os.environ["HF_HUB_OFFLINE"] = "1"
    constants.HF_HUB_OFFLINE = True


def _is_cached(options: RoleOptions) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(options.source, "config.json", revision=options.revision), str)
