"""The recipe of a response generator, and PMI-Faith's table of decoding settings."""
