"""A guardrail for the LiteLLM proxy, after the call.

Needs the extra: ``pip install 'groundwire[litellm]'``. In the proxy's configuration::

    guardrails:
      - guardrail_name: groundwire
        litellm_params: {guardrail: groundwire.adapters.litellm.LiteLLMGuardrail, mode: post_call}

Requests bring what the answer should rest on: ``"metadata": {"knowledge": ["…"]}``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.extend import Knowledge
from groundwire.guard.chat import KnowledgeSource, read_history, read_knowledge

from .checking import Checked, Checker
from .extras import needs

with needs("litellm"):
    from litellm import EmbeddingResponse, ImageResponse, ModelResponse, TextCompletionResponse, stream_chunk_builder
    from litellm.exceptions import GuardrailRaisedException
    from litellm.integrations.custom_guardrail import CustomGuardrail
    from litellm.types.guardrails import GuardrailEventHooks

__all__ = ["LiteLLMGuardrail"]

_WITHOUT_TEXT = (EmbeddingResponse, ImageResponse)
_SOURCES: tuple[KnowledgeSource, ...] = ("metadata",)
_HOOKS = ("async_post_call_success_hook", "async_post_call_streaming_iterator_hook")


class LiteLLMGuardrail(CustomGuardrail):  # type: ignore[misc]  # litellm is not read by mypy
    """Lets a chat completion or text completion pass only if every choice does.

    Everything else is refused with GuardrailRaisedException: an inconsistent answer, one without a score or without
    knowledge, and an answer of another kind. A stream is held back until its text is complete and was checked. Answers
    without text (tool calls, embeddings, images) pass.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _HOOKS:  # the proxy looks for the stream's hook in the class itself, not in its bases
            if name not in vars(cls):
                setattr(cls, name, getattr(cls, name))

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
        **settings: Any,
    ) -> None:
        """Make the guardrail.

        Args:
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.
            **settings: Settings of ``CustomGuardrail``, which the proxy gives.
        """
        super().__init__(**({"supported_event_hooks": [GuardrailEventHooks.post_call]} | settings))
        self._checker = Checker(engine, metrics=metrics, options=options)

    def read_knowledge(self, data: Mapping[str, Any]) -> Knowledge | None:
        """Return the knowledge of a request; a subclass may read it from elsewhere.

        Args:
            data: The body of the request.

        Returns:
            The passages of ``metadata.knowledge``; None where there are none.
        """
        return read_knowledge(data, _SOURCES) or None

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """Return the response if it passes.

        Args:
            data: The body of the request.
            user_api_key_dict: The caller, which is not used.
            response: The response of the model.

        Returns:
            The response, unchanged.

        Raises:
            GuardrailRaisedException: The response does not pass.
        """
        for text in self._read_texts(response):
            checked = await self._check(text, data)
            if checked.passed is not True:
                raise self._refuse(checked.reason, blocked_content=checked.passed is False)
        return response

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Yield the chunks of a stream, all at once after its text has passed.

        Args:
            user_api_key_dict: The caller, which is not used.
            response: The chunks of the model.
            request_data: The body of the request.

        Returns:
            An asynchronous iterator of the chunks.

        Raises:
            GuardrailRaisedException: The response does not pass.
        """
        chunks = [chunk async for chunk in response]
        try:
            whole = stream_chunk_builder(chunks) if chunks else None
        except Exception as error:
            raise self._refuse(f"The stream cannot be put together: {error}") from error
        if chunks:
            await self.async_post_call_success_hook(request_data, user_api_key_dict, whole)
        for chunk in chunks:
            yield chunk

    async def _check(self, text: str, data: Mapping[str, Any]) -> Checked:
        try:
            knowledge = self.read_knowledge(data)
        except InvalidRequest as error:
            raise self._refuse(str(error)) from error
        return await self._checker.acheck(text, knowledge, read_history(data.get("messages") or ()))

    def _read_texts(self, response: Any) -> list[str]:
        if isinstance(response, ModelResponse):
            texts = [choice.message.content for choice in response.choices]
        elif isinstance(response, TextCompletionResponse):
            texts = [choice.text for choice in response.choices]
        elif isinstance(response, _WITHOUT_TEXT):
            texts = []
        else:
            raise self._refuse(f"It checks chat completions and text completions, not {type(response).__name__}.")
        return [text for text in texts if text]

    def _refuse(self, reason: str, *, blocked_content: bool = False) -> GuardrailRaisedException:
        return GuardrailRaisedException(
            guardrail_name=self.guardrail_name, message=reason, blocked_content=blocked_content
        )
