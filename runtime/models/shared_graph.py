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
    errors: dict[int, GroundwireError] = {}
    splits: dict[int, SplitCall] = {}
    rows: dict[tuple[bytes, bytes], int] = {}
    rows_of: dict[int, list[int]] = {}
    windows: list[Window] = []
    for index, (head, call) in enumerate(calls):
        try:
            splits[index] = head.split(call, max_windows)
        except GroundwireError as error:
            errors[index] = error
            continue
        rows_of[index] = []
        for window in splits[index].windows:
            row = rows.setdefault(_content(window), len(windows))
            if row == len(windows):
                windows.append(window)
            rows_of[index].append(row)
    outputs: list[list[NDArray[Any]]] = [[] for _ in windows]
    for batch, _, of_batch in forward(session, windows, calls[0][0].pad_id if calls else 0, profile):
        for at, row in enumerate(batch):
            outputs[row] = [output[at] for output in of_batch]
    return [
        errors[index]
        if index in errors
        else head.conclude(call, splits[index], [outputs[row][head.output] for row in rows_of[index]])
        for index, (head, call) in enumerate(calls)
    ]


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
