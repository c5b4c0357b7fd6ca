"""PMI-Decode at the size of its paper, random weights: the cost of the second context.

    python -m bench.decoding

Exports BART-large (12 + 12 layers of 1,024, 50,265 tokens) at int8 into the work directory, without the parity gate,
which would take many minutes and is meaningless for random weights, and decodes with four beams in turns:

- pmi: alpha 0.25 and pmi_top_p 0.6, both contexts in one batch;
- plain: the same graph at alpha 0 and pmi_top_p 1, one context;
- bare: a decoder step without the contrast, as question generators have;
- wide: pmi_top_p 0.99, whose sets go beyond the first tokens, so that every step sorts the vocabulary.

A word is a token here, no response ends early, and the logits are as peaked as a trained model's.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer

from groundwire.export import store
from groundwire.export.options import PROMPT
from groundwire.export.passes import fold_transposes, quantize
from groundwire.export.roles import generation
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole, ResponseGeneratorRole, Template
from groundwire.runtime.calls import BeamSearch, Generate, GeneratedQuestion, GeneratedSequence, GenerateQuestions
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.models.response_generator import ResponseGenerator
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.resources import usable_cores

from .support import common, models
from .support.common import PerformanceTarget, Timing, check, interleaved

BEAMS = 4
Runs = dict[str, Callable[[], object]]


class Side(msgspec.Struct, frozen=True):
    """One way of decoding."""

    timing: Timing
    tokens_per_s: float
    """Tokens of the responses, all sources together, by the median."""


class Throughput(msgspec.Struct, frozen=True):
    """A number of dialogues, decoded at once."""

    dialogues: int
    sides: dict[str, Side]
    to_plain: float
    """Tokens per second of PMI-Decode over plain decoding's with the same graph."""
    to_bare: float
    """The same over a graph without the contrast."""


class Results(msgspec.Struct, frozen=True):
    """Everything measured."""

    throughput: tuple[Throughput, ...]
    graph_mb: float
    """Both graphs of the role, weights included."""


def main(
    work: Annotated[Path, typer.Option(help="Where the bundle is kept (0.5 GB).")] = common.WORK,
    repeats: Annotated[int, typer.Option(help="Samples of each timing.", min=1)] = 3,
    tokens: Annotated[int, typer.Option(help="Tokens of a response.", min=2)] = 12,
    dialogues: Annotated[int, typer.Option(help="Dialogues decoded together, beside one alone.", min=2, max=8)] = 4,
    threads: Annotated[int | None, typer.Option(help="Threads; default: all usable.", min=1)] = None,
    tiny: Annotated[bool, typer.Option(help="A tiny model, to try the benchmark itself; checks no targets.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file; default bench/results, or none with --tiny.")] = None,
) -> None:
    """Measure PMI-Decode on BART-large at true size."""
    size = models.TINY if tiny else models.PAPER
    words = (30, 12) if tiny else (96, 32)
    threads = threads or usable_cores()
    opened = bundle(work, size)
    profile = DeviceProfile.of("cpu", threads)
    roles = opened.manifest.roles
    generator_role, bare_role = roles["generator"], roles["qg"]
    assert isinstance(generator_role, ResponseGeneratorRole)
    assert isinstance(bare_role, QuestionGeneratorRole)
    generator = ResponseGenerator.load(opened, generator_role, profile)
    bare = QuestionGenerator.load(opened, bare_role, profile)
    calls = random_calls(dialogues, words, tokens, size.bart["vocab_size"])
    verify(generator, bare, calls, tokens)
    results = Results(
        tuple(throughput(generator, bare, calls[:count], tokens, repeats) for count in (1, dialogues)),
        models.graph_bytes(opened, "generator") / 1e6,
    )
    show(results)
    settings: dict[str, int | float | str | None] = {
        "size": size.name,
        "threads": threads,
        "repeats": repeats,
        "beams": BEAMS,
        "tokens": tokens,
        "knowledge_words": words[0],
        "history_words": words[1],
    }
    target = out or (None if tiny else common.RESULTS / "decoding.json")
    common.finish("decoding", settings, results, () if tiny else tuple(targets(results)), target)


def bundle(work: Path, size: models.Size) -> Bundle:
    """Return the model as role ``generator``, and its decoder without the contrast as ``qg``; export them if needed."""
    folder = work / f"{size.name}-bart-{models.exporter()}"
    if (folder / MANIFEST).exists():
        return Bundle.open(folder)
    loaded = models.response_generator(size)
    halves = generation.split_model(loaded.model)
    config = loaded.model.config
    made: dict[str, store.RoleFiles] = {}
    for role in ("generator", "qg"):
        graphs = generation.build_generation_graphs(halves, contrast=role == "generator")
        for graph in graphs:
            fold_transposes(graph)
            quantize(graph)
        files = dict(zip((f"{role}.encoder.onnx", f"{role}.decoder.onnx"), graphs, strict=True))
        encoder, decoder = files
        shared = {
            "source": loaded.name,
            "architecture": loaded.architecture,
            "precision": "int8",
            "tokenizer": "tokenizer.json",
            "max_tokens": loaded.max_tokens,
            "pad_id": loaded.pad_id,
            "encoder": encoder,
            "decoder": decoder,
            "eos_ids": (config.eos_token_id,),
            "start_id": config.decoder_start_token_id,
            "vocabulary": halves.step.vocabulary,
            "layers": len(halves.step.layers),
            "heads": halves.step.heads,
            "head_dim": halves.step.head_dim,
        }
        if role == "qg":
            made[role] = store.RoleFiles(
                QuestionGeneratorRole(**shared, template=Template("{answer}{context}")), files, loaded.tokenizer
            )
        else:
            record = ResponseGeneratorRole(**shared, prompt=PROMPT, causal=False, positions=loaded.max_tokens)
            made[role] = store.RoleFiles(record, files, loaded.tokenizer)
        gc.collect()
    return store.write(folder, store.Title("random-bart"), made)


