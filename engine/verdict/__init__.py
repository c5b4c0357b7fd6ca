"""From the metrics' results to one score: features, decision, unsupported spans."""
