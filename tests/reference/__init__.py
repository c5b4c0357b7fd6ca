"""Slow, obvious twins of the fast functions, for property tests."""
