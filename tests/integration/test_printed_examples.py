"""The examples that the four papers print, and what the default verdict should say of each.

An example that is expected to fail is one that the embedded models get wrong: the test fails when that changes, so that
the mark is taken away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from groundwire.engine import Engine
from groundwire.engine.schema.results import Label
from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif(
    not {"compact", "reader"} <= set(embedded()), reason="this checkout has no embedded bundles"
)
Triples = tuple[tuple[str, str, str], ...]


class Printed(NamedTuple):
    """One example of a paper."""

    where: str
    label: Label
    response: str
    knowledge: str = ""
    history: tuple[str, ...] = ()
    triples: Triples = ()
    wrong: bool = False
    """Whether the embedded models get it wrong."""


BIG_FOUR = (
    "In tennis, the term Big Four refers to the quartet of men's singles players comprising Roger Federer, Rafael "
    "Nadal, Novak Djokovic, and Andy Murray."
)
MURRAY = (
    "What do you think about Murray?",
    "I think Murray is a great player he just needs to stay healthy in order to compete more. Who do you like best?",
)
LIFTED = (
    "Use by a wider audience only came in 1995 when restrictions on the use of the Internet to carry commercial "
    "traffic were lifted."
)
INTERNET = (
    "I couldn't imagine living when internet access was rare",
    "Oh me either! It seems like such a long time ago. I wonder when Internet was first created?",
)
PECAN = "Pecan pie Pecan pie is often served with whipped cream, vanilla ice cream, or hard sauce."
BUSHWALKING = (
    "Hiking The term bushwalking is endemic to Australia, having been adopted by the Sydney Bush Walkers club in 1927."
)
CANDY = (
    "I'm curious to know about Dylan's Candy Bar",
    "Dylan's candy bar is a chain of boutique candy shop",
    "Who founded it?",
    "It is owned Dylan Lauren",
    "What year was it founded?",
)
INSURANCE = (
    "What happens if I had a lapse of insurance coverage during active duty? You are required to maintain continuous "
    "coverage or surrender your plates before deployed. If you were unable to do so , DMV has a procedure in place to "
    "exempt you from administrative actions upon your return. You must provide a notarized statement that the vehicle "
    "was not used during the time in question, a copy of your military ID, proof of current insurance or surrender of "
    "plates, and signed and dated copies of deployment and return papers, or DD-214 if separated from service."
)
DEPLOYED = (
    "lost my insurance while on active duty and have some questions",
    "You are required to maintain continuous coverage or surrender your plates before being deployed. Were you unable "
    "to keep your insurance while on active duty?",
    "yes, it just wasn't on my mind and I don't get notices and anything like that while deployed",
)
WITHDRAW = (
    "Withdraw Your Application. Sometimes , life changes occur after you submit your application. You have up to 12 "
    "months to withdraw your application, if you change your mind. You will be required to repay any benefits you ve "
    "already received. Learn more about Withdrawing Your Social Security Retirement Application."
)
DAHL = (
    ("The BFG", "written by", "Roald Dahl"),
    ("Charlie and the Chocolate Factory", "written by", "Roald Dahl"),
    ("You Only Live Twice", "written by", "Roald Dahl"),
    ("James and the Giant Peach", "written by", "Roald Dahl"),
)
WITCHES = (
    "Do you know the book The Witches?",
    "The Witches is written by Roald Dahl. He also wrote The Champion of the World.",
)
JEUNET = (
    ("Alien: Resurrection", "directed by", "Jean Pierre Jeunet"),
    ("A Very Long Engagement", "directed by", "Jean Pierre Jeunet"),
    ("Amélie", "directed by", "Jean Pierre Jeunet"),
)
# Conv-FEVER's table 1 prints no knowledge; another example's is in its place.
EXAMPLES = (
    Printed(
        "Q², table 1",
        "inconsistent",
        "coffee is very acidic. it has stimulating effects on humans.",
        "Coffee is slightly acidic and has a stimulating effect on humans because of its caffeine content.",
    ),
    Printed(
        "Q², table 1",
        "inconsistent",
        "in that time italian cuisine was influenced by french cuisine",
        "During that time, French cuisine was heavily influenced by Italian cuisine.",
    ),
    Printed(
        "Q², table 1",
        "inconsistent",
        "she was born in 1968 and raised in new york city.",
        "Born and raised in Michigan, Madonna moved to New York City in 1978 to pursue a career in modern dance.",
    ),
    Printed(
        "Q², table 1",
        "inconsistent",
        "me too! it's an american fashion company founded in 1854.",
        "Sephora is a French chain of cosmetics stores founded in 1969.",
    ),
    Printed(
        "Q², §5",
        "consistent",
        "purple is my favorite color. it's between red and blue.",
        "Purple is a color intermediate between blue and red.",
    ),
    Printed(
        "Q², §5",
        "inconsistent",
        "i'm not sure about that but i do know that they are reliant on vulnerable species!",
        "The giant panda is a conservation reliant vulnerable species.",
        wrong=True,
    ),
    Printed(
        "Conv-FEVER, figure 1",
        "unverifiable",
        "I like Federer and Nadal. I think Federer is the best.",
        BIG_FOUR,
        MURRAY,
        wrong=True,
    ),
    Printed("Conv-FEVER, figure 1", "consistent", "Rafael Nadal is my favorite of the Big Four.", BIG_FOUR, MURRAY),
    Printed(
        "Conv-FEVER, figure 1",
        "inconsistent",
        "I like Djokovic. He has played in the top ten singles players of the world.",
        BIG_FOUR,
        MURRAY,
    ),
    Printed(
        "Conv-FEVER, table 1",
        "unverifiable",
        "I like poutine and chili cheese fries too.",
        PECAN,
        ("Ketchup and potato chips go well together too.", "I like the crinkle cut fries too."),
        wrong=True,
    ),
    Printed(
        "Conv-FEVER, table 1",
        "unverifiable",
        "I agree, and I'm sure you'd enjoy a good cup of coffee!",
        PECAN,
        (
            "If everybody liked the same things the world would be such a dull place.",
            "I'm glad our differences can make the world interesting.",
        ),
    ),
    Printed(
        "Conv-FEVER, table 1",
        "unverifiable",
        "I would love to visit the museums there.",
        PECAN,
        ("i grew up in n.y. so i'm familiar with all that",),
        wrong=True,
    ),
    Printed(
        "Conv-FEVER, table 1",
        "unverifiable",
        "Do you like to flip them at all?",
        PECAN,
        ("How do you usually make pork steak, do you broil or pan fry them?", "I always pan fry them."),
    ),
    Printed(
        "Conv-FEVER, figure 2",
        "consistent",
        "It used to be restricted but around 1995, the restrictions were lifted and commercial use of it began",
        LIFTED,
        INTERNET,
    ),
    Printed(
        "Conv-FEVER, figure 2",
        "inconsistent",
        "It used to be restricted but around 1995, the restrictions weren't lifted and commercial use of it began",
        LIFTED,
        INTERNET,
    ),
    Printed(
        "Conv-FEVER, figure 2",
        "inconsistent",
        "It used to be restricted but around 1995, the restrictions were lifted and commercial use of it began",
        LIFTED.replace("1995", "1971"),
        INTERNET,
    ),
    Printed(
        "Conv-FEVER, appendix",
        "consistent",
        "Oh thats interesting! I love Pecan pie, it is often served with whipped cream, vanilla ice cream, or hard "
        "sauce.",
        PECAN,
        ("i didnt know vanilla was added into it",),
    ),
    Printed("Conv-FEVER, appendix", "consistent", BUSHWALKING, BUSHWALKING),
    Printed(
        "Conv-FEVER, appendix",
        "inconsistent",
        "It was founded in the late 1800s",
        "Dylan's Candy Bar It is owned by Dylan Lauren, daughter of fashion designer Ralph Lauren.",
        CANDY,
    ),
    Printed(
        "Conv-FEVER, appendix",
        "inconsistent",
        'I have read the book, I love "Taxi", which was released in 2005.',
        'Jimmy Fallon He left the program for the film industry, starring in films such as "Taxi" (2004) and "Fever '
        'Pitch" (2005).',
    ),
    Printed(
        "PMI-Faith, table 8",
        "unverifiable",
        "Unfortunately, no relevant information is found.",
        INSURANCE,
        DEPLOYED,
        wrong=True,
    ),
    Printed(
        "PMI-Faith, table 8",
        "consistent",
        "DMV has a procedure in place to exempt you from administrative actions upon your return. You must provide a "
        "notarized statement that the vehicle was not used during the time in question, a copy of your military ID , "
        "proof of current insurance or surrender of plates, and signed and dated copies of deployment and return "
        "papers , or DD-214 if separated from service.",
        INSURANCE,
        DEPLOYED,
    ),
    Printed(
        "PMI-Faith, figure 3",
        "consistent",
        "Yes, life changes occur after you submit your application. You have up to 12 months to withdraw your "
        "application if you change your mind.",
        WITHDRAW,
        ("Is it also possible to withdraw my application?",),
    ),
    Printed(
        "NPH, table 1",
        "inconsistent",
        "Yes he did. He also wrote The Time Machine and The Invisible Man.",
        history=WITCHES,
        triples=DAHL,
    ),
    Printed(
        "NPH, table 1",
        "consistent",
        "Yes he did. He also wrote The BFG and Charlie and the Chocolate Factory.",
        history=WITCHES,
        triples=DAHL,
    ),
    Printed(
        "NPH, table 8",
        "inconsistent",
        "Jean-Pierre jeunet directed The Bourne Ultimatum.",
        history=("Do you know of a movie directed by Jean Pierre Jeunet?",),
        triples=JEUNET,
    ),
    Printed(
        "NPH, table 8",
        "consistent",
        "Jean-Pierre jeunet directed Alien: Resurrection.",
        history=("Do you know of a movie directed by Jean Pierre Jeunet?",),
        triples=JEUNET,
    ),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load(device="cpu", threads=1) as loaded:
        yield loaded


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(
            example,
            id=f"{example.where}: {example.response[:40]}",
            marks=[pytest.mark.xfail(strict=True, reason="the embedded models get it wrong")] if example.wrong else [],
        )
        for example in EXAMPLES
    ],
)
def test_the_verdict_of_a_printed_example(engine: Engine, example: Printed) -> None:
    score = engine.score(example.response, example.knowledge, history=example.history, triples=example.triples)
    assert score.verdict.label == example.label
