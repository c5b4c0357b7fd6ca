"""The reader: an MPNet backbone with heads for the whole answer, for each sentence of it and for each token.

Its inputs are BERT's word ids, so the tokenizer and the feed of the other models fit; the model turns them into ids
of MPNet, whose vocabulary is BERT's, moved by four. A sentence is the mean of the states of its tokens: a matrix
``pooling`` [B, S, T] is an input, so the graph needs no loop over sentences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import MPNetConfig, MPNetModel

from ..compact.multitask_model import HEADS, TOKEN_HEAD, TOKEN_LABELS

SENTENCE_HEAD = "sentence"
SENTENCE_IDS = "sentence_ids"
"""For each token the number of its sentence, counted from 1; 0 for the others."""
SUPPORTED, UNSUPPORTED, STATES_NOTHING = range(3)
SENTENCE_LABELS = ("supported", "unsupported", "nothing")
"""``nothing`` is a sentence that states nothing to check."""
SPECIAL_IDS = {101: 0, 102: 2, 0: 1, 100: 3}
"""MPNet's ids of BERT's [CLS], [SEP], [PAD] and [UNK]."""
MOVED, ADDED = 4, 5
"""How far MPNet's word ids are from BERT's, and how many more words it has."""
PUBLISHED_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
"""Of ``model.safetensors`` of all-mpnet-base-v2 (Apache-2.0)."""
PUBLISHED_CONFIG: Mapping[str, Any] = {"max_position_embeddings": 514, "layer_norm_eps": 1e-5}
"""Where its configuration differs from the default of its class."""
FROZEN_LAYERS = 4


class Reader(torch.nn.Module):
    """An MPNet backbone, linear heads on [CLS] and on each token, and one on the mean state of each sentence."""

    words: torch.Tensor

    def __init__(self, backbone: MPNetModel) -> None:
        super().__init__()
        config = backbone.config
        self.backbone = backbone
        self.labels = {**HEADS, TOKEN_HEAD: TOKEN_LABELS, SENTENCE_HEAD: SENTENCE_LABELS}
        width, spread = config.hidden_size, config.initializer_range
        self.whole = torch.nn.Linear(width, width)
        self.pooled_sentence = torch.nn.Linear(width, width)
        self.heads = torch.nn.ModuleDict(
            {name: torch.nn.Linear(width, len(labels)) for name, labels in self.labels.items()}
        )
        for name, parameter in self.named_parameters():
            if not name.startswith("backbone."):
                torch.nn.init.normal_(parameter, std=spread) if parameter.dim() > 1 else torch.nn.init.zeros_(parameter)
        self.register_buffer("words", map_words(config.vocab_size), persistent=False)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, pooling: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Logits of every head.

        Args:
            input_ids: BERT's word ids, [B, T].
            attention_mask: 1 for tokens, 0 for padding, [B, T].
            pooling: The weight of each token in each sentence, [B, S, T]; see ``make_pooling``.

        Returns:
            [B, C] for a head of whole answers, [B, T, C] for the token head, [B, S, C] for the sentence head.
        """
        states = self.backbone(input_ids=self.words[input_ids], attention_mask=attention_mask).last_hidden_state
        whole = torch.tanh(self.whole(states[:, 0]))
        sentences = torch.tanh(self.pooled_sentence(pooling.to(states.dtype) @ states))
        inputs = {TOKEN_HEAD: states, SENTENCE_HEAD: sentences}
        return {name: head(inputs.get(name, whole)) for name, head in self.heads.items()}


def map_words(vocabulary: int) -> torch.Tensor:
    """MPNet's id of every word id of BERT, for an MPNet of so many words."""
    words = torch.arange(vocabulary - ADDED) + MOVED
    for bert, mpnet in SPECIAL_IDS.items():
        if bert < len(words):
            words[bert] = mpnet
    return words


def make_pooling(sentence_ids: torch.Tensor, sentences: int) -> torch.Tensor:
    """The weights [B, S, T] that average the tokens of each sentence, of sentence numbers [B, T] counted from 1."""
    numbers = torch.arange(1, sentences + 1, device=sentence_ids.device)
    members = (sentence_ids[:, None, :] == numbers[None, :, None]).float()
    return members / members.sum(-1, keepdim=True).clamp(min=1.0)


