"""Which graph of a role a device runs, and how it is opened."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import msgspec

from ..bundle import Bundle
from ..capture.encoder import CapturedEncoder
from ..capture.memory import Sizes
from ..errors import BundleError, DeviceError
from ..manifest import EncoderRole, QuestionGeneratorRole, Role, ShapePlan, Target
from ..ort.device import Device
from ..ort.remote import open_graph
from ..ort.session import DeviceProfile, Graph
from ..tensorrt.engine import TensorRTEngine


def place_role(name: str, role: Role, profile: DeviceProfile) -> tuple[Role, DeviceProfile]:
    """The role's record with the graph and precision that the device of ``profile`` runs, and the profile of its graph.

    TensorRT runs encoders; the other kinds run on CUDA beside it. DeviceError for an encoder without a target for it.
    A model server runs the graphs of the kind of device that it names, and a question generator's own.
    """
    device = profile.device if profile.server is None else Device(profile.server.device)
    if isinstance(role, QuestionGeneratorRole) and profile.server is None and (graphs := role.find_target(device.kind)):
        role = msgspec.structs.replace(
            role, encoder=graphs.encoder, decoder=graphs.decoder, precision=graphs.precision, parity=graphs.parity
        )
    target = role.find_target(device.kind) if isinstance(role, EncoderRole) else None
    if target is not None:
        placed = msgspec.structs.replace(role, graph=target.graph, precision=target.precision, parity=target.parity)
        return (msgspec.structs.replace(placed, head=msgspec.UNSET) if hasattr(placed, "head") else placed), profile
    if device.kind == "tensorrt" and isinstance(role, EncoderRole):
        raise DeviceError(
            f"The role {name!r} has no target for TensorRT. Add it: groundwire export {name} --source {role.source} "
            "--target tensorrt --precision fp16 --out BUNDLE, then groundwire bundle compile BUNDLE; or use "
            "device='cuda'."
        )
    if device.kind != "tensorrt" or profile.server is not None:
        return role, profile
    return role, replace(profile, device=replace(device, kind="cuda"))


def load_graph(bundle: Bundle, role: EncoderRole, profile: DeviceProfile) -> Graph:
    """Open the graph of a role that ``place_role`` returned: an engine for TensorRT, else what ``open_graph`` opens.

    Raises BundleError, or DeviceError when there is no engine that fits, as ``TensorRTEngine.load`` does.
    """
    target = role.find_target("tensorrt")
    if profile.device.kind == "tensorrt" and target is not None:
        check_plan(bundle, role, target)
        return TensorRTEngine.load(bundle, target, profile.device)
    return load_encoder(bundle, role.graph, role.max_tokens, profile)


def load_encoder(
    bundle: Bundle, graph: str, max_tokens: int, profile: DeviceProfile, fixed: Sizes = MappingProxyType({})
) -> Graph:
    """Open a graph of token inputs whose window has ``max_tokens``; see ``captures_graphs``. In an arena that graphs
    share, a replay would overwrite values of others. ``fixed`` are the sizes of further axes where it is captured."""
    if not captures_graphs(profile):
        return open_graph(bundle, graph, profile)
    try:
        return CapturedEncoder.load(bundle.file(graph), max_tokens, profile, fixed)
    except KeyError:  # axes or types that ``CapturedEncoder`` does not know
        return open_graph(bundle, graph, profile)


def captures_graphs(profile: DeviceProfile) -> bool:
    """Whether graphs run at captured shapes: on CUDA, unless they share an arena (``DeviceProfile.memory_mb``)."""
    return profile.device.kind == "cuda" and profile.memory_mb is None and profile.server is None


def prepare_graph(graph: Graph) -> None:
    """Capture every shape of a graph that has captured ones."""
    if isinstance(graph, CapturedEncoder):
        graph.prepare()


def check_plan(bundle: Bundle, role: EncoderRole, target: Target) -> ShapePlan:
    """The shapes of a target for TensorRT; BundleError when there are none for the longest texts of the role."""
    if target.plan is None or target.plan.widths[-1] < role.max_tokens:
        raise BundleError(
            f"The target {target.graph} of {bundle.directory} has no shapes for texts of {role.max_tokens} tokens. "
            "Export it again."
        )
    return target.plan
