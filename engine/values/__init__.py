"""Finds the values in texts (numbers, dates, names) and compares those of a response with those of its knowledge."""
