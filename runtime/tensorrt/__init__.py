"""TensorRT: engines of a bundle's target graphs, built by one command and run through TensorRT's own Python module."""
