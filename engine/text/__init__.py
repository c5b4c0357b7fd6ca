"""Splits texts into words and sentences by rules, without a model."""
