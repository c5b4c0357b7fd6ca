"""Texts to tokens: tokenizers, windows and slices of long texts, and what a model cannot read of a text."""
