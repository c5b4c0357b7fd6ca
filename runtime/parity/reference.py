"""The logits of a role's checkpoint on fixed texts, kept in the bundle: they show on any machine, without torch,
whether a graph computes there what the checkpoint did.

The file is NumPy's ``npz``. It has tokens and not texts, so the tokenizer has no part in the comparison.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BundleError
from ..texts.tokenization import Window

_LENGTHS, _IDS, _TYPES, _OUTPUT, _PER_TOKEN = "lengths", "input_ids", "token_type_ids", "output.", "per_token"


@dataclass(frozen=True)
class ReferenceLogits:
    """What a checkpoint gives for fixed texts."""

    windows: list[Window]
    """The texts as model inputs."""
    outputs: list[list[NDArray[np.float32]]]
    """For each text, the outputs of the checkpoint: of each token [T] or [T, L], or of the text [L]."""
    per_token: tuple[bool, ...]
    """For each output, whether it has an axis of tokens."""

    def encode(self) -> bytes:
        """The content of the file."""
        arrays: dict[str, NDArray[Any]] = {
            _LENGTHS: np.array([len(window.ids) for window in self.windows], np.int32),
            _IDS: np.array([token for window in self.windows for token in window.ids], np.int32),
            _TYPES: np.array([kind for window in self.windows for kind in window.type_ids], np.int32),
            _PER_TOKEN: np.array(self.per_token),
        }
        for index, rows in enumerate(zip(*self.outputs, strict=True)):
            joined = np.concatenate(rows) if self.per_token[index] else np.stack(rows)
            arrays[f"{_OUTPUT}{index}"] = joined.astype(np.float32)
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return file.getvalue()

    @classmethod
    def read(cls, path: Path) -> ReferenceLogits:
        """Read the file; BundleError when it is damaged."""
        try:
            with np.load(path, allow_pickle=False) as content:
                arrays = {name: content[name] for name in content.files}
            lengths = arrays[_LENGTHS]
            ends = np.cumsum(lengths)[:-1]
            ids, types = (np.split(arrays[name], ends) for name in (_IDS, _TYPES))
            windows = [_make_window(*pair) for pair in zip(ids, types, strict=True)]
            if [len(window.ids) for window in windows] != lengths.tolist():
                raise ValueError("the lengths are not those of the texts")
            columns = [array for name, array in sorted(arrays.items()) if name.startswith(_OUTPUT)]
            # Other roles than readers have one value for all outputs.
            per_token = tuple(np.broadcast_to(arrays[_PER_TOKEN], len(columns)).tolist())
            rows = [
                np.split(array, ends) if of_tokens else list(array)
                for array, of_tokens in zip(columns, per_token, strict=True)
            ]
            outputs = [list(text) for text in zip(*rows, strict=True)]
            if len(outputs) != len(windows) or not windows:
                raise ValueError("there are not as many outputs as texts")
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise BundleError(f"{path} is damaged: {error}. Restore the file, or export the bundle again.") from error
        return cls(windows, outputs, per_token)


def _make_window(ids: NDArray[np.int32], types: NDArray[np.int32]) -> Window:
    return Window(ids.tolist(), types.tolist(), [None] * len(ids), [(0, 0)] * len(ids))
