"""Lean inference: bundles, ONNX Runtime sessions, and the models that answer calls. No torch, no transformers."""
