"""An action for NeMo Guardrails' output rails.

Needs the extra: ``pip install 'groundwire[nemo-guardrails]'``.

>>> from groundwire.adapters.nemo_guardrails import make_action                             # doctest: +SKIP
>>> rails.register_action(make_action())                                                        # doctest: +SKIP

In a flow of Colang 1.0::

    define subflow check knowledge
      $passed = execute groundwire_check
      if not $passed
        bot refuse to respond
        stop
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from groundwire.engine import Engine, Options

from .checking import Checker
from .extras import needs

with needs("nemo-guardrails"):
    from nemoguardrails.actions import action
    from nemoguardrails.actions.actions import ActionResult

__all__ = ["make_action"]


def make_action(
    engine: Engine | None = None,
    *,
    metrics: Sequence[str] | str | None = None,
    options: Options | None = None,
) -> Callable[..., Awaitable[ActionResult]]:
    """Return the action ``groundwire_check``: whether ``$bot_message`` passes against ``$relevant_chunks``.

    Args:
        engine: The engine; None is ``default_engine``.
        metrics: As for ``Engine.score``.
        options: As for ``Engine.score``.

    Returns:
        The action. It returns False wherever the message does not pass, also without a score. Without chunks, which
        NeMo Guardrails gives as an empty line, only a message that states nothing passes. ``$groundwire`` is then
        ``Checked.to_dict()``, with the reason.
    """
    checker = Checker(engine, metrics=metrics, options=options)

    @action(name="groundwire_check")  # type: ignore[untyped-decorator]  # nemoguardrails is not read by mypy
    async def groundwire_check(context: Mapping[str, Any] | None = None, **_: Any) -> ActionResult:
        context = context or {}
        asked = context.get("last_user_message")
        checked = await checker.acheck(
            context.get("bot_message") or "", context.get("relevant_chunks"), [asked] if asked else ()
        )
        return ActionResult(return_value=checked.passed is True, context_updates={"groundwire": checked.to_dict()})

    checked_action: Callable[..., Awaitable[ActionResult]] = groundwire_check
    return checked_action
