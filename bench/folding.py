"""CPU seconds of one score, by the shape of its response and its length: what the engine does beside the models.

    python -m bench.folding [--lengths 2500 5000 10000 20000] [--shapes no digits …] [--metrics NAME …]

The models are fakes that doubt the response, every other sentence and every other word. So what is measured is the
engine: reading the response, the rules, and the fold from results to verdicts and marked words.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundwire.engine import Engine, Options
from groundwire.runtime.bundles.bundle import open_bundles
from groundwire.runtime.bundles.calibration import join_calibrations
from groundwire.runtime.calls import (
    AnswerRead,
    Classified,
    ClassifiedToken,
    ClassifiedTokens,
    Classify,
    ClassifyTokens,
    Read,
    ReadAnswer,
)
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome

RESULTS = Path(__file__).with_name("results") / "folding.json"
KNOWLEDGE = "The shop opens at 9 am on weekdays. A ticket costs 12 euros, and children pay nothing."
SHAPES = {
    "no": "No. ",
    "letters": "A b.\n",
    "digits": "1\n",
    "json": '{"a":1,"b":2},\n',
    "rows": "| Mon | 8 am | 13 euros |\n",
    "html": "<p>It costs 13 euros.</p>\n",
    "latex": "\\(x = 12\\) and \\frac{1}{2}. ",
    "ranges": "9-17, ",
    "words": "a ticket and the shop ",
    "code": "`x = 12` ",
    "clauses": "a ticket costs 13 euros and ",
    "items": "- Ticket: 13 euros\n",
    "said": '"It opens at 9," said Ann. ',
    "sentences": "A ticket costs 13 euros, and the shop opens at 8 am. ",
}
"""What a response repeats."""


READ = Read(1, 1, 1)
DOUBTED, SUPPORTED = 0.02, 0.9
"""Probabilities of support."""


def make_runtime() -> FakeRuntime:
    """Return fake models with the roles, heads and calibration of the embedded bundles."""
    bundles = open_bundles("compact")
    roles = {name: role for bundle in bundles for name, role in bundle.manifest.roles.items()}
    heads = roles["reader"].info.heads
    labels = roles["token_classifier"].info.labels
    support = {"nli": DOUBTED, "detector.consistency": DOUBTED, "detector.verifiability": SUPPORTED}

    def share(size: int, support: float) -> tuple[float, ...]:
        return (support, 1 - support, *[0.0] * (size - 2))

    def split(text: str, size: int) -> tuple[ClassifiedToken, ...]:
        """Every other word is doubted."""
        supports = itertools.cycle((SUPPORTED, DOUBTED))
        matches = re.finditer(r"\w+|[^\w\s]", text)
        return tuple(
            ClassifiedToken(*match.span(), share(size, support))
            for match, support in zip(matches, supports, strict=False)
        )

    def classify(call: Classify) -> Classified:
        names = roles[call.role].info.labels
        shares = dict(zip(names, share(len(names), support[call.role]), strict=True))
        return Classified(max(shares, key=shares.__getitem__), shares, 0, READ, shares[names[0]])

    def flag(call: ClassifyTokens) -> ClassifiedTokens:
        return ClassifiedTokens(labels, split(call.text, len(labels)), READ)

    def read(call: ReadAnswer) -> AnswerRead:
        """The answer is doubted, and every other sentence."""
        whole = {
            name: share(len(head.labels), SUPPORTED if name == "verifiability" else DOUBTED)
            for name, head in heads.items()
            if head.unit == "answer"
        }
        supports = itertools.cycle((DOUBTED, SUPPORTED))
        sizes = {head.unit: len(head.labels) for head in heads.values()}
        of_sentences = tuple(share(sizes["sentence"], next(supports)) for _ in call.sentences)
        return AnswerRead(whole, of_sentences, split(call.answer, sizes["token"]), READ)

    answers: dict[str, Callable[[Any], Outcome]] = {"reader": read, "token_classifier": flag}
    answers |= dict.fromkeys(support, classify)
    return FakeRuntime(
        answers,
        role_info={name: role.info for name, role in roles.items()},
        calibration=join_calibrations([bundle.manifest.calibration for bundle in bundles]),
    )


def measure(engine: Engine, shape: str, length: int, metrics: str | None) -> tuple[float, int]:
    """Return the CPU seconds of all threads for a response of ``length`` characters, and its number of sentences."""
    response = (shape * length)[:length]
    options = Options(deadline_ms=None, max_response_chars=length)
    started = time.process_time()
    score = engine.score(response, KNOWLEDGE, metrics=metrics, options=options)
    seconds = time.process_time() - started
    stopped = [
        result.message for result in score.metrics.values() if result.status not in ("scored", "nothing_to_verify")
    ]
    assert score.verdict.label != "unknown", score.verdict.message
    assert not stopped, stopped
    return seconds, len(score.sentences)


def main() -> None:
    """Print and save the seconds for each length, and by how much each doubling multiplies them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[2_500, 5_000, 10_000, 20_000])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--metrics", help="a group of metrics; by default the default ones")
    arguments = parser.parse_args()
    rows = []
    with Engine(make_runtime()) as engine:
        measure(engine, "It is. ", 100, arguments.metrics)
        for name in arguments.shapes:
            measured = [measure(engine, SHAPES[name], length, arguments.metrics) for length in arguments.lengths]
            seconds = [time for time, _ in measured]
            doublings = [later / earlier for earlier, later in itertools.pairwise(seconds)]
            rows.append({"shape": name, "seconds": seconds, "doublings": doublings, "sentences": measured[-1][1]})
            cells = "  ".join(f"{second:6.2f} s" for second in seconds)
            ratios = "  ".join(f"{ratio:4.2f} ×" for ratio in doublings)
            print(f"{name:10} {cells}   doublings {ratios}   {measured[-1][1]} sentences", flush=True)
    RESULTS.write_text(json.dumps({"lengths": arguments.lengths, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
