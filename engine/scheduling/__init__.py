"""Runs the model calls of every request in flight, and merges calls that can share a batch."""
