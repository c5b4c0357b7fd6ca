"""Training examples made from other data: perturbations, chat style, weak labels."""
