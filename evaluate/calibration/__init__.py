"""Fits what a verdict needs from labelled examples."""
