"""Critic and Refiner: check the arguments, run the steps, and build the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from groundwire.engine import Engine, Options, Pending
from groundwire.engine.extend import (
    Core,
    Failure,
    Procedure,
    estimate_tokens,
    make_history,
    make_response,
    make_triples,
    signature,
)
from groundwire.engine.metrics.critic import ROLE as CRITIC_ROLE
from groundwire.engine.schema.results import Timings
from groundwire.runtime.arguments import check_sequence
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.triples import Triple

from ..kg import KnowledgeGraph
from ..records import Critique, Refinement
from . import steps
from .context import Context, build_context
from .entity_types import ROLE as SPANS
from .options import CritiqueOptions, RefineOptions, check_options
from .steps import CritiqueResult, RepairResult

RETRIEVER = "retriever"
CRITIQUE_MODELS, REFINE_MODELS = 1, 3
"""Models that read the texts: the critic; with the spans and the retriever."""
NO_CONTEXT = (
    "Neither the history nor the response names an entity of the graph. If they should, add aliases to the graph: "
    "names are neither transliterated nor translated."
)
Facts: TypeAlias = KnowledgeGraph | Sequence[Triple | tuple[str, str, str]]


class Critic:
    """Neural Path Hunter's critic (role ``critic``): which names of a response a knowledge graph does not support.

    >>> with Engine.load("nph") as engine:                                                     # doctest: +SKIP
    ...     critique = Critic(engine).critique("It was directed by James Cameron.", graph, history=["Alien?"])
    """

    def __init__(self, engine: Engine) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine with the critic. The caller closes it.
        """
        self._core = engine.core

    def critique(
        self,
        response: str,
        knowledge: Facts,
        *,
        history: Sequence[str] = (),
        options: CritiqueOptions | None = None,
        scoring: Options | None = None,
    ) -> Critique:
        """Find the names that the knowledge does not support.

        Args:
            response: The text to check.
            knowledge: Triples, and the critic reads all of them, or a graph, and it reads the triples near the
                entities of history and response.
            history: The utterances before the response, oldest first.
            options: How far to look in a graph; None takes the defaults.
            scoring: Deadline, priority and limits; None takes the defaults.

        Returns:
            The critique. Its status says what happened to a valid request.

        Raises:
            InvalidRequest: An argument is not usable, or the engine has no critic.
        """
        return self._start(response, knowledge, history, options, scoring).result()

    async def acritique(
        self,
        response: str,
        knowledge: Facts,
        *,
        history: Sequence[str] = (),
        options: CritiqueOptions | None = None,
        scoring: Options | None = None,
    ) -> Critique:
        """Find unsupported names in asyncio, as ``critique``; cancelling the awaiting task gives the request up."""
        return await self._start(response, knowledge, history, options, scoring)

    def _start(
        self, response: Any, knowledge: Any, history: Any, options: CritiqueOptions | None, scoring: Options | None
    ) -> Pending[Critique]:
        check_roles(self._core, "Critic", CRITIC_ROLE)
        settings = check_options(options, CritiqueOptions)
        limits = self._core.check_options(scoring)
        context = _make_context(response, history, knowledge, settings.hops, limits)
        identity = signature(self._core.runtime.identity, ("critique",), limits)
        request_signature = f"{identity}|critique:{_list_settings(settings)}"
        return self._core.drive(self._critique(context, settings, limits, request_signature))

    def _critique(
        self, context: Context, settings: CritiqueOptions, options: Options, request_signature: str
    ) -> Procedure[Critique]:
        if not context.nodes:
            return _make_no_context(request_signature)
        info = self._core.runtime.role_info(CRITIC_ROLE)
        task = steps.critique_response(context, options, info, look_up=settings.look_up)
        job_result = yield self._core.run([task], options, size=_count_tokens(context, CRITIQUE_MODELS))
        (outcome,) = job_result.outcomes
        if isinstance(outcome, Failure):
            return _make_stopped(context, outcome, job_result.timings, request_signature)
        return _make_critique(context, outcome, job_result.timings, request_signature)


