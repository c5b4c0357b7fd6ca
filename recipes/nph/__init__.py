"""Neural Path Hunter: the recipes of critic and retriever, and the dialogues that they are trained on."""

from ..common import extra as _extra  # noqa: F401 - says what to install
