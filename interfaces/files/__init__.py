"""Requests from JSON Lines and CSV files, and results back to JSON Lines."""
