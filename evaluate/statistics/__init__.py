"""Figures from stored scores, with intervals; no model runs here."""
