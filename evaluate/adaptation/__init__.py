"""Fits a bundle to a user's own labelled rows: the head of its detector, the calibration, and what that bought.

The encoder stays as it is, so every row is read once, and fits are fast enough to be repeated without each part of the
rows. Nothing is trained on the rows that the report is about.
"""
