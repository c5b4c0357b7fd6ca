"""FB15k-237 in miniature: enough films and people for every entity to have others of its type far from it."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.training_sets import write_gzipped

FILMS = [
    f"{adjective} {noun}" for adjective in ("Red", "Silent", "Last", "Golden") for noun in ("River", "Hour", "Moon")
]
PEOPLE = [f"{first} {last}" for first in ("Ann", "Bob", "Cleo", "Dan") for last in ("Archer", "Brook", "Cole", "Dunn")]
TOWNS = ["Leeds", "Quito", "Lagos", "Osaka", "Turin"]
GENRES = ["Drama", "Comedy", "Western Film", "Action Film"]
DIRECTED, ACTED = "/film/director/film", "/film/actor/film./film/performance/film"
GENRE, BORN, SPOUSE = (
    "/film/film/genre",
    "/people/person/place_of_birth",
    "/people/person/spouse_s./people/marriage/spouse",
)
GENERIC, WEBPAGE = "/film/film/film_festivals", "/common/topic/webpage./common/webpage/category"


def rows() -> list[tuple[str, str, str]]:
    """All triples, those of ten relations' kinds among them: with phrases, without, symmetric, bookkeeping."""
    rng = random.Random(3)
    triples = []
    for number, film in enumerate(FILMS):
        triples.append((PEOPLE[number % 5], DIRECTED, film))
        triples += [(actor, ACTED, film) for actor in rng.sample(PEOPLE[5:], 2)]
        triples.append((film, GENRE, GENRES[number % len(GENRES)]))
        triples.append((film, GENERIC, f"{TOWNS[number % 5]} Festival-GB"))
        triples.append((film, WEBPAGE, "Official Website"))
    triples += [(person, BORN, TOWNS[number % len(TOWNS)]) for number, person in enumerate(PEOPLE)]
    for person, partner in zip(PEOPLE[:4], PEOPLE[4:8], strict=True):
        triples += [(person, SPOUSE, partner), (partner, SPOUSE, person)]
    rng.shuffle(triples)
    return triples


def save(folder: Path) -> Path:
    """Write the three splits as the originals are written."""
    made = rows()
    for split, part in (("train", made[:-24]), ("dev", made[-24:-12]), ("test", made[-12:])):
        write_gzipped(folder / f"fb15k237_{split}.jsonl.gz", part)
    return folder
