"""Time and memory of a fresh process that scores one response by PMI-Faith: the engine, or PyTorch as the authors do.

Run by language_model.py, one process per sample: ``python -m bench.support.fresh_pmi engine BUNDLE THREADS`` or
``… peer CHECKPOINT THREADS`` prints one. PyTorch is hidden from the engine's process, because an installation that
only scores does not have it.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from .memory import forget_peak, hide, peak_mb, resident_mb


class Words(NamedTuple):
    """Lengths of the three texts, in words."""

    document: int = 166
    history: int = 93
    response: int = 18


class Texts(NamedTuple):
    """A document, a history of one turn, and responses to rank; the first is the one to score."""

    document: str
    history: str
    responses: tuple[str, ...]


class Sample(msgspec.Struct, frozen=True):
    """One fresh process."""

    value: float
    load_ms: float
    score_ms: float
    """The first response, without a warm-up."""
    imported_mb: float
    """Resident size before the model is loaded."""
    loaded_mb: float
    scoring_peak_mb: float
    """The largest resident size while it scored."""
    peak_mb: float
    """The largest resident size of the process, loading included."""


def texts(words: Words, candidates: int, vocabulary: int) -> Texts:
    """Return random words of the benchmark's vocabulary, one token each; the same in every process."""
    rng = random.Random(0)

    def some(count: int) -> str:
        return " ".join(f"w{rng.randrange(vocabulary - 16):05d}" for _ in range(count))

    return Texts(some(words.document), some(words.history), tuple(some(words.response) for _ in range(candidates)))


class Peer:
    """PMI-Faith as its authors compute it: two passes over the whole text, logits over the whole vocabulary."""

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._torch = torch
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32).eval()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def pmi(self, document: str, history: str, response: str) -> float:
        """Return the value of one response."""
        before = self.ids(f"{history}.\n")
        text = self.ids(f"Agent: {response}.")
        with_document = self.mean(self.ids(f"Document: {document}\n\n") + before, text)
        return with_document - self.mean(before, text)

    def ids(self, text: str) -> list[int]:
        """Return token ids without special tokens."""
        token_ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return token_ids

    def mean(self, prefix: list[int], text: list[int]) -> float:
        """Return the mean log-probability of the ids ``text`` after ``prefix``."""
        torch = self._torch
        ids = torch.tensor([prefix + text])
        with torch.inference_mode():
            log_probs = self.model(input_ids=ids).logits[0].log_softmax(-1)
        positions = torch.arange(len(prefix) - 1, len(prefix) + len(text) - 1)
        return float(log_probs[positions, ids[0, len(prefix) :]].mean())


def engine(bundle: str, threads: int) -> Iterator[Callable[[Texts], float]]:
    """Load the engine; yield a function that scores the first response."""
    hide("torch")
    from groundwire.engine import Engine

    yield lambda texts: 0.0
    with Engine.load(bundle, "cpu", threads=threads) as loaded:

        def score(texts: Texts) -> float:
            result = loaded.score(texts.responses[0], texts.document, history=[texts.history], metrics=["pmi"])
            assert result.value is not None, result.message
            return result.value

        yield score


def peer(folder: str, threads: int) -> Iterator[Callable[[Texts], float]]:
    """Load the checkpoint in PyTorch; yield a function that scores the first response."""
    import torch
    import transformers  # noqa: F401  # counted among the imports, not the model

    torch.set_num_threads(threads)
    yield lambda texts: 0.0
    loaded = Peer(folder)
    yield lambda texts: loaded.pmi(texts.document, texts.history, texts.responses[0])


def measure(side: Iterator[Callable[[Texts], float]], texts: Texts) -> Sample:
    """Import, load and score, each with its memory."""
    next(side)
    imported, started = resident_mb(), time.perf_counter()
    score = next(side)
    loaded_ms, loaded, peak_loading = (time.perf_counter() - started) * 1000, resident_mb(), peak_mb()
    forget_peak()
    started = time.perf_counter()
    value = score(texts)
    spent = (time.perf_counter() - started) * 1000
    peak_scoring = peak_mb()
    return Sample(value, loaded_ms, spent, imported, loaded, peak_scoring, max(peak_loading, peak_scoring))


if __name__ == "__main__":
    side = {"engine": engine, "peer": peer}[sys.argv[1]]
    words, vocabulary = Words(*map(int, sys.argv[4:7])), int(sys.argv[7])
    sample = measure(side(sys.argv[2], int(sys.argv[3])), texts(words, 1, vocabulary))
    print(msgspec.json.encode(sample).decode())
