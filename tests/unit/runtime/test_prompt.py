"""The contexts of a response generator."""

from __future__ import annotations

import pytest

from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.models.prompt import check_prompt, fill_prompt

PROMPT = ("Document: {knowledge}\n\n", "{history}.\n", "Agent:")


@pytest.mark.parametrize(
    ("prompt", "knowledge", "history", "grounded", "alone"),
    [
        (PROMPT, ["a", "b"], ["c", "d"], ["Document: a b\n\n", "c\nd.\n", "Agent:"], ["c\nd.\n", "Agent:"]),
        (PROMPT, ["a", " "], ["", "d"], ["Document: a\n\n", "d.\n", "Agent:"], ["d.\n", "Agent:"]),
        (PROMPT, ["a"], [], ["Document: a\n\n", "Agent:"], ["Agent:"]),
        (PROMPT, [], ["c"], ["c.\n", "Agent:"], ["c.\n", "Agent:"]),
        (PROMPT, ["{history}"], ["{knowledge} }{"], ["Document: {history}\n\n", "{knowledge} }{.\n", "Agent:"],
         ["{knowledge} }{.\n", "Agent:"]),
        (("{history}|", "<{knowledge}>"), ["a"], ["c"], ["c|", "<a>"], ["c|"]),
        (("{history}", "<{knowledge}>"), ["a"], [" "], ["<a>"], []),
    ],
)  # fmt: skip
def test_a_prompt_is_filled_with_and_without_knowledge(
    prompt: tuple[str, ...], knowledge: list[str], history: list[str], grounded: list[str], alone: list[str]
) -> None:
    assert fill_prompt(prompt, knowledge, history) == (grounded, alone)


@pytest.mark.parametrize("prompt", [PROMPT, ("{history}", "{knowledge}")])
def test_a_prompt_names_both(prompt: tuple[str, ...]) -> None:
    check_prompt(prompt)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ((), "once each"),
        (("{knowledge}",), "once each"),
        (("{history}", "{knowledge}", "{knowledge}"), "once each"),
        (("{history}", "{knowledge}", "{response}"), "no other braces"),
        (("{history}", "{knowledge}", "}"), "no other braces"),
        (("{knowledge} {history}",), "a piece of its own"),
    ],
)
def test_other_prompts_are_refused(prompt: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_prompt(prompt)
