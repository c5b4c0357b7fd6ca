"""A detector's answers about labelled rows under any change of its head, from one pass of its encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from groundwire.engine import MetricResult, Options, Request
from groundwire.engine.schema.explanations import DetectorExplanation
from groundwire.metrics import ReadRequest, find, is_detector
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole
from groundwire.runtime.calls import Classify
from groundwire.runtime.errors import GroundwireError, InvalidRequest
from groundwire.runtime.models.classifier import Classifier
from groundwire.runtime.models.graphs import SplitCall
from groundwire.runtime.ort.session import DeviceProfile, Session, forward, softmax
from groundwire.runtime.texts.tokenization import TextEncoder, Window

from ..statistics.estimates import Floats
from .head import HeadChange

CHUNK = 32
"""Rows that are read between two reports of progress."""


class _Asked(NamedTuple):
    """A call of the detector about a row, and where its windows are."""

    call: Classify
    split: SplitCall
    windows: range


class DetectorAnswers:
    """What a detector's encoder says about the windows of some requests."""

    def __init__(self, role: str, record: ClassifierRole, classifier: Classifier, requests: Sequence[Request]) -> None:
        self._role, self._record, self._classifier = role, record, classifier
        self._requests = requests
        self._asked: list[list[_Asked]] = []
        self._supported = [record.labels.index(label) for label in record.supported]
        self.logits: Floats = np.zeros((0, len(record.labels)))
        """[windows, labels]"""
        self.features: Floats = np.zeros((0, 0))
        """[windows, features]: what the head reads, side by side."""
        self.margins: Floats = np.zeros(0)
        """The logit of "supported" of each window [windows], by the head as it is."""
        self.widths: tuple[int, ...] = ()
        """Widths of the outputs that the features are made of."""

    @classmethod
    def read(
        cls,
        bundle: Bundle,
        role: str,
        graph: Path,
        outputs: Sequence[str],
        requests: Sequence[Request],
        profile: DeviceProfile,
        watch: Callable[[int], None] = lambda done: None,
    ) -> DetectorAnswers:
        """Read all requests. ``graph`` returns ``outputs``, the features, beside what the role's own graph returns."""
        record = find_detector(bundle, role)
        session = Session.load(graph, profile)
        encoder = TextEncoder.load(bundle.file(record.tokenizer), record.max_tokens)
        # A graph's only output has no name in the record, but here it is not the only one.
        named = record if record.output else msgspec.structs.replace(record, head=session.outputs[0])
        answers = cls(role, record, Classifier(named, session, encoder, profile), requests)
        positions = [session.outputs.index(name) for name in outputs]
        logits: list[Floats] = []
        features: list[Floats] = []
        widths: tuple[int, ...] = ()
        for start in range(0, len(requests), CHUNK):
            windows = answers._ask(requests[start : start + CHUNK], sum(map(len, logits)))
            chunk: list[tuple[Floats, Floats]] = [(np.zeros(0), np.zeros(0))] * len(windows)
            for rows, _, values in forward(session, windows, record.pad_id, profile):
                widths = tuple(values[position].shape[1] for position in positions)
                for index, row in enumerate(rows):
                    chunk[row] = (
                        values[answers._classifier.output][index],
                        np.concatenate([values[position][index] for position in positions]),
                    )
            logits.append(np.array([of_window for of_window, _ in chunk], dtype=np.float64))
            features.append(np.array([of_window for _, of_window in chunk], dtype=np.float64))
            watch(min(start + CHUNK, len(requests)))
        answers.logits, answers.features = np.concatenate(logits), np.concatenate(features)
        answers.margins = answers._measure_margins()
        answers.widths = widths
        return answers

    def _measure_margins(self) -> Floats:
        rest = [index for index in range(len(self._record.labels)) if index not in self._supported]
        supported, others = (
            np.logaddexp.reduce(self.logits[:, columns], axis=1) for columns in (self._supported, rest)
        )
        return np.asarray(supported - others)

    def _ask(self, requests: Sequence[Request], first: int) -> list[Window]:
        """Note the calls about each request; the windows of them all, which are numbered from ``first``."""
        windows: list[Window] = []
        for request in requests:
            asked = []
            for call in next(self._start(request)):
                assert isinstance(call, Classify)
                split = self._classifier.split(call, Options().max_windows)
                start = first + len(windows)
                asked.append(_Asked(call, split, range(start, start + len(split.windows))))
                windows += split.windows
            self._asked.append(asked)
        return windows

    def _start(self, request: Request):  # type: ignore[no-untyped-def]
        metric = find(self._role)
        assert metric is not None
        return metric.compute(ReadRequest.of(request), Options(), lambda role: self._record.info)

    def result(self, row: int, change: HeadChange | None = None) -> MetricResult:
        """The metric's result about a request, as the engine computes it of a head with this change."""
        steps = self._start(self._requests[row])
        next(steps)
        answers = []
        for asked in self._asked[row]:
            where = slice(asked.windows.start, asked.windows.stop)
            logits = self.logits[where].copy()
            if change is not None:
                logits[:, self._supported] += change.change_margins(self.features[where])[:, None]
            answer = self._classifier.choose_label(asked.call, softmax(logits), asked.split.read)
            if isinstance(answer, GroundwireError):
                raise answer
            answers.append(answer)
        try:
            steps.send(answers)
        except StopIteration as stopped:
            result: MetricResult = stopped.value
            return result
        raise AssertionError("a detector asks once")

    def find_deciding(self, row: int) -> int:
        """The window that decides about a request: that which supports its response, or its worst sentence, most."""
        explanation = self.result(row).explanation
        assert isinstance(explanation, DetectorExplanation)
        scored = [asked.windows for asked in self._asked[row][: len(explanation.scored)]]
        deciding = [max(windows, key=self.margins.__getitem__) for windows in scored]
        return min(deciding, key=self.margins.__getitem__)


def find_detector(bundle: Bundle, role: str) -> ClassifierRole:
    """The record of a detector; InvalidRequest when the bundle has none of that name, or it cannot be tuned."""
    record = bundle.manifest.roles.get(role)
    if isinstance(record, ClassifierRole) and is_detector(role) and record.template.second is not None:
        return record
    roles = [
        name
        for name, other in bundle.manifest.roles.items()
        if is_detector(name) and isinstance(other, ClassifierRole) and other.template.second is not None
    ]
    raise InvalidRequest(
        f"{bundle.directory} has no detector {role!r} that reads knowledge and response; it has "
        f"{', '.join(roles) or 'none'}."
    )
