"""PMI-Decode as a logits processor, for servers that generate with ``transformers``.

Needs the extra: ``pip install 'groundwire[transformers]'``.

>>> from groundwire.adapters.transformers import PMILogitsProcessor                          # doctest: +SKIP
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
        f"groundwire.adapters.transformers needs torch and transformers ({error}); "
        "install them with: pip install 'groundwire[transformers]'"
    ) from error

__all__ = ["PMILogitsProcessor", "contrast"]

_INFINITE = float("inf")
FLOOR = -30000.0
"""Least log-probability without the knowledge, so that a token impossible without it still has a finite score."""


class PMILogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is not typed
    """Scores the next token by ``alpha · (a − b) + (1 − alpha) · a`` among the most probable ones, −inf outside.

    Here a is the token's log-probability with the knowledge, as ``generate`` computes it, and b without it, as this
    object computes it. The candidates are the fewest tokens whose a together reach ``pmi_top_p``. Source: Nandwani et
    al. 2023, §4.2, and the authors' code. One object serves one ``generate`` call of a causal model or an
    encoder-decoder, with greedy search, beam search, sampling or beam sampling: it caches the keys and values of the
    context without the knowledge, and matches them to the beams by their tokens. Warpers (temperature, top-k, top-p)
    get its scores; tokens that transformers bans before it (repeated n-grams) stay banned, and the candidates are
    chosen among the rest.
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
        """Take the input without the knowledge.

        Args:
            model: The generating model, or another with its vocabulary.
            unconditional_ids: int64 [B, T], one row for each of ``generate``'s sources in their order: the encoder's
                input, or
                the causal model's prompt, which is padded on the left.
            unconditional_mask: [B, T], 1 on the tokens; None takes all.
            alpha: Weight of the difference, 0–1, by default the paper's; at 0 the context is not read.
            pmi_top_p: Probability mass of the tokens that are compared, above 0 up to 1, by default the paper's.

        Raises:
            InvalidRequest: A value is out of its range, a shape is another, or a causal model's prompt is padded on the
                right.
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
                "unconditional_ids is padded on the right; a causal model continues at its end, so pad on the left "
                "(tokenizer.padding_side = 'left')."
            )
        self.alpha = alpha
        self.pmi_top_p = pmi_top_p
        self._context = (
            _EncoderDecoderContext(model, unconditional_ids, mask)
            if paired
            else _CausalContext(model, unconditional_ids, mask)
        )
        self._seen: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores [B · K, V] of the tokens that may follow ``input_ids`` [B · K, L].

        ``scores`` are a, as in beam search, or logits, as in the other decoding methods. Logits differ from a by one
        number per row, and so do the returned scores, which changes no choice.
        """
        without = self._log_probs_without(input_ids) if self.alpha > 0 else None
        return contrast(scores.float(), without, self.alpha, self.pmi_top_p).to(scores.dtype)

    def _log_probs_without(self, input_ids: Tensor) -> Tensor:
        """Return b [B · K, V], after moving the cached keys and values to the rows that continue them."""
        if self._seen is None:
            self._context.begin(input_ids)
        else:
            self._context.advance(_match_parents(self._seen, input_ids, self._context.sources), input_ids[:, -1:])
        self._seen = input_ids.clone()
        return torch.log_softmax(self._context.logits.float(), dim=-1)


