"""The models that answer calls, one kind per module."""
