"""``python -m groundwire.recipes``."""

from .cli import app

app(prog_name="python -m groundwire.recipes")
