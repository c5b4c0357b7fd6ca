"""Small talk: openings, closings, and turns that introduce an entity, ``{e}``."""

from __future__ import annotations

GREETINGS = (
    "hello, how are you?",
    "hi there!",
    "good evening.",
    "I have some time today.",
    "what shall we talk about?",
    "I would like to know something.",
    "can you help me?",
    "hey, I have a question for you.",
)
INTRODUCTIONS = (
    "do you know {e}?",
    "have you heard of {e}?",
    "tell me something about {e}.",
    "I like {e}.",
    "what do you think of {e}?",
    "what can you tell me about {e}?",
    "my friend keeps talking about {e}.",
    "I have just read about {e}.",
    "I am a big fan of {e}.",
    "can you give me some information about {e}?",
    "I don't know much about {e}.",
    "somebody told me about {e} yesterday.",  # terms: literal
)
LIKES = (
    "I really liked {e}.",
    "the last one I enjoyed was {e}.",
    "{e} was great, do you know anything like that?",
    "I know a lot about {e} already.",
    "not long ago I heard about {e}.",
    "I have always been interested in {e}.",
)
"""Turns about an entity that the response need not mention."""
ON_LIKED = (
    "If you like {e}, you may like that too.",
    "I am interested in {e} as well.",
    "I like {e} too!",
    "What did you like about {e}?",
    "It reminds me a bit of {e}.",
    "Why do you like {e}?",
)
ON_TOPIC = (
    "I like {e} a lot.",
    "Is {e} a favourite of yours?",
    "Do you want to know more about {e}?",
    "I can tell you more about {e}.",
    "What do you think of {e}?",
)
OPENINGS = (
    "Yes,",
    "Yes!",
    "Sure!",
    "Sure,",
    "Of course.",
    "I think",
    "I believe",
    "As far as I know,",
    "Well,",
    "I know that",
    "I see that",
    "Actually,",
    "Good question!",
    "Oh, that is a good one.",
    "I love that.",
    "Let me see.",
    "Yeah,",
    "You are right,",
    "It says here that",
    "From what I have read,",
    "Thanks for asking!",
    "I am glad you ask.",
    "Definitely!",
    "Hmm,",
    "I have heard that",
    "I'm pretty sure that",
)
CLOSINGS = (
    "Have you seen it?",
    "Would you like to know more?",
    "Is that what you were looking for?",
    "I think you would like it.",
    "It is one of my favourites.",
    "Do you want me to look for something similar?",
    "Anything else?",
    "I hope that helps!",
    "What else would you like to know?",
    "That was a long time ago.",
    "I really enjoyed it.",
    "It got good reviews.",
    "Isn't that interesting?",
    "I did not know that before.",
    "People still talk about it.",
    "You should give it a try.",
    "Are you interested?",
    "That's all I know.",
    "My sister told me so.",  # terms: literal
    "What do you think?",
    "It is very popular these days.",
    "I saw that on television last week.",
)
ANSWERS = (
    "{e}.",
    "It's {e}.",
    "That would be {e}.",
    "{e}, I think.",
    "I believe it's {e}.",
    "The answer is {e}.",
    "{e}, of course.",
    "It was {e}, if I remember correctly.",
)
YEARS = ("In {e}.", "It was in {e}.", "{e}, I think.", "That was in {e}.", "I think in {e}.")
GENERIC = (
    "the {p} of {s} is {o}",
    "for {s} the {p} is {o}",
    "{s} has {o} as {p}",
    "when it comes to {p}, {s} goes with {o}",
    "{o} is the {p} of {s}",
    "the {p} that belongs to {s} is {o}",
)
"""For relations without phrases of their own; ``{p}`` is the predicate in words."""
GENERIC_FORWARD = ("has {o} as {p}", "has the {p} {o}", "has a {p} called {o}", "and {o} belong together ({p})")
GENERIC_INVERSE = ("is the {p} of {s}", "is {p} for {s}", "is known as the {p} of {s}")
IDLE = (
    "I am not sure, sorry.",
    "I don't know much about that.",
    "You're welcome!",
    "That sounds great, enjoy!",
    "What kind of music do you like?",
    "Do you prefer comedies or dramas?",
    "I have no information about that.",
    "Yes, I like it a lot.",
    "It is a wonderful movie, I have seen it twice with my family.",
    "I usually watch films at the weekend.",
    "No, I have not. What is it about?",
    "Glad I could help. Have a nice day!",
    "I enjoy reading in the evening, and you?",
    "Sure, what would you like to know?",
    "The story is touching and the actors are very good.",
    "It was a great success when it came out.",
    "I would have to look that up.",
    "That is a matter of taste, I guess.",
    "It has a surprising ending, but I will not spoil it.",
    "My brother plays in a band, so he knows more about that than I do.",
)
"""Responses that mention no entity."""
