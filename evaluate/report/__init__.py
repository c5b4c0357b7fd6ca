"""The HTML report of an evaluation: tables, plots, page."""
