"""The detector of Conv-FEVER: its corpus and its recipe."""
