"""Responses by PMI-Decode on exported graphs against the slow twin, and against plain ``transformers.generate``."""

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
from tests.reference.pmi_decode import Twin, contrast
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

FAMILIES = ("bart", "t5", "gpt2")
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
    """The two prompts, spelled out."""
    history = [f"{chr(10).join(call.history)}.\n"] if call.history else []
    return [f"Document: {' '.join(call.knowledge)}\n\n", *history, "Agent:"], [*history, "Agent:"]


def ids(zoo: Zoo, family: str, pieces: Sequence[str]) -> list[int]:
    """What transformers' own tokenizer makes of a prompt."""
    _, tokenizer = zoo.torch("generator", family)
    if family == "gpt2":
        return [index for piece in pieces for index in tokenizer(piece)["input_ids"]]
    return list(tokenizer("".join(pieces))["input_ids"])


def twin(zoo: Zoo, family: str, call: Generate) -> tuple[Twin, int, tuple[int, ...]]:
    """The twin, the token before the first, and the end tokens."""
    model, _ = zoo.torch("generator", family)
    given, alone = (ids(zoo, family, pieces) for pieces in texts(call))
    start = given[-1] if family == "gpt2" else model.generation_config.decoder_start_token_id
    return Twin(model, given, alone), start, (model.generation_config.eos_token_id,)


def run(
    zoo: Zoo, family: str, calls: Sequence[Generate], precision: str = "fp32"
) -> list[tuple[GeneratedSequence, ...]]:
    found = zoo.writer(family, precision).run(calls, 1)
    assert not [one for one in found if isinstance(one, GroundwireError)]
    return found  # type: ignore[return-value]


def sequence(written: GeneratedSequence) -> list[int]:
    return [token.id for token in written.tokens]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tokens_are_the_twins(zoo: Zoo, family: str) -> None:
    """Greedy and beam search at every alpha and pmi_top_p in one batch; likelihoods and CPMI of every token too."""
    slow, start, eos = twin(zoo, family, CALL)
    grid = list(itertools.product(ALPHAS, MASSES))
    calls = [
        msgspec.structs.replace(CALL, decoding=decoding, alpha=alpha, pmi_top_p=mass)
        for decoding in (GREEDY, BEAM)
        for alpha, mass in grid
    ]
    found = run(zoo, family, calls)
    settings = Options(
        BEAM.num_beams, BEAM.num_return_sequences, start, eos, LENGTH, 0, 0, BEAM.length_penalty, BEAM.early_stopping
    )
    seen = set()
    for (alpha, mass), (greedy,), beams in zip(grid, found[: len(grid)], found[len(grid) :], strict=True):
        assert sequence(greedy) == slow.greedy(start, eos, alpha, mass, LENGTH - 1)
        expected = beam_search(slow.scores(alpha, mass), settings)
        assert [sequence(one) for one in beams] == [tokens for tokens, _ in expected]
        assert [one.score for one in beams] == pytest.approx([score for _, score in expected], abs=1e-4)
        for one in (greedy, *beams):
            check_tokens(one, slow, start, eos, alpha)
            seen.add(tuple(sequence(one)))
    assert len(seen) > len(grid) / 2


def check_tokens(one: GeneratedSequence, slow: Twin, start: int, eos: tuple[int, ...], alpha: float) -> None:
    tokens = sequence(one)
    for place, token in enumerate(one.tokens):
        given, alone = (float(slow.log_probs(context, (start, *tokens[:place]))[token.id]) for context in (0, 1))
        assert token.log_prob == pytest.approx(given, abs=1e-4)
        assert token.cpmi == (pytest.approx(given - alone, abs=1e-4) if alpha else None)
    assert "".join(token.text for token in one.tokens) == one.text
    assert one.finished == (tokens[-1] in eos)


