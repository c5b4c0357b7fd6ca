"""Training examples made from other data: statements, pairs, prompts, perturbations, chat style, weak labels."""
