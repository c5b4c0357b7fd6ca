"""An evaluator for LlamaIndex.

Needs the extra: ``pip install 'groundwire[llama-index]'``.

>>> from groundwire.adapters.llama_index import LlamaIndexEvaluator                         # doctest: +SKIP
>>> LlamaIndexEvaluator().evaluate_response(query, response).passing                            # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("llama-index"):
    from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

__all__ = ["LlamaIndexEvaluator"]


class LlamaIndexEvaluator(BaseEvaluator):  # type: ignore[misc]  # llama_index is not read by mypy
    """Scores responses against their contexts, without a language model."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the evaluator.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self._checker = Checker(engine, metrics=metrics, options=options)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """There are none."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Score a response against its contexts.

        Args:
            query: The utterance before the response.
            response: The text to check.
            contexts: The passages that it should rest on.
            **kwargs: Further arguments of LlamaIndex, which are not used.

        Returns:
            The result. Its ``score`` is the probability; without a verdict ``passing`` is None,
            ``invalid_result`` True, and ``invalid_reason`` says why. A response that states nothing passes without a
            score.
        """
        checked = await self._checker.acheck(response or "", contexts, [query] if query else ())
        is_invalid = checked.passed is None
        return EvaluationResult(
            query=query,
            contexts=contexts,
            response=response,
            passing=checked.passed,
            score=checked.probability,
            feedback=checked.reason,
            invalid_result=is_invalid,
            invalid_reason=checked.reason if is_invalid else None,
        )
