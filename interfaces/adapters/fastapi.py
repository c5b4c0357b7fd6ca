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
from groundwire.engine.api import Knowledge

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
        """``engine`` None is ``default_engine``; the others are as in ``Engine.score``."""
        self._checker = Checker(engine, metrics=metrics, options=options)

    def __call__(self) -> Self:
        """The dependency's value."""
        return self

    async def check(self, response: str, knowledge: Knowledge, history: Sequence[str] = ()) -> Checked:
        """Return what came of checking, whatever it is: the endpoint decides."""
        return await self._checker.acheck(response, knowledge, history)

    async def require(self, response: str, knowledge: Knowledge, history: Sequence[str] = ()) -> Checked:
        """``check``, but HTTPException unless the response passes: 422 if it is inconsistent, 503 without a score.

        The exception's ``detail`` is ``Checked.to_dict()``.
        """
        checked = await self.check(response, knowledge, history)
        if checked.passed is not True:
            raise HTTPException(422 if checked.passed is False else 503, detail=checked.to_dict())
        return checked
