"""PMI-Decode for a server that generates with ``transformers`` already: a logits processor.

Needs the extra: ``pip install 'groundwire[transformers]'``.

>>> from groundwire.integrations.transformers import PMILogitsProcessor                          # doctest: +SKIP
>>> given = tokenizer(["Document: …\\n\\nhow tall is it?\\nAgent:"], return_tensors="pt")           # doctest: +SKIP
>>> alone = tokenizer(["how tall is it?\\nAgent:"], return_tensors="pt")                          # doctest: +SKIP
>>> rule = PMILogitsProcessor(model, alone.input_ids, alone.attention_mask)                     # doctest: +SKIP
>>> model.generate(**given, logits_processor=[rule], num_beams=4)                               # doctest: +SKIP
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any

from groundwire.runtime.errors import InvalidRequest

try:
    import torch
    from torch import Tensor
    from transformers import LogitsProcessor
    from transformers.modeling_outputs import BaseModelOutput
except ImportError as error:
    raise ImportError(
        f"groundwire.integrations.transformers needs torch and transformers ({error}); "
        "install them with: pip install 'groundwire[transformers]'"
    ) from error

__all__ = ["PMILogitsProcessor", "contrast"]

_INFINITE = float("inf")
FLOOR = -30000.0
"""Least log-probability without the knowledge: a token that only it allows is far better, not infinitely."""


class PMILogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is not typed
    """Scores the next token by ``alpha · (a − b) + (1 − alpha) · a`` among the most probable ones, −inf outside.

    Here a is its log-probability with the knowledge, as ``generate`` computes it, b the one without, which this object
    computes, and the tokens that count are the fewest whose a together reach ``pmi_top_p``. Source: Nandwani et al.
    2023, §4.2, and the authors' code. Made for one ``generate`` call of a causal model or an encoder-decoder, with any
    of greedy search, beam search, sampling and beam sampling: it keeps the keys and values of the context without the
    knowledge itself, and finds out which of them each beam continues from the tokens alone. Warpers (temperature,
    top-k, top-p) see its scores; what transformers forbids before it (repeated n-grams) stays forbidden, and the set is
    taken from the rest.
    """

    def __init__(
        self,
        model: Any,
        unconditional_ids: Tensor,
        unconditional_mask: Tensor | None = None,
        *,
        alpha: float = 0.25,
        pmi_top_p: float = 0.6,
    ) -> None:
        """What ``model`` (the one that generates, or another with its vocabulary) reads without the knowledge.

        ``unconditional_ids`` int64 [B, T], one row for each of ``generate``'s sources in their order: the encoder's
        input, or the causal model's prompt, which is padded on the left. ``unconditional_mask`` [B, T] has 1 on the
        tokens; None takes all. ``alpha`` 0–1 and ``pmi_top_p``, above 0 up to 1, have the paper's recommended values;
        at ``alpha`` 0 the context is not read. Raises InvalidRequest for a value out of its range.
        """
        check(alpha, pmi_top_p)
        mask = torch.ones_like(unconditional_ids) if unconditional_mask is None else unconditional_mask
        if unconditional_ids.ndim != 2 or mask.shape != unconditional_ids.shape or not bool(mask.any(1).all()):
            raise InvalidRequest(
                f"unconditional_ids has shape {tuple(unconditional_ids.shape)} and its mask {tuple(mask.shape)}; give "
                "both [sources, tokens], with a token in every row."
            )
        paired = bool(model.config.is_encoder_decoder)
        if not paired and not bool(mask[:, -1].all()):
            raise InvalidRequest(
                "unconditional_ids is padded on the right; a causal model goes on at its end, so pad on the left "
                "(tokenizer.padding_side = 'left')."
            )
        self.alpha = alpha
        self.pmi_top_p = pmi_top_p
        self._context = _Paired(model, unconditional_ids, mask) if paired else _Causal(model, unconditional_ids, mask)
        self._seen: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores [B · K, V] of the tokens that may follow ``input_ids`` [B · K, L].

        ``scores`` are a as beam search brings it, or logits, as the other ways do: those differ from a by a number for
        each row, and so does then what is returned, which changes no choice.
        """
        without = self._without(input_ids) if self.alpha > 0 else None
        return contrast(scores.float(), without, self.alpha, self.pmi_top_p).to(scores.dtype)

    def _without(self, input_ids: Tensor) -> Tensor:
        """b [B · K, V], and the kept keys and values moved to the rows that continue them."""
        if self._seen is None:
            self._context.begin(input_ids)
        else:
            self._context.go_on(_parents(self._seen, input_ids, self._context.sources), input_ids[:, -1:])
        self._seen = input_ids.clone()
        return torch.log_softmax(self._context.logits.float(), dim=-1)


def contrast(given: Tensor, without: Tensor | None, alpha: float, pmi_top_p: float) -> Tensor:
    """``alpha · (given − without) + (1 − alpha) · given`` in the ``pmi_top_p`` set of ``given``, −inf outside.

    Both are log-probabilities [..., V], or ``given`` that and a number for each row; ``without`` may be None at
    ``alpha`` 0, where it counts for nothing. The set is that of ``given``'s softmax. A token that is impossible with
    the knowledge stays so, whatever it is without.
    """
    check(alpha, pmi_top_p)
    kept = given > -_INFINITE
    if pmi_top_p < 1:
        shares, order = torch.log_softmax(given, dim=-1).sort(dim=-1, descending=True, stable=True)
        mass = shares.exp().cumsum(-1)
        before = torch.nn.functional.pad(mass[..., :-1], (1, 0))
        kept &= torch.zeros_like(kept).scatter(-1, order, before < pmi_top_p)
    if alpha == 0:
        value = given
    elif without is None:
        raise InvalidRequest("without is None; it counts at every alpha but 0.")
    else:
        value = given - alpha * without.clamp(min=FLOOR)
    return value.masked_fill(~kept, -_INFINITE)


