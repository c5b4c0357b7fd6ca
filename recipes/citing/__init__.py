"""Fits and measures the metric ``citations`` on claims whose evidence is known."""
