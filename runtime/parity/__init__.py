"""Comparison of a bundle's answers with recorded ones, and of outputs with those of the checkpoints."""
