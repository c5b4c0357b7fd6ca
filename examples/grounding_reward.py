"""A reward for trainers such as TRL's GRPOTrainer: how probable it is that the knowledge supports a completion.

``GRPOTrainer(reward_funcs=reward_grounding, …)`` passes the columns of the data set by name: give it one ``knowledge``.
The reward is deterministic, and does not depend on the other completions of the batch. It is None where the engine gave
no verdict, and TRL leaves it out. Small talk earns nothing, so that a model does not learn to say nothing.
"""

from __future__ import annotations

from typing import Any

from groundwire.engine import default_engine


def reward_grounding(completions: list[Any], knowledge: list[Any], **columns: Any) -> list[float | None]:
    """Return a reward from 0 to 1 for each completion, which is a text or a list of messages."""
    texts = [completion if isinstance(completion, str) else completion[-1]["content"] for completion in completions]
    scores = default_engine().score_many(zip(texts, knowledge, strict=True), metrics="fast")
    verdicts = [score.verdict for score in scores]
    return [0.0 if verdict.label == "unverifiable" else verdict.probability for verdict in verdicts]


def main() -> None:
    """Print the rewards of three completions to one prompt."""
    completions = ["The tower is 324 metres tall.", "The tower is 300 metres tall.", "What a nice question!"]
    for completion, reward in zip(
        completions, reward_grounding(completions, ["The tower is 324 metres tall."] * 3), strict=True
    ):
        print(f"{reward:.2f}  {completion}")


if __name__ == "__main__":
    main()
