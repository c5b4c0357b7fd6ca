"""The kinds of models: for each role record, how its model is loaded, warmed up and batched.

A new kind is a role record in ``groundwire.runtime.bundles.manifest`` (with its graph files), a model beside this file,
and its line here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from ..bundles.bundle import Bundle
from ..bundles.manifest import (
    ClassifierRole,
    EmbedderRole,
    ExtractiveQARole,
    JudgeRole,
    LanguageModelRole,
    QuestionGeneratorRole,
    ReaderRole,
    ResponseGeneratorRole,
    RetrieverRole,
    Role,
    SpansRole,
    TokenClassifierRole,
)
from ..calls import (
    FAITHFUL,
    Answer,
    BeamSearch,
    Call,
    Candidate,
    Classify,
    ClassifyTokens,
    Embed,
    FindSpans,
    Generate,
    GenerateQuestions,
    IsPersonal,
    ReadAnswer,
    Retrieve,
    ScoreText,
)
from ..ort.session import DeviceProfile
from ..protocol import Outcome
from ..triples import Triple
from .classifier import Classifier, TokenClassifier
from .embedder import Embedder
from .extractive_qa import ExtractiveQA
from .judge import Judge
from .language_model import LanguageModel
from .question_generator import QuestionGenerator, decoding_width
from .reader import AnswerReader
from .response_generator import ResponseGenerator
from .retriever import Retriever
from .span_finder import SpanFinder

_TEXT = "Groundwire was warmed up in 2026."


class Model(Protocol):
    """What answers the calls of one role."""

    def run(self, calls: Sequence[Any], max_windows: int) -> Sequence[Outcome]:
        """One result or error per call, in order; the calls share batches but not results."""
        ...


def _max_rows(role: Any, profile: DeviceProfile) -> int:
    return profile.max_rows


@runtime_checkable
class Prepared(Protocol):
    """A model that can do once what its first runs would do."""

    def prepare(self) -> None:
        """Capture its graphs at every shape, on a GPU."""
        ...


@dataclass(frozen=True)
class ModelKind:
    """How the models of one kind of role are used."""

    role: type[Role]
    load: Callable[[Bundle, Any, DeviceProfile], Model]
    warm_calls: Callable[[str], Sequence[Call]]
    """Calls, for the role of that name, that make the model run once."""
    batch: Callable[[Any, DeviceProfile], int] = _max_rows
    """Calls of a batch: enough to fill the device, few enough that a new request does not wait for long."""
    pool: Literal["device", "host"] = "device"
    """The worker pool whose threads run it."""


def _load_spans(bundle: Bundle, role: SpansRole, profile: DeviceProfile) -> SpanFinder:
    return SpanFinder.load(bundle.file(role.path))


_KINDS = (
    ModelKind(ExtractiveQARole, ExtractiveQA.load, lambda role: [Answer("when?", (_TEXT,))]),
    ModelKind(ClassifierRole, Classifier.load, lambda role: [Classify(role, (_TEXT,), _TEXT)]),
    ModelKind(JudgeRole, Judge.load, lambda role: [Classify(role, (_TEXT,), _TEXT)]),
    ModelKind(TokenClassifierRole, TokenClassifier.load, lambda role: [ClassifyTokens(role, (_TEXT,), _TEXT)]),
    ModelKind(ReaderRole, AnswerReader.load, lambda role: [ReadAnswer(role, (_TEXT,), (), _TEXT, ((0, len(_TEXT)),))]),
    ModelKind(EmbedderRole, Embedder.load, lambda role: [Embed(_TEXT)]),
    ModelKind(
        QuestionGeneratorRole,
        QuestionGenerator.load,
        lambda role: [GenerateQuestions("2026", _TEXT, BeamSearch(max_new_tokens=7))],
        lambda role, profile: max(1, decoding_width(role, profile) // BeamSearch().num_beams),
    ),
    ModelKind(
        ResponseGeneratorRole,
        ResponseGenerator.load,
        lambda role: [Generate((_TEXT,), (_TEXT,), msgspec.structs.replace(FAITHFUL, max_new_tokens=7))],
        lambda role, profile: max(1, profile.max_beams // (2 * FAITHFUL.num_beams)),
    ),
    ModelKind(
        LanguageModelRole,
        LanguageModel.load,
        lambda role: [ScoreText((_TEXT,), _TEXT)],
        # Each call may bring a prefix of its own, which is a long text to read.
        lambda role, profile: max(1, profile.max_rows // 2),
    ),
    ModelKind(
        RetrieverRole,
        Retriever.load,
        lambda role: [
            Retrieve(
                (_TEXT,),
                (Triple("Groundwire", "made in", "2026"),),
                _TEXT,
                ((0, 10),),
                ((Candidate("Groundwire", "2026"),),),
            )
        ],
    ),
    ModelKind(
        SpansRole,
        _load_spans,
        lambda role: [FindSpans(_TEXT), IsPersonal("what is my name?")],
        lambda role, profile: 8,
        "host",
    ),
)
KINDS: dict[type[Role], ModelKind] = {kind.role: kind for kind in _KINDS}
"""By the type of the role record."""


def kind_of(role: Role) -> ModelKind:
    """The kind of a role of a bundle."""
    return KINDS[type(role)]
