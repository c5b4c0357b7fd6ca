"""Bundles: their files, manifest and calibration, where they are found, and what reads their bytes."""
