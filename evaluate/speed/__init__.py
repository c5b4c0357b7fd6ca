"""How fast a bundle is on this machine: times and rates, what they were measured on, and their plot.

``groundwire bench`` measures a bundle of one's own; the project's benchmarks (``bench/`` of the repository) record
their results by the same types.
"""