def contrast(with_knowledge: Tensor, without: Tensor | None, alpha: float, pmi_top_p: float) -> Tensor:
    """Return ``alpha · (with − without) + (1 − alpha) · with`` in the ``pmi_top_p`` set, −inf outside.

    The softmax of ``with_knowledge`` chooses the set. A token that is impossible with the knowledge stays so.

    Args:
        with_knowledge: Log-probabilities with the knowledge, [..., V]; each row may have a number added.
        without: Log-probabilities without the knowledge, [..., V]; None at ``alpha`` 0, where they are not used.
        alpha: Weight of the difference, 0–1.
        pmi_top_p: Probability mass of the set, above 0 up to 1.

    Returns:
        The contrasted log-probabilities, [..., V], not normalised.

    Raises:
        InvalidRequest: A value is out of its range, or ``without`` is None at another ``alpha``.
    """
    check(alpha, pmi_top_p)
    allowed = with_knowledge > -_INFINITE
    if pmi_top_p < 1:
        shares, order = torch.log_softmax(with_knowledge, dim=-1).sort(dim=-1, descending=True, stable=True)
        mass = shares.exp().cumsum(-1)
        before = torch.nn.functional.pad(mass[..., :-1], (1, 0))
        allowed &= torch.zeros_like(allowed).scatter(-1, order, before < pmi_top_p)
    if alpha == 0:
        value = with_knowledge
    elif without is None:
        raise InvalidRequest("without is None, which is allowed at alpha=0 only; give log-probabilities.")
    else:
        value = with_knowledge - alpha * without.clamp(min=FLOOR)
    return value.masked_fill(~allowed, -_INFINITE)


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
    def advance(self, parents: Tensor, tokens: Tensor) -> None:
        """Read the last token of every sequence, each after the row of ``parents`` that it continues."""

    def _rows(self, input_ids: Tensor) -> Tensor:
        """Return the source of every row: ``generate`` keeps the beams of a source next to each other."""
        beams, rest = divmod(len(input_ids), self.sources)
        if rest or not beams:
            raise InvalidRequest(
                f"generate works on {len(input_ids)} rows and unconditional_ids has {self.sources}; give one row for "
                "each source, in the same order."
            )
        return torch.arange(self.sources, device=self._ids.device).repeat_interleave(beams)

    def _read(self, **arguments: Any) -> Any:
        with torch.no_grad():
            out = self._model(**arguments, past_key_values=self._past, use_cache=True, return_dict=True)
        self._past = out.past_key_values
        self.logits = out.logits[:, -1]
        return out

    def _reorder(self, rows: Tensor) -> None:
        self._past.reorder_cache(rows)


class _CausalContext(_Context):
    """A causal model: the prompt is read once per source and shared by its beams."""

    def __init__(self, model: Any, ids: Tensor, mask: Tensor) -> None:
        super().__init__(model, ids, mask)
        # BLOOM and similar models compute positions from the mask.
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def begin(self, input_ids: Tensor) -> None:
        rows = self._rows(input_ids)
        self._step(self._ids)
        self.logits, self._mask = self.logits[rows], self._mask[rows]
        self._reorder(rows)

    def advance(self, parents: Tensor, tokens: Tensor) -> None:
        self._reorder(parents)
        self._mask = torch.cat([self._mask[parents], torch.ones_like(tokens)], dim=1)
        self._step(tokens)

    def _step(self, tokens: Tensor) -> None:
        positions = (self._mask.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
        self._read(
            input_ids=tokens,
            attention_mask=self._mask,
            **({"position_ids": positions} if self._takes_positions else {}),
        )


class _EncoderDecoderContext(_Context):
    """An encoder-decoder: the source is encoded once, and its beams share that."""

    def begin(self, input_ids: Tensor) -> None:
        rows = self._rows(input_ids)
        with torch.no_grad():
            states = self._model.get_encoder()(input_ids=self._ids, attention_mask=self._mask, return_dict=True)
        self._states, self._mask = states.last_hidden_state[rows], self._mask[rows]
        self._step(input_ids)

    def advance(self, parents: Tensor, tokens: Tensor) -> None:
        # A parent is a row of the same source, so the encoder states need no reordering.
        self._reorder(parents)
        self._step(tokens)

    def _step(self, tokens: Tensor) -> None:
        encoded = BaseModelOutput(last_hidden_state=self._states)
        self._read(encoder_outputs=encoded, attention_mask=self._mask, decoder_input_ids=tokens)


def _match_parents(seen: Tensor, now: Tensor, sources: int) -> Tensor:
    """For every row of ``now`` [B · K, L + 1], a row of ``seen`` [B · K, L] of its source that it continues → [B · K].

    Rows of one source with the same tokens have the same keys and values, so any of them serves; a row that continues
    itself keeps its own.
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
    index = (equal.to(torch.int8) * (1 + itself)).argmax(-1)
    first = torch.arange(sources, device=now.device)[:, None] * beams
    return (index + first).flatten()
