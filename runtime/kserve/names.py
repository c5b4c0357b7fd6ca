"""The names of a bundle's graphs on a model server."""

from __future__ import annotations

import hashlib
import re

from ..bundles.bundle import Bundle
from ..bundles.external_data import find_external_files

_DIGITS = 12


def name_model(bundle: Bundle, graph: str) -> str:
    """The name of a graph: bundle, file, and twelve digits of a digest of graph and weights, ``compact.nli-0f3a…``.

    Other weights have another name, so that a server that was not updated lacks the model instead of answering with an
    old one.
    """
    files = [graph, *sorted(find_external_files(bundle.file(graph)))]
    digest = hashlib.sha256("".join(bundle.manifest.files[file].sha256 for file in files).encode()).hexdigest()
    name = f"{bundle.manifest.name}.{graph.removesuffix('.onnx')}-{digest[:_DIGITS]}"
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)
