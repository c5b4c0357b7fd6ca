"""Bundles whose encoders have targets, without the minutes that an export of them takes."""

from __future__ import annotations

from typing import Any

import msgspec

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EncoderRole, ShapePlan, Target

PLAN = ShapePlan((32, 64, 512), 32768, 512, 16)


def add_targets(compact: Bundle) -> Bundle:
    """The bundle as if each encoder had a target for TensorRT, of the same graph."""
    roles: dict[str, Any] = {}
    for name, role in compact.manifest.roles.items():
        if isinstance(role, EncoderRole):
            target = Target(role.graph, "fp16", plan=PLAN)
            role = msgspec.structs.replace(role, targets={"tensorrt": target, "cuda": target})
        roles[name] = role
    return Bundle(compact.directory, msgspec.structs.replace(compact.manifest, roles=roles))
