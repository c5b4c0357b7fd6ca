"""Lean inference: bundles, ONNX Runtime sessions, and the models that answer calls. No torch, no transformers."""

if __name__ != "groundwire.runtime":  # a second copy of every class
    raise ImportError("This folder is the source of groundwire.runtime: import that.")
