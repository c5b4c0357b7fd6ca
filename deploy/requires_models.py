"""What the build asks for the dependencies: wheels and the sdist require the packages of the embedded models.

An editable installation does not: it reads ``bundles/`` of its checkout. ``pyproject.toml`` names the packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_state = "wheel"


def build_state(state: str) -> None:
    """Take what is being built: ``sdist``, ``wheel``, ``metadata_wheel``, ``editable`` or ``metadata_editable``."""
    global _state
    _state = state


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is added to the dependencies that ``pyproject.toml`` lists."""
    return {"dependencies": [] if _state.endswith("editable") else list(settings["models"])}
