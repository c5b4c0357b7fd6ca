"""Question generation on exported graphs against ``transformers.generate`` on their checkpoints."""

from __future__ import annotations

import itertools
from collections import Counter

import msgspec
import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from groundwire.runtime.calls import BeamSearch, Decoding, GeneratedQuestion, GenerateQuestions, Greedy, Sampling
from groundwire.runtime.errors import InvalidRequest, TooLong
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.texts.tokenization import TextEncoder, Window
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

Sequences = list[tuple[list[int], float]]

# A source of one letter, a long one, and two between: their lengths differ by a factor of ten.
SOURCES = [
    ("a", "a"),
    ("Memphis", "Elvis Presley was born in Tupelo, and he moved to Memphis with his family in 1948."),
    ("six strings", "Most guitars have six strings."),
    (
        "the Titanic",
        "The Titanic sank in the Atlantic ocean in April 1912 after it hit an iceberg; over 1500 people died.",
    ),
]
SEARCHES = {
    "greedy": Greedy(max_new_tokens=13),
    "greedy without repeats": Greedy(max_new_tokens=13, no_repeat_ngram_size=2, min_new_tokens=5),
    "one beam": BeamSearch(
        num_beams=1, num_return_sequences=1, early_stopping=False, no_repeat_ngram_size=0, max_new_tokens=13
    ),
    "one beam of three-grams": BeamSearch(num_beams=1, num_return_sequences=1, max_new_tokens=11),
    "four beams, one kept": BeamSearch(num_beams=4, num_return_sequences=1, no_repeat_ngram_size=0, max_new_tokens=13),
    "four beams, all kept": BeamSearch(num_beams=4, num_return_sequences=4, early_stopping=False, max_new_tokens=11),
    "the authors'": BeamSearch(max_new_tokens=13),
    "until none can improve": BeamSearch(early_stopping=False, no_repeat_ngram_size=0, max_new_tokens=13),
    "long": BeamSearch(min_new_tokens=8, max_new_tokens=11, early_stopping=False),
    "longer favoured": BeamSearch(num_beams=5, num_return_sequences=5, length_penalty=2.0, max_new_tokens=9),
}
FAMILIES = [family for family in models.ENCODER_DECODERS if family != "bert-bridged"]


def encoder(zoo: Zoo, family: str) -> TextEncoder:
    bundle = zoo.bundle("qg", family)
    return TextEncoder.load(bundle.file("qg.tokenizer.json"), models.MAX_TOKENS)


def windows(zoo: Zoo, family: str) -> list[Window]:
    text_encoder, bundle = encoder(zoo, family), zoo.bundle("qg", family)
    rendered = [
        text_encoder.render(bundle.manifest.roles["qg"].template, {"answer": a, "context": c}) for a, c in SOURCES
    ]
    return [
        text_encoder.encode(first) if second is None else text_encoder.encode_pair(first, second)
        for first, second in rendered
    ]


def inputs(zoo: Zoo, family: str, answer: str, context: str) -> dict[str, torch.Tensor]:
    """A source as transformers' tokenizer encodes it."""
    _, tokenizer = zoo.torch("qg", family)
    if family.startswith("bert"):
        return dict(tokenizer(answer, context, return_tensors="pt"))
    text = f"answer: {answer}  context: {context}"
    return dict(tokenizer(text, return_tensors="pt", return_token_type_ids=False))


