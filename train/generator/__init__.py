"""The recipe of response generators, and PMI-Faith's table of decoding settings."""
