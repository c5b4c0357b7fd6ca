"""The fixed calls whose answers a bundle keeps (``groundwire.runtime.parity.recorded``), from the fixed texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundwire.runtime.bundles.manifest import (
    EmbedderRole,
    LanguageModelRole,
    QuestionGeneratorRole,
    ResponseGeneratorRole,
    RetrieverRole,
    Role,
    TokenClassifierRole,
)
from groundwire.runtime.calls import BeamSearch, ClassifyTokens, Embed, Generate, GenerateQuestions, ScoreText
from groundwire.runtime.parity.recorded import RecordedCall

from .retrieval_calls import calls as list_retrievals
from .texts import EXAMPLES

SEARCHES = tuple(BeamSearch(max_new_tokens=tokens) for tokens in (1, 2, 3, 20))
"""For each source the five best sequences after each of the first three steps, and whole questions."""
RESPONSE_TOKENS = 12


def list_calls(roles: Mapping[str, Role]) -> dict[str, Sequence[RecordedCall]]:
    """The calls of each role that keeps answers."""
    calls = {name: list_role_calls(name, role) for name, role in roles.items()}
    return {name: of_role for name, of_role in calls.items() if of_role}


def list_role_calls(name: str, role: Role) -> Sequence[RecordedCall]:
    """The calls of a role; none for roles that keep the logits of their checkpoints."""
    match role:
        case QuestionGeneratorRole():
            return [GenerateQuestions(text.answer, text.passage, search) for search in SEARCHES for text in EXAMPLES]
        case ResponseGeneratorRole():
            search = BeamSearch(num_beams=4, num_return_sequences=4, max_new_tokens=RESPONSE_TOKENS)
            return [Generate((text.passage,), (text.question,), search) for text in EXAMPLES]
        case LanguageModelRole():
            return [ScoreText((before,), text.claim) for text in EXAMPLES for before in (text.passage, text.question)]
        case EmbedderRole():
            return [Embed(text.claim) for text in EXAMPLES]
        case RetrieverRole():
            return list_retrievals()
        case TokenClassifierRole() if not isinstance(role.reference, str):
            return [ClassifyTokens(name, (text.passage,), text.claim) for text in EXAMPLES]
        case _:
            return ()