class Refiner:
    """Neural Path Hunter: puts entities of a knowledge graph in the place of names that it does not support.

    Needs the roles ``critic`` and ``retriever``; a role ``spans`` (``extra=["compact"]``) recognises the type of names
    that the graph does not know.
    """

    def __init__(self, engine: Engine) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine with the models of Neural Path Hunter. The caller closes it.
        """
        self._core = engine.core

    def refine(
        self,
        response: str,
        knowledge: Facts,
        *,
        history: Sequence[str] = (),
        options: RefineOptions | None = None,
        scoring: Options | None = None,
    ) -> Refinement:
        """Repair a response.

        Args:
            response: The text to repair.
            knowledge: Triples or a graph, as for ``Critic.critique``.
            history: The utterances before the response, oldest first.
            options: Where candidates come from, and when a repair is refused; None takes the defaults.
            scoring: Deadline, priority and limits; None takes the defaults.

        Returns:
            The repair. With the status ``refused`` the response is unchanged.

        Raises:
            InvalidRequest: An argument is not usable, or the engine lacks a role.
        """
        return self._start(response, knowledge, history, options, scoring).result()

    async def arefine(
        self,
        response: str,
        knowledge: Facts,
        *,
        history: Sequence[str] = (),
        options: RefineOptions | None = None,
        scoring: Options | None = None,
    ) -> Refinement:
        """Repair a response in asyncio, as ``refine``; cancelling the awaiting task gives the request up."""
        return await self._start(response, knowledge, history, options, scoring)

    def _start(
        self, response: Any, knowledge: Any, history: Any, options: RefineOptions | None, scoring: Options | None
    ) -> Pending[Refinement]:
        check_roles(self._core, "Refiner", CRITIC_ROLE, RETRIEVER)
        settings = check_options(options, RefineOptions)
        limits = self._core.check_options(scoring)
        context = _make_context(response, history, knowledge, settings.hops, limits)
        request_signature = (
            f"{signature(self._core.runtime.identity, ('refine',), limits)}|refine:{_list_settings(settings)}"
        )
        return self._core.drive(self._refine(context, settings, limits, request_signature))

    def _refine(
        self, context: Context, settings: RefineOptions, options: Options, request_signature: str
    ) -> Procedure[Refinement]:
        if not context.nodes:
            before = _make_no_context(request_signature)
            return _make_unchanged(context, "no_context", before, before.timings, NO_CONTEXT)
        runtime = self._core.runtime
        info = runtime.role_info(CRITIC_ROLE)
        task = steps.repair_response(context, settings, options, info, has_spans=SPANS in runtime.roles)
        job_result = yield self._core.run([task], options, size=_count_tokens(context, REFINE_MODELS))
        return _build(context, job_result.outcomes[0], job_result.timings, request_signature)


def _list_settings(settings: CritiqueOptions | RefineOptions) -> str:
    """The settings for a signature."""
    return ",".join(f"{name}={value}" for name, value in msgspec.to_builtins(settings).items())


def _count_tokens(context: Context, models: int) -> int:
    """About how many tokens the models read."""
    triples = (part for triple in context.triples for part in (triple.subject, triple.predicate, triple.object))
    return estimate_tokens((context.response, *context.history, *triples), models)


def _build(context: Context, repair: RepairResult | Failure, timings: Timings, request_signature: str) -> Refinement:
    """Return the result of the steps, or why they did not finish."""
    if isinstance(repair, Failure):
        before = _make_stopped(context, repair, timings, request_signature)
        return _make_unchanged(context, before.status, before, timings, repair.message)
    before = _make_critique(context, repair.before, timings, request_signature)
    if repair.after is None:
        status = "clean"
        if repair.before.mentions:
            status = "unverifiable" if repair.concerns_speakers else "refused"
        return _make_unchanged(context, status, before, timings, repair.message)
    replaced = {change.mention.start for change in repair.changes}
    still_flagged = {mention.text for mention in repair.after.mentions}
    return Refinement(
        status="refined",
        original=context.response,
        response=repair.response,
        changes=repair.changes,
        unresolved=tuple(
            mention for mention in before.mentions if mention.start not in replaced and mention.text in still_flagged
        ),
        accepted=not repair.after.mentions,
        before=before,
        after=_make_critique(context, repair.after, timings, request_signature),
        timings=timings,
        signature=request_signature,
    )


def check_roles(core: Core, name: str, *roles: str) -> None:
    """Raise InvalidRequest if the engine lacks one of ``roles``, which ``name`` needs."""
    missing = [role for role in roles if role not in core.runtime.roles]
    if missing:
        raise InvalidRequest(
            f"{name} needs {' and '.join(missing)} among the bundle's roles (it has "
            f"{', '.join(sorted(core.runtime.roles))}). Load the bundle 'nph', alone or with extra=['nph']."
        )


def _make_context(response: Any, history: Any, knowledge: Any, hops: int, options: Options) -> Context:
    text, turns = make_response(response, options), make_history(history, options)
    is_graph = isinstance(knowledge, KnowledgeGraph)
    graph = knowledge if is_graph else _make_graph(knowledge)
    if not len(graph):
        raise InvalidRequest("knowledge is empty; pass the triples or the graph that the response should rest on.")
    return build_context(graph, text, turns, hops, all_triples=not is_graph)


def _make_graph(knowledge: Any) -> KnowledgeGraph:
    triples = check_sequence("knowledge", knowledge, "triples, or a KnowledgeGraph, read with KnowledgeGraph.load")
    return KnowledgeGraph.from_triples(make_triples(triples, "knowledge"))


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


def _make_stopped(context: Context, reason: Failure, timings: Timings, signature: str) -> Critique:
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
