"""False twins of right answers: small edits that make a consistent response inconsistent, and say where."""
