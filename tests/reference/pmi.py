"""PMI-Faith as docs and paper define it, on the PyTorch checkpoint, one text at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class PmiReference:
    """A causal language model and its tokenizer, as transformers loads them."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer

    def pmi(self, document: str, history: str, response: str) -> float:
        """Mean log-probability per response token under (document, history) minus that under the history alone.

        Without a history only the tokens that both forms predict count: all but the first.
        """
        prefix = [self._history(history)] if history else []
        with_document = self._log_probs([self._document(document), *prefix], response)
        without = self._log_probs(prefix, response)
        return _mean(with_document[len(with_document) - len(without) :]) - _mean(without)

    def upmi(self, document: str, response: str) -> float:
        """The same under the document and under nothing, where the first token has no prediction to count."""
        return _mean(self._log_probs([self._document(document)], response)) - _mean(self._log_probs([], response))

    def _document(self, text: str) -> list[int]:
        return self._ids("Document: " + text + "\n\n")

    def _history(self, text: str) -> list[int]:
        return self._ids(text + ".\n")

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _log_probs(self, before: Sequence[list[int]], response: str) -> list[float]:
        """Of the response's tokens, in order; without the first when there is no prefix."""
        prefix = [index for ids in before for index in ids]
        ids = prefix + self._ids("Agent: " + response + ".")
        with torch.inference_mode():
            logits = self._model(torch.tensor([ids])).logits[0]
        values = []
        for index in range(max(1, len(prefix)), len(ids)):
            log_probs = torch.log_softmax(logits[index - 1], dim=-1)
            values.append(float(log_probs[ids[index]]))
        return values


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