@torch.no_grad()
def generate(zoo: Zoo, family: str, source: dict[str, torch.Tensor], decoding: BeamSearch | Greedy) -> Sequences:
    """``transformers.generate`` on one source: tokens after the start token and the score of each sequence."""
    model, _ = zoo.torch("qg", family)
    defaults = model.generation_config
    beam = decoding if isinstance(decoding, BeamSearch) else BeamSearch(num_beams=1, num_return_sequences=1)
    config = GenerationConfig(
        num_beams=beam.num_beams,
        num_return_sequences=beam.num_return_sequences,
        no_repeat_ngram_size=decoding.no_repeat_ngram_size,
        max_new_tokens=decoding.max_new_tokens,
        min_new_tokens=decoding.min_new_tokens,
        **(
            {"early_stopping": beam.early_stopping, "length_penalty": beam.length_penalty} if beam.num_beams > 1 else {}
        ),
        decoder_start_token_id=defaults.decoder_start_token_id,
        eos_token_id=defaults.eos_token_id,
        pad_token_id=defaults.pad_token_id,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    output = model.generate(**source, generation_config=config)
    rows = [_cut_after(row, defaults.eos_token_id) for row in output.sequences[:, 1:].tolist()]
    if beam.num_beams > 1:
        return list(zip(rows, output.sequences_scores.tolist(), strict=True))
    logits = torch.stack(output.logits, dim=1).log_softmax(-1)[0]
    return [(row, float(np.mean([float(logits[i, token]) for i, token in enumerate(row)]))) for row in rows]


def _cut_after(row: list[int], end: int) -> list[int]:
    return row[: row.index(end) + 1] if end in row else row


def assert_same(sequences: Sequences, expected: Sequences) -> None:
    assert [tokens for tokens, _ in sequences] == [tokens for tokens, _ in expected]
    assert [score for _, score in sequences] == pytest.approx([score for _, score in expected], abs=1e-4)


@pytest.mark.parametrize("name", list(SEARCHES))
@pytest.mark.parametrize("family", FAMILIES)
def test_search_equals_transformers_generate(zoo: Zoo, family: str, name: str) -> None:
    decoding = SEARCHES[name]
    results = zoo.question_generator(family).generate(windows(zoo, family), decoding)
    for source, sequences in zip(SOURCES, results, strict=True):
        assert_same(sequences, generate(zoo, family, inputs(zoo, family, *source), decoding))


def test_a_decoder_wider_than_its_encoder(zoo: Zoo) -> None:
    decoding = BeamSearch(max_new_tokens=11)
    results = zoo.question_generator("bert-bridged").generate(windows(zoo, "bert-bridged"), decoding)
    for source, sequences in zip(SOURCES, results, strict=True):
        assert_same(sequences, generate(zoo, "bert-bridged", inputs(zoo, "bert-bridged", *source), decoding))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sources_decide_and_sequences_end(zoo: Zoo, family: str) -> None:
    """The tests above would prove little about models that always generate the same sequence, or never stop."""
    model, _ = zoo.torch("qg", family)
    best = [
        row[0][0]
        for row in zoo.question_generator(family).generate(windows(zoo, family), BeamSearch(max_new_tokens=13))
    ]
    every = [
        tokens
        for row in zoo.question_generator(family).generate(windows(zoo, family), BeamSearch())
        for tokens, _ in row
    ]
    assert len({tuple(tokens) for tokens in best}) == len(SOURCES)
    ended = sum(tokens[-1] == model.generation_config.eos_token_id for tokens in every)
    assert ended > len(every) / 4


@pytest.mark.parametrize("family", ["t5", "bert"])
def test_run_renders_decodes_and_strips(zoo: Zoo, family: str) -> None:
    _, tokenizer = zoo.torch("qg", family)
    decoding = BeamSearch(num_beams=4, num_return_sequences=2, max_new_tokens=9)
    calls = [GenerateQuestions(answer, context, decoding) for answer, context in SOURCES]
    for call, questions in zip(calls, zoo.question_generator(family).run(calls, 8), strict=True):
        expected = generate(zoo, family, inputs(zoo, family, call.answer, call.context), decoding)
        assert isinstance(questions, tuple)
        assert [question.text for question in questions] == [
            tokenizer.decode(tokens, skip_special_tokens=True).strip() for tokens, _ in expected
        ]
        assert [question.score for question in questions] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_decodings_of_several_calls_do_not_mix(zoo: Zoo) -> None:
    generator = zoo.question_generator("t5")
    decodings: list[Decoding] = [
        BeamSearch(max_new_tokens=7),
        Greedy(max_new_tokens=7),
        Sampling(num_return_sequences=3, max_new_tokens=7),
    ]
    calls = [GenerateQuestions(*source, decoding) for source in SOURCES for decoding in decodings]
    assert generator.run(calls, 8) == [generator.run([call], 8)[0] for call in calls]


def test_the_prefix_is_stripped(zoo: Zoo) -> None:
    bundle = zoo.bundle("qg", "t5")
    call = GenerateQuestions(*SOURCES[1], BeamSearch(max_new_tokens=9))
    ((plain, *_),) = zoo.question_generator("t5").run([call], 8)
    assert isinstance(plain, GeneratedQuestion)
    prefix = plain.text.split()[0]
    role = msgspec.structs.replace(bundle.manifest.roles["qg"], strip_prefix=prefix)
    ((stripped, *_),) = QuestionGenerator.load(bundle, role, PROFILE).run([call], 8)
    assert isinstance(stripped, GeneratedQuestion)
    assert stripped.text == plain.text.removeprefix(prefix).strip() != plain.text


# Sampling


def drawn(zoo: Zoo, decoding: Sampling, draws: int, source: int = 1) -> list[list[int]]:
    """``draws`` sequences for one source, over as many seeds as needed."""
    generator, window = zoo.question_generator("bart"), windows(zoo, "bart")[source]
    out: list[list[int]] = []
    while len(out) < draws:
        seeded = msgspec.structs.replace(decoding, seed=len(out))
        out += [tokens for tokens, _ in generator.generate([window], seeded)[0]]
    return out


def next_logits(zoo: Zoo, source: int = 1) -> torch.Tensor:
    """The torch model's logits of the first token."""
    model, _ = zoo.torch("qg", "bart")
    start = torch.tensor([[model.generation_config.decoder_start_token_id]])
    with torch.no_grad():
        return model(**inputs(zoo, "bart", *SOURCES[source]), decoder_input_ids=start).logits[0, -1]


def warp(logits: torch.Tensor, decoding: Sampling) -> torch.Tensor:
    """Probabilities after temperature, top-k and top-p, by their definitions."""
    logits = logits / decoding.temperature
    if decoding.top_k:
        logits[logits < logits.topk(decoding.top_k).values[-1]] = -torch.inf
    shares, order = logits.softmax(-1).sort(descending=True)
    before = shares.cumsum(-1) - shares
    logits[order[before >= decoding.top_p]] = -torch.inf
    return logits.softmax(-1)


@pytest.mark.parametrize(
    "decoding",
    [
        Sampling(num_return_sequences=64, max_new_tokens=1),
        Sampling(num_return_sequences=64, max_new_tokens=1, top_k=0, top_p=1.0),
        Sampling(num_return_sequences=64, max_new_tokens=1, top_k=6, top_p=1.0, temperature=0.7),
        Sampling(num_return_sequences=64, max_new_tokens=1, top_k=0, top_p=0.6, temperature=1.5),
    ],
    ids=["the authors'", "everything", "top-k", "top-p"],
)
def test_first_tokens_follow_the_models_distribution(zoo: Zoo, decoding: Sampling) -> None:
    draws = 1920
    expected = warp(next_logits(zoo), decoding).numpy() * draws
    counts = np.zeros(len(expected))
    for (token,) in drawn(zoo, decoding, draws):
        counts[token] += 1
    assert not counts[expected == 0].any()
    # Pearson's statistic over the cells with an expected count of 5 or more, and one cell for the others.
    often = expected >= 5
    observed = np.append(counts[often], counts[~often].sum())
    predicted = np.append(expected[often], expected[~often].sum())
    observed, predicted = observed[predicted > 0], predicted[predicted > 0]
    freedom = len(predicted) - 1
    statistic = float(((observed - predicted) ** 2 / predicted).sum())
    assert freedom >= 4
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_samples_score_their_mean_log_probability_best_first(zoo: Zoo) -> None:
    model, _ = zoo.torch("qg", "bart")
    source = inputs(zoo, "bart", *SOURCES[1])
    sequences = zoo.question_generator("bart").generate(
        [windows(zoo, "bart")[1]], Sampling(num_return_sequences=8, max_new_tokens=9)
    )[0]
    assert [score for _, score in sequences] == sorted((score for _, score in sequences), reverse=True)
    for tokens, score in sequences:
        path = torch.tensor([[model.generation_config.decoder_start_token_id, *tokens]])
        with torch.no_grad():
            logs = model(**source, decoder_input_ids=path[:, :-1]).logits[0].log_softmax(-1)
        assert score == pytest.approx(float(logs.gather(1, path[0, 1:, None]).mean()), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_depends_on_its_source_and_seed_alone(zoo: Zoo, family: str) -> None:
    generator, sources = zoo.question_generator(family), windows(zoo, family)
    decoding = Sampling(seed=3, max_new_tokens=9)
    together = generator.generate(sources, decoding)
    assert generator.generate(sources[::-1], decoding)[::-1] == together
    assert [generator.generate([source], decoding)[0] for source in sources] == together
    assert generator.generate(sources, msgspec.structs.replace(decoding, seed=4)) != together
    drawn_ids = [tuple(tokens) for tokens, _ in together[1]]
    assert len(set(drawn_ids)) > 1  # the sequences of a source draw different random numbers


def test_sources_do_not_share_their_random_numbers(zoo: Zoo) -> None:
    """A random number that both sources shared would lie in the intervals of both drawn tokens."""

    def interval(token: int, source: int) -> tuple[float, float]:
        shares, order = warp(next_logits(zoo, source), Sampling()).sort(descending=True)
        rank = order.tolist().index(token)
        end = float(shares[: rank + 1].sum())
        return end - float(shares[rank]), end

    disjoint = 0
    for seed in range(24):
        decoding = Sampling(num_return_sequences=1, max_new_tokens=1, seed=seed)
        results = zoo.question_generator("bart").generate([windows(zoo, "bart")[i] for i in (1, 2)], decoding)
        (a, b), (c, d) = (interval(row[0][0][0], source) for row, source in zip(results, (1, 2), strict=True))
        disjoint += b < c - 1e-4 or d < a - 1e-4
    assert disjoint > 6


def test_samples_keep_the_constraints(zoo: Zoo) -> None:
    model, _ = zoo.torch("qg", "bart")
    end = model.generation_config.eos_token_id
    decoding = Sampling(num_return_sequences=16, top_k=4, no_repeat_ngram_size=2, min_new_tokens=7, max_new_tokens=19)
    for row in zoo.question_generator("bart").generate(windows(zoo, "bart"), decoding):
        for tokens, _ in row:
            assert len(tokens) >= 7
            assert len(tokens) <= 19
            assert end not in tokens[:-1]
            generated = [model.generation_config.decoder_start_token_id, *tokens]
            assert max(Counter(itertools.pairwise(generated)).values()) == 1


def test_one_candidate_is_greedy_search(zoo: Zoo) -> None:
    generator, sources = zoo.question_generator("t5-gated"), windows(zoo, "t5-gated")
    sampled = generator.generate(sources, Sampling(num_return_sequences=1, top_k=1, max_new_tokens=11))
    greedy = generator.generate(sources, Greedy(max_new_tokens=11))
    for sequences, expected in zip(sampled, greedy, strict=True):
        assert_same(sequences, expected)


# Calls that are refused


@pytest.mark.parametrize(
    ("decoding", "named"),
    [
        (BeamSearch(num_beams=0), "num_beams=0"),
        (BeamSearch(num_beams=65), "num_beams=65"),
        (BeamSearch(num_beams=2, num_return_sequences=3), "num_return_sequences=3"),
        (BeamSearch(length_penalty=float("inf")), "length_penalty=inf"),
        (BeamSearch(max_new_tokens=0), "max_new_tokens=0"),
        (BeamSearch(max_new_tokens=8, min_new_tokens=9), "min_new_tokens=9"),
        (Greedy(no_repeat_ngram_size=-1), "no_repeat_ngram_size=-1"),
        (Sampling(num_return_sequences=0), "num_return_sequences=0"),
        (Sampling(top_k=-1), "top_k=-1"),
        (Sampling(top_p=0.0), "top_p=0.0"),
        (Sampling(top_p=1.1), "top_p=1.1"),
        (Sampling(temperature=0.0), "temperature=0.0"),
        (Sampling(temperature=float("nan")), "temperature=nan"),
        (Sampling(seed=-1), "seed=-1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_setting_out_of_range_is_named_and_fails_its_call_alone(zoo: Zoo, decoding: Decoding, named: str) -> None:
    fine = GenerateQuestions(*SOURCES[2], Greedy(max_new_tokens=3))
    bad, good = zoo.question_generator("t5").run([GenerateQuestions(*SOURCES[2], decoding), fine], 8)
    assert isinstance(bad, InvalidRequest)
    assert named in str(bad)
    assert good == zoo.question_generator("t5").run([fine], 8)[0]


def test_a_source_longer_than_the_window_is_refused_not_cut(zoo: Zoo) -> None:
    decoding = Greedy(max_new_tokens=3)
    calls = [GenerateQuestions("a", "the first prize " * 60, decoding), GenerateQuestions(*SOURCES[2], decoding)]
    long, fine = zoo.question_generator("t5").run(calls, 8)
    assert isinstance(long, TooLong)
    assert str(models.MAX_TOKENS) in str(long)
    assert isinstance(fine, tuple)


def test_a_source_that_fills_the_window_is_read(zoo: Zoo) -> None:
    text_encoder = encoder(zoo, "bert")
    words = "prize " * models.MAX_TOKENS
    while inputs(zoo, "bert", "a", words)["input_ids"].shape[1] > models.MAX_TOKENS:
        words = words.removesuffix("prize ")
    assert len(text_encoder.encode_pair("a", words).ids) == models.MAX_TOKENS
    decoding = BeamSearch(max_new_tokens=5)
    (sequences,) = zoo.question_generator("bert").generate([text_encoder.encode_pair("a", words)], decoding)
    assert_same(sequences, generate(zoo, "bert", inputs(zoo, "bert", "a", words), decoding))
