"""CPU seconds of one response by its length, and by the length of its knowledge, with the embedded bundle.

python -m bench.long_answers [fast|default]
"""

from __future__ import annotations

import random
import sys
import time

from groundwire.engine import Engine

RESPONSE_WORDS = (100, 125, 250, 500, 1000, 2000)
KNOWLEDGE_WORDS = (3_000, 12_500, 25_000, 50_000, 100_000)
SUBJECTS = ("The parcel", "The refund", "Our shop in Utrecht", "The warranty", "Your account", "The Pro plan")
PREDICATES = (
    "arrives within {} working days",
    "covers {} months of use",
    "opens at {} on weekdays",
    "costs {} euros a month",
    "keeps {} gigabytes of data",
)
FACT = "Our shop in Utrecht opens at 9 on weekdays. The Pro plan costs 12 euros a month."
RESPONSE = "Our shop in Utrecht opens at 9 on weekdays. The Pro plan costs 15 euros a month."


def main(metrics: str = "fast") -> None:
    """Print a line for each length."""
    rng = random.Random(0)
    with Engine.load("compact", threads=2) as engine:
        engine.warmup()
        knowledge = write_answer(150, rng)
        for words in RESPONSE_WORDS:
            measure(engine, f"response of {words} words", write_answer(words, rng), knowledge, metrics)
        for words in KNOWLEDGE_WORDS:
            before, after = (write_filler(words // 2, rng) for _ in range(2))
            measure(engine, f"knowledge of {words} words", RESPONSE, f"{before}\n\n{FACT}\n\n{after}", metrics)


def measure(engine: Engine, title: str, response: str, knowledge: str, metrics: str) -> None:
    """Print the processor time of a score, and what it says."""
    start = time.process_time()
    score = engine.score(response, knowledge, metrics=None if metrics == "default" else metrics)
    seconds = time.process_time() - start
    labels = [sentence.verdict.label for sentence in score.sentences]
    counts = {label: labels.count(label) for label in sorted(set(labels))}
    failed = [name for name, result in score.metrics.items() if result.status != "scored"]
    print(f"{metrics}, {title}: {seconds:.2f} CPU s, coverage {score.coverage:.4f}, sentences {counts} {failed or ''}")


def write_answer(words: int, rng: random.Random) -> str:
    """Sentences with numbers, of at least so many words."""
    text = ""
    while len(text.split()) < words:
        predicate = rng.choice(PREDICATES).format(rng.randint(2, 99))
        text += f"{rng.choice(SUBJECTS)} {predicate}, and the office in Leiden confirms it by e-mail. "
    return text


def write_filler(words: int, rng: random.Random) -> str:
    """Sentences of words that mean nothing."""
    sentences = (" ".join(f"word{rng.randrange(4000)}" for _ in range(12)) for _ in range(words // 12))
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


if __name__ == "__main__":
    main(*sys.argv[1:2])
