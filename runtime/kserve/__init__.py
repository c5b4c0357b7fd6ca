"""Graphs on a server that speaks the Open Inference Protocol, version 2: Triton, KServe, MLServer."""
