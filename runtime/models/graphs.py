"""Graphs of roles: which graph of a role a device runs, how it is opened, and the passes of roles that share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..bundles.bundle import Bundle
from ..bundles.manifest import EncoderRole, PassRole, QuestionGeneratorRole, Role, ShapePlan, Target
from ..calls import Classify, ClassifyTokens, Read
from ..capture.encoder import CapturedEncoder
from ..capture.memory import Sizes
from ..errors import BundleError, DeviceError, GroundwireError
from ..ort.device import Device
from ..ort.remote import open_graph
from ..ort.session import DeviceProfile, Graph, forward
from ..protocol import Outcome
from ..tensorrt.engine import TensorRTEngine
from ..tensorrt.library import LIBRARIES
from ..texts.tokenization import Window


def place_role(name: str, role: Role, profile: DeviceProfile) -> tuple[Role, DeviceProfile]:
    """The role's record with the graph and precision that the device of ``profile`` runs, and the profile of its graph.

    TensorRT runs encoders; the other kinds run on CUDA beside it, and so do readers and embedders without a target for
    it. DeviceError for another encoder without a target.
    A model server runs the graphs of the kind of device that it names, and a question generator's own.
    """
    device = profile.device if profile.server is None else Device(profile.server.device)
    if isinstance(role, QuestionGeneratorRole) and profile.server is None and (graphs := role.find_target(device.kind)):
        role = msgspec.structs.replace(
            role, encoder=graphs.encoder, decoder=graphs.decoder, precision=graphs.precision, parity=graphs.parity
        )
    target = role.find_target(device.kind) if isinstance(role, PassRole) else None
    if target is not None:
        placed = msgspec.structs.replace(role, graph=target.graph, precision=target.precision, parity=target.parity)
        return (msgspec.structs.replace(placed, head=msgspec.UNSET) if hasattr(placed, "head") else placed), profile
    if device.runs_engines and isinstance(role, EncoderRole):
        raise DeviceError(
            f"The role {name!r} has no target for {LIBRARIES[device.kind].title}. Add it: groundwire export {name} "
            f"--source {role.source} --target {device.kind} --precision fp16 --out BUNDLE, then groundwire bundle "
            f"compile BUNDLE --device {device.kind}; or use device='cuda'."
        )
    if not device.runs_engines or profile.server is not None:
        return role, profile
    return role, replace(profile, device=replace(device, kind="cuda"))


def load_graph(bundle: Bundle, role: PassRole, profile: DeviceProfile) -> Graph:
    """Open the graph of a role that ``place_role`` returned: an engine for TensorRT, else what ``open_graph`` opens.

    Raises BundleError, or DeviceError when no engine fits, as ``TensorRTEngine.load`` does.
    """
    target = role.find_target(profile.device.kind)
    if profile.device.runs_engines and target is not None:
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


def check_plan(bundle: Bundle, role: PassRole, target: Target) -> ShapePlan:
    """The shapes of a target for TensorRT; BundleError when there are none for the longest texts of the role."""
    if target.plan is None or target.plan.widths[-1] < role.max_tokens:
        raise BundleError(
            f"The target {target.graph} of {bundle.directory} has no shapes for texts of {role.max_tokens} tokens. "
            "Export it again."
        )
    return target.plan


class SplitCall(NamedTuple):
    """A call as model inputs."""

    windows: list[Window]
    read: Read


class GraphHead(Protocol):
    """A role that reads one output of an encoder graph."""

    @property
    def pad_id(self) -> int:
        """The token that fills a row."""
        ...

    @property
    def output(self) -> int:
        """The position of its output among the outputs of the graph."""
        ...

    def split(self, call: Any, max_windows: int) -> SplitCall:
        """The windows of a call; raises what is wrong with its texts."""
        ...

    def conclude(self, call: Any, split: SplitCall, logits: Sequence[NDArray[Any]]) -> Outcome:
        """The result of a call, from its output for each of its windows, padding included."""
        ...


class SharedGraph:
    """The model of all roles of one graph."""

    def __init__(self, session: Graph, heads: Mapping[str, GraphHead], profile: DeviceProfile) -> None:
        if len({head.pad_id for head in heads.values()}) > 1:
            raise BundleError(f"The roles {', '.join(heads)} share a graph and pad differently; export them again.")
        self._session = session
        self._heads = dict(heads)
        self._profile = profile

    def prepare(self) -> None:
        """Capture the graph at every shape, on a GPU."""
        prepare_graph(self._session)

    def run(self, calls: Sequence[Classify | ClassifyTokens], max_windows: int) -> list[Outcome]:
        """One result per call, in order, of whatever roles; a call that cannot be read gets its error instead."""
        return run_heads(self._session, [(self._heads[call.role], call) for call in calls], max_windows, self._profile)


def run_heads(
    session: Graph, calls: Sequence[tuple[GraphHead, Any]], max_windows: int, profile: DeviceProfile
) -> list[Outcome]:
    """One result or error per call of a head of ``session``'s graph. Windows of equal tokens are read once."""
    splits: list[SplitCall | GroundwireError] = []
    for head, call in calls:
        try:
            splits.append(head.split(call, max_windows))
        except GroundwireError as error:
            splits.append(error)
    windows = [[] if isinstance(split, GroundwireError) else split.windows for split in splits]
    outputs = run_windows(session, windows, calls[0][0].pad_id if calls else 0, profile)
    return [
        split
        if isinstance(split, GroundwireError)
        else head.conclude(call, split, [of_window[head.output] for of_window in of_call])
        for (head, call), split, of_call in zip(calls, splits, outputs, strict=True)
    ]


def run_windows(
    session: Graph, calls: Sequence[Sequence[Window]], pad_id: int, profile: DeviceProfile
) -> list[list[list[NDArray[Any]]]]:
    """All outputs of the graph for each window of each call, padding included. Equal windows are read once."""
    contents = [[_content(window) for window in of_call] for of_call in calls]
    windows = dict(zip(chain.from_iterable(contents), chain.from_iterable(calls), strict=True))
    keys = list(windows)
    outputs: dict[tuple[bytes, bytes], list[NDArray[Any]]] = {}
    for rows, _, of_batch in forward(session, list(windows.values()), pad_id, profile):
        outputs |= {keys[row]: [output[index] for output in of_batch] for index, row in enumerate(rows.tolist())}
    return [[outputs[content] for content in of_call] for of_call in contents]


def find_output(outputs: Sequence[str], wanted: str | None, graph: str) -> int:
    """The position of the output ``wanted`` of a graph; None: its only one. BundleError if there is none."""
    for index, output in enumerate(outputs):
        if output == wanted or (wanted is None and len(outputs) == 1):
            return index
    raise BundleError(
        f"{graph} has the outputs {', '.join(outputs)}, and the role reads {wanted or 'the only one'}. "
        "Export the bundle again."
    )


def _content(window: Window) -> tuple[bytes, bytes]:
    return np.asarray(window.ids, np.int32).tobytes(), np.asarray(window.type_ids, np.int32).tobytes()
