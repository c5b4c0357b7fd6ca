"""A scorer for Inspect.

Needs the extra: ``pip install 'groundwire[inspect-ai]'``.

>>> from groundwire.adapters.inspect_ai import groundwire                                   # doctest: +SKIP
>>> Task(dataset=samples, solver=generate(), scorer=groundwire())                               # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("inspect-ai"):
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState

__all__ = ["groundwire"]


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]  # inspect_ai is not read by mypy
def groundwire(
    engine: Engine | None = None,
    *,
    knowledge: str = "knowledge",
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Scorer:
    """Return a scorer of a sample's output against its knowledge.

    Args:
        engine: The engine; None is ``default_engine``.
        knowledge: The key of the knowledge in the sample's metadata; where it is missing, the target is the knowledge.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The scorer. The value is the probability, the explanation the reason, and the metadata has the label. A response
        without a probability is unscored, which Inspect's metrics leave out.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    async def score(state: TaskState, target: Target) -> Score:
        response = state.output.completion
        passages = (state.metadata or {}).get(knowledge, list(target) or None)
        checked = await checker.acheck(response, passages, [state.input_text])
        fields = {"answer": response, "explanation": checked.reason, "metadata": {"label": checked.label}}
        if checked.probability is None:
            return Score.unscored(reason=checked.label, **fields)
        return Score(value=checked.probability, **fields)

    return score
