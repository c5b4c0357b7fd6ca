"""Turns the arguments of ``Generator.generate`` into one model call, or says what is wrong with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from groundwire.engine import Options
from groundwire.engine.extend import make_history, make_passages
from groundwire.engine.schema.base import check_record
from groundwire.runtime.arguments import OptionRecord, check_integer
from groundwire.runtime.calls import (
    FAITHFUL,
    BeamSampling,
    BeamSearch,
    Decoding,
    DelayedBeamSearch,
    Generate,
    Greedy,
    Sampling,
)
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.texts.unread import is_blank

from .options import MAX_NEW_TOKENS, MAX_RESPONSES, METHODS, NUCLEUS_TOP_P, GenerationOptions


class GenerationSettings(NamedTuple):
    """A checked request: the model call, and the options it was made from."""

    call: Generate
    options: GenerationOptions
    n_candidates: int
    """Responses to generate."""


def make_settings(
    knowledge: Any, history: Any, generation: Any, options: Options, *, has_metrics: bool = False
) -> GenerationSettings:
    """Check all arguments; InvalidRequest says what was given, what is allowed and what to do.

    ``generation`` are the options of the call, None for the defaults.
    ``has_metrics`` says whether the caller passed metrics; with ``n_candidates`` there are always some.
    """
    generation = GenerationOptions() if generation is None else generation
    if not isinstance(generation, GenerationOptions):
        raise InvalidRequest(f"options is {type(generation).__name__}; pass GenerationOptions(alpha=0.5, …).")
    decoding, n_candidates = resolve_decoding(generation)
    passages, turns = make_passages(knowledge, options), make_history(history, options)
    alpha = generation.alpha
    has_history = not all(map(is_blank, turns))
    if not has_history and not passages:
        raise InvalidRequest("history and knowledge are empty; pass the utterances to answer and the text to use.")
    if not has_history:
        raise InvalidRequest("history is empty; pass the utterances before the response, oldest first.")
    if alpha and not passages:
        raise InvalidRequest(
            f"knowledge is empty; pass the text the response should rest on, or alpha=0 (not {alpha}) to do without."
        )
    if (has_metrics or generation.n_candidates is not None) and not passages:
        raise InvalidRequest("knowledge is empty; pass the text that metrics should check responses against.")
    call = Generate(passages, turns, decoding, float(alpha), float(generation.pmi_top_p))
    return GenerationSettings(call, generation, n_candidates)


def resolve_decoding(generation: GenerationOptions) -> tuple[Decoding, int]:
    """The decoding record of the options, and how many responses it generates; InvalidRequest for a value out of
    range."""
    alpha, pmi_top_p = generation.alpha, generation.pmi_top_p
    _check_range("alpha", alpha, 0 <= _number("alpha", alpha) <= 1, "0 (plain decoding) to 1 (CPMI alone)")
    _check_range("pmi_top_p", pmi_top_p, 0 < _number("pmi_top_p", pmi_top_p) <= 1, "above 0 up to 1 (all tokens)")
    n_candidates = n = check_integer("n", generation.n, 1, MAX_RESPONSES)
    if generation.n_candidates is not None:
        n_candidates = check_integer("n_candidates", generation.n_candidates, n, MAX_RESPONSES)
    seed = check_integer("seed", generation.seed, 0, 2**63 - 1)
    max_new_tokens = check_integer("max_new_tokens", generation.max_new_tokens, 1, MAX_NEW_TOKENS)
    if isinstance(generation.method, OptionRecord):
        check_record(generation, GenerationOptions)
        _check_not_given(generation)
    return make_decoding(generation.method, n_candidates, seed, max_new_tokens), n_candidates


def _check_not_given(generation: GenerationOptions) -> None:
    """A decoding record has its own seed and length, so others beside it would be ignored."""
    usual = GenerationOptions()
    for name in ("seed", "max_new_tokens"):
        if (value := getattr(generation, name)) != getattr(usual, name):
            kind = type(generation.method).__name__
            raise InvalidRequest(
                f"{name}={value} is given beside method={kind}(…); set it in {kind}, or name a method."
            )


def make_decoding(method: Any, n_candidates: int, seed: int, max_new_tokens: int) -> Decoding:
    """The decoding record of a method's name; a record is used as it is, apart from how many responses it returns."""
    if isinstance(method, Greedy):
        return _check_greedy(method, n_candidates)
    if isinstance(method, BeamSearch | Sampling | BeamSampling | DelayedBeamSearch):
        return msgspec.structs.replace(method, num_return_sequences=n_candidates)
    num_beams = max(FAITHFUL.num_beams, n_candidates)
    match method:
        case "greedy":
            return _check_greedy(Greedy(max_new_tokens=max_new_tokens), n_candidates)
        case "beam":
            return msgspec.structs.replace(
                FAITHFUL, num_beams=num_beams, num_return_sequences=n_candidates, max_new_tokens=max_new_tokens
            )
        case "sampling":
            return Sampling(n_candidates, top_k=0, top_p=1.0, seed=seed, max_new_tokens=max_new_tokens)
        case "nucleus":
            return Sampling(n_candidates, top_k=0, top_p=NUCLEUS_TOP_P, seed=seed, max_new_tokens=max_new_tokens)
        case "beam_sampling":
            return BeamSampling(
                num_beams=num_beams, num_return_sequences=n_candidates, seed=seed, max_new_tokens=max_new_tokens
            )
        case "delayed_beam":
            num_beams = max(DelayedBeamSearch().num_beams, n_candidates)
            return DelayedBeamSearch(num_beams, n_candidates, seed=seed, max_new_tokens=max_new_tokens)
    raise InvalidRequest(f"method={method!r} is unknown; use {', '.join(METHODS)}, or a decoding record.")


def format_settings(settings: GenerationSettings) -> str:
    """The settings that determine the responses, as a part of a signature."""
    call = settings.call
    decoding = ",".join(f"{name}={value}" for name, value in msgspec.to_builtins(call.decoding).items())
    return f"generate:alpha={call.alpha},pmi_top_p={call.pmi_top_p},{decoding},n={settings.options.n}"


def _check_greedy(decoding: Greedy, n_candidates: int) -> Greedy:
    if n_candidates > 1:
        raise InvalidRequest(
            f"greedy search generates one response, not {n_candidates}; use beam, sampling or beam_sampling."
        )
    return decoding


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(f"{name} is {value!r}; pass a number.")
    return value


def _check_range(name: str, value: Any, is_allowed: bool, allowed: str) -> None:
    if not is_allowed:
        raise InvalidRequest(f"{name}={value}; allowed is {allowed}.")
