"""Names of people, places, companies and things, composed at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple


def _split(words: str) -> list[str]:
    """Split a list of words."""
    return words.split()


_WOMEN = _split(
    "Priya Lena Aisha Keiko Ruth Nadia Maria Ingrid Chloe Fatima Sofia Hannah Mei Olga Tara Amara Elif Bianca "
    "Joan Yara Greta Paula Dana Irina Leila Rosa Helen Carmen Anika Zoe Miriam Clara Edith Naomi Freya Sunita"
)
_MEN = _split(
    "Owen Marco Tom Sven Diego Paul Kofi Ivan Hugo Samir Liam Jonas Pedro Arjun Felix Omar Victor Noah Kenji "
    "Patrick Emil Rafael Stefan Tariq Gareth Luca Bruno Anton Hassan Peter Miles Oscar Henrik Dmitri Andre Wei"
)
_LAST = _split(
    "Nair Hart Okafor Rossi Lindqvist Brown Tanaka Meyer Costa Walsh Novak Singh Bauer Ferrari Olsen Adeyemi "
    "Clarke Dubois Kowalski Haddad Moreno Larsen Petrov Quinn Schmidt Iyer Vance Abbott Mensah Silva Jansen "
    "Fischer Kaya Lopez Byrne Sato Gruber Hollis Pike Rahman Sandoval Thorne Ueda Whitaker Zeller Ames Brandt "
    "Chowdhury Doyle Engel"
)
CITIES = _split(
    "Leeds Porto Graz Lyon Cork Bergen Dallas Perth Ghent Turin Malmö Bristol Aachen Toledo Nantes Basel Kraków "
    "Tampere Galway Utrecht Denver Halifax Linz Bath Seville Aarhus Trieste Dundee Ottawa Boise Hobart Verona "
    "Cardiff Bremen"
)
_STREET = _split(
    "Mill Station Harbour Church Park Bridge Market Castle Victoria Orchard Garden King River Chapel Linden "
    "Foundry Abbey Cedar Canal Windmill Albert Spring"
)
_STREET_KIND = ("Street", "Road", "Lane", "Avenue", "Square", "Row")  # terms: literal
_OPENINGS = _split(
    "Al Bel Cor Dar El Fen Gal Hal Is Jo Kel Lum Mar Nor Or Pel Quin Ros Sol Tal Um Ver Wil Xan Yor Zen Bri Cla "
    "Dre Flo Gri Hol"
)
_MIDDLES = ["a", "e", "i", "o", "u", "ar", "en", "il", "or", "an", "ia", "eo"]
_ENDINGS = _split("ta dex mont ro vista na lia sen mark via tek well ford ra bo nix ment ley dale ston co ris")
_ADJECTIVES = _split(
    "Green Silver Old Blue Golden Little Red North Bright Quiet Copper Wild Grand Ivory Crooked Hidden Royal "
    "Sunny Amber Lucky"
)
_NOUNS = _split(
    "Lantern Fox Oak Anchor Kettle Sparrow Compass Garden Bridge Feather Tower Whale Olive Bell Harbour Pine "
    "Clover Star Heron Acorn Wheel Badger Maple Key"
)
_TITLES = (
    "The {noun} of {city}",
    "{adjective} {noun}s",
    "A {adjective} Year",
    "Letters from {city}",
    "The Last {noun}",
    "Under the {noun}",
    "Winter in {city}",
    "The {adjective} Room",
)


class Person(NamedTuple):
    """A person's name and pronoun."""

    first: str
    last: str
    pronoun: str

    def __str__(self) -> str:
        return f"{self.first} {self.last}"


def draw_person(rng: random.Random) -> Person:
    """Draw a person."""
    female = rng.random() < 0.5
    return Person(rng.choice(_WOMEN if female else _MEN), rng.choice(_LAST), "she" if female else "he")


def draw_coined(rng: random.Random) -> str:
    """Draw an invented word, such as a brand has."""
    middle = rng.choice(_MIDDLES) if rng.random() < 0.8 else rng.choice(_MIDDLES) + "r" + rng.choice("aeio")
    return rng.choice(_OPENINGS) + middle + rng.choice(_ENDINGS)


def draw_sign(rng: random.Random) -> str:
    """Draw the name on a sign, such as "Green Lantern"."""
    return f"{rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}"


def draw_title(rng: random.Random) -> str:
    """Draw the title of a book or a film."""
    title = rng.choice(_TITLES)
    return title.format(noun=rng.choice(_NOUNS), adjective=rng.choice(_ADJECTIVES), city=rng.choice(CITIES))


def draw_street(rng: random.Random) -> str:
    """Draw a street with a house number."""
    return f"{rng.randint(1, 180)} {rng.choice(_STREET)} {rng.choice(_STREET_KIND)}"


def draw_model(rng: random.Random) -> str:
    """Draw the designation of a model, such as "X-210"."""
    letters = rng.choice(("X", "S", "Pro", "GT", "Mini", "K", "Air", "Z", "T", "One", "Max"))
    return f"{letters} {rng.randint(2, 99) * 10}" if rng.random() < 0.5 else f"{letters}-{rng.randint(1, 99)}"


NAME_PARTS: Mapping[str, Callable[[random.Random], str]] = {
    "coined": draw_coined,
    "sign": draw_sign,
    "model": draw_model,
    "title": draw_title,
    "last": lambda rng: rng.choice(_LAST),
    "city": lambda rng: rng.choice(CITIES),
    "number": lambda rng: str(rng.randint(2, 499)),
    "noun": lambda rng: rng.choice(_NOUNS),
}
"""What draws each part of a name's pattern."""


def fill_name(pattern: str, rng: random.Random) -> str:
    """Fill the parts of a pattern that are in braces, such as ``{coined}`` and ``{city}``."""
    for key, draw in NAME_PARTS.items():
        if f"{{{key}}}" in pattern:
            pattern = pattern.replace(f"{{{key}}}", draw(rng))
    return pattern
