"""Rank candidate responses to one turn: document and history are read once for all of them."""

from __future__ import annotations

from groundwire.engine import Engine

KNOWLEDGE = "Rembrandt painted The Night Watch in 1642; it hangs in the Rijksmuseum in Amsterdam."
HISTORY = ["Who painted the Night Watch?"]
CANDIDATES = [
    "Vermeer painted it in 1650, and you can see it in Berlin.",
    "Rembrandt painted it in 1642, and you can see it in Amsterdam.",
    "I like pictures of the sea.",
]


def main() -> None:
    """Print the candidates, the best supported first, with the value of PMI-Faith in nats per token."""
    with Engine.load("compact") as engine:
        for candidate in engine.rank(CANDIDATES, KNOWLEDGE, history=HISTORY, metric="pmi"):
            print(f"{candidate.result.value:6.2f}  {candidate.response}")


if __name__ == "__main__":
    main()