def random_calls(count: int, words: tuple[int, int], tokens: int, vocabulary: int) -> list[Generate]:
    """Return dialogues of random words."""
    rng = np.random.default_rng(0)

    def text(length: int) -> str:
        return " ".join(f"w{number:05d}" for number in rng.integers(0, vocabulary - 16, length))

    decoding = BeamSearch(BEAMS, 1, no_repeat_ngram_size=0, early_stopping=False, max_new_tokens=tokens)
    return [Generate((text(words[0]),), (text(words[1]),), decoding) for _ in range(count)]


def without_contrast(calls: Sequence[Generate]) -> list[Generate]:
    """Return the same dialogues without the contrast."""
    return [msgspec.structs.replace(call, alpha=0.0, pmi_top_p=1.0) for call in calls]


def questions(calls: Sequence[Generate]) -> list[GenerateQuestions]:
    """Return the same sources for the bare decoder."""
    prompts = ("".join(PROMPT).format(knowledge=call.knowledge[0], history=call.history[0]) for call in calls)
    return [GenerateQuestions(prompt, "", call.decoding) for prompt, call in zip(prompts, calls, strict=True)]


def verify(generator: ResponseGenerator, bare: QuestionGenerator, calls: Sequence[Generate], tokens: int) -> None:
    """Check that both graphs decode the same at alpha 0, and that the contrast is the formula and changes the text."""
    alone, asked, contrasted = (
        generator.run(without_contrast(calls), 1),
        bare.run(questions(calls), 1),
        generator.run(calls, 1),
    )
    nearly = generator.run([msgspec.structs.replace(call, alpha=1e-7, pmi_top_p=1.0) for call in calls], 1)
    # With random weights the source hardly matters, so only CPMI alone is certain to change the text.
    purely = generator.run([msgspec.structs.replace(call, alpha=1.0, pmi_top_p=1.0) for call in calls], 1)
    for call, *outcomes in zip(calls, alone, asked, contrasted, nearly, purely, strict=True):
        plain, bare_text, pmi, beside, cpmi_only = (
            outcome[0] if isinstance(outcome, tuple) else outcome for outcome in outcomes
        )
        check(isinstance(bare_text, GeneratedQuestion), f"no response: {bare_text!r}")
        for sequence in (plain, pmi, beside, cpmi_only):
            check(
                isinstance(sequence, GeneratedSequence) and len(sequence.tokens) == tokens,
                f"no whole response: {sequence!r}",
            )
        check(plain.text == bare_text.text, "the two graphs decode different texts")
        check(abs(plain.score - bare_text.score) < 1e-5, "the two graphs give different scores")
        check(plain.text == beside.text, "a second context changes plain decoding")
        terms = [token.log_prob - call.alpha * (token.log_prob - token.cpmi) for token in pmi.tokens]
        check(abs(sum(terms) / tokens - pmi.score) < 1e-4, f"the score is {pmi.score}, its tokens say {terms}")
        check(cpmi_only.text != plain.text, "the contrast changes nothing")


def throughput(
    generator: ResponseGenerator, bare: QuestionGenerator, calls: Sequence[Generate], tokens: int, repeats: int
) -> Throughput:
    """Time all ways of decoding the calls together."""
    wide = [msgspec.structs.replace(call, pmi_top_p=0.99) for call in calls]
    without, asked = without_contrast(calls), questions(calls)
    runs: Runs = {
        "pmi": lambda: generator.run(calls, 1),
        "plain": lambda: generator.run(without, 1),
        "bare": lambda: bare.run(asked, 1),
        "wide": lambda: generator.run(wide, 1),
    }
    timings = interleaved(runs, repeats)
    sides = {name: Side(timing, len(calls) * tokens / timing.p50_ms * 1000) for name, timing in timings.items()}
    speed = {name: side.tokens_per_s for name, side in sides.items()}
    return Throughput(len(calls), sides, speed["pmi"] / speed["plain"], speed["pmi"] / speed["bare"])


def targets(results: Results) -> Iterator[PerformanceTarget]:
    """Yield the target; the paper predicts a half."""
    for throughput in results.throughput:
        name = f"PMI-Decode over plain decoding, {throughput.dialogues} at once"
        yield PerformanceTarget.at_least(name, throughput.to_plain, 0.45, "×")


def show(results: Results) -> None:
    """Print what was measured."""
    screen = common.console()
    for throughput in results.throughput:
        rows = [
            (name, f"{side.timing.p50_ms:.0f}", f"{side.timing.p95_ms:.0f}", f"{side.tokens_per_s:.1f}")
            for name, side in throughput.sides.items()
        ]
        columns = (f"dialogues at once: {throughput.dialogues}", "p50 ms", "p95 ms", "tokens/s")
        screen.print(common.table("throughput", columns, rows))
        screen.print(
            f"{throughput.to_plain:.2f} × plain decoding, {throughput.to_bare:.2f} × a graph without the contrast"
        )


if __name__ == "__main__":
    typer.run(main)
