"""Responses written from their knowledge, and checked: PMI-Decode behind the engine's door."""
