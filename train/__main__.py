"""``python -m groundwire.train``."""

from .cli import app

app(prog_name="python -m groundwire.train")
