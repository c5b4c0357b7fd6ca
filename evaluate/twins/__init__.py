"""Made errors: small edits that make a consistent response inconsistent, and say where."""
