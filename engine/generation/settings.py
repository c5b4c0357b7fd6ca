"""Turns what a caller asks of ``generate`` into one model call, or says what is wrong with it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from groundwire.engine.schema.options import Options
from groundwire.engine.schema.validation import make_history, make_passages
from groundwire.runtime.calls import FAITHFUL, BeamSampling, BeamSearch, Decoding, Generate, Greedy, Sampling
from groundwire.runtime.errors import InvalidRequest

Method: TypeAlias = Literal["greedy", "beam", "sampling", "nucleus", "beam_sampling"]
METHODS: tuple[Method, ...] = get_args(Method)
NUCLEUS = 0.9
"""Probability mass that ``nucleus`` draws from. The paper does not say which it takes."""
MAX_RESPONSES = 64
MAX_TOKENS = 64
"""Tokens of a response, unless asked otherwise. The longest of the papers' sets average 20 words."""


class Settings(NamedTuple):
    """What is generated, and how many of it are kept."""

    call: Generate
    n: int
    n_candidates: int


def make_settings(
    knowledge: Any,
    history: Any,
    alpha: Any,
    top_p: Any,
    method: Any,
    n: Any,
    n_candidates: Any,
    seed: Any,
    max_tokens: Any,
    options: Options,
    *,
    checked: bool = False,
) -> Settings:
    """Check everything; InvalidRequest says what was given, what is allowed and what to do.

    ``checked`` tells that metrics will ask whether the responses rest on the knowledge.
    """
    passages, turns = make_passages(knowledge, options), make_history(history)
    _within("alpha", alpha, 0 <= _number("alpha", alpha) <= 1, "0 (plain decoding) to 1 (PMI alone)")
    _within("top_p", top_p, 0 < _number("top_p", top_p) <= 1, "above 0 up to 1 (all tokens)")
    spoken = any(turn.strip() for turn in turns)
    if not spoken and not passages:
        raise InvalidRequest("history and knowledge are empty; pass what is to be answered, and what with.")
    if not spoken:
        raise InvalidRequest("history is empty; pass the utterances before the response, oldest first.")
    if alpha and not passages:
        raise InvalidRequest(
            f"knowledge is empty; pass the text the response should rest on, or alpha=0 (not {alpha}) to do without."
        )
    if checked and not passages:
        raise InvalidRequest("knowledge is empty; pass the text that metrics should check responses against.")
    _whole("n", n, 1, MAX_RESPONSES)
    wanted = n if n_candidates is None else _whole("n_candidates", n_candidates, n, MAX_RESPONSES)
    decoding = make_decoding(
        method, wanted, _whole("seed", seed, 0, 2**63 - 1), _whole("max_tokens", max_tokens, 1, 1023)
    )
    return Settings(Generate(passages, turns, decoding, float(alpha), float(top_p)), n, wanted)


def make_decoding(method: Method | Decoding | Any, returned: int, seed: int, max_tokens: int) -> Decoding:
    """The decoding record of a method's name; a record is taken as it is, but for how many responses it returns."""
    if isinstance(method, Greedy | BeamSearch | Sampling | BeamSampling):
        if isinstance(method, Greedy):
            return _one(method, returned)
        return msgspec.structs.replace(method, num_return_sequences=returned)
    beams = max(FAITHFUL.num_beams, returned)
    match method:
        case "greedy":
            return _one(Greedy(max_new_tokens=max_tokens), returned)
        case "beam":
            return msgspec.structs.replace(
                FAITHFUL, num_beams=beams, num_return_sequences=returned, max_new_tokens=max_tokens
            )
        case "sampling":
            return Sampling(returned, top_k=0, top_p=1.0, seed=seed, max_new_tokens=max_tokens)
        case "nucleus":
            return Sampling(returned, top_k=0, top_p=NUCLEUS, seed=seed, max_new_tokens=max_tokens)
        case "beam_sampling":
            return BeamSampling(num_beams=beams, num_return_sequences=returned, seed=seed, max_new_tokens=max_tokens)
    raise InvalidRequest(f"method={method!r} is unknown; use {', '.join(METHODS)}, or a decoding record.")


def spelled(settings: Settings) -> str:
    """What of the settings determines the responses, for a signature."""
    call = settings.call
    decoding = ",".join(f"{name}={value}" for name, value in msgspec.to_builtins(call.decoding).items())
    return f"generate:alpha={call.alpha},top_p={call.top_p},{decoding},kept={settings.n}"


def _one(greedy: Greedy, returned: int) -> Greedy:
    if returned > 1:
        raise InvalidRequest(f"greedy search writes one response, not {returned}; use beam, sampling or beam_sampling.")
    return greedy


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(f"{name} is {value!r}; pass a number.")
    return value


def _within(name: str, value: Any, fine: bool, allowed: str) -> None:
    if not fine:
        raise InvalidRequest(f"{name}={value}; allowed is {allowed}.")


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidRequest(f"{name}={value!r}; allowed are whole numbers from {least} to {most}.")
    return value
