"""Beam search, greedy search and sampling over a decoder step."""
