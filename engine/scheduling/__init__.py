"""Runs the model calls of every request in flight, and merges those that can share a batch."""
