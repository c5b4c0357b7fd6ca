"""Response generation by PMI-Decode, with optional scoring and ranking of the candidates."""
