"""Scores of labelled rows, kept: a row is scored once, and what is behind the scores can run again without a model.

The scores of a set stand in ``scores/SET.jsonl`` of the run's directory, by a digest of what the engine was given, so
that equal requests are scored once, in all sets of a run, and a stopped run goes on. The calibration that the verdicts
are drawn with stands beside them in ``calibration.json``: it changes no metric, so another one needs no new scores.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import msgspec

from groundwire.engine.api import Engine
from groundwire.engine.jsonl.results_file import ResultsFile
from groundwire.engine.plan import Plan, make_plan
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import Request, Score
from groundwire.evaluate.datasets.examples import Row
from groundwire.runtime.bundle import Bundle
from groundwire.runtime.calibration import Calibration
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.local import identify
from groundwire.runtime.ort.session import DeviceChoice, choose_device

from .workers import Scorer, Workers, usable

SCORES = "scores"
CALIBRATION = "calibration.json"


class Stored(msgspec.Struct, frozen=True):
    """A line of a scores file."""

    key: str
    """``request_key`` of what was scored."""
    score: Score

    @property
    def made_with(self) -> str:
        """The score's signature, but for its calibration."""
        return _uncalibrated(self.score.signature)


class Settings(NamedTuple):
    """What rows are scored with. Everything left out is as the stored scores have it, or else the engine's default."""

    bundle: str | Path | None = None
    device: DeviceChoice | None = None
    threads: int | None = None
    metrics: tuple[str, ...] | None = None
    options: Options | None = None
    calibration: Path | None = None
    """A file of ``Calibration.save``, instead of the bundle's."""
    workers: int = 1
    """Processes that score, each with its share of ``threads``."""

    def decided(self) -> bool:
        """Whether anything is asked for that stored scores could contradict."""
        return any(one is not None for one in (self.bundle, self.device, self.metrics, self.options))

    def plan(self, calibration: Calibration | None = None) -> Plan:
        """Metrics, options and signature as ``load`` would have them, from the manifest alone."""
        opened = Bundle.open(self.bundle or "compact")
        manifest = opened.manifest
        identity = identify((opened,), choose_device(self.device or "auto", list(manifest.precisions.values())))
        chosen = calibration or manifest.calibration
        return make_plan(manifest.roles, identity, chosen, self.metrics, self.options)

    def load(self) -> Engine:
        """The engine."""
        return Engine.load(
            self.bundle or "compact", self.device or "auto", threads=self.threads, calibration=self.calibration
        )

    def scorer(self) -> AbstractContextManager[Scorer]:
        """The engine, or several in processes of their own. Settings that cannot be loaded raise here."""
        if self.workers == 1:
            return self.load()
        self.plan()
        threads = max(1, (self.threads or usable()) // self.workers)
        return Workers(self._replace(threads=threads, workers=1).load, self.workers)


class Scored(NamedTuple):
    """Scores of several sets, all made with the same settings."""

    sets: dict[str, list[Score]]
    """By set, in the order of its rows."""
    made_with: str
    """Signature of the scores, without a calibration."""
    calibration: Calibration | None

    @property
    def signature(self) -> str:
        """What determined the metrics' values, and the verdicts."""
        return self.made_with + (f"{_CALIBRATED}{self.calibration.digest()}" if self.calibration else "")


def request_key(row: Row) -> str:
    """Sixteen hexadecimal digits of what the engine is given; the same for rows that differ in their labels only."""
    given = msgspec.to_builtins(_request(row))
    if not given["triples"]:
        del given["triples"]  # rows without triples keep the digest they had before there were any
    return hashlib.sha256(msgspec.json.encode(given)).hexdigest()[:16]


Watch = Callable[[str, int, int], None]
"""Told the set, how many of its requests are scored, and how many it has."""


def score_sets(
    sets: Mapping[str, Sequence[Row]],
    directory: Path,
    settings: Settings | None = None,
    watch: Watch = lambda name, done, total: None,
) -> Scored:
    """The scores of all rows, from ``directory`` where they are there, else from the engine, which keeps them there.

    The engine is loaded only when a row has no score yet. Raises InvalidRequest, before anything is scored, when stored
    scores were made with other settings than those asked for now, or by one another.
    """
    settings = settings or Settings()
    if empty := [name for name, rows in sets.items() if not rows]:
        raise InvalidRequest(f"{', '.join(empty)} holds no rows to score.")
    kept = directory / SCORES
    kept.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        files = {name: ResultsFile(kept / f"{name}.jsonl", Stored) for name in sets}
        for file in files.values():
            stack.callback(file.close)
        keyed = {name: {request_key(row): row for row in rows} for name, rows in sets.items()}
        scores = {name: {entry.key: entry.score for entry in file.entries} for name, file in files.items()}
        lacking: dict[str, list[str]] = {}  # by a request's key, the sets that have no score of it yet
        done = {name: len(scores[name].keys() & keyed[name].keys()) for name in sets}
        for name, rows_of in keyed.items():
            for key in rows_of:
                if key not in scores[name]:
                    lacking.setdefault(key, []).append(name)
        own = None if settings.calibration is None else Calibration.load(settings.calibration)
        plan = settings.plan(own) if settings.decided() or lacking else None
        made_with = (
            _uncalibrated(plan.signature)
            if plan
            else next(e.made_with for file in files.values() for e in file.entries)
        )
        for file in files.values():
            file.check(made_with)

        def keep(key: str, score: Score) -> None:
            for name in lacking[key]:
                files[name].append(Stored(key, score))
                scores[name][key] = score
                done[name] += 1

        # What another set has a score of needs none; all the rest goes in one stream, so that no process waits at the
        # end of a set.
        known = {key: score for each in scores.values() for key, score in each.items()}
        for key in lacking:
            if key in known:
                keep(key, known[key])
        todo = [key for key in lacking if key not in known]
        if plan is not None and todo:
            engine = stack.enter_context(settings.scorer())
            requests = (_request(keyed[lacking[key][0]][key]) for key in todo)
            found = engine.score_many(requests, metrics=plan.names, options=plan.options)
            for key, score in zip(todo, found, strict=True):
                keep(key, score)
                name = lacking[key][0]
                watch(name, done[name], len(keyed[name]))
        calibration = _remembered(directory / CALIBRATION, own, plan)
    ordered = {name: [scores[name][request_key(row)] for row in rows] for name, rows in sets.items()}
    return Scored(ordered, made_with, calibration)


def _remembered(path: Path, own: Calibration | None, plan: Plan | None) -> Calibration | None:
    """The calibration to use: the one asked for, the opened bundle's, or the last run's; ``path`` holds it then."""
    found = own
    if found is None:
        found = plan.calibration if plan else Calibration.load(path) if path.exists() else None
    if found is None:
        path.unlink(missing_ok=True)
    else:
        found.save(path)
    return found


def _request(row: Row) -> Request:
    return Request(row.response, row.knowledge, row.history)


_CALIBRATED = "|calibration:"


def _uncalibrated(signature: str) -> str:
    return signature.partition(_CALIBRATED)[0]
