"""ONNX Runtime: sessions, batches of windows, heads in chunks."""
