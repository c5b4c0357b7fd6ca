"""The same tokens from transformers with the logits processor, from the runtime, and through the engine."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the transformers extra")
pytest.importorskip("groundwire.export.pipeline", reason="needs the export extra", exc_type=ImportError)

import torch

from groundwire.adapters.transformers import PMILogitsProcessor
from groundwire.engine import Engine
from groundwire.generation import BeamSearch, Generation, GenerationOptions, Generator, Greedy
from groundwire.runtime.calls import Generate, GeneratedSequence
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.prompt import fill_prompt
from tests.support.zoo import Zoo

PROMPT = ("Document: {knowledge}\n\n", "{history}.\n", "Agent:")
DIALOGUES = (
    (("Most guitars have six strings.", "It is loud."), ("Do you play?", "Yes, and you?")),
    (("The Amazon river flows through Brazil, Peru and Colombia.",), ("Where is the river?",)),
)
SETTINGS = [(0.25, 0.6), (1.0, 0.9)]
NEW = 7


def padded(rows: list[list[int]], pad: int, *, left: bool) -> dict[str, Any]:
    longest = max(map(len, rows))
    filled = [[pad] * (longest - len(row)) + row if left else row + [pad] * (longest - len(row)) for row in rows]
    real = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    mask = real if left else [row[::-1] for row in real]
    return {"input_ids": torch.tensor(filled), "attention_mask": torch.tensor(mask)}


@pytest.mark.parametrize("family", ["bart", "t5", "gpt2"])
def test_the_processor_generates_the_tokens_of_the_runtime(zoo: Zoo, family: str) -> None:
    model, tokens = zoo.torch("generator", family)
    causal, config = family == "gpt2", model.generation_config

    def ids(pieces: list[str]) -> list[int]:
        parts = pieces if causal else ["".join(pieces)]
        return [token for part in parts for token in tokens(part)["input_ids"]]

    texts = [fill_prompt(PROMPT, *dialogue) for dialogue in DIALOGUES]
    pad = config.pad_token_id or 0
    given = padded([ids(text.grounded) for text in texts], pad, left=causal)
    alone = padded([ids(text.alone) for text in texts], pad, left=causal)
    prompt_length = given["input_ids"].shape[1] if causal else 1
    seen = set()
    for (alpha, pmi_top_p), beams in itertools.product(SETTINGS, (1, 3)):
        rule = PMILogitsProcessor(model, alone["input_ids"], alone["attention_mask"], alpha=alpha, pmi_top_p=pmi_top_p)
        out = model.generate(
            **given,
            logits_processor=[rule],
            num_beams=beams,
            do_sample=False,
            max_new_tokens=NEW,
            pad_token_id=pad,
            forced_eos_token_id=None,
        )
        length = NEW + 1
        decoding = (
            BeamSearch(beams, 1, 0, early_stopping=False, max_new_tokens=length - 1)
            if beams > 1
            else Greedy(max_new_tokens=length - 1)
        )
        calls = [Generate(*dialogue, decoding, alpha, pmi_top_p) for dialogue in DIALOGUES]
        for row, sequences in zip(
            out[:, prompt_length:].tolist(), zoo.response_generator(family).run(calls, 1), strict=True
        ):
            assert isinstance(sequences, tuple)
            ours = [token.id for token in sequences[0].tokens]
            assert row[: len(ours)] == ours
            assert set(row[len(ours) :]) <= {pad, config.eos_token_id}
            seen.add(tuple(ours))
    assert len(seen) > 2


@pytest.fixture(scope="module")
def engine(zoo: Zoo) -> Any:
    with Engine(LocalRuntime.load(zoo.bundle("generator", "gpt2").directory, threads=1)) as opened:
        yield opened


KNOWLEDGE, HISTORY = DIALOGUES[0]


@pytest.mark.parametrize("method", ["greedy", "beam", "sampling", "nucleus", "beam_sampling"])
def test_a_stream_is_the_generated_response(engine: Engine, method: Any) -> None:
    options = GenerationOptions(method=method, seed=5, max_new_tokens=9)
    whole = Generator(engine).generate(KNOWLEDGE, HISTORY, options)
    assert whole.status == "generated"
    pieces = Generator(engine).stream(KNOWLEDGE, HISTORY, options)
    parts = list(pieces)
    assert "".join(parts) == whole.text
    assert pieces.result.responses == whole.responses
    (response,) = whole.responses
    assert "".join(response.text[token.start : token.end] for token in response.tokens) == response.text
    if method == "greedy":
        assert len(parts) > 1, "greedy search is streamed word by word"


def test_more_responses_and_candidates(engine: Engine) -> None:
    generation = Generator(engine).generate(KNOWLEDGE, HISTORY, GenerationOptions(n=3, max_new_tokens=9))
    scores = [response.score for response in generation.responses]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    options = GenerationOptions(n=2, n_candidates=4, max_new_tokens=9)
    checked = Generator(engine).generate(KNOWLEDGE, HISTORY, options, metrics=["overlap_precision"])
    values = [response.check.value or 0.0 for response in checked.responses if response.check]
    assert len(checked.responses) == 2
    assert values == sorted(values, reverse=True)


def test_a_dialogue_that_does_not_fit_is_a_status(engine: Engine) -> None:
    generation = Generator(engine).generate("a word " * 300, HISTORY)
    assert (generation.status, generation.responses) == ("truncated", ())
    assert "tokens" in generation.message


def test_many_threads_generate_the_same_as_a_single_thread(engine: Engine) -> None:
    cases = [
        (alpha, method, seed) for alpha in (0.0, 0.5) for method in ("greedy", "beam", "sampling") for seed in (0, 1)
    ]

    def generate(case: tuple[float, Any, int]) -> Generation:
        alpha, method, seed = case
        options = GenerationOptions(alpha=alpha, method=method, seed=seed, max_new_tokens=6)
        return Generator(engine).generate(KNOWLEDGE, HISTORY, options)

    expected = [generate(case).text for case in cases]
    texts: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda index=index, case=case: texts.update({index: generate(case).text}))
        for index, case in enumerate(cases)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [texts[index] for index in range(len(cases))] == expected


def test_the_runtimes_records_are_the_responses(engine: Engine, zoo: Zoo) -> None:
    call = Generate(KNOWLEDGE, HISTORY, Greedy(max_new_tokens=7))
    ((sequence,),) = zoo.response_generator("gpt2").run([call], 1)  # type: ignore[misc]
    assert isinstance(sequence, GeneratedSequence)
    (response,) = (
        Generator(engine).generate(KNOWLEDGE, HISTORY, GenerationOptions(method=Greedy(max_new_tokens=7))).responses
    )
    assert (response.text, response.score, response.finished) == (sequence.text, sequence.score, sequence.finished)
    assert [token.log_prob for token in response.tokens] == [token.log_prob for token in sequence.tokens]
    assert [token.cpmi for token in response.tokens] == [token.cpmi for token in sequence.tokens]
