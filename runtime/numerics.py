"""Small numerical functions that several models share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Row-wise softmax in double precision."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))
