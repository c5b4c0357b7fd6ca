"""A FastAPI dependency that stops an endpoint from answering what was not checked.

Needs the extra: ``pip install 'groundwire[fastapi]'``.

>>> from groundwire.adapters.fastapi import ResponseGuard                                   # doctest: +SKIP
>>> guard = ResponseGuard()                                                                     # doctest: +SKIP
>>> @app.get("/answer")                                                                         # doctest: +SKIP
... async def answer(question: str, guard: Annotated[ResponseGuard, Depends(guard)]) -> str:
...     draft = write(question)
...     await guard.require(draft, find_documents(question), [question])
...     return draft
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from groundwire.engine import Engine, Options
from groundwire.engine.extend import Knowledge

from .checking import Checked, Checker
from .extras import needs

with needs("fastapi"):
    from fastapi import HTTPException

__all__ = ["ResponseGuard"]


class ResponseGuard:
    """Checks what an endpoint is about to answer. As a dependency it gives itself, ready to be asked."""

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> None:
        """Make the dependency.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
        """
        self._checker = Checker(engine, metrics=metrics, options=options)

    def __call__(self) -> Self:
        """The dependency's value."""
        return self

    async def check(self, response: str, knowledge: Knowledge, history: Sequence[str] = ()) -> Checked:
        """Check a response; the endpoint decides what to do.

        Args:
            response: The text to check.
            knowledge: The text that it should rest on, one text or several passages.
            history: The utterances before it, oldest first.

        Returns:
            The decision, whatever it is.
        """
        return await self._checker.acheck(response, knowledge, history)

    async def require(self, response: str, knowledge: Knowledge, history: Sequence[str] = ()) -> Checked:
        """Check a response, as ``check``, and raise HTTPException unless it passes.

        Returns:
            The decision, with ``passed`` True.

        Raises:
            HTTPException: 422 if the response is inconsistent, 503 without a score; ``detail`` is
                ``Checked.to_dict()``.
        """
        checked = await self.check(response, knowledge, history)
        if checked.passed is not True:
            raise HTTPException(422 if checked.passed is False else 503, detail=checked.to_dict())
        return checked
