"""The peer: the same checkpoints in PyTorch float32, one call at a time, as the papers' code runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from groundwire.runtime.calls import BeamSearch

_KINDS = {
    "qa": AutoModelForQuestionAnswering,
    "nli": AutoModelForSequenceClassification,
    "detector.consistency": AutoModelForSequenceClassification,
    "qg": AutoModelForSeq2SeqLM,
}


class Work(msgspec.Struct):
    """Calls of one model and the tokens of their inputs, without padding."""

    calls: int = 0
    tokens: int = 0


class Torch:
    """One checkpoint; ``model`` and ``tokenizer`` are transformers' own, ``work`` counts the calls with texts."""

    def __init__(self, role: str, folder: Path) -> None:
        self.work = Work()
        self.model: Any = _KINDS[role].from_pretrained(folder).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def logits(self, feeds: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return all outputs of an extractive QA model or classifier."""
        output = self.model(**feeds)
        return (output.start_logits, output.end_logits) if "start_logits" in output else (output.logits,)

    @torch.inference_mode()
    def search(self, ids: torch.Tensor, decoding: BeamSearch) -> tuple[torch.Tensor, torch.Tensor]:
        """Beam search over the sources ``ids`` [B, T]: sequences [B · num_return_sequences, L] and their scores."""
        generated = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            num_beams=decoding.num_beams,
            num_return_sequences=decoding.num_return_sequences,
            no_repeat_ngram_size=decoding.no_repeat_ngram_size,
            early_stopping=decoding.early_stopping,
            length_penalty=decoding.length_penalty,
            min_new_tokens=decoding.min_new_tokens,
            max_new_tokens=decoding.max_new_tokens,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
        )
        return generated.sequences, generated.sequences_scores

    def generate(self, source: str, decoding: BeamSearch) -> list[str]:
        """The generated texts of one source, best first."""
        ids = self._encode(source)["input_ids"]
        sequences, _ = self.search(ids, decoding)
        texts: list[str] = self.tokenizer.batch_decode(sequences, skip_special_tokens=True)
        return texts

    def answer(self, question: str, passage: str) -> str:
        """Return the text from the best start token to the best end token, chosen independently; "" for no answer."""
        encoded = self._encode(question, passage, return_offsets_mapping=True)
        offsets = encoded.pop("offset_mapping")[0].tolist()
        start, end = (int(logits[0].argmax()) for logits in self.logits(encoded))
        owners = encoded.sequence_ids(0)
        if None in owners[start : end + 1]:  # a range that touches a special token does not answer
            return ""
        pieces = []
        for owner, text in enumerate((question, passage)):
            covered = [offsets[i] for i in range(start, end + 1) if owners[i] == owner]
            if covered:
                pieces.append(text[covered[0][0] : covered[-1][1]])
        return " ".join(pieces)

    def classify(self, premise: str, hypothesis: str) -> list[float]:
        """Return probabilities in the order of the logits."""
        (logits,) = self.logits(self._encode(premise, hypothesis))
        return [float(value) for value in logits[0].softmax(-1)]

    def _encode(self, *texts: str, **options: bool) -> Any:
        encoded = self.tokenizer(*texts, return_tensors="pt", **options)
        # T5 has no token types, and RoBERTa's table a single row.
        if getattr(self.model.config, "type_vocab_size", 0) < 2:
            encoded.pop("token_type_ids", None)
        self.work.calls += 1
        self.work.tokens += encoded["input_ids"].numel()
        return encoded
