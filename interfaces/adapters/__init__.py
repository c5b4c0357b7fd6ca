"""Groundwire's decoding inside other programs. Each module needs the extra of its name."""
