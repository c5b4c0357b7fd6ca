"""One graph that several roles read, each an output of it: what they ask about the same texts is one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..calls import Classify, ClassifyTokens, Read
from ..errors import BundleError, GroundwireError
from ..ort.forward import forward
from ..ort.session import DeviceProfile, Graph
from ..protocol import Outcome
from ..tokenization import Window
from .graphs import prepare_graph


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
        """The position of its output among those of the graph."""
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
    rows: dict[tuple[bytes, bytes], int] = {}
    windows: list[Window] = []
    for window in (window for of_call in calls for window in of_call):
        if rows.setdefault(_content(window), len(windows)) == len(windows):
            windows.append(window)
    outputs: list[list[NDArray[Any]]] = [[] for _ in windows]
    for batch, _, of_batch in forward(session, windows, pad_id, profile):
        for at, row in enumerate(batch):
            outputs[row] = [output[at] for output in of_batch]
    return [[outputs[rows[_content(window)]] for window in of_call] for of_call in calls]


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
