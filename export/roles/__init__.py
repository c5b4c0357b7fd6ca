"""One kind of model per module: from its checkpoint to its graphs."""
