"""Checks the arguments of ``Engine.critique`` and ``Engine.refine``, runs the steps, and builds the results."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, TypeVar

import msgspec

from groundwire.runtime.arguments import check_integer
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.protocol import Runtime

from ..kg import KnowledgeGraph
from ..scheduling.jobs import Job, Unfinished
from ..scheduling.scheduler import Scheduler
from ..scheduling.steps import Steps
from ..schema.options import Options
from ..schema.repairs import Critique, Refinement
from ..schema.results import Timings
from ..schema.validation import make_history, make_response, make_triples
from ..signature import signature
from . import steps
from .context import Context, build_context
from .critic import ROLE as CRITIC
from .entity_types import ROLE as SPANS
from .steps import CritiqueResult, RefineOptions, RepairResult

RETRIEVER = "retriever"
NO_CONTEXT = (
    "Neither the history nor the response names an entity of the graph. If they should, add aliases to the graph: "
    "names are neither transliterated nor translated."
)
T = TypeVar("T")


class NphPipeline:
    """Neural Path Hunter over one runtime. Safe to use from many threads at once, as the scheduler is."""

    def __init__(self, runtime: Runtime, scheduler: Scheduler) -> None:
        self._runtime = runtime
        self._scheduler = scheduler

    def critique(self, response: Any, history: Any, triples: Any, graph: Any, hops: int, options: Options) -> Critique:
        """See ``Engine.critique``."""
        self._check_roles("critique", CRITIC)
        context = _make_context(response, history, triples, graph, hops, options)
        sign = f"{signature(self._runtime.identity, ('critique',), options)}|critique:hops={hops}"
        if not context.nodes:
            return _make_no_context(sign)
        info = self._runtime.role_info(CRITIC)
        outcome, timings = self._run(steps.critique_response(context, options, info), options)
        if isinstance(outcome, Unfinished):
            return _make_stopped(context, outcome, timings, sign)
        return _make_critique(context, outcome, timings, sign)

    def refine(
        self, response: Any, history: Any, triples: Any, graph: Any, settings: RefineOptions, options: Options
    ) -> Refinement:
        """See ``Engine.refine``."""
        prepared = self._prepare_repair(response, history, triples, graph, settings, options)
        if isinstance(prepared, Refinement):
            return prepared
        return prepared.build(*self._run(prepared.task, options))

    async def arefine(
        self, response: Any, history: Any, triples: Any, graph: Any, settings: RefineOptions, options: Options
    ) -> Refinement:
        """``refine`` for asyncio."""
        prepared = self._prepare_repair(response, history, triples, graph, settings, options)
        if isinstance(prepared, Refinement):
            return prepared
        return prepared.build(*await self._arun(prepared.task, options))

    def _prepare_repair(
        self, response: Any, history: Any, triples: Any, graph: Any, settings: RefineOptions, options: Options
    ) -> PreparedRepair | Refinement:
        """The steps of a repair, or its result where there is nothing to compare with."""
        self._check_roles("refine", CRITIC, RETRIEVER)
        _check_options(settings)
        context = _make_context(response, history, triples, graph, settings.hops, options)
        settings_text = ",".join(f"{name}={value}" for name, value in msgspec.to_builtins(settings).items())
        sign = f"{signature(self._runtime.identity, ('refine',), options)}|refine:{settings_text}"
        if not context.nodes:
            before = _make_no_context(sign)
            return _make_unchanged(context, "no_context", before, before.timings, NO_CONTEXT)
        info = self._runtime.role_info(CRITIC)
        task = steps.repair_response(context, settings, options, info, has_spans=SPANS in self._runtime.roles)
        return PreparedRepair(task, context, sign)

    def _check_roles(self, method: str, *roles: str) -> None:
        missing = [role for role in roles if role not in self._runtime.roles]
        if missing:
            raise InvalidRequest(
                f"Engine.{method} needs {' and '.join(missing)} among the bundle's roles "
                f"(it has {', '.join(sorted(self._runtime.roles))}). Load the bundle 'nph', alone or with "
                "extra=['nph']."
            )

    def _run(self, task: Steps[T], options: Options) -> tuple[T | Unfinished, Timings]:
        """Return what the steps return, or why they did not finish."""
        job = self._submit(task, options)
        try:
            finished = job.future.result()
        except BaseException:
            self._scheduler.cancel(job)
            raise
        return finished.outcomes[0], finished.timings

    async def _arun(self, task: Steps[T], options: Options) -> tuple[T | Unfinished, Timings]:
        """``_run`` for asyncio."""
        job = self._submit(task, options)
        try:
            finished = await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            self._scheduler.cancel(job)
            raise
        return finished.outcomes[0], finished.timings

    def _submit(self, task: Steps[T], options: Options) -> Job[T]:
        return self._scheduler.submit(
            [task], options.max_windows, options.deadline_ms, options.priority, tenant=options.tenant
        )


class PreparedRepair(NamedTuple):
    """A repair that has to be run."""

    task: Steps[RepairResult]
    context: Context
    signature: str

    def build(self, repair: RepairResult | Unfinished, timings: Timings) -> Refinement:
        """The result of the steps, or why they did not finish."""
        if isinstance(repair, Unfinished):
            before = _make_stopped(self.context, repair, timings, self.signature)
            return _make_unchanged(self.context, before.status, before, timings, repair.message)
        before = _make_critique(self.context, repair.before, timings, self.signature)
        if repair.after is None:
            status = "refused" if repair.before.mentions else "clean"
            return _make_unchanged(self.context, status, before, timings, repair.message)
        replaced = {change.mention.start for change in repair.changes}
        still_flagged = {mention.text for mention in repair.after.mentions}
        return Refinement(
            status="refined",
            original=self.context.response,
            response=repair.response,
            changes=repair.changes,
            unresolved=tuple(
                mention
                for mention in before.mentions
                if mention.start not in replaced and mention.text in still_flagged
            ),
            accepted=not repair.after.mentions,
            before=before,
            after=_make_critique(self.context, repair.after, timings, self.signature),
            timings=timings,
            signature=self.signature,
        )


def _make_context(response: Any, history: Any, triples: Any, graph: Any, hops: int, options: Options) -> Context:
    text, turns = make_response(response, options), make_history(history, options)
    hops = check_integer("hops", hops, 1)
    if (triples is None) == (graph is None):
        raise InvalidRequest(f"Pass triples or a graph; {'neither' if graph is None else 'both'} of them is given.")
    if graph is not None and not isinstance(graph, KnowledgeGraph):
        raise InvalidRequest(f"graph is {type(graph).__name__}; pass a KnowledgeGraph, read with KnowledgeGraph.load.")
    known = KnowledgeGraph.from_triples(make_triples(triples)) if graph is None else graph
    if not len(known):
        given = "triples" if graph is None else "graph"
        raise InvalidRequest(f"{given} is empty; pass the facts the response should rest on.")
    return build_context(known, text, turns, hops, all_triples=graph is None)


def _check_options(settings: RefineOptions) -> None:
    check_integer("top", settings.top, 1)
    for name in ("type_aware", "mask_all", "veto"):
        if not isinstance(getattr(settings, name), bool):
            raise InvalidRequest(f"{name} is {getattr(settings, name)!r}; allowed are True and False.")
    if not isinstance(settings.min_probability, int | float) or not 0 <= settings.min_probability <= 1:
        raise InvalidRequest(f"min_probability is {settings.min_probability!r}; allowed are numbers from 0 to 1.")


def _make_critique(context: Context, result: CritiqueResult, timings: Timings, signature: str) -> Critique:
    return Critique(
        status="checked",
        hallucinated=bool(result.mentions),
        probability=result.probability,
        mentions=result.mentions,
        context=context.nodes,
        triples=result.triples,
        timings=timings,
        signature=signature,
    )


def _make_no_context(signature: str) -> Critique:
    return Critique("no_context", None, None, (), (), (), Timings(0.0, {}), signature, NO_CONTEXT)


def _make_stopped(context: Context, reason: Unfinished, timings: Timings, signature: str) -> Critique:
    return Critique(reason.status, None, None, (), context.nodes, context.triples, timings, signature, reason.message)


def _make_unchanged(context: Context, status: Any, before: Critique, timings: Timings, message: str) -> Refinement:
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
