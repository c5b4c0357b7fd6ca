"""Documents written by hand for training: knowledge of production bots and answers with two wordings of each place."""

from .documents import Document, Place, WrittenAnswer, read_documents
from .pairs import WrittenPair, WrittenPairs, WrittenRow, WrittenSpan
from .rows import write_rows

__all__ = [
    "Document",
    "Place",
    "WrittenAnswer",
    "WrittenPair",
    "WrittenPairs",
    "WrittenRow",
    "WrittenSpan",
    "read_documents",
    "write_rows",
]
