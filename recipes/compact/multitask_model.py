"""The multi-task NLI model: one BERT backbone with heads for whole pairs and one for tokens, and its loss.

- ``nli``: (premise, hypothesis) → entailment, neutral, contradiction;
- ``consistency``: (knowledge, response) → consistent, inconsistent;
- ``verifiability``: one sentence → verifiable, non-verifiable;
- ``token_classifier``: each token of the response → supported, or why it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification, BertModel

from ..common import backbone
from ..common.loop import Batch
from ..synthesis import pairs, structured_edits, weak_labels
from . import nli

HEADS: dict[str, tuple[str, ...]] = {
    "nli": nli.LABELS,
    "consistency": pairs.LABELS,
    "verifiability": weak_labels.LABELS,
}
"""The heads for whole pairs."""
TOKEN_HEAD = "token_classifier"
TOKEN_LABELS = structured_edits.LABELS
ROLES = {"consistency": "detector.consistency", "verifiability": "detector.verifiability"}
"""The roles of a bundle whose names are other than the heads'."""
IGNORED = -100
"""The label where a head has none."""
NOT_ENTAILMENT = len(nli.LABELS)
"""The label of ``nli`` for neutral or contradiction."""
WEIGHTS = {"nli": 1.0, "consistency": 1.0, "verifiability": 0.7, TOKEN_HEAD: 1.5}
"""Weights of the heads' losses."""
TOKEN_WEIGHTS = (1.0, 4.0, 8.0, 8.0, 8.0, 4.0, 2.5)
"""Weights of the token labels: a quarter to a half of the square root of how rare they are."""


