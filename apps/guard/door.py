"""Opens streams of responses that are checked while they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from groundwire.engine import Engine, Options
from groundwire.engine.extend import Knowledge, Metrics, Triples, count_tokens, make_request
from groundwire.repair import Corrector, Refiner
from groundwire.repair.correction.question import find_opener, is_denied
from groundwire.runtime.arguments import Suggesting

from .core import StreamCore
from .policies import Correct, Policy, Refine, check_policy, check_stream
from .stream import ResponseStream


class Guard(Suggesting):
    """Checks responses while they are written, and holds their text back until it is checked.

    >>> with Guard(engine).open("Honey never spoils.") as stream:                              # doctest: +SKIP
    ...     for delta in model_output:
    ...         for event in stream.feed(delta):
    ...             show(event)
    ...     score = stream.finish()
    """

    _other_words: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("stream", "watch", "guard", "wrap", "check", "feed"), "open(knowledge), then feed or guard"),
    }

    def __init__(self, engine: Engine) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine that scores the sentences. The caller closes it.
        """
        self._engine = engine

    def open(
        self,
        knowledge: Knowledge = (),
        policy: Policy | None = None,
        *,
        history: Sequence[str] = (),
        triples: Triples = (),
        metrics: Metrics = None,
        scoring: Options | None = None,
    ) -> ResponseStream:
        """Open the stream of one response.

        Args:
            knowledge: As for ``Engine.score``.
            policy: The action for a sentence by its verdict, or without a verdict. None ends the stream at every
                sentence that is not consistent, except a sentence that states nothing.
            history: As for ``Engine.score``.
            triples: As for ``Engine.score``.
            metrics: As for ``Engine.score``.
            scoring: Options of the checks; their deadline holds for each sentence's check.

        Returns:
            A stream that takes text with ``feed`` and says what may leave.

        Raises:
            InvalidRequest: An argument is not usable.
            Overloaded: As many requests, or tokens, are unfinished as the engine accepts. The tokens of an open stream
                count, and do not end it.
        """
        core = self._engine.core
        plan = core.plan(metrics, scoring)
        policy = check_policy(policy)
        check_stream(plan, policy, core.runtime.roles, triples)
        request = make_request("-", knowledge, history, plan.options, triples)
        core.scheduler.check_room(count_tokens([request], plan))

        def repair(before: str, sentence: str, action: Refine | Correct) -> str | None:
            if isinstance(action, Correct):
                correction = Corrector(self._engine).correct(
                    sentence, request.knowledge, history=history, metrics=plan.names, scoring=plan.options
                )
                is_opposite = is_denied(correction.response) != is_denied(sentence)
                if is_opposite and find_opener(before, sentence):
                    return None  # the "Yes" before it has left
                return correction.response if correction.status == "corrected" else None
            facts = triples if action.graph is None else action.graph
            refined = Refiner(self._engine).refine(sentence, facts, history=history, scoring=plan.options)
            return refined.response if refined.status == "refined" else None

        stream = StreamCore(
            request,
            plan,
            policy,
            lambda request, deadline_ms: core.start([request], plan, deadline_ms, is_bounded=False),
            core.scheduler.cancel,
            repair,
        )
        return ResponseStream(stream, core)