def check(alpha: float, pmi_top_p: float) -> None:
    """Raise InvalidRequest for a value outside its range."""
    if not 0 <= alpha <= 1:
        raise InvalidRequest(f"alpha={alpha}; allowed are 0 (plain decoding) to 1 (PMI alone).")
    if not 0 < pmi_top_p <= 1:
        raise InvalidRequest(f"pmi_top_p={pmi_top_p}; allowed is above 0 up to 1 (all tokens).")


class _Context(ABC):
    """The model in the context without the knowledge: ``logits`` [rows, V] after the tokens given so far."""

    logits: Tensor

    def __init__(self, model: Any, ids: Tensor, mask: Tensor) -> None:
        self._model, self._ids, self._mask = model, ids, mask
        self._past: Any = None

    @property
    def sources(self) -> int:
        return len(self._ids)

    @abstractmethod
    def begin(self, input_ids: Tensor) -> None:
        """Read the prompt and the first sequences."""

    @abstractmethod
    def go_on(self, parents: Tensor, tokens: Tensor) -> None:
        """Read the last token of every sequence, each behind the row of ``parents`` that it continues."""

    def _rows(self, input_ids: Tensor) -> Tensor:
        """The source of every row: ``generate`` puts the beams of a source next to each other."""
        beams, rest = divmod(len(input_ids), self.sources)
        if rest or not beams:
            raise InvalidRequest(
                f"generate works on {len(input_ids)} rows and unconditional_ids has {self.sources}; give one row for "
                "each source, in the same order."
            )
        return torch.arange(self.sources, device=self._ids.device).repeat_interleave(beams)

    def _read(self, **given: Any) -> Any:
        with torch.no_grad():
            out = self._model(**given, past_key_values=self._past, use_cache=True, return_dict=True)
        self._past = out.past_key_values
        self.logits = out.logits[:, -1]
        return out

    def _reorder(self, rows: Tensor) -> None:
        self._past.reorder_cache(rows)


class _Causal(_Context):
    """A causal model: the prompt is read once per source and shared by its beams."""

    def __init__(self, model: Any, ids: Tensor, mask: Tensor) -> None:
        super().__init__(model, ids, mask)
        # BLOOM and its like tell positions from the mask.
        self._placed = "position_ids" in inspect.signature(model.forward).parameters

    def begin(self, input_ids: Tensor) -> None:
        rows = self._rows(input_ids)
        self._step(self._ids)
        self.logits, self._mask = self.logits[rows], self._mask[rows]
        self._reorder(rows)

    def go_on(self, parents: Tensor, tokens: Tensor) -> None:
        self._reorder(parents)
        self._mask = torch.cat([self._mask[parents], torch.ones_like(tokens)], dim=1)
        self._step(tokens)

    def _step(self, tokens: Tensor) -> None:
        places = (self._mask.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        self._read(input_ids=tokens, attention_mask=self._mask, **({"position_ids": places} if self._placed else {}))


class _Paired(_Context):
    """An encoder-decoder: the source is encoded once, and its beams share that."""

    def begin(self, input_ids: Tensor) -> None:
        rows = self._rows(input_ids)
        with torch.no_grad():
            states = self._model.get_encoder()(input_ids=self._ids, attention_mask=self._mask, return_dict=True)
        self._states, self._mask = states.last_hidden_state[rows], self._mask[rows]
        self._step(input_ids)

    def go_on(self, parents: Tensor, tokens: Tensor) -> None:
        # A parent is a row of the same source, so what the encoder gave stays where it is.
        self._reorder(parents)
        self._step(tokens)

    def _step(self, tokens: Tensor) -> None:
        encoded = BaseModelOutput(last_hidden_state=self._states)
        self._read(encoder_outputs=encoded, attention_mask=self._mask, decoder_input_ids=tokens)


def _parents(seen: Tensor, now: Tensor, sources: int) -> Tensor:
    """For every row of ``now`` [B · K, L + 1], a row of ``seen`` [B · K, L] of its source that it continues → [B · K].

    Rows of one source with the same tokens have the same keys and values, so any of them will do; a row that continues
    itself stays.
    """
    rows, length = seen.shape
    if now.shape != (rows, length + 1):
        raise InvalidRequest(
            f"PMILogitsProcessor was last given sequences of shape {tuple(seen.shape)} and now {tuple(now.shape)}; it "
            "follows one generate call that adds a token at a time: make a new one for every call."
        )
    beams = rows // sources
    before, after = seen.view(sources, beams, length), now[:, :-1].view(sources, beams, length)
    equal = (after[:, :, None] == before[:, None]).all(-1)  # [B, K now, K before]
    if not bool(equal.any(-1).all()):
        raise InvalidRequest(
            "The sequences do not continue those of the step before; PMILogitsProcessor follows one generate call: "
            "make a new one for every call."
        )
    itself = torch.eye(beams, dtype=torch.int8, device=now.device)
    place = (equal.to(torch.int8) * (1 + itself)).argmax(-1)
    first = torch.arange(sources, device=now.device)[:, None] * beams
    return (place + first).flatten()
