"""Measures ``Engine.correct`` on small edits of true responses, whose originals are known."""
