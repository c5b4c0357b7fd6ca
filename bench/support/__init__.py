"""What several benchmarks share: timing, texts, peers, random models, and processes that they start."""
