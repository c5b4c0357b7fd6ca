"""Coverage-guided fuzzing of what reads files that somebody else made."""
