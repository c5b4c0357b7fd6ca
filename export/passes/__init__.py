"""Graph passes, each a function that changes an ``onnx_ir.Model`` in place."""

from .fold import fold_transposes
from .half import to_half
from .int4 import quantize_blocks
from .int8 import Scheme, list_quantizable, quantize
from .qdq import add_quantization
from .rounding import round_to_half

__all__ = [
    "Scheme",
    "add_quantization",
    "fold_transposes",
    "list_quantizable",
    "quantize",
    "quantize_blocks",
    "round_to_half",
    "to_half",
]
