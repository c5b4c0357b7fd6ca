"""Seconds of one response by its length, and by the length of its knowledge, with the embedded bundles.

    python -m bench long_answers [fast|default] [pairs]      # pairs: the first four lines alone

For each graph the windows that it reads, and their tokens with padding. ``python -m bench avx2 long_answers`` runs it
on the kernels of AVX2.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench.support.work import counting
from groundwire.engine import Engine, LoadOptions

RESPONSE_WORDS = (100, 125, 250, 500, 1000, 2000)
KNOWLEDGE_WORDS = (3_000, 12_500, 25_000, 50_000, 100_000)
PAIRS = ((100, 200), (250, 1000))
"""Words of a response, and of knowledge in paragraphs of 100."""
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
HOTELS = 9
"""Records of a tool's result: about 350 words and 1,500 tokens of JSON."""
ROUNDS = 3


def main(metrics: str = "default", part: str = "all") -> None:
    """Print a line for each length."""
    rng = random.Random(0)
    with Engine.load("compact", threads=2, options=LoadOptions(cache_bytes=0)) as engine:
        engine.warmup()
        measure(
            engine, "a sentence over a sentence", "The bar is open until 8.", "It opens at 10 and closes at 8.", metrics
        )
        for title, response, knowledge in write_pairs():
            measure(engine, title, response, knowledge, metrics)
        if part == "pairs":
            return
        knowledge = write_answer(150, rng)
        for words in RESPONSE_WORDS:
            measure(engine, f"response of {words} words", write_answer(words, rng), knowledge, metrics)
        for words in KNOWLEDGE_WORDS:
            before, after = (write_filler(words // 2, rng) for _ in range(2))
            measure(engine, f"knowledge of {words} words", RESPONSE, f"{before}\n\n{FACT}\n\n{after}", metrics)


def measure(engine: Engine, title: str, response: str, knowledge: str, metrics: str) -> None:
    """Print the least processor and wall time of a score in some rounds, what graphs read, and what the score says."""
    spent, passed = [], []
    for _ in range(ROUNDS):
        start, began = time.process_time(), time.perf_counter()
        with counting() as works:
            score = engine.score(response, knowledge, metrics=None if metrics == "default" else metrics)
        spent.append(time.process_time() - start)
        passed.append(time.perf_counter() - began)
    labels = [sentence.verdict.label for sentence in score.sentences]
    counts = {label: labels.count(label) for label in sorted(set(labels))}
    failed = [name for name, result in score.metrics.items() if result.status != "scored"]
    read = ", ".join(f"{name} {work.rows} windows {work.tokens} tokens" for name, work in sorted(works.items()))
    times = f"{min(spent):.3f} CPU s, {min(passed):.3f} s"
    print(f"{metrics}, {title}: {times}, {read}, coverage {score.coverage:.4f}, {counts} {failed or ''}")


def write_pairs() -> Iterator[tuple[str, str, str]]:
    """Yield titles, responses and knowledge: prose of two lengths, and a tool's result."""
    rng = random.Random(0)
    for words, knowledge_words in PAIRS:
        knowledge = "\n\n".join(write_answer(100, rng) for _ in range(knowledge_words // 100))
        yield f"{words} words over {knowledge_words}", write_answer(words, rng), knowledge
    yield "130 words over a tool's JSON", *write_tool_answer(rng)


def write_answer(words: int, rng: random.Random) -> str:
    """Sentences with numbers, of at least so many words."""
    text = ""
    while len(text.split()) < words:
        predicate = rng.choice(PREDICATES).format(rng.randint(2, 99))
        text += f"{rng.choice(SUBJECTS)} {predicate}, and the office in Leiden confirms it by e-mail. "
    return text


def write_tool_answer(rng: random.Random) -> tuple[str, str]:
    """A response about the first hotels that a tool found, and the tool's result as indented JSON."""
    hotels: list[dict[str, Any]] = [
        {
            "id": f"H-{index}",
            "name": f"{rng.choice(('Lido', 'Villa', 'Casa'))} {rng.choice(('Blu', 'Aurora', 'Sole'))} {index}",
            "stars": rng.randint(2, 5),
            "price_per_night": {"amount": round(rng.uniform(60, 240), 2), "currency": "EUR"},
            "distance_to_beach_m": rng.randint(20, 2000),
            "rating": round(rng.uniform(6, 9.8), 1),
            "address": {"street": f"Viale Vespucci {rng.randint(1, 120)}", "zip": "47921", "city": "Rimini"},
            "free_cancellation_until": f"2026-06-{rng.randint(10, 28)}T18:00:00+02:00",
            "amenities": rng.sample(("pool", "parking", "wifi", "gym", "spa", "pets"), 3),
        }
        for index in range(HOTELS)
    ]
    sentences = ["I found several hotels in Rimini for your three nights."]
    for hotel in hotels[:4]:
        price, amenities = hotel["price_per_night"]["amount"], " and ".join(hotel["amenities"])
        distance = hotel["distance_to_beach_m"]
        sentences += [
            f"The {hotel['name']} has {hotel['stars']} stars and is {distance} m from the beach.",
            f"It costs {price} EUR a night.",
            f"It is rated {hotel['rating']} and offers {amenities}.",
        ]
    sentences.append("Tell me which of these hotels you would like to book, and I will reserve it.")
    found = {"name": "find_hotels", "arguments": {"city": "Rimini", "nights": 3}, "result": {"hotels": hotels}}
    return " ".join(sentences), json.dumps(found, indent=1)


def write_filler(words: int, rng: random.Random) -> str:
    """Sentences of words that mean nothing."""
    sentences = (" ".join(f"word{rng.randrange(4000)}" for _ in range(12)) for _ in range(words // 12))
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


if __name__ == "__main__":
    main(*sys.argv[1:3])