def build_reader(source: Path | None, layers: int = 12, start: Path | None = None) -> Reader:
    """The reader before training.

    Args:
        source: Directory with the files of all-mpnet-base-v2; its configuration suffices if ``start`` has all weights,
            and None is the published one.
        layers: How many of its lowest layers to keep.
        start: A checkpoint of a run, of this recipe or of the trial before it, or a reader's bundle; layers above
            ``layers`` are left out, and heads that it lacks are new.

    Raises:
        ValueError: If weights of the backbone are in neither.
    """
    published = source is not None and (source / "model.safetensors").is_file()
    if published:
        reader = Reader(MPNetModel.from_pretrained(source, add_pooling_layer=False, **_list_settings(layers)))
    else:
        reader = Reader(MPNetModel(_make_config(source, layers), add_pooling_layer=False))
    if start is None and not published:
        raise ValueError(f"{source or 'The start'} has no model.safetensors; give it, or a checkpoint to start from.")
    if start is not None:
        load_start(reader, read_checkpoint(start, published), published)
    return reader


def _make_config(source: Path | None, layers: int) -> MPNetConfig:
    config = MPNetConfig(**PUBLISHED_CONFIG) if source is None else MPNetConfig.from_json_file(source / "config.json")
    config.update(_list_settings(layers))
    return config


def _list_settings(layers: int) -> dict[str, Any]:
    return {"num_hidden_layers": layers, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def read_checkpoint(path: Path, published: bool = True) -> Mapping[str, Any]:
    """The weights of a checkpoint, or of a reader's bundle, which keeps them in int8.

    A bundle's embeddings are left out where the ``published`` ones are at hand: they are the same, more precise.
    """
    if path.is_dir():
        # Imported here, because a run from a pack has no ONNX.
        import onnx_ir as ir

        from groundwire.runtime.bundles.bundle import Bundle

        from ..common.restore import read_weights

        graph = ir.load(Bundle.open(path).file("reader.onnx"))
        weights = {name.removeprefix("model."): torch.from_numpy(value) for name, value in read_weights(graph).items()}
        return {name: value for name, value in weights.items() if not (published and name.startswith(name_frozen(0)))}
    checkpoint: Mapping[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return checkpoint


def load_start(reader: Reader, checkpoint: Mapping[str, Any], published: bool) -> None:
    """Copy the weights of a checkpoint as far as ``reader`` has them.

    Raises:
        ValueError: If the checkpoint lacks weights of the backbone and ``reader`` has none that are ``published``.
    """
    weights = checkpoint.get("model", checkpoint.get("m", checkpoint))
    trial = {"bert.": "backbone.", "dense.": "whole."}
    renamed = {
        next((f"{new}{key.removeprefix(old)}" for old, new in trial.items() if key.startswith(old)), key): value
        for key, value in weights.items()
    }
    expected = reader.state_dict()
    missing = reader.load_state_dict({k: v for k, v in renamed.items() if k in expected}, strict=False).missing_keys
    lost = [key for key in missing if key.startswith("backbone.")]
    if lost and not published:
        raise ValueError(f"The checkpoint lacks {len(lost)} weights of the backbone, {lost[0]} for one.")


def load_reader(run: Path) -> Reader:
    """The reader of a run, going on or finished: ``config.json`` and ``checkpoint.pt``; or of a reader's bundle."""
    if (run / "bundle.json").is_file():
        weights = read_checkpoint(run, published=False)
        # backbone.encoder.layer.7.attention…
        layers = 1 + max(int(name.split(".")[3]) for name in weights if name.startswith("backbone.encoder.layer."))
        reader = Reader(MPNetModel(_make_config(None, layers), add_pooling_layer=False))
        load_start(reader, weights, published=False)
        return reader.eval()
    reader = Reader(MPNetModel(MPNetConfig.from_json_file(run / "config.json"), add_pooling_layer=False))
    weights = torch.load(run / "checkpoint.pt", map_location="cpu", weights_only=True, mmap=True)["model"]
    reader.load_state_dict(weights)
    return reader.eval()


def name_frozen(layers: int) -> tuple[str, ...]:
    """What the names of the embeddings' weights and of the lowest ``layers`` layers' begin with."""
    return ("backbone.embeddings.", *(f"backbone.encoder.layer.{index}." for index in range(layers)))


def freeze(reader: Reader, layers: int = FROZEN_LAYERS) -> list[torch.nn.Parameter]:
    """Freeze the embeddings and the lowest ``layers`` layers; return the parameters that are left to train."""
    for name, parameter in reader.named_parameters():
        parameter.requires_grad = not name.startswith(name_frozen(layers))
    return [parameter for parameter in reader.parameters() if parameter.requires_grad]


def check_published_weights(source: Path) -> None:
    """Raise ValueError unless the weights in ``source`` are the publisher's."""
    with (source / "model.safetensors").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != PUBLISHED_SHA256:
        raise ValueError(f"{source / 'model.safetensors'} has sha256 {digest}, the publisher's has {PUBLISHED_SHA256}.")
