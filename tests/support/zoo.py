"""The tiny checkpoints of ``tests/support/models.py`` as bundles, each exported once per test run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

from groundwire.export import QuestionGeneratorSettings, RoleOptions, export_role
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import Template
from groundwire.runtime.models.classifier import Classifier, TokenClassifier
from groundwire.runtime.models.embedder import Embedder
from groundwire.runtime.models.extractive_qa import ExtractiveQA
from groundwire.runtime.models.language_model import LanguageModel
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.models.response_generator import ResponseGenerator
from groundwire.runtime.ort.session import DeviceProfile

from . import models
from .shared import make_once

PROFILE = DeviceProfile.of("cpu", 1)
PAIRED = Template("{answer}", "{context}")
"""What a BERT encoder reads: answer and context as a pair, distinguished by token types."""
LABELS = {
    "albert": ("entailment", "neutral", "contradiction"),
    "bert": ("contradiction", "entailment", "neutral"),
    "roberta": ("neutral", "contradiction", "entailment"),
    "deberta": ("neutral", "entailment", "contradiction"),
}
"""The order of the logits of each family's classifier: every published checkpoint has its own."""


def _response_generator(folder: Path, family: str) -> Path:
    return (models.encoder_decoder if family in models.ENCODER_DECODERS else models.language_model)(folder, family)


_WRITE = {
    "generator": _response_generator,
    "qg": models.encoder_decoder,
    "qa": models.extractive_qa,
    "embedder": models.embedder,
    "lm": models.language_model,
    "nli": lambda folder, family: models.classifier(folder, family, labels=LABELS[family]),
    "token_classifier": models.token_classifier,
}
_LOAD = {
    "generator": AutoModelForSeq2SeqLM,
    "qg": AutoModelForSeq2SeqLM,
    "qa": AutoModelForQuestionAnswering,
    "embedder": AutoModel,
    "lm": AutoModelForCausalLM,
    "nli": AutoModelForSequenceClassification,
    "token_classifier": AutoModelForTokenClassification,
}


class Zoo:
    """Checkpoints and bundles by role (``qg``, ``qa``, ``nli``, ``embedder``, ``lm``) and family, made when needed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._torch: dict[tuple[str, str], tuple[Any, PreTrainedTokenizerFast]] = {}
        self._open: dict[tuple[str, str, str], Any] = {}

    def checkpoint(self, role: str, family: str) -> Path:
        """The checkpoint's directory."""
        return make_once(self._root / f"{role}-{family}", lambda folder: _WRITE[role](folder, family))

    def torch(self, role: str, family: str) -> tuple[Any, PreTrainedTokenizerFast]:
        """The checkpoint as transformers loads it."""
        key = (role, family)
        if key not in self._torch:
            folder = self.checkpoint(role, family)
            with torch.random.fork_rng():  # missing poolers are drawn anew at loading
                load = AutoModelForCausalLM if family in models.LANGUAGE_MODELS else _LOAD[role]
                model = load.from_pretrained(folder).eval()
            self._torch[key] = model, AutoTokenizer.from_pretrained(folder)
        return self._torch[key]

    def bundle(self, role: str, family: str, precision: str = "fp32") -> Bundle:
        """The checkpoint as a bundle of one role; random weights in int8 are not asked to pass the parity gate."""
        options = RoleOptions(
            str(self.checkpoint(role, family)),
            QuestionGeneratorSettings(PAIRED) if role == "qg" and family.startswith("bert") else None,
            precision=precision,  # type: ignore[arg-type]
            allow_unverified=precision == "int8",
        )
        folder = self._root / f"{role}-{family}-{precision}"
        return Bundle.open(make_once(folder, lambda folder: export_role(role, options, folder)))

    def question_generator(self, family: str, precision: str = "fp32") -> QuestionGenerator:
        """The exported question generator."""
        return self._model(QuestionGenerator, "qg", family, precision)

    def response_generator(self, family: str, precision: str = "fp32") -> ResponseGenerator:
        """The exported response generator."""
        return self._model(ResponseGenerator, "generator", family, precision)

    def extractive_qa(self, family: str, precision: str = "fp32") -> ExtractiveQA:
        """The exported extractive QA model."""
        return self._model(ExtractiveQA, "qa", family, precision)

    def classifier(self, family: str, precision: str = "fp32") -> Classifier:
        """The exported classifier."""
        return self._model(Classifier, "nli", family, precision)

    def embedder(self, family: str, precision: str = "fp32") -> Embedder:
        """The exported embedder with all its layers."""
        return self._model(Embedder, "embedder", family, precision)

    def token_classifier(self, family: str, precision: str = "fp32") -> TokenClassifier:
        """The exported token classifier."""
        return self._model(TokenClassifier, "token_classifier", family, precision)

    def language_model(self, family: str, precision: str = "fp32") -> LanguageModel:
        """The exported language model."""
        return self._model(LanguageModel, "lm", family, precision)

    def _model(self, kind: Any, role: str, family: str, precision: str) -> Any:
        key = (role, family, precision)
        if key not in self._open:
            bundle = self.bundle(role, family, precision)
            self._open[key] = kind.load(bundle, bundle.manifest.roles[role], PROFILE)
        return self._open[key]
