"""Scores of labelled examples: computed once, stored, and read again."""
