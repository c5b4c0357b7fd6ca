"""Worker processes of an engine: the engine admits and answers requests, the processes compute metrics."""