class MultitaskNLI(torch.nn.Module):
    """A BERT backbone, one linear head per task on its pooled output, and one on the state of each token."""

    def __init__(self, bert: BertModel, heads: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self.bert = bert
        self.labels = {**heads, TOKEN_HEAD: TOKEN_LABELS}
        self.dropout = torch.nn.Dropout(bert.config.hidden_dropout_prob)
        width, spread = bert.config.hidden_size, bert.config.initializer_range
        linear = {name: torch.nn.Linear(width, len(labels)) for name, labels in self.labels.items()}
        for head in linear.values():
            torch.nn.init.normal_(head.weight, std=spread)
            torch.nn.init.zeros_(head.bias)
        self.heads = torch.nn.ModuleDict(linear)

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Logits of every head for ids [B, T]: [B, C], for the token head [B, T, C]."""
        states = self.bert(input_ids, attention_mask, token_type_ids)
        pooled, tokens = self.dropout(states.pooler_output), self.dropout(states.last_hidden_state)
        return {name: head(tokens if name == TOKEN_HEAD else pooled) for name, head in self.heads.items()}

    def classifier(self, name: str) -> BertForSequenceClassification | BertForTokenClassification:
        """The head ``name`` and a copy of the backbone, as a model of its own."""
        labels = self.labels[name]
        config = BertConfig.from_dict(self.bert.config.to_dict())
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
        model = (BertForTokenClassification if name == TOKEN_HEAD else BertForSequenceClassification)(config)
        expected = model.bert.state_dict()
        model.bert.load_state_dict({key: value for key, value in self.bert.state_dict().items() if key in expected})
        model.classifier.load_state_dict(self.heads[name].state_dict())
        return model.eval()

    def save(self, out: Path) -> None:
        """Write ``out/{head}`` for every head."""
        for name in self.labels:
            self.classifier(name).save_pretrained(out / name)
            backbone.load_tokenizer().save_pretrained(out / name)


def build_multitask_nli(start: Path | None = None, dropout: float = 0.0) -> MultitaskNLI:
    """The model before training: from MiniLM, or from ``start``.

    ``start`` is a checkpoint of ``compact.nli``, or a directory with a checkpoint per head, as ``MultitaskNLI.save``
    writes them; the heads that it lacks are new. ValueError for a checkpoint with other labels, or for heads with
    different backbones.
    """
    dropouts = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    paths = _find_heads(start) if start is not None else {}
    model = MultitaskNLI(BertModel.from_pretrained(paths.get("nli", backbone.PATH), **dropouts), HEADS)
    states = model.bert.state_dict()
    for name, path in paths.items():
        loader = BertForTokenClassification if name == TOKEN_HEAD else BertForSequenceClassification
        trained = loader.from_pretrained(path)
        labels = tuple(trained.config.id2label[index] for index in range(trained.config.num_labels))
        if labels != model.labels[name]:
            raise ValueError(f"{path} has the labels {labels}; give a checkpoint with the labels {model.labels[name]}.")
        for key, value in trained.bert.state_dict().items():
            if not torch.equal(value, states[key]):
                raise ValueError(f"{path} has another backbone than {paths['nli']} ({key}); give heads of one run.")
        model.heads[name].load_state_dict(trained.classifier.state_dict())
    return model


def load_multitask_nli(source: Path) -> MultitaskNLI:
    """The model of a run: of its last state while it is going on, else of the checkpoints it wrote at its end."""
    state = source / "checkpoint.pt"
    if not state.is_file():
        return build_multitask_nli(source).eval()
    model = MultitaskNLI(BertModel.from_pretrained(backbone.PATH), HEADS)
    model.load_state_dict(torch.load(state, map_location="cpu", weights_only=True)["model"])
    return model.eval()


def restore_multitask_nli(bundle: Path) -> MultitaskNLI:
    """The model whose heads a bundle has in one graph, from its int8 weights."""
    # Imported here, because a run from a pack has no ONNX.
    import onnx_ir as ir

    from groundwire.runtime.bundles.bundle import Bundle

    from ..common.restore import fill_backbone, read_weights

    weights = read_weights(ir.load(Bundle.open(bundle).file("detector.consistency.onnx")))
    model = MultitaskNLI(BertModel(BertConfig.from_pretrained(backbone.PATH)), HEADS)
    fill_backbone(model.bert, weights)
    for name, head in model.heads.items():
        prefix = "classifier." if name == "consistency" else f"{ROLES.get(name, name)}."
        arrays = [array for key, array in weights.items() if key.startswith(prefix)]
        head.load_state_dict(
            {"weight" if array.ndim == 2 else "bias": torch.from_numpy(array.copy()) for array in arrays}
        )
    return model.eval()


def average_models(first: MultitaskNLI, second: MultitaskNLI, share: float) -> MultitaskNLI:
    """The weights of ``first`` and ``second`` averaged, ``share`` (0 to 1) of them the second's.

    Where the second was trained further from the first, the average keeps more of what the first can than the second
    does (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").

    Raises:
        ValueError: If ``share`` is not between 0 and 1.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share is {share}; give a number from 0 to 1.")
    others = second.state_dict()
    averaged = {name: value.lerp(others[name], share) for name, value in first.state_dict().items()}
    average = MultitaskNLI(BertModel(first.bert.config), HEADS)
    average.load_state_dict(averaged)
    return average.eval()


def list_untrained_heads(source: Path) -> list[str]:
    """The heads that ``load_multitask_nli`` makes anew because ``source`` has no checkpoint of them."""
    if (source / "checkpoint.pt").is_file():
        return []
    trained = _find_heads(source)
    return [name for name in (*HEADS, TOKEN_HEAD) if name not in trained]


def _find_heads(start: Path) -> dict[str, Path]:
    """The checkpoints in ``start`` by head, the inference head first; ValueError when that is missing."""
    if (start / "config.json").is_file():
        return {"nli": start}
    paths = {name: start / name for name in (*HEADS, TOKEN_HEAD) if (start / name / "config.json").is_file()}
    if "nli" not in paths:
        raise ValueError(
            f"{start} holds no checkpoint; give one of the recipe nli, or a directory with the subdirectory nli and "
            f"those of other heads ({', '.join((*HEADS, TOKEN_HEAD))})."
        )
    return paths


def multitask_loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    """The weighted sum of the heads' losses.

    For whole pairs it is the cross-entropy summed over the rows that have the head's label, divided by all rows; a row
    labelled ``NOT_ENTAILMENT`` costs -log(1 - p(entailment)). For tokens it is the mean over the labelled tokens,
    weighted by label.
    """
    logits = model(**{name: batch[name] for name in backbone.INPUTS})
    rows = len(batch["input_ids"])
    total = torch.zeros((), device=batch["input_ids"].device)
    for name in HEADS:
        labels = batch[name]
        log_probs = logits[name].float().log_softmax(-1)
        if name == "nli":
            # Its probability adds up both labels.
            log_probs = torch.cat([log_probs, log_probs[:, 1:].logsumexp(-1, keepdim=True)], dim=-1)
        # Of an empty selection the sum is 0 and the mean is not a number.
        loss = torch.nn.functional.nll_loss(log_probs, labels, ignore_index=IGNORED, reduction="sum")
        total = total + WEIGHTS[name] * loss / rows
    labels = batch[TOKEN_HEAD].flatten()
    weights = torch.tensor(TOKEN_WEIGHTS, device=labels.device)
    each = torch.nn.functional.cross_entropy(
        logits[TOKEN_HEAD].float().flatten(0, 1), labels, weights, ignore_index=IGNORED, reduction="sum"
    )
    weight = torch.where(labels == IGNORED, 0.0, weights[labels.clamp(min=0)]).sum()
    return total + WEIGHTS[TOKEN_HEAD] * each / weight.clamp(min=1.0)
