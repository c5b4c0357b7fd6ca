"""Responses by PMI-Decode on exported graphs, against the reference implementation and ``transformers.generate``."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from groundwire.runtime.calls import (
    BeamSampling,
    BeamSearch,
    Decoding,
    DelayedBeamSearch,
    Generate,
    GeneratedSequence,
    Greedy,
    Sampling,
    SequencePart,
)
from groundwire.runtime.errors import GroundwireError, InvalidRequest, ModelError, TooLong
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.response_generator import ResponseGenerator
from groundwire.runtime.ort.session import Session
from tests.reference.beam_search import Options, beam_search
from tests.reference.pmi_decode import PmiDecodeReference, contrast
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

FAMILIES = ("bart", "t5", "gpt2", "llama", "qwen3")
ALPHAS, MASSES = (0.0, 0.25, 0.5, 1.0), (0.6, 0.75, 0.9, 1.0)
LENGTH = 8
BEAM = BeamSearch(
    num_beams=3, num_return_sequences=3, no_repeat_ngram_size=0, early_stopping=False, max_new_tokens=LENGTH - 1
)
GREEDY = Greedy(max_new_tokens=LENGTH - 1)
CALL = Generate(("Most guitars have six strings.", "It is loud."), ("Do you play?", "Yes, and you?"), GREEDY)
OTHERS = (
    Generate(("a",), ("a",), GREEDY),
    Generate(("The Amazon river flows through Brazil, Peru and Colombia.",), ("Where is the river?",), GREEDY),
    Generate(("The Titanic sank in April 1912.",), (), GREEDY),
)


def texts(call: Generate) -> tuple[list[str], list[str]]:
    """The pieces of the two prompts."""
    history = [f"{chr(10).join(call.history)}.\n"] if call.history else []
    return [f"Document: {' '.join(call.knowledge)}\n\n", *history, "Agent:"], [*history, "Agent:"]


def ids(zoo: Zoo, family: str, pieces: Sequence[str]) -> list[int]:
    """The ids of a prompt by transformers' tokenizer."""
    _, tokenizer = zoo.torch("generator", family)
    if family in models.LANGUAGE_MODELS:
        return [index for piece in pieces for index in tokenizer(piece, add_special_tokens=False)["input_ids"]]
    return list(tokenizer("".join(pieces))["input_ids"])


def load_reference(zoo: Zoo, family: str, call: Generate) -> tuple[PmiDecodeReference, int, tuple[int, ...]]:
    """The reference implementation, the token before the first, and the end tokens."""
    model, _ = zoo.torch("generator", family)
    given, alone = (ids(zoo, family, pieces) for pieces in texts(call))
    start = given[-1] if family in models.LANGUAGE_MODELS else model.generation_config.decoder_start_token_id
    return PmiDecodeReference(model, given, alone), start, (model.generation_config.eos_token_id,)


def run(
    zoo: Zoo, family: str, calls: Sequence[Generate], precision: str = "fp32"
) -> list[tuple[GeneratedSequence, ...]]:
    results = zoo.response_generator(family, precision).run(calls, 1)
    assert not [result for result in results if isinstance(result, GroundwireError)]
    return results  # type: ignore[return-value]


def token_ids(sequence: GeneratedSequence) -> list[int]:
    return [token.id for token in sequence.tokens]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tokens_are_those_of_the_reference(zoo: Zoo, family: str) -> None:
    """Greedy and beam search at every alpha and pmi_top_p, all in one batch; likelihoods and CPMI of tokens too."""
    slow, start, eos = load_reference(zoo, family, CALL)
    grid = list(itertools.product(ALPHAS, MASSES))
    calls = [
        msgspec.structs.replace(CALL, decoding=decoding, alpha=alpha, pmi_top_p=mass)
        for decoding in (GREEDY, BEAM)
        for alpha, mass in grid
    ]
    results = run(zoo, family, calls)
    settings = Options(
        BEAM.num_beams, BEAM.num_return_sequences, start, eos, LENGTH, 0, 0, BEAM.length_penalty, BEAM.early_stopping
    )
    seen = set()
    for (alpha, mass), (greedy,), beams in zip(grid, results[: len(grid)], results[len(grid) :], strict=True):
        assert token_ids(greedy) == slow.greedy(start, eos, alpha, mass, LENGTH - 1)
        expected = beam_search(slow.scores(alpha, mass), settings)
        assert [token_ids(beam) for beam in beams] == [tokens for tokens, _ in expected]
        assert [beam.score for beam in beams] == pytest.approx([score for _, score in expected], abs=1e-4)
        for sequence in (greedy, *beams):
            check_tokens(sequence, slow, start, eos, alpha)
            seen.add(tuple(token_ids(sequence)))
    assert len(seen) > len(grid) / 2