@pytest.mark.parametrize("family", [*FAMILIES, "bert"])
def test_alpha_0_is_plain_decoding(zoo: Zoo, family: str) -> None:
    model, tokenizer = zoo.torch("generator", family)
    calls = [
        msgspec.structs.replace(call, decoding=decoding, alpha=0.0, pmi_top_p=1.0)
        for call in (CALL, *OTHERS)
        for decoding in (GREEDY, BEAM)
    ]
    for call, found in zip(calls, run(zoo, family, calls), strict=True):
        source = torch.tensor([ids(zoo, family, texts(call)[0])])
        own = model.generation_config
        with torch.no_grad():
            expected = model.generate(
                source,
                attention_mask=torch.ones_like(source),
                num_beams=len(found),
                num_return_sequences=len(found),
                do_sample=False,
                max_new_tokens=LENGTH - 1,
                no_repeat_ngram_size=0,
                forced_eos_token_id=None,
                eos_token_id=own.eos_token_id,
                pad_token_id=own.pad_token_id or 0,
                **({} if family == "gpt2" else {"decoder_start_token_id": own.decoder_start_token_id}),
            )
        behind = source.shape[1] if family == "gpt2" else 1
        rows = [until(row, own.eos_token_id) for row in expected[:, behind:].tolist()]
        assert [sequence(one) for one in found] == rows
        decoded = tokenizer.decode(rows[0], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        if not family.startswith("bert"):  # its decoder joins the pieces of words, and blanks before full stops
            assert found[0].text == decoded.strip().rstrip("\N{REPLACEMENT CHARACTER}").rstrip()


def until(row: list[int], end: int) -> list[int]:
    return row[: row.index(end) + 1] if end in row else row


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", ["bart", "gpt2"])
def test_a_result_does_not_depend_on_its_batch(zoo: Zoo, family: str, precision: str) -> None:
    decodings: list[Decoding] = [
        GREEDY,
        BEAM,
        Sampling(num_return_sequences=2, max_new_tokens=LENGTH - 1),
        BeamSampling(num_beams=3, num_return_sequences=2, max_new_tokens=LENGTH - 1),
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
    for one, *others in zip(alone, together, backwards, strict=True):
        for other in others:
            assert [sequence(each) for each in one] == [sequence(each) for each in other]
            assert numbers(one) == pytest.approx(numbers(other), abs=0 if precision == "int8" else 1e-5)


def numbers(found: Sequence[GeneratedSequence]) -> list[float]:
    return [
        number for one in found for token in one.tokens for number in (one.score, token.log_prob, token.cpmi or 0.0)
    ]


def test_blocked_tokens_leave_room_for_others(zoo: Zoo) -> None:
    """With a small top-p set, n-grams and early ends are blocked before the set is taken."""
    slow, start, eos = twin(zoo, "bart", CALL)
    decoding = Greedy(no_repeat_ngram_size=1, min_new_tokens=6, max_new_tokens=11)
    ((found,),) = run(zoo, "bart", [msgspec.structs.replace(CALL, decoding=decoding, alpha=0.5, pmi_top_p=0.3)])
    tokens = sequence(found)
    assert (
        len({start, *tokens}) == len(tokens) + 1
    )  # so it never ends: the end is the start, which would be a repetition
    for place, token in enumerate(tokens):
        prefix = (start, *tokens[:place])
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
    assert sequence(only) == sequence(greedy)
    assert all(np.isfinite([token.log_prob, token.cpmi]).all() for token in only.tokens)


# Drawing


def test_first_tokens_follow_the_rules_distribution(zoo: Zoo) -> None:
    slow, start, _ = twin(zoo, "bart", CALL)
    decoding = Sampling(num_return_sequences=64, top_k=0, top_p=1.0, max_new_tokens=1)
    calls = [
        msgspec.structs.replace(CALL, decoding=msgspec.structs.replace(decoding, seed=seed), alpha=0.5, pmi_top_p=0.9)
        for seed in range(16)
    ]
    counts = np.zeros(len(slow.log_probs(0, (start,))))
    for found in run(zoo, "bart", calls):
        for one in found:
            counts[one.tokens[0].id] += 1
    scores = slow.scores(0.5, 0.9)((start,)).astype(float)
    expected = np.exp(scores) / np.exp(scores).sum() * counts.sum()
    assert not counts[expected == 0].any()
    often = expected >= 5
    observed, predicted = (np.append(each[often], each[~often].sum()) for each in (counts, expected))
    statistic = ((observed - predicted) ** 2 / np.maximum(predicted, 1e-9)).sum()
    freedom = int(often.sum())
    assert freedom > 3
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("kind", [Sampling, BeamSampling])
def test_draws_are_seeded(zoo: Zoo, kind: Any) -> None:
    def drawn(seed: int) -> list[list[int]]:
        decoding = kind(returned=3, seed=seed, max_length=LENGTH)
        (found,) = run(zoo, "t5", [msgspec.structs.replace(CALL, decoding=decoding)])
        return [sequence(one) for one in found]

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
    """gpt2 and bart spell characters of several bytes here, which no part splits."""
    call = msgspec.structs.replace(CALL, decoding=decoding)
    ((whole,),) = run(zoo, family, [call])
    parts = list(zoo.writer(family).stream(call))
    assert "".join(part.text for part in parts) == whole.text
    assert not any(part.text.endswith("\N{REPLACEMENT CHARACTER}") for part in parts)
    assert [part.written for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert parts[-1].written == whole
    assert len(parts) > 4, "a part for every step"
    worded = [part for part in parts if part.text]
    assert len(worded) == 1 if isinstance(decoding, BeamSearch) else len(worded) > 4


def test_streams_from_several_threads(zoo: Zoo) -> None:
    writer = zoo.writer("gpt2")
    calls = [msgspec.structs.replace(call, decoding=Greedy(max_new_tokens=11)) for call in (CALL, *OTHERS)]
    found: dict[int, list[SequencePart]] = {}

    def follow(index: int) -> None:
        found[index] = list(writer.stream(calls[index]))

    threads = [threading.Thread(target=follow, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, (whole, *_) in enumerate(run(zoo, "gpt2", calls)):
        assert "".join(part.text for part in found[index]) == whole.text


# What cannot be written


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"alpha": -0.1}, InvalidRequest, "alpha=-0.1"),
        ({"alpha": 1.1}, InvalidRequest, "alpha=1.1"),
        ({"alpha": float("nan")}, InvalidRequest, "alpha=nan"),
        ({"pmi_top_p": 0.0}, InvalidRequest, "pmi_top_p=0.0"),
        ({"pmi_top_p": 1.5}, InvalidRequest, "pmi_top_p=1.5"),
        ({"knowledge": (" ",)}, InvalidRequest, "without knowledge"),
        ({"decoding": BeamSearch(num_beams=0)}, InvalidRequest, "beams=0"),
        ({"decoding": BeamSampling(num_beams=2, num_return_sequences=3)}, InvalidRequest, "returned=3"),
        ({"decoding": BeamSampling(temperature=0.0)}, InvalidRequest, "temperature=0.0"),
        ({"decoding": Greedy(max_new_tokens=1023)}, InvalidRequest, "97"),
        ({"knowledge": ("the first prize " * 60,)}, TooLong, str(models.MAX_TOKENS)),
        ({"history": ("the first prize " * 60,)}, TooLong, str(models.MAX_TOKENS)),
    ],
)
@pytest.mark.parametrize("family", ["bart", "gpt2"])
def test_what_is_wrong_is_named_and_spoils_no_other_call(
    zoo: Zoo, family: str, change: dict[str, Any], error: type[GroundwireError], named: str
) -> None:
    wrong = msgspec.structs.replace(CALL, **change)
    bad, good = zoo.writer(family).run([wrong, CALL], 1)
    assert isinstance(bad, error)
    assert named in str(bad)
    assert good == run(zoo, family, [CALL])[0]
    with pytest.raises(error, match=named):
        zoo.writer(family).stream(wrong)


def test_a_response_must_fit_behind_its_prompt(zoo: Zoo) -> None:
    """A causal model's positions hold both; the last token of a response needs none."""
    prompt = len(ids(zoo, "gpt2", texts(CALL)[0]))
    room = models.MAX_TOKENS - prompt + 2
    fits = msgspec.structs.replace(CALL, decoding=Greedy(max_new_tokens=room - 1, min_new_tokens=room - 1))
    ((found,),) = run(zoo, "gpt2", [fits])
    assert len(found.tokens) == room - 1
    (bad,) = zoo.writer("gpt2").run([msgspec.structs.replace(CALL, decoding=Greedy(max_new_tokens=room))], 1)
    assert isinstance(bad, TooLong)
    assert f"{prompt} tokens" in str(bad)


def test_a_stream_is_one_sequence(zoo: Zoo) -> None:
    with pytest.raises(InvalidRequest, match="returned=2"):
        zoo.writer("bart").stream(msgspec.structs.replace(CALL, decoding=Sampling(num_return_sequences=2)))


@pytest.mark.parametrize(
    "decoding", [GREEDY, BEAM, Sampling(num_return_sequences=2), BeamSampling(num_return_sequences=2)]
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

        def spoilt(session: Session, feeds: Any, host: Any = (), value: float = value) -> dict[str, Any]:
            nonlocal steps
            outputs = run_values(session, feeds, host)
            steps += 1
            if steps == 3:
                cpmi = outputs["cpmi"].numpy().copy()
                cpmi[0, 0, -1] = value
                outputs["cpmi"] = session.value(cpmi)
            return outputs

        monkeypatch.setattr(Session, "run_values", spoilt)
        bad, good = zoo.writer("bart").run(calls, 1)
        assert isinstance(bad, ModelError)
        assert "not finite" in str(bad)
        assert [sequence(one) for one in good] == [sequence(one) for one in fine[1]]  # type: ignore[union-attr]
        steps = 0
        streamed = msgspec.structs.replace(calls[0], decoding=GREEDY)
        with pytest.raises(ModelError, match="not finite"):
            list(zoo.writer("bart").stream(streamed))


def test_a_bundle_with_a_writer(zoo: Zoo) -> None:
    runtime = LocalRuntime.load(zoo.bundle("generator", "bart").directory, device="cpu", threads=1)
    (warm,) = runtime.warm_calls()
    (found,) = runtime.run("generator", [warm], 1)
    assert isinstance(found, tuple)
    parts = list(runtime.stream(CALL))
    assert parts[-1].written == run(zoo, "bart", [CALL])[0][0]
    runtime.close()


def test_a_bundle_without_a_writer_says_how_to_get_one(zoo: Zoo) -> None:
    runtime = LocalRuntime(zoo.bundle("generator", "bart"), PROFILE, {})
    (found,) = runtime.run("generator", [CALL], 1)
    assert isinstance(found, ModelError)
    assert "groundwire export generator" in str(found)
    with pytest.raises(ModelError, match="groundwire export generator"):
        runtime.stream(CALL)


def test_knowledge_and_settings_change_what_is_written(zoo: Zoo) -> None:
    """Were the knowledge not read, or the rule not applied, the tests above would say little."""
    other = msgspec.structs.replace(CALL, knowledge=("Elvis Presley moved to Memphis.",))
    settings = [(0.0, 1.0), (0.5, 1.0), (1.0, 0.9)]
    calls = [msgspec.structs.replace(call, alpha=a, pmi_top_p=p) for call in (CALL, other) for a, p in settings]
    assert len({str(sequence(one)) for (one,) in run(zoo, "gpt2", calls)}) == len(calls)


def test_the_prompt_of_a_role(zoo: Zoo) -> None:
    """Another prompt in the manifest is what the model reads."""
    bundle = zoo.bundle("generator", "gpt2")
    role = msgspec.structs.replace(
        bundle.manifest.roles["generator"], prompt=("{history} ", "Facts: {knowledge}\n", "Reply:")
    )
    call = msgspec.structs.replace(CALL, decoding=GREEDY, alpha=0.0, pmi_top_p=1.0)
    ((found,),) = ResponseGenerator.load(bundle, role, PROFILE).run([call], 1)
    assert isinstance(found, GeneratedSequence)
    model, _ = zoo.torch("generator", "gpt2")
    prompt = ids(zoo, "gpt2", ["Do you play?\nYes, and you? ", f"Facts: {' '.join(CALL.knowledge)}\n", "Reply:"])
    slow = Twin(model, prompt, prompt)
    expected = slow.greedy(prompt[-1], (model.generation_config.eos_token_id,), 0.0, 1.0, LENGTH - 1)
    assert sequence(found) == expected
