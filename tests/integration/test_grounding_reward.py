"""The reward of the examples, on the embedded bundle."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from groundwire.runtime.bundles.bundle import embedded

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "grounding_reward.py"
KNOWLEDGE = "The tower is 324 metres tall."
RIGHT, WRONG, SMALL_TALK = "The tower is 324 metres tall.", "The tower is 300 metres tall.", "What a nice question!"


@pytest.mark.skipif("compact" not in embedded(), reason="this checkout does not have the embedded bundle")
def test_the_reward_is_deterministic_and_prefers_what_the_knowledge_supports() -> None:
    reward = runpy.run_path(str(EXAMPLE), run_name="example")["reward_grounding"]
    texts = [RIGHT, WRONG, SMALL_TALK, ""]
    rewards = reward(completions=texts, knowledge=[KNOWLEDGE] * 4, prompts=["How tall is it?"] * 4)
    right, wrong, small_talk, empty = rewards
    assert right > 0.5 > wrong
    assert (small_talk, empty) == (0.0, None)
    alone = [reward(completions=[text], knowledge=[[KNOWLEDGE]])[0] for text in reversed(texts)]
    assert alone[::-1] == rewards
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    assert reward(completions=chats, knowledge=[KNOWLEDGE] * 4) == rewards
