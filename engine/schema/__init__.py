"""The records that callers pass and get, and the checks of what they pass."""
