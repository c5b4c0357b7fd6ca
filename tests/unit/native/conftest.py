from __future__ import annotations

from hypothesis import settings

# The reference implementations are slow by design, and a busy machine makes them slower: a deadline would only flake.
settings.register_profile("native", deadline=None)
settings.load_profile("native")
