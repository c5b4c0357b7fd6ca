"""A runtime over bundles on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from .bundle import (
    Bundle,
    ClassifierRole,
    EmbedderRole,
    ExtractiveQARole,
    LanguageModelRole,
    QuestionGeneratorRole,
    ResponseGeneratorRole,
    RetrieverRole,
    Role,
    SpansRole,
    TokenClassifierRole,
)
from .calibration import Calibration
from .calls import (
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
    Retrieve,
    ScoreText,
    SequencePart,
)
from .errors import BundleError, GroundwireError, InvalidRequest, ModelError
from .models.classifier import Classifier
from .models.embedder import Embedder
from .models.extractive_qa import ExtractiveQA
from .models.language_model import LanguageModel
from .models.question_generator import QuestionGenerator
from .models.response_generator import ResponseGenerator
from .models.retriever import Retriever
from .models.span_finder import SpanFinder
from .models.token_classifier import TokenClassifier
from .ort.session import DeviceChoice, DeviceProfile, choose_device
from .protocol import Identity, Outcome, RoleInfo
from .triples import Triple

LOADERS = 2
"""Roles that load at the same time."""


class LocalRuntime:
    """The models of one bundle, or of several that share no role, on this machine."""

    def __init__(
        self, bundle: Bundle, profile: DeviceProfile, models: Mapping[str, Any], extra: Sequence[Bundle] = ()
    ) -> None:
        self._models = dict(models)
        self._roles = _together((bundle, *extra))
        self.bundle = bundle
        self.profile = profile
        manifests = [each.manifest for each in (bundle, *extra)]
        precisions = {role.precision for role, _ in self._roles.values() if not isinstance(role, SpansRole)}
        self._identity = Identity(
            "+".join(manifest.name for manifest in manifests),
            "+".join(manifest.digest() for manifest in manifests),
            "+".join(sorted(precisions)),
            profile.device,
        )

    @classmethod
    def load(
        cls,
        bundle: str | Path,
        device: DeviceChoice = "auto",
        precision: str | None = None,
        threads: int | None = None,
        extra: Sequence[str | Path] = (),
    ) -> LocalRuntime:
        """Open every role of a bundle, and of the bundles in ``extra``.

        ``precision`` refuses a bundle whose graphs have another one; ``threads`` bounds the CPU threads of one graph
        run, and how many run at the same time (default: the processors this process may use). Raises BundleError, also
        when two bundles have the same role, or DeviceError.
        """
        if isinstance(extra, str | Path):
            raise InvalidRequest(f"extra={str(extra)!r} is one bundle; pass a list of bundles.")
        if threads is not None and threads < 1:
            raise InvalidRequest(f"threads={threads}; give 1 or more, or None for all usable processors.")
        first, *others = (Bundle.open(each) for each in (bundle, *extra))
        roles = _together((first, *others))
        found = {name: role.precision for name, (role, _) in roles.items() if not isinstance(role, SpansRole)}
        if precision is not None and set(found.values()) - {precision}:
            where = " and ".join(str(one.directory) for one in (first, *others))
            raise BundleError(
                f"precision={precision!r} was asked for, but {where} holds {found}. "
                f"Export it with --precision {precision}, or leave precision out."
            )
        profile = DeviceProfile.of(choose_device(device, list(found.values())), threads)

        def model(name: str) -> Any:
            role, opened = roles[name]
            return _model(role, opened, profile.sharing(opened.manifest.size))

        # spaCy takes longest and holds the GIL, which the building of a session does not.
        names = sorted(roles, key=lambda name: not isinstance(roles[name][0], SpansRole))
        with ThreadPoolExecutor(LOADERS, thread_name_prefix="groundwire-load") as pool:
            models = dict(zip(names, pool.map(model, names), strict=True))
        return cls(first, profile, models, others)

    @property
    def roles(self) -> frozenset[str]:
        """The roles of the bundles."""
        return frozenset(self._models)

    @property
    def identity(self) -> Identity:
        """Bundle, digest, precision and device; names and digests of several bundles are joined by ``+``."""
        return self._identity

    @property
    def calibration(self) -> Calibration | None:
        """From the first bundle's manifest."""
        return self.bundle.manifest.calibration

    def role_info(self, role: str) -> RoleInfo:
        """From the manifest."""
        match self._roles[role][0] if role in self._roles else None:
            case ClassifierRole(labels=labels, supported=supported, unit=unit):
                return RoleInfo(labels, supported, unit)
            case TokenClassifierRole(labels=labels, supported=supported):
                return RoleInfo(labels, (supported,))
            case EmbedderRole(baseline=baseline):
                return RoleInfo(baseline=baseline)
        return RoleInfo()

    @property
    def worker_pools(self) -> Mapping[str, int]:
        """The profile's for the device; spaCy holds the GIL, so one thread is all the host needs."""
        return {"device": self.profile.concurrent_batches, "host": 1}

    def worker_pool(self, role: str) -> str:
        """SpaCy runs on the host while the device runs graphs."""
        return "host" if role == "spans" else "device"

    def batch(self, role: str) -> int:
        """Enough calls to fill a few batches; a new request waits at most this long for its turn."""
        if role == "spans":
            return 8
        model = self._models.get(role)
        if isinstance(model, QuestionGenerator):
            return max(1, model.beams // BeamSearch().num_beams)
        if isinstance(model, ResponseGenerator):
            return max(1, self.profile.max_beams // (2 * FAITHFUL.num_beams))
        if isinstance(model, LanguageModel):
            # Each call may bring a prefix of its own, which is a long text to read.
            return max(1, self.profile.max_rows // 2)
        return self.profile.max_rows

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """One result or error per call, in order."""
        model = self._models.get(role)
        if model is None:
            return [ModelError(self._lacks(role)) for _ in calls]
        if isinstance(model, SpanFinder):
            return [_spans(model, call) for call in calls]
        outcomes: Sequence[Outcome] = model.run(calls, max_windows)
        return outcomes

    def stream(self, call: Generate) -> Iterator[SequencePart]:
        """As ``Writer.stream``; ModelError when the bundle has no generator."""
        model = self._models.get("generator")
        if not isinstance(model, ResponseGenerator):
            raise ModelError(self._lacks("generator"))
        return model.stream(call)

    def warm_calls(self) -> Sequence[Call]:
        """One small call per role."""
        text = "Groundwire was warmed up in 2026."
        calls: list[Call] = []
        for role, model in self._models.items():
            match model:
                case SpanFinder():
                    calls += [FindSpans(text), IsPersonal("what is my name?")]
                case QuestionGenerator():
                    calls.append(GenerateQuestions("2026", text, BeamSearch(max_new_tokens=7)))
                case ResponseGenerator():
                    decoding = msgspec.structs.replace(FAITHFUL, max_new_tokens=7)
                    calls.append(Generate((text,), (text,), decoding))
                case ExtractiveQA():
                    calls.append(Answer("when?", (text,)))
                case Classifier():
                    calls.append(Classify(role, (text,), text))
                case Embedder():
                    calls.append(Embed(text))
                case LanguageModel():
                    calls.append(ScoreText((text,), text))
                case TokenClassifier():
                    calls.append(ClassifyTokens(role, (text,), text))
                case Retriever():
                    fact, there = Triple("Groundwire", "made in", "2026"), (Candidate("Groundwire", "2026"),)
                    calls.append(Retrieve((text,), (fact,), text, ((0, 10),), (there,)))
        return calls

    def close(self) -> None:
        """Free the models."""
        self._models.clear()

    def _lacks(self, role: str) -> str:
        message = f"The bundle {self._identity.bundle!r} has no role {role!r}; it has {', '.join(sorted(self.roles))}."
        if role != "generator":
            return message
        return (
            f"{message} Export a model that writes responses: groundwire export generator --source ID_OR_DIR --out "
            "BUNDLE; `python -m groundwire.train generator` trains one."
        )


def _together(bundles: Sequence[Bundle]) -> dict[str, tuple[Role, Bundle]]:
    """The roles of all bundles by name, each with the bundle that has it; BundleError when two have the same one."""
    found: dict[str, tuple[Role, Bundle]] = {}
    for bundle in bundles:
        for name, role in bundle.manifest.roles.items():
            if name in found:
                raise BundleError(
                    f"Both {found[name][1].directory} and {bundle.directory} have the role {name!r}. "
                    "Load bundles that share no role, or export the roles you want into one bundle."
                )
            found[name] = role, bundle
    return found


def _model(role: Role, bundle: Bundle, profile: DeviceProfile) -> Any:
    """The model of a role."""
    match role:
        case ExtractiveQARole():
            return ExtractiveQA.load(bundle, role, profile)
        case ClassifierRole():
            return Classifier.load(bundle, role, profile)
        case QuestionGeneratorRole():
            return QuestionGenerator.load(bundle, role, profile)
        case ResponseGeneratorRole():
            return ResponseGenerator.load(bundle, role, profile)
        case EmbedderRole():
            return Embedder.load(bundle, role, profile)
        case TokenClassifierRole():
            return TokenClassifier.load(bundle, role, profile)
        case RetrieverRole():
            return Retriever.load(bundle, role, profile)
        case LanguageModelRole():
            return LanguageModel.load(bundle, role, profile)
        case SpansRole():
            return SpanFinder.load(bundle.file(role.path))


def _spans(finder: SpanFinder, call: Call) -> Outcome:
    try:
        if isinstance(call, FindSpans):
            return finder.find(call.text)
        assert isinstance(call, IsPersonal)
        return finder.is_personal(call.question)
    except GroundwireError as error:
        return error
