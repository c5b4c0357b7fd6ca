"""The parity report: an exported graph against its PyTorch checkpoint on the fixed texts.

The checkpoint runs once, into a ``Reference``; every candidate graph is then compared with that. Batches are padded, so
masks are compared too. Each other module of this package says what is compared for the kinds of models it names.
"""

from .outcome import Reference

__all__ = ["Reference"]
