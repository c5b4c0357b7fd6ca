"""The kinds of models: how each is loaded, converted to ONNX graphs, verified and recorded in the manifest.

``registry.py`` lists the kinds and ``kind.py`` says what a kind defines. Each kind is one module, or a package with a
module ``kind.py`` where the conversion is long; ``encoder.py`` and ``generation/`` are shared by several kinds.
"""
