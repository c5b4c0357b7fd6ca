"""Benchmarks: each checks the answers it times and writes one JSON file; README.md says how to read them."""
