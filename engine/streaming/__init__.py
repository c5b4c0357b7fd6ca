"""Checks a response while it is written, and holds back what is not checked yet."""
