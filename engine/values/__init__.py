"""Finds the values in texts (numbers, dates, names) and compares the response with its knowledge by them."""
