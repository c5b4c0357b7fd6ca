"""Scores of labelled examples, stored: each is scored once, and figures are computed again without a model.

The scores of a set are in ``scores/SET.jsonl`` of the run's directory, by a digest of the request, so that equal
requests are scored once in all sets of a run, and a stopped run resumes. The calibration that the verdicts are drawn
with is beside them in ``calibration.json``: it changes no metric, so another one needs no new scores.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from groundwire.engine import Engine, LoadOptions, Options, Plan, Score
from groundwire.engine.extend import make_plan
from groundwire.engine.schema.options import DetectorOptions, NliOptions
from groundwire.files.results_file import ResultsFile
from groundwire.files.resuming import is_final
from groundwire.runtime.bundles.bundle import open_bundles
from groundwire.runtime.bundles.calibration import Calibration, join_calibrations
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.local import identify, merge_roles
from groundwire.runtime.ort.device import DeviceChoice
from groundwire.runtime.parity.certified import choose_certified

from ..datasets.examples import Example

SCORES = "scores"
CALIBRATION = "calibration.json"


APART = Options(nli=NliOptions(sentences=True), detector=DetectorOptions(sentences=True))
"""For fits: a fusion that is fitted may read sentences apart from their response, whatever the bundle's does."""


class Stored(msgspec.Struct, frozen=True):
    """A line of a scores file."""

    key: str
    """``request_key`` of the example."""
    score: Score

    @property
    def made_with(self) -> str:
        """The score's signature without its calibration."""
        return _strip_calibration(self.score.signature)

    @property
    def is_final(self) -> bool:
        """Whether another run would score the request no better."""
        return is_final((self.score.status, *(result.status for result in self.score.metrics.values())))


class ScoringSettings(NamedTuple):
    """How examples are scored. A setting that is left out is the stored scores', else the engine's default."""

    bundle: str | Path | None = None
    device: DeviceChoice | None = None
    threads: int | None = None
    metrics: tuple[str, ...] | None = None
    options: Options | None = None
    calibration: Path | None = None
    """A file of ``Calibration.save``, instead of the bundle's."""
    workers: int = 1
    """Processes that score, each with its share of ``threads``."""
    extra: tuple[str | Path, ...] = ()
    """Further bundles, whose roles are added to ``bundle``."""

    def can_contradict(self) -> bool:
        """Whether a setting is given that stored scores could contradict."""
        return any(
            setting is not None for setting in (self.bundle, self.device, self.metrics, self.options, *self.extra)
        )

    def plan(self, calibration: Calibration | None = None) -> Plan:
        """Return the metrics, options and signature that ``load`` would use, from the manifests alone."""
        opened = open_bundles(self.bundle or "compact", self.extra)
        identity = identify(opened, choose_certified(self.device or "auto", opened))
        chosen = calibration or join_calibrations([bundle.manifest.calibration for bundle in opened])
        return make_plan(merge_roles(opened), identity, chosen, self.metrics, self.options)

    def load(self) -> Engine:
        """Load the engine, with its worker processes if there are several; raises what ``Engine.load`` raises."""
        return Engine.load(
            self.bundle or "compact",
            self.device or "auto",
            threads=self.threads,
            extra=self.extra,
            processes=self.workers,
            options=LoadOptions(calibration=self.calibration),
        )


class Scored(NamedTuple):
    """Scores of several sets, all made with the same settings."""

    sets: dict[str, list[Score]]
    """By set, in the order of its examples."""
    made_with: str
    """Signature of the scores, without a calibration."""
    calibration: Calibration | None

    @property
    def signature(self) -> str:
        """What determined the metrics' values, and the verdicts."""
        return self.made_with + (f"{_CALIBRATED}{self.calibration.digest()}" if self.calibration else "")


def request_key(example: Example) -> str:
    """Sixteen hexadecimal digits of the request; the same for examples that differ in their labels only."""
    return example.request.digest()


