"""Neural Path Hunter: the recipes of critic and retriever, and the dialogues that they are trained on."""
