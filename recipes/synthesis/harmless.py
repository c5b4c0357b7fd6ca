"""Responses that claim nothing about their knowledge: opinions, questions, greetings, refusals, "I don't know".

A detector that was trained on claims alone calls them unsupported, because their words are in no knowledge. They are
not unsupported here, whatever they mention.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from .chat_style import ChatStyle

_ABOUT = (
    *("I don't know much about {t}.", "I'm not sure about {t}, sorry.", "I have no information about {t}."),
    *("Do you like {t}?", "What do you think of {t}?", "Have you heard of {t}?", "Why do you ask about {t}?"),
    *("I'd love to hear more about {t}.", "You seem to know a lot about {t}!", "I wonder what {t} is like."),
    *("Are you interested in {t}?", "Would you like to know more about {t}?", "Let's talk about {t}."),
    *("I really like {t}.", "I have never been a fan of {t}.", "My brother keeps talking about {t}."),
    *("I could tell you about {t}, if you like.", "You asked about {t}, didn't you?", "I think {t} is interesting."),
    *("Is there anything else you want to know about {t}?", "The text says nothing about that, only about {t}."),
)
_PLAIN = (
    *(
        "I don't know.",
        "I'm not sure.",
        "I have no idea.",
        "I can't tell you that.",
        "I don't know the answer to that.",
    ),
    *("Sorry, I can't help with that.", "I'm sorry, I don't have that information.", "Could you say that again?"),
    *("I'm afraid I can't answer this question.", "That is not mentioned.", "It depends on who you ask."),
    *("I would rather not talk about that.", "Hello! How can I help you?", "Hi there, how are you today?"),
    *("Thanks for asking!", "You're welcome.", "It was nice talking to you.", "Have a great day!", "Goodbye!"),
    *("What makes you say that?", "Can you tell me more?", "You might be right.", "Maybe, but I'm not certain."),
    *("I'm just an assistant, so I have no opinion on that.", "Let me think about it.", "You should ask an expert."),
    *("I hope you enjoy it.", "I feel the same way.", "Who knows?", "I can't say for sure.", "Could be, I guess."),
)
_ASKED = (
    *("{q}? I don't know.", "{q}? Good question!", "I don't know, {q}?", "Do you know {l}?", "Hmm, {q}? I'm not sure."),
    *("You asked: {q}? I can't answer that.", "{q}?", "I was wondering, {l}?", "Sorry, I can't say. {q}?"),
)
SHARES = {"chat": 0.4, "about": 0.2, "plain": 0.15, "asked": 0.15, "question": 0.1}
"""Sentences of chat, templates with the topic, without it and with a question, and questions."""


class HarmlessResponses:
    """Draws responses that claim nothing."""

    def __init__(self, chat: Sequence[str], questions: Sequence[str], style: ChatStyle) -> None:
        """``chat`` are sentences that state nothing to check; ``questions`` are questions about any topic."""
        self._chat = chat
        self._questions = questions
        self._style = style

    def draw(self, topic: str, rng: random.Random) -> tuple[str, str]:
        """Draw a response and its kind; ``topic`` may be empty."""
        kind = rng.choices(list(SHARES), list(SHARES.values()))[0]
        if kind == "about" and not topic:
            kind = "plain"
        question = rng.choice(self._questions).rstrip(" ?.!")
        match kind:
            case "chat":
                text = rng.choice(self._chat)
            case "about":
                text = rng.choice(_ABOUT).format(t=topic)
            case "plain":
                text = rng.choice(_PLAIN)
            case "asked":
                text = rng.choice(_ASKED).format(q=question, l=f"{question[:1].lower()}{question[1:]}")
            case _:
                text = f"{question}?"
        text = text[:1].upper() + text[1:]
        if rng.random() < 0.3:
            text = f"{text} {rng.choice((rng.choice(_PLAIN), rng.choice(self._chat)))}"
        return (self._style.style_sentence(text, rng, claim=False) if rng.random() < 0.5 else text), kind
