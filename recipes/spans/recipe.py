"""Trains the span finder's pipeline: a small tok2vec shared by a morphologizer, a parser and a name recogniser."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.training import Example
from thinc.api import Adam, fix_random_seed, warmup_linear

from ..common.loop import write_report
from ..common.treebanks import NAMES, AnnotatedSentence
from . import rules
from .augment import AlterationChances, alter_sentence, join_sentences
from .measure import measure_pipeline
from .sources import SpanSources, make_spacy_example, read_sources

WIDTH = 96
# Rows per hashed feature. A word's vector is a sum over four rows, so far more words than rows get distinct vectors.
ROWS = {"NORM": 3500, "PREFIX": 500, "SUFFIX": 1200, "SHAPE": 300}
PEAK_RATE = 2e-3
WORDS_PER_BATCH = (1000, 2000)
"""Words in a batch at the first step, and from half way on."""


def train_span_finder(data: Path, out: Path, steps: int = 3600, seed: int = 13) -> None:
    """Train the pipeline, save it as a spaCy directory in ``out``, and measure it there (``report.json``).

    ``data`` is the directory of training sets. 3,600 steps take about half an hour on one core.
    """
    spacy.util.fix_random_seed(seed)
    fix_random_seed(seed)
    out.mkdir(parents=True, exist_ok=True)
    sources = read_sources(data)
    nlp = build_pipeline()
    rate: Any = warmup_linear(PEAK_RATE, steps // 20, steps)
    optimizer = Adam(learn_rate=rate, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True)
    plain = [make_spacy_example(nlp, sentence) for sentence in (*sources.treebanks, *sources.names)]
    nlp.initialize(lambda: plain, sgd=optimizer)
    add_rules(nlp)
    started = time.monotonic()
    losses: dict[str, float] = {}
    feed = _make_batches(nlp, sources, steps, seed)
    with (out / "log.jsonl").open("a") as log:
        for step, batch in enumerate(feed, 1):
            nlp.update(batch, sgd=optimizer, drop=0.1, losses=losses)
            optimizer.step_schedules()
            if step % 100 == 0 or step == steps:
                line = {name: round(float(value), 1) for name, value in losses.items()}
                log.write(json.dumps({"step": step, **line, "s": round(time.monotonic() - started, 1)}) + "\n")
                log.flush()
                losses = {}
    # The weights averaged over the steps are steadier than the last ones.
    with nlp.use_params(optimizer.averages):
        save_pipeline(nlp, out)
    write_report(out, {"steps": steps, "seed": seed, **measure_pipeline(out, sources)})


def build_pipeline() -> Language:
    """The pipeline, not yet initialised: parts of speech, dependencies, names, then the rules for numbers and dates."""
    nlp = spacy.blank("en")
    embed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": WIDTH,
        "attrs": list(ROWS),
        "rows": list(ROWS.values()),
        "include_static_vectors": False,
    }
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": WIDTH,
        "depth": 4,
        "window_size": 1,
        "maxout_pieces": 3,
    }
    nlp.add_pipe("tok2vec", config={"model": {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH}
    pos_model = {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}  # terms: literal
    nlp.add_pipe("morphologizer", config={"model": pos_model})
    nlp.add_pipe("parser", config={"model": _make_transition_model("parser", listener), "min_action_freq": 20})
    nlp.add_pipe("ner", config={"model": _make_transition_model("ner", listener)})
    nlp.add_pipe("entity_ruler", name="atoms", config={"overwrite_ents": False})
    nlp.add_pipe("entity_ruler", name="phrases", config={"overwrite_ents": True})
    for label in NAMES:
        nlp.get_pipe("ner").add_label(label)
    return nlp


def _make_transition_model(state: str, listener: dict[str, Any]) -> dict[str, Any]:
    return {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": state,
        "extra_state_tokens": False,
        "hidden_width": 64,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": listener,
    }


def add_rules(nlp: Language) -> None:
    """Add the patterns of the two entity rulers; call it after the pipeline is initialised, which empties them."""
    nlp.get_pipe("atoms").add_patterns(rules.make_atom_patterns())
    nlp.get_pipe("phrases").add_patterns(rules.make_phrase_patterns())


def _group_sentences(sources: SpanSources, rng: random.Random) -> list[list[AnnotatedSentence]]:
    """The sentences in runs of one to four neighbours, in random order."""
    runs: list[list[AnnotatedSentence]] = []
    for _, group in groupby([*sources.treebanks, *sources.names], key=lambda s: (s.document, s.parse is None)):
        rest = list(group)
        while rest:
            size = rng.choice((1, 1, 2, 3, 4)) if rest[0].parse else 1
            runs.append(rest[:size])
            rest = rest[size:]
    rng.shuffle(runs)
    return runs


def _make_examples(nlp: Language, sources: SpanSources, rng: random.Random) -> Iterator[Example]:
    chances = AlterationChances()
    for run in _group_sentences(sources, rng):
        yield make_spacy_example(nlp, alter_sentence(join_sentences(run), sources.swaps, chances, rng))


def _make_batches(nlp: Language, sources: SpanSources, steps: int, seed: int) -> Iterator[list[Example]]:
    first, last = WORDS_PER_BATCH
    step, epoch, batch, size = 0, 0, [], 0
    while True:
        for item in _make_examples(nlp, sources, random.Random(seed * 1_000_003 + epoch)):
            batch.append(item)
            size += len(item)
            if size >= first + (last - first) * min(1.0, 2 * step / steps):
                yield batch
                step, batch, size = step + 1, [], 0
                if step == steps:
                    return
        epoch += 1


def save_pipeline(nlp: Language, out: Path) -> None:
    """Write the pipeline without the vocabulary of its training texts: only labels and special cases are kept."""
    clean = spacy.util.load_model_from_config(nlp.config)
    for name in nlp.pipe_names:
        clean.get_pipe(name).from_bytes(nlp.get_pipe(name).to_bytes(exclude=["vocab"]), exclude=["vocab"])
    clean.meta.update(name="groundwire_spans", version="1.0.0", license="CC BY-SA 4.0")
    clean.to_disk(out)