def check_tokens(
    sequence: GeneratedSequence, slow: PmiDecodeReference, start: int, eos: tuple[int, ...], alpha: float
) -> None:
    tokens = token_ids(sequence)
    for index, token in enumerate(sequence.tokens):
        given, alone = (float(slow.log_probs(context, (start, *tokens[:index]))[token.id]) for context in (0, 1))
        assert token.log_prob == pytest.approx(given, abs=1e-4)
        assert token.cpmi == (pytest.approx(given - alone, abs=1e-4) if alpha else None)
    assert "".join(token.text for token in sequence.tokens) == sequence.text
    assert sequence.finished == (tokens[-1] in eos)


@pytest.mark.parametrize("family", [*FAMILIES, "bert"])
def test_alpha_0_is_plain_decoding(zoo: Zoo, family: str) -> None:
    model, tokenizer = zoo.torch("generator", family)
    calls = [
        msgspec.structs.replace(call, decoding=decoding, alpha=0.0, pmi_top_p=1.0)
        for call in (CALL, *OTHERS)
        for decoding in (GREEDY, BEAM)
    ]
    for call, sequences in zip(calls, run(zoo, family, calls), strict=True):
        source = torch.tensor([ids(zoo, family, texts(call)[0])])
        config = model.generation_config
        with torch.no_grad():
            expected = model.generate(
                source,
                attention_mask=torch.ones_like(source),
                num_beams=len(sequences),
                num_return_sequences=len(sequences),
                do_sample=False,
                max_new_tokens=LENGTH - 1,
                no_repeat_ngram_size=0,
                forced_eos_token_id=None,
                eos_token_id=config.eos_token_id,
                pad_token_id=config.pad_token_id or 0,
                **(
                    {}
                    if family in models.LANGUAGE_MODELS
                    else {"decoder_start_token_id": config.decoder_start_token_id}
                ),
            )
        prompt_length = source.shape[1] if family in models.LANGUAGE_MODELS else 1
        rows = [cut_after(row, config.eos_token_id) for row in expected[:, prompt_length:].tolist()]
        assert [token_ids(sequence) for sequence in sequences] == rows
        decoded = tokenizer.decode(rows[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if not family.startswith("bert"):  # its decoder joins the pieces of words, and spaces before full stops
            assert sequences[0].text == decoded.strip().rstrip("\N{REPLACEMENT CHARACTER}").rstrip()


def cut_after(row: list[int], end: int) -> list[int]:
    return row[: row.index(end) + 1] if end in row else row


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", ["bart", "gpt2", "qwen3"])
def test_a_result_does_not_depend_on_its_batch(zoo: Zoo, family: str, precision: str) -> None:
    decodings: list[Decoding] = [
        GREEDY,
        BEAM,
        Sampling(num_return_sequences=2, max_new_tokens=LENGTH - 1),
        BeamSampling(num_beams=3, num_return_sequences=2, max_new_tokens=LENGTH - 1),
        DelayedBeamSearch(num_beams=3, num_return_sequences=2, delay_steps=2, max_new_tokens=LENGTH - 1),
    ]
    calls = [
        msgspec.structs.replace(call, decoding=decoding, alpha=alpha, pmi_top_p=mass)
        for call in (CALL, *OTHERS[:2])
        for decoding in decodings
        for alpha, mass in ((0.25, 0.6), (0.0, 0.9))
    ]
    together = run(zoo, family, calls, precision)
    alone = [run(zoo, family, [call], precision)[0] for call in calls]
    backwards = run(zoo, family, calls[::-1], precision)[::-1]
    for expected, *others in zip(alone, together, backwards, strict=True):
        for other in others:
            assert [token_ids(each) for each in expected] == [token_ids(each) for each in other]
            assert numbers(expected) == pytest.approx(numbers(other), abs=0 if precision == "int8" else 1e-5)


def numbers(sequences: Sequence[GeneratedSequence]) -> list[float]:
    return [
        number
        for sequence in sequences
        for token in sequence.tokens
        for number in (sequence.score, token.log_prob, token.cpmi or 0.0)
    ]


def test_blocked_tokens_leave_room_for_others(zoo: Zoo) -> None:
    """With a small top-p set, n-grams and early ends are blocked before the set is taken."""
    slow, start, eos = load_reference(zoo, "bart", CALL)
    decoding = Greedy(no_repeat_ngram_size=1, min_new_tokens=6, max_new_tokens=11)
    ((sequence,),) = run(zoo, "bart", [msgspec.structs.replace(CALL, decoding=decoding, alpha=0.5, pmi_top_p=0.3)])
    tokens = token_ids(sequence)
    assert (
        len({start, *tokens}) == len(tokens) + 1
    )  # so it never ends: the end is the start, which would be a repetition
    for index, token in enumerate(tokens):
        prefix = (start, *tokens[:index])
        a, b = (slow.log_probs(context, prefix).astype(float) for context in (0, 1))
        a[list({*prefix, *eos})] = -np.inf
        scores = contrast((a - np.log(np.exp(a).sum())).tolist(), b.tolist(), 0.5, 0.3)
        inside = np.isfinite(scores)
        assert token == int(np.where(inside, a - 0.5 * b, -np.inf).argmax())


def test_fewer_responses_where_the_sets_leave_no_others(zoo: Zoo) -> None:
    """One token in every set: the beams cannot differ, and none is continued with a token of score -inf."""
    call = msgspec.structs.replace(CALL, decoding=BEAM, alpha=0.5, pmi_top_p=1e-6)
    ((only, *others), (greedy,)) = run(zoo, "bart", [call, msgspec.structs.replace(call, decoding=GREEDY)])
    assert not others
    assert token_ids(only) == token_ids(greedy)
    assert all(np.isfinite([token.log_prob, token.cpmi]).all() for token in only.tokens)


# Drawing


def test_first_tokens_follow_the_rules_distribution(zoo: Zoo) -> None:
    slow, start, _ = load_reference(zoo, "bart", CALL)
    decoding = Sampling(num_return_sequences=64, top_k=0, top_p=1.0, max_new_tokens=1)
    calls = [
        msgspec.structs.replace(CALL, decoding=msgspec.structs.replace(decoding, seed=seed), alpha=0.5, pmi_top_p=0.9)
        for seed in range(16)
    ]
    counts = np.zeros(len(slow.log_probs(0, (start,))))
    for sequences in run(zoo, "bart", calls):
        for sequence in sequences:
            counts[sequence.tokens[0].id] += 1
    scores = slow.scores(0.5, 0.9)((start,)).astype(float)
    expected = np.exp(scores) / np.exp(scores).sum() * counts.sum()
    assert not counts[expected == 0].any()
    often = expected >= 5
    observed, predicted = (np.append(each[often], each[~often].sum()) for each in (counts, expected))
    statistic = ((observed - predicted) ** 2 / np.maximum(predicted, 1e-9)).sum()
    freedom = int(often.sum())
    assert freedom > 3
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("kind", [Sampling, BeamSampling, DelayedBeamSearch])
def test_draws_are_seeded(zoo: Zoo, kind: Any) -> None:
    def drawn(seed: int) -> list[list[int]]:
        decoding = kind(num_return_sequences=3, seed=seed, max_new_tokens=LENGTH - 1)
        (sequences,) = run(zoo, "t5", [msgspec.structs.replace(CALL, decoding=decoding)])
        return [token_ids(sequence) for sequence in sequences]

    assert drawn(1) == drawn(1)
    assert len({str(drawn(seed)) for seed in range(4)}) == 4


# Streaming


@pytest.mark.parametrize("family", ["bart", "gpt2", "t5", "bert"])
@pytest.mark.parametrize(
    "decoding",
    [
        Greedy(min_new_tokens=9, max_new_tokens=15),
        Sampling(num_return_sequences=1, min_new_tokens=9, max_new_tokens=15),
        msgspec.structs.replace(BEAM, num_return_sequences=1),
    ],
    ids=["greedy", "sampling", "beam"],
)
def test_a_stream_is_the_response(zoo: Zoo, family: str, decoding: Decoding) -> None:
    """gpt2 and bart generate characters of several bytes here, which no part splits."""
    call = msgspec.structs.replace(CALL, decoding=decoding)
    ((whole,),) = run(zoo, family, [call])
    parts = list(zoo.response_generator(family).stream(call))
    assert "".join(part.text for part in parts) == whole.text
    assert not any(part.text.endswith("\N{REPLACEMENT CHARACTER}") for part in parts)
    assert [part.sequence for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert parts[-1].sequence == whole
    assert len(parts) > 4, "a part for every step"
    with_text = [part for part in parts if part.text]
    assert len(with_text) == 1 if isinstance(decoding, BeamSearch) else len(with_text) > 4


def test_streams_from_several_threads(zoo: Zoo) -> None:
    generator = zoo.response_generator("gpt2")
    calls = [msgspec.structs.replace(call, decoding=Greedy(max_new_tokens=11)) for call in (CALL, *OTHERS)]
    parts_of: dict[int, list[SequencePart]] = {}

    def read(index: int) -> None:
        parts_of[index] = list(generator.stream(calls[index]))

    threads = [threading.Thread(target=read, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, (whole, *_) in enumerate(run(zoo, "gpt2", calls)):
        assert "".join(part.text for part in parts_of[index]) == whole.text


# Calls that are refused


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"alpha": -0.1}, InvalidRequest, "alpha=-0.1"),
        ({"alpha": 1.1}, InvalidRequest, "alpha=1.1"),
        ({"alpha": float("nan")}, InvalidRequest, "alpha=nan"),
        ({"pmi_top_p": 0.0}, InvalidRequest, "pmi_top_p=0.0"),
        ({"pmi_top_p": 1.5}, InvalidRequest, "pmi_top_p=1.5"),
        ({"knowledge": (" ",)}, InvalidRequest, "without knowledge"),
        ({"decoding": BeamSearch(num_beams=0)}, InvalidRequest, "num_beams=0"),
        ({"decoding": BeamSampling(num_beams=2, num_return_sequences=3)}, InvalidRequest, "num_return_sequences=3"),
        ({"decoding": BeamSampling(temperature=0.0)}, InvalidRequest, "temperature=0.0"),
        ({"decoding": Greedy(max_new_tokens=1023)}, InvalidRequest, "96"),
        ({"knowledge": ("the first prize " * 60,)}, TooLong, str(models.MAX_TOKENS)),
        ({"history": ("the first prize " * 60,)}, TooLong, str(models.MAX_TOKENS)),
    ],
)
@pytest.mark.parametrize("family", ["bart", "gpt2"])
def test_an_invalid_call_is_named_and_fails_alone(
    zoo: Zoo, family: str, change: dict[str, Any], error: type[GroundwireError], named: str
) -> None:
    wrong = msgspec.structs.replace(CALL, **change)
    bad, good = zoo.response_generator(family).run([wrong, CALL], 1)
    assert isinstance(bad, error)
    assert named in str(bad)
    assert good == run(zoo, family, [CALL])[0]
    with pytest.raises(error, match=named):
        zoo.response_generator(family).stream(wrong)


def test_a_response_must_fit_after_its_prompt(zoo: Zoo) -> None:
    """A causal model's positions hold both; the last token of a response needs none."""
    prompt = len(ids(zoo, "gpt2", texts(CALL)[0]))
    room = models.MAX_TOKENS - prompt + 2
    fits = msgspec.structs.replace(CALL, decoding=Greedy(max_new_tokens=room - 1, min_new_tokens=room - 1))
    ((sequence,),) = run(zoo, "gpt2", [fits])
    assert len(sequence.tokens) == room - 1
    (bad,) = zoo.response_generator("gpt2").run(
        [msgspec.structs.replace(CALL, decoding=Greedy(max_new_tokens=room))], 1
    )
    assert isinstance(bad, TooLong)
    assert f"{prompt} tokens" in str(bad)


def test_a_stream_is_one_sequence(zoo: Zoo) -> None:
    with pytest.raises(InvalidRequest, match="num_return_sequences=2"):
        zoo.response_generator("bart").stream(msgspec.structs.replace(CALL, decoding=Sampling(num_return_sequences=2)))


@pytest.mark.parametrize(
    "decoding",
    [
        GREEDY,
        BEAM,
        Sampling(num_return_sequences=2),
        BeamSampling(num_return_sequences=2),
        DelayedBeamSearch(num_return_sequences=2),
    ],
)
def test_numbers_that_are_not_finite_are_an_error_of_their_call_alone(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch, decoding: Decoding
) -> None:
    """Greater than any number counts too: a log-probability cannot be."""
    run_values = Session.run_values
    calls = [
        msgspec.structs.replace(
            CALL, decoding=msgspec.structs.replace(decoding, max_new_tokens=LENGTH - 1), alpha=alpha
        )
        for alpha in (0.25, 0.5)
    ]
    fine = run(zoo, "bart", calls)

    for value in (np.nan, np.inf):
        steps = 0

        def break_output(session: Session, feeds: Any, host: Any = (), value: float = value) -> dict[str, Any]:
            nonlocal steps
            outputs = run_values(session, feeds, host)
            steps += 1
            if steps == 3:
                cpmi = outputs["cpmi"].numpy().copy()
                cpmi[0, 0, -1] = value
                outputs["cpmi"] = session.value(cpmi)
            return outputs

        monkeypatch.setattr(Session, "run_values", break_output)
        bad, good = zoo.response_generator("bart").run(calls, 1)
        assert isinstance(bad, ModelError)
        assert "not finite" in str(bad)
        assert [token_ids(sequence) for sequence in good] == [token_ids(sequence) for sequence in fine[1]]  # type: ignore[union-attr]
        steps = 0
        streamed = msgspec.structs.replace(calls[0], decoding=GREEDY)
        with pytest.raises(ModelError, match="not finite"):
            list(zoo.response_generator("bart").stream(streamed))


def test_a_bundle_with_a_response_generator(zoo: Zoo) -> None:
    runtime = LocalRuntime.load(zoo.bundle("generator", "bart").directory, device="cpu", threads=1)
    (warm,) = runtime.warm_calls()
    (sequences,) = runtime.run("generator", [warm], 1)
    assert isinstance(sequences, tuple)
    parts = list(runtime.stream(CALL))
    assert parts[-1].sequence == run(zoo, "bart", [CALL])[0][0]
    runtime.close()


def test_a_bundle_without_a_response_generator_says_how_to_get_one(zoo: Zoo) -> None:
    runtime = LocalRuntime(zoo.bundle("generator", "bart"), PROFILE, {})
    (error,) = runtime.run("generator", [CALL], 1)
    assert isinstance(error, ModelError)
    assert "groundwire export generator" in str(error)
    with pytest.raises(ModelError, match="groundwire export generator"):
        runtime.stream(CALL)


def test_knowledge_and_settings_change_the_response(zoo: Zoo) -> None:
    """The tests above would prove little if the knowledge were not read or the rule not applied."""
    other = msgspec.structs.replace(CALL, knowledge=("Elvis Presley moved to Memphis.",))
    settings = [(0.0, 1.0), (0.5, 1.0), (1.0, 0.9)]
    calls = [msgspec.structs.replace(call, alpha=a, pmi_top_p=p) for call in (CALL, other) for a, p in settings]
    assert len({str(token_ids(sequence)) for (sequence,) in run(zoo, "gpt2", calls)}) == len(calls)


def test_the_prompt_of_a_role(zoo: Zoo) -> None:
    """The model reads the prompt of its manifest."""
    bundle = zoo.bundle("generator", "gpt2")
    role = msgspec.structs.replace(
        bundle.manifest.roles["generator"], prompt=("{history} ", "Facts: {knowledge}\n", "Reply:")
    )
    call = msgspec.structs.replace(CALL, decoding=GREEDY, alpha=0.0, pmi_top_p=1.0)
    ((sequence,),) = ResponseGenerator.load(bundle, role, PROFILE).run([call], 1)
    assert isinstance(sequence, GeneratedSequence)
    model, _ = zoo.torch("generator", "gpt2")
    prompt = ids(zoo, "gpt2", ["Do you play?\nYes, and you? ", f"Facts: {' '.join(CALL.knowledge)}\n", "Reply:"])
    slow = PmiDecodeReference(model, prompt, prompt)
    expected = slow.greedy(prompt[-1], (model.generation_config.eos_token_id,), 0.0, 1.0, LENGTH - 1)
    assert token_ids(sequence) == expected
