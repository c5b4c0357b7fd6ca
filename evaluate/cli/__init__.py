"""The commands ``evaluate``, ``compare`` and ``calibrate``."""
