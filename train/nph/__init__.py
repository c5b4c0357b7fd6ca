"""Neural Path Hunter: the recipes of critic and retriever, and the dialogues they learn from."""
