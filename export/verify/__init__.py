"""The parity report: an exported graph against its PyTorch checkpoint on the fixed texts.

The checkpoint runs once, into ``ReferenceOutputs``; every candidate graph is then compared with them. Batches are
padded, so masks are compared too. Each other module of this package says what is compared for the models it names.
"""

from .outcome import ReferenceOutputs

__all__ = ["ReferenceOutputs"]
