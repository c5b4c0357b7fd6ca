"""The interface between the scheduler and whatever runs models, and a fake that runs none.

``LocalRuntime`` opens a bundle on this machine. ``FakeRuntime`` answers calls from plain functions, so that a metric,
the scheduler or a service can be tested without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from .bundle import (
    Bundle,
    ClassifierRole,
    EmbedderRole,
    GeneratorRole,
    LanguageModelRole,
    ReaderRole,
    RetrieverRole,
    Role,
    SpansRole,
    TaggerRole,
    WriterRole,
)
from .calibration import Calibration
from .calls import (
    FAITHFUL,
    Answer,
    Beam,
    Call,
    Candidate,
    Classify,
    Embed,
    FindSpans,
    Generate,
    GenerateQuestions,
    IsPersonal,
    Result,
    Retrieve,
    ScoreText,
    TagTokens,
    Written,
    WrittenPart,
)
from .classifier import Classifier
from .embedder import Embedder
from .errors import BundleError, GroundwireError, InvalidRequest, ModelError
from .generator import Generator
from .lm import LanguageModel
from .reader import Reader
from .retriever import Retriever
from .session import DeviceChoice, Profile, choose_device
from .spans import SpanFinder
from .tagger import Tagger
from .triples import Triple
from .writer import Writer

Outcome = Result | GroundwireError


LOADERS = 2
"""Roles that load at the same time."""


class Identity(msgspec.Struct, frozen=True):
    """What ran a call, for signatures: equal identities give equal results."""

    bundle: str
    digest: str
    precision: str
    device: str


class Facts(msgspec.Struct, frozen=True):
    """What a metric must know of a role to ask it well."""

    labels: tuple[str, ...] = ()
    """Of a classifier or tagger, in the order of its logits."""
    supported: tuple[str, ...] = ()
    """Those that mean "consistent"."""
    unit: Literal["response", "sentence"] = "response"
    """What a detector judges at once."""
    baseline: tuple[float, float, float] | None = None
    """Of an embedder: precision, recall and F1 of BERTScore for unrelated sentences; None when nobody measured them."""


class Runtime(Protocol):
    """Runs model calls. ``run`` may be called from as many threads at a time as ``lanes`` says."""

    @property
    def roles(self) -> frozenset[str]:
        """The roles this runtime can answer."""
        ...

    @property
    def identity(self) -> Identity:
        """What determines its results."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """How to read the values of the metrics; None when nobody fitted it."""
        ...

    def facts(self, role: str) -> Facts:
        """What the bundle says about one of ``roles``."""
        ...

    @property
    def lanes(self) -> Mapping[str, int]:
        """How many batches of each lane may run at the same time, be they of one role or of several."""
        ...

    def lane(self, role: str) -> str:
        """The lane of a role: ``device`` or ``host``."""
        ...

    def batch(self, role: str) -> int:
        """How many calls of a role are worth handing over at once."""
        ...

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """One result or error per call, in order; the calls share batches but not results."""
        ...

    def stream(self, call: Generate) -> Iterator[WrittenPart]:
        """The best response of ``call`` part by part, the whole of it in the last one; from any thread.

        Errors are raised, those of the call itself at once.
        """
        ...

    def warm_calls(self) -> Sequence[Call]:
        """Calls that make every model run once."""
        ...

    def close(self) -> None:
        """Free the models; later calls fail."""
        ...


class LocalRuntime:
    """The models of one bundle, or of several that share no role, on this machine."""

    def __init__(
        self, bundle: Bundle, profile: Profile, models: Mapping[str, Any], extra: Sequence[Bundle] = ()
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
        profile = Profile.of(choose_device(device, list(found.values())), threads)

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

    def facts(self, role: str) -> Facts:
        """From the manifest."""
        match self._roles[role][0] if role in self._roles else None:
            case ClassifierRole(labels=labels, supported=supported, unit=unit):
                return Facts(labels, supported, unit)
            case TaggerRole(labels=labels, supported=supported):
                return Facts(labels, (supported,))
            case EmbedderRole(baseline=baseline):
                return Facts(baseline=baseline)
        return Facts()

    @property
    def lanes(self) -> Mapping[str, int]:
        """The profile's for the device; spaCy holds the GIL, so one thread is all the host needs."""
        return {"device": self.profile.lanes, "host": 1}

    def lane(self, role: str) -> str:
        """SpaCy runs on the host while the device runs graphs."""
        return "host" if role == "spans" else "device"

    def batch(self, role: str) -> int:
        """Enough calls to fill a few batches; a new request waits at most this long for its turn."""
        if role == "spans":
            return 8
        model = self._models.get(role)
        if isinstance(model, Generator):
            return max(1, model.beams // Beam().beams)
        if isinstance(model, Writer):
            return max(1, self.profile.max_beams // (2 * FAITHFUL.beams))
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

    def stream(self, call: Generate) -> Iterator[WrittenPart]:
        """As ``Writer.stream``; ModelError when the bundle has no generator."""
        model = self._models.get("generator")
        if not isinstance(model, Writer):
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
                case Generator():
                    calls.append(GenerateQuestions("2026", text, Beam(max_length=8)))
                case Writer():
                    decoding = msgspec.structs.replace(FAITHFUL, max_length=8)
                    calls.append(Generate((text,), (text,), decoding))
                case Reader():
                    calls.append(Answer("when?", (text,)))
                case Classifier():
                    calls.append(Classify(role, (text,), text))
                case Embedder():
                    calls.append(Embed(text))
                case LanguageModel():
                    calls.append(ScoreText((text,), text))
                case Tagger():
                    calls.append(TagTokens(role, (text,), text))
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


class FakeRuntime:
    """Answers calls from plain functions; records the batches it was given.

    ``answers`` maps a role to a function of one call; an exception of the tree it raises is that call's outcome.
    ``facts`` and ``calibration`` are what the bundle would say about its roles and their values; ``width`` is how many
    batches the device runs at the same time.

    >>> from groundwire.runtime.calls import Classify, Classified, Read
    >>> label = lambda call: Classified("neutral", {"neutral": 1.0}, 0, Read(1, 3, 3))
    >>> runtime = FakeRuntime({"nli": label})
    >>> runtime.run("nli", [Classify("nli", ("abc",), "d")], max_windows=8)[0].label
    'neutral'
    """

    def __init__(
        self,
        answers: Mapping[str, Callable[[Any], Outcome]],
        batch: int = 64,
        facts: Mapping[str, Facts] = MappingProxyType({}),
        calibration: Calibration | None = None,
        width: int = 1,
    ) -> None:
        self._calibration = calibration
        self._width = width
        self._answers = dict(answers)
        self._facts = dict(facts)
        self._batch = batch
        self.batches: list[tuple[str, tuple[Call, ...]]] = []
        self.closed = False

    @property
    def roles(self) -> frozenset[str]:
        """The roles given at construction."""
        return frozenset(self._answers)

    @property
    def identity(self) -> Identity:
        """A fixed identity."""
        return Identity("fake", "0" * 12, "fp32", "cpu")

    @property
    def calibration(self) -> Calibration | None:
        """The one given at construction, or none."""
        return self._calibration

    def facts(self, role: str) -> Facts:
        """Those given at construction, or none."""
        return self._facts.get(role, Facts())

    @property
    def lanes(self) -> Mapping[str, int]:
        """The number given at construction for the device, one for the host."""
        return {"device": self._width, "host": 1}

    def lane(self, role: str) -> str:
        """As the local runtime."""
        return "host" if role == "spans" else "device"

    def batch(self, role: str) -> int:
        """The number given at construction."""
        return self._batch

    def run(self, role: str, calls: Sequence[Call], max_windows: int) -> Sequence[Outcome]:
        """Answer each call by its role's function."""
        self.batches.append((role, tuple(calls)))
        out: list[Outcome] = []
        for call in calls:
            try:
                out.append(self._answers[role](call))
            except GroundwireError as error:
                out.append(error)
        return out

    def stream(self, call: Generate) -> Iterator[WrittenPart]:
        """The best answer to ``call`` in one part."""
        (outcome,) = self.run("generator", [call], 1)
        if isinstance(outcome, GroundwireError):
            raise outcome
        assert isinstance(outcome, tuple)
        assert isinstance(outcome[0], Written)
        return iter([WrittenPart(outcome[0].text, outcome[0])])

    def warm_calls(self) -> Sequence[Call]:
        """Nothing to warm."""
        return ()

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


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


def _model(role: Role, bundle: Bundle, profile: Profile) -> Any:
    """The model of a role."""
    match role:
        case ReaderRole():
            return Reader.load(bundle, role, profile)
        case ClassifierRole():
            return Classifier.load(bundle, role, profile)
        case GeneratorRole():
            return Generator.load(bundle, role, profile)
        case WriterRole():
            return Writer.load(bundle, role, profile)
        case EmbedderRole():
            return Embedder.load(bundle, role, profile)
        case TaggerRole():
            return Tagger.load(bundle, role, profile)
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
