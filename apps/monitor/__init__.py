"""What verdicts say about traffic without labels: how much is inconsistent, where, and whether that changes."""
