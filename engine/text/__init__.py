"""Words and sentences of a text by rules alone, the same for every bundle."""
