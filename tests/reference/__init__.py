"""Reference implementations of the fast functions, slow and simple, for property tests."""
