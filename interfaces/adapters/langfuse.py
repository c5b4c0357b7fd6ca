"""An evaluator for Langfuse's experiments.

Needs the extra: ``pip install 'groundwire[langfuse]'``.

>>> from groundwire.adapters.langfuse import make_evaluator                                 # doctest: +SKIP
>>> get_client().run_experiment(name="faq", data=items, task=answer, evaluators=[make_evaluator()])  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("langfuse"):
    from langfuse import Evaluation

__all__ = ["make_evaluator"]


def make_evaluator(
    engine: Engine | None = None,
    *,
    response: Callable[[Any], str] = lambda output: output,
    knowledge: str = "knowledge",
    name: str = "groundwire",
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Callable[..., Awaitable[list[Evaluation]]]:
    """Return an evaluator of an item's ``output``.

    Args:
        engine: The engine; None is ``default_engine``.
        response: Reads the text of an output that is not a text.
        knowledge: The key of the knowledge, in the output, the item's ``input``, its ``expected_output`` or its
            ``metadata``; the first of them that has it.
        name: Name of the evaluation with the probability; the evaluation ``{name}_label`` has the label.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The evaluator. It returns the label, with the reason as its comment, and the probability where there is one, so
        that averages of an experiment count no missing number.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    async def groundwire(
        *, output: Any, input: Any = None, expected_output: Any = None, metadata: Any = None, **_: Any
    ) -> list[Evaluation]:
        sources = [source for source in (output, input, expected_output, metadata) if isinstance(source, Mapping)]
        passages = next((source[knowledge] for source in sources if knowledge in source), None)
        checked = await checker.acheck(response(output), passages)
        label = Evaluation(
            name=f"{name}_label",
            value=checked.label,
            data_type="CATEGORICAL",
            comment=checked.reason,
            metadata=checked.to_dict(),
        )
        if checked.probability is None:
            return [label]
        return [Evaluation(name=name, value=checked.probability, comment=checked.reason), label]

    return groundwire