class ScoreStore:
    """The scores of one set: the scores in its file, and the scores that are added to it."""

    def __init__(self, name: str, folder: Path, examples: Sequence[Example]) -> None:
        """Open ``folder/NAME.jsonl``, which is locked until ``file.close``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self._keys = [request_key(example) for example in examples]
        self.requests = {key: example.request for key, example in zip(self._keys, examples, strict=True)}
        """By key: examples that differ in their labels only have one request."""
        self.file = ResultsFile(folder / f"{name}.jsonl", Stored)
        self._scores = {entry.key: entry.score for entry in self.file.entries if entry.is_final}
        self.missing = {key: None for key in self.requests if key not in self._scores}
        """Keys of the requests without a score, in order."""

    def get(self, key: str) -> Score | None:
        """Return the stored score of a request; it need not be one of the set."""
        return self._scores.get(key)

    def put(self, key: str, score: Score) -> None:
        """Add the score of a request to the file."""
        self.file.append(Stored(key, score))
        self._scores[key] = score
        self.missing.pop(key, None)

    def list_scores(self) -> list[Score]:
        """Return the scores in the order of the examples; every request must have one."""
        return [self._scores[key] for key in self._keys]


Watch = Callable[[str, int, int], None]
"""Called with the set's name, how many of its requests are scored, and how many it has."""


def score_sets(
    sets: Mapping[str, Sequence[Example]],
    directory: Path,
    settings: ScoringSettings | None = None,
    watch: Watch = lambda name, done, total: None,
) -> Scored:
    """The scores of all examples: those stored in ``directory``, else the engine's, which are then stored there.

    The engine is loaded only when an example has no score yet, or when a deadline, a cancelled run or a failed model
    left its score without a value: it is scored again, and the later line of the file counts. Raises InvalidRequest,
    before anything is scored, when stored scores were made with other settings than those requested now, or with
    settings that differ among them.
    """
    settings = settings or ScoringSettings()
    if empty := [name for name, examples in sets.items() if not examples]:
        raise InvalidRequest(f"{', '.join(empty)} holds no examples to score.")
    with contextlib.ExitStack() as stack:
        stores: list[ScoreStore] = []
        for name, examples in sets.items():
            stores.append(ScoreStore(name, directory / SCORES, examples))
            stack.callback(stores[-1].file.close)
        lacking: dict[str, list[ScoreStore]] = {}
        for store in stores:
            for key in store.missing:
                lacking.setdefault(key, []).append(store)
        chosen = None if settings.calibration is None else Calibration.load(settings.calibration)
        plan = settings.plan(chosen) if settings.can_contradict() or lacking else None
        made_with = _strip_calibration(plan.signature) if plan else stores[0].file.entries[0].made_with
        for store in stores:
            store.file.check(made_with)
        # A request that another set has a score for needs no new one. All others go in one stream, so that no process
        # waits at the end of a set.
        for key in list(lacking):
            score = next((score for store in stores if (score := store.get(key)) is not None), None)
            if score is not None:
                for store in lacking.pop(key):
                    store.put(key, score)
        if plan is not None and lacking:
            engine = stack.enter_context(settings.load())
            requests = (lacking_in[0].requests[key] for key, lacking_in in lacking.items())
            scored = engine.score_many(requests, metrics=plan.names, options=plan.options)
            for (key, lacking_in), score in zip(lacking.items(), scored, strict=True):
                for store in lacking_in:
                    store.put(key, score)
                first = lacking_in[0]
                watch(first.name, len(first.requests) - len(first.missing), len(first.requests))
        calibration = _choose_calibration(directory / CALIBRATION, chosen, plan)
    return Scored({store.name: store.list_scores() for store in stores}, made_with, calibration)


def _choose_calibration(path: Path, chosen: Calibration | None, plan: Plan | None) -> Calibration | None:
    """Return the given calibration, else the opened bundle's, else the last run's; save it to ``path``."""
    calibration = chosen
    if calibration is None:
        calibration = plan.calibration if plan else Calibration.load(path) if path.exists() else None
    if calibration is None:
        path.unlink(missing_ok=True)
    else:
        calibration.save(path)
    return calibration


_CALIBRATED = "|calibration:"


def _strip_calibration(signature: str) -> str:
    return signature.partition(_CALIBRATED)[0]
