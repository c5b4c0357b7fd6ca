"""Critique and repair behind the engine's door: checks what it is given, runs the steps, and reports."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from groundwire.engine.kg import KnowledgeGraph
from groundwire.engine.metrics.critic import ROLE as CRITIC
from groundwire.engine.scheduling.jobs import Unfinished
from groundwire.engine.scheduling.scheduler import Scheduler
from groundwire.engine.scheduling.steps import Steps
from groundwire.engine.schema.options import Options
from groundwire.engine.schema.results import Timings
from groundwire.engine.schema.validation import make_history, make_response, make_triples
from groundwire.engine.signature import signature
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Runtime

from . import steps
from .context import Context, around
from .records import Critique, Refinement
from .steps import Judgement, RefineOptions

RETRIEVER = "retriever"
NO_CONTEXT = (
    "Neither the history nor the response names an entity of the graph. If they should, give the graph aliases: "
    "nothing is transliterated or translated."
)
T = TypeVar("T")


class NphPipeline:
    """Neural Path Hunter over one runtime. Safe to use from many threads at once, as the scheduler is."""

    def __init__(self, runtime: Runtime, scheduler: Scheduler) -> None:
        self._runtime = runtime
        self._scheduler = scheduler

    def critique(self, response: Any, history: Any, triples: Any, graph: Any, hops: int, options: Options) -> Critique:
        """See ``Engine.critique``."""
        self._needs("critique", CRITIC)
        context = _context(response, history, triples, graph, hops, options)
        sign = f"{signature(self._runtime.identity, ('critique',), options)}|critique:hops={hops}"
        if not context.nodes:
            return _no_context(sign)
        outcome, timings = self._run(steps.critique(context, options, self._runtime.role_info(CRITIC)), options)
        if isinstance(outcome, Unfinished):
            return _stopped(context, outcome, timings, sign)
        return _critique(context, outcome, timings, sign)

    def refine(
        self,
        response: Any,
        history: Any,
        triples: Any,
        graph: Any,
        settings: RefineOptions,
        options: Options,
    ) -> Refinement:
        """See ``Engine.refine``."""
        self._needs("refine", CRITIC, RETRIEVER)
        _check(settings)
        context = _context(response, history, triples, graph, settings.hops, options)
        set_to = ",".join(f"{name}={value}" for name, value in msgspec.to_builtins(settings).items())
        sign = f"{signature(self._runtime.identity, ('refine',), options)}|refine:{set_to}"
        if not context.nodes:
            before = _no_context(sign)
            return _unchanged(context, "no_context", before, before.timings, NO_CONTEXT)
        found, timings = self._run(steps.refine(context, settings, options, self._runtime.role_info(CRITIC)), options)
        if isinstance(found, Unfinished):
            before = _stopped(context, found, timings, sign)
            return _unchanged(context, before.status, before, timings, found.message)
        before = _critique(context, found.before, timings, sign)
        if found.after is None:
            status = "refused" if found.before.mentions else "clean"
            return _unchanged(context, status, before, timings, found.message)
        replaced = {change.mention.start for change in found.changes}
        doubted = {one.text for one in found.after.mentions}
        return Refinement(
            status="refined",
            original=context.response,
            response=found.response,
            changes=found.changes,
            unresolved=tuple(one for one in before.mentions if one.start not in replaced and one.text in doubted),
            accepted=not found.after.mentions,
            before=before,
            after=_critique(context, found.after, timings, sign),
            timings=timings,
            signature=sign,
        )

    def _needs(self, what: str, *roles: str) -> None:
        missing = [role for role in roles if role not in self._runtime.roles]
        if missing:
            raise InvalidRequest(
                f"Engine.{what} needs {' and '.join(missing)} among the bundle's roles "
                f"(it has {', '.join(sorted(self._runtime.roles))}). Load the bundle 'nph', alone or with "
                "extra=['nph']."
            )

    def _run(self, task: Steps[T], options: Options) -> tuple[T | Unfinished, Timings]:
        """What the steps return, or why they did not."""
        job = self._scheduler.submit([task], options.max_windows, options.deadline_ms)
        try:
            finished = job.future.result()
        except BaseException:
            self._scheduler.cancel(job)
            raise
        return finished.outcomes[0], finished.timings


def _context(response: Any, history: Any, triples: Any, graph: Any, hops: int, options: Options) -> Context:
    text, turns = make_response(response, options), make_history(history)
    if isinstance(hops, bool) or not isinstance(hops, int) or hops < 1:
        raise InvalidRequest(f"hops is {hops!r}; allowed are whole numbers from 1.")
    if (triples is None) == (graph is None):
        raise InvalidRequest(f"Pass triples or a graph; {'none' if graph is None else 'both'} of them is given.")
    if graph is not None and not isinstance(graph, KnowledgeGraph):
        raise InvalidRequest(f"graph is {type(graph).__name__}; pass a KnowledgeGraph, read with KnowledgeGraph.load.")
    known = KnowledgeGraph.from_triples(make_triples(triples)) if graph is None else graph
    if not len(known):
        given = "triples" if graph is None else "graph"
        raise InvalidRequest(f"{given} is empty; pass the facts the response should rest on.")
    return around(known, text, turns, hops, whole=graph is None)


def _check(settings: RefineOptions) -> None:
    if isinstance(settings.top, bool) or not isinstance(settings.top, int) or settings.top < 1:
        raise InvalidRequest(f"top is {settings.top!r}; allowed are whole numbers from 1.")
    if not isinstance(settings.min_probability, int | float) or not 0 <= settings.min_probability <= 1:
        raise InvalidRequest(f"min_probability is {settings.min_probability!r}; allowed are numbers from 0 to 1.")


def _critique(context: Context, judged: Judgement, timings: Timings, signature: str) -> Critique:
    return Critique(
        status="judged",
        hallucinated=bool(judged.mentions),
        probability=judged.probability,
        mentions=judged.mentions,
        context=context.nodes,
        triples=judged.triples,
        timings=timings,
        signature=signature,
    )


def _no_context(signature: str) -> Critique:
    return Critique("no_context", None, None, (), (), (), Timings(0.0, {}), signature, NO_CONTEXT)


def _stopped(context: Context, reason: Unfinished, timings: Timings, signature: str) -> Critique:
    return Critique(reason.status, None, None, (), context.nodes, context.triples, timings, signature, reason.message)


def _unchanged(context: Context, status: Any, before: Critique, timings: Timings, message: str) -> Refinement:
    return Refinement(
        status=status,
        original=context.response,
        response=context.response,
        changes=(),
        unresolved=before.mentions,
        accepted=None,
        before=before,
        after=None,
        timings=timings,
        signature=before.signature,
        message=message,
    )
