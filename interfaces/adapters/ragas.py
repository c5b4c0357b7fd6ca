"""A metric for ragas.

Needs the extra: ``pip install 'groundwire[ragas]'``.

>>> from groundwire.adapters.ragas import RagasMetric                                  # doctest: +SKIP
>>> evaluate(dataset, metrics=[RagasMetric()])                                             # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("ragas"):
    from ragas import SingleTurnSample
    from ragas.metrics.base import MetricType, SingleTurnMetric
    from ragas.run_config import RunConfig

__all__ = ["RagasMetric"]


@dataclass
class RagasMetric(SingleTurnMetric):  # type: ignore[misc]  # ragas is not read by mypy
    """The probability that ``response`` is consistent with ``retrieved_contexts``, without a language model.

    Raises NoScore where there is none; ``ragas.evaluate`` makes that NaN, or ends with ``raise_exceptions=True``.
    """

    name: str = "groundwire"
    _required_columns: dict[MetricType, set[str]] = field(
        default_factory=lambda: {MetricType.SINGLE_TURN: {"user_input:optional", "response", "retrieved_contexts"}}
    )
    engine: Engine | None = None
    metrics: Sequence[str] | str | None = None
    options: Options | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._checker = Checker(self.engine, metrics=self.metrics, options=self.options)

    def init(self, run_config: RunConfig) -> None:
        """Do nothing: a language model is not used.

        Args:
            run_config: Settings of Ragas, which are not used.
        """

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        history = [sample.user_input] if sample.user_input else ()
        checked = await self._checker.acheck(sample.response or "", sample.retrieved_contexts, history)
        return checked.require_probability()
