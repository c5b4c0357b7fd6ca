"""AlignScore's checkpoints (Zha et al. 2023): a RoBERTa with heads of its own, as PyTorch Lightning saves it (.ckpt).

Its pooler and a head are what transformers calls a RoBERTa sequence classifier. Two labels take the binary head, whose
second logit is "aligned"; three take the three-way head, whose first logit is.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, RobertaForSequenceClassification

from groundwire.runtime.errors import ExportError

from .checkpoint import load_tokenizer
from .options import RoleOptions

HEADS = {2: "bin_layer", 3: "tri_layer"}
"""By the number of labels."""
_RENAMED = {"base_model.pooler.dense.": "classifier.dense.", "base_model.": "roberta."}


class AlignScore:
    """Loads a checkpoint with one of its heads."""

    def __init__(self, labels: tuple[str, ...] | None) -> None:
        if labels is None or len(labels) not in HEADS:
            raise ExportError(
                "AlignScore has a head of two labels, the second of them aligned, and one of three, the first of them "
                "aligned. Name them: --labels aligned,other,another --set supported=aligned."
            )
        self._labels = len(labels)

    def from_pretrained(self, *, pretrained_model_name_or_path: str, **arguments: Any) -> Any:
        """As ``from_pretrained`` of a transformers class; the encoder's configuration is of the model that it names."""
        content = _read(pretrained_model_name_or_path)
        config = AutoConfig.from_pretrained(content["hyper_parameters"]["model"], num_labels=self._labels)
        weights = {}
        for name, tensor in content["state_dict"].items():
            prefix = next((old for old in _RENAMED if name.startswith(old)), None)
            if prefix is not None:
                weights[_RENAMED[prefix] + name.removeprefix(prefix)] = tensor
            elif name.startswith(f"{HEADS[self._labels]}."):
                weights[f"classifier.out_proj.{name.rpartition('.')[2]}"] = tensor
        return RobertaForSequenceClassification.from_pretrained(None, config=config, state_dict=weights, **arguments)


def read_tokenizer(options: RoleOptions) -> Any:
    """Return the tokenizer of the model that the checkpoint names."""
    return load_tokenizer(RoleOptions(_read(options.source)["hyper_parameters"]["model"]))


def _read(path: str) -> Any:
    content = torch.load(path, map_location="cpu", weights_only=True)
    if "state_dict" not in content or "model" not in content.get("hyper_parameters", {}):
        raise ExportError(f"{path} is not a checkpoint of AlignScore: it names no model that its encoder is of.")
    return content
